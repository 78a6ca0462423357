//===- Compile.cpp - stepc compile -----------------------------------------===//

#include "tools/stepc/Files.h"
#include "tools/stepc/Input.h"
#include "tools/stepc/Pipeline.h"

using namespace stepc;
using namespace stepc::driver;

/// The module's text. Locations stay out: they would tie the text to files.
static int emitModule(mlir::ModuleOp module, const CompileCommand &command, Report &report) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os);
  os << '\n';
  if (command.output == "-")
    return writeFile(report, "-", text) ? kSuccess : kInternalError;
  OutputFiles files(report, command.output);
  return files.addText((module.getSymName().value_or("module") + ".mlir").str(), text) && files.commit()
             ? kSuccess
             : kInternalError;
}

int driver::runCompile(const CompileCommand &command) {
  Input input;
  if (command.emit.empty() && command.output == "-") {
    input.report.error("expected a folder after -o for the library, found -");
    return kUsageError;
  }
  int exitCode = kSuccess;
  mlir::OwningOpRef<mlir::ModuleOp> module = input.load(command, exitCode);
  if (!module)
    return exitCode;
  Level target = command.emit.empty() ? Level::Llvm : *parseLevel(command.emit);
  if (int code = lowerTo(*module, target, command, input.report))
    return code;
  if (!command.emit.empty())
    return emitModule(*module, command, input.report);
  input.report.error("no code generation yet");
  return kInternalError;
}
