//===- main.cpp - stepc ----------------------------------------------------===//

#include "tools/stepc/Files.h"
#include "tools/stepc/Options.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

using namespace stepc::driver;

/// LLVM's own handler exits with 1, which would blame the input.
static void fatal(void *, const char *reason, bool) {
  llvm::errs() << "stepc: internal error: " << reason << "\nhint: " << kFaultOfStepc << '\n';
  llvm::sys::RunInterruptHandlers(); // removes temporary files
  llvm::errs().flush();
  std::_Exit(kInternalError);
}

/// If a standard file is closed, the next file that is opened would take its number. Therefore closed ones
/// are opened in a mode in which they still cannot be used.
static void occupyStandardFiles() {
  for (int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(number, F_GETFD) < 0)
      (void)!open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static int run(int argc, char **argv) {
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
  case CommandLine::Command::Optimizers:
    return runOptimizers(line.optimizers);
  case CommandLine::Command::None:
    break;
  }
  return kUsageError;
}

int main(int argc, char **argv) {
  occupyStandardFiles();
  llvm::InitLLVM initialize(argc, argv, /*InstallPipeSignalExitHandler=*/false);
  llvm::install_fatal_error_handler(fatal);
  // A pipe without a reader, and a file that may not grow, become errors of `write`, which says the reason.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  return finish(run(argc, argv));
}
