//===- Compile.cpp - stepc compile -----------------------------------------===//

#include "tools/stepc/Compile.h"

#include "passes/codegen/Codegen.h"
#include "passes/kernels/EmbedPlan.h"
#include "tools/stepc/Input.h"
#include "tools/stepc/Pipeline.h"

#include "llvm/Support/FileSystem.h"

using namespace stepc;
using namespace stepc::driver;
using llvm::StringRef;

/// The module's text. Locations stay out: they would tie the text to files.
static int emitModule(mlir::ModuleOp module, const CompileCommand &command, Report &report) {
  std::string text;
  llvm::raw_string_ostream os(text);
  // Numbers stay numbers, however many: people read and edit them.
  module->print(os, mlir::OpPrintingFlags().printLargeElementsAttrWithHex(-1));
  os << '\n';
  if (command.output == "-")
    return writeFile(report, "-", text) ? kSuccess : kInternalError;
  OutputFiles files(report, command.output);
  return files.addText((*module.getSymName() + ".mlir").str(), text) && files.commit()
             ? kSuccess
             : kInternalError;
}

int driver::makeLibrary(mlir::ModuleOp module, const CompileOptions &options, OutputFiles &files,
                        Report &report) {
  Progress progress("stepc");
  std::string name = module.getSymName()->str();
  auto fail = [&](llvm::Error error) {
    report.error(llvm::toString(std::move(error)));
    return kInternalError;
  };
  auto fault = [&](StringRef what) {
    // Edited text may be at level llvm and still say what nothing can be made of.
    if (isModulePath(options.input))
      return kInputError;
    report.internalError(what);
    return kInternalError;
  };
  llvm::FailureOr<plan::Plan> plan = kernels::embeddedPlan(module);
  if (failed(plan))
    return fault("the module has no plan");
  progress.stage("generating code");
  codegen::CodegenOptions codegen;
  codegen.sanitizer = options.sanitizer;
  llvm::FailureOr<std::vector<char>> object = codegen::emitObject(module, codegen);
  if (failed(object))
    return fault("no code could be generated");
  progress.stage("linking");
  llvm::Expected<std::string> archive = codegen::findRuntimeArchive(
      llvm::sys::fs::getMainExecutable(nullptr, nullptr), options.sanitizer);
  if (!archive)
    return fail(archive.takeError());
  std::string library = files.add("lib" + name + ".so");
  // What keeps one from being written keeps the other, and is said once.
  std::string header = library.empty() ? "" : files.add(name + ".h");
  if (header.empty())
    return kInternalError;
  if (llvm::Error error = codegen::linkLibrary(*object, name, *archive, library, options.sanitizer))
    return fail(std::move(error));
  if (llvm::Error error = codegen::writeHeader(*plan, header))
    return fail(std::move(error));
  return files.addText(name + ".json", codegen::planToJson(*plan)) ? kSuccess : kInternalError;
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
  std::string name = module->getSymName()->str();
  std::vector<std::string> written = {name + ".mlir"};
  if (command.emit.empty())
    written = {"lib" + name + ".so", name + ".h", name + ".json"};
  if (command.output != "-" && !canWrite(input.report, command.output, written))
    return kInputError;
  Level target = command.emit.empty() ? Level::Llvm : *parseLevel(command.emit);
  if (int code = lowerTo(*module, target, command, input.report))
    return code;
  if (!command.emit.empty())
    return emitModule(*module, command, input.report);
  OutputFiles files(input.report, command.output);
  if (int code = makeLibrary(*module, command, files, input.report))
    return code;
  return files.commit() ? kSuccess : kInternalError;
}
