//===- main.cpp - stepc ----------------------------------------------------===//

#include "tools/stepc/Options.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

using namespace stepc::driver;

/// LLVM's own handler exits with 1, which would blame the input.
static void fatal(void *, const char *reason, bool) {
  llvm::errs() << "stepc: internal error: " << reason << "\nhint: " << kFaultOfStepc << '\n';
  llvm::sys::RunInterruptHandlers(); // removes temporary files
  llvm::errs().flush();
  std::_Exit(kInternalError);
}

int main(int argc, char **argv) {
  llvm::InitLLVM initialize(argc, argv);
  llvm::install_fatal_error_handler(fatal);
  CommandLine line;
  int exitCode = kSuccess;
  if (!parseCommandLine(argc, argv, line, exitCode))
    return exitCode;
  switch (line.command) {
  case CommandLine::Command::Compile:
    return runCompile(line.compile);
  case CommandLine::Command::Check:
    return runCheck(line.check);
  case CommandLine::Command::Explain:
    return runExplain(line.explain);
  case CommandLine::Command::Simulate:
    return runSimulate(line.simulate);
  case CommandLine::Command::Format:
    return runFormat(line.format);
  case CommandLine::Command::Run:
    return runRun(line.run);
  case CommandLine::Command::Manifest:
    return runManifest(line.manifest);
  case CommandLine::Command::Probe:
    return runProbe(line.probe);
  case CommandLine::Command::None:
    break;
  }
  return kUsageError;
}
