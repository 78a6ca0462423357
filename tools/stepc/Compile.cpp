//===- Compile.cpp - stepc compile -----------------------------------------===//

#include "tools/stepc/Compile.h"

#include "frontends/text/Files.h"
#include "frontends/text/Text.h"
#include "passes/codegen/Codegen.h"
#include "passes/kernels/EmbedPlan.h"
#include "passes/kernels/TargetShape.h"
#include "tools/stepc/Input.h"
#include "tools/stepc/Pipeline.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace stepc;
using namespace stepc::driver;
using llvm::StringRef;

/// Writes the module's text. Locations are left out, because they would tie the text to files.
static int emitModule(mlir::ModuleOp module, const CompileCommand &command, Report &report) {
  std::string text;
  llvm::raw_string_ostream os(text);
  // Print constants as numbers, however many there are, because people read and edit them.
  module->print(os, mlir::OpPrintingFlags().printLargeElementsAttrWithHex(-1));
  os << '\n';
  if (command.output == "-")
    return writeFile(report, "-", {text}) ? kSuccess : kInputError;
  OutputFiles files(report, command.output);
  return files.addText((*module.getSymName() + ".mlir").str(), text) && files.commit()
             ? kSuccess
             : kInputError;
}

/// The name of the plan's file for a chip or target. The first plan's file has the name of the library alone.
static std::string planFile(StringRef name, StringRef chip, bool isFirst) {
  return isFirst ? (name + ".json").str() : (name + "." + programKey(chip) + ".json").str();
}

/// Turns an error about the library's unfinished file into an error about the folder that the user named.
/// Errors about temporary files stay as they are.
static llvm::Error namePlace(llvm::Error error, StringRef library) {
  StringRef folder = llvm::sys::path::parent_path(library);
  return llvm::handleErrors(std::move(error),
                            [&](std::unique_ptr<llvm::FileError> file) -> llvm::Error {
                              if (!StringRef(file->getFileName()).starts_with(folder))
                                return llvm::Error(std::move(file));
                              std::string reason = file->messageWithoutFileInfo();
                              StringRef why = reason;
                              why.consume_front("cannot write the file: ");
                              return text::fileError(llvm::sys::path::parent_path(folder),
                                                     "cannot write the library: " + why);
                            });
}

/// Returns what is wrong with a name of a plan; empty if nothing is. IR at level llvm has the plan as bytes,
/// so no name was checked when the IR was read.
static std::string checkNames(const plan::Plan &plan) {
  std::vector<StringRef> names = {plan.name};
  for (const plan::Mesh &mesh : plan.meshes) {
    names.push_back(mesh.name);
    names.insert(names.end(), mesh.axes.begin(), mesh.axes.end());
  }
  for (const plan::Rule &rule : plan.rules) {
    names.push_back(rule.name);
    names.insert(names.end(), rule.hyperparameters.begin(), rule.hyperparameters.end());
    for (const plan::State &state : rule.states)
      names.push_back(state.name);
  }
  for (const plan::Route &route : plan.routes)
    names.push_back(route.name);
  for (const plan::Group &group : plan.groups)
    names.push_back(group.name);
  for (const plan::Parameter &parameter : plan.parameters)
    names.push_back(parameter.name);
  for (StringRef name : names)
    if (std::string wrong = text::checkName(name, "names"); !wrong.empty())
      return wrong;
  return "";
}

int driver::makeLibrary(llvm::ArrayRef<mlir::OwningOpRef<mlir::ModuleOp>> modules,
                        const CompileOptions &options, OutputFiles &files, Report &report) {
  Progress progress("stepc");
  std::string name = modules.front().get().getSymName()->str();
  auto fail = [&](llvm::Error error) {
    bool isPlace = error.isA<llvm::FileError>();
    report.error(std::move(error));
    return isPlace ? kInputError : kInternalError;
  };
  auto fault = [&](StringRef what) {
    // IR text may be at level llvm, and still be nothing that can be compiled.
    if (isModulePath(options.input))
      return kInputError;
    report.internalError(what);
    return kInternalError;
  };
  progress.stage("generating code");
  codegen::CodegenOptions codegen;
  codegen.sanitizer = options.sanitizer;
  codegen.isQuick = options.optimize == 0;
  std::vector<codegen::Program> programs;
  for (const mlir::OwningOpRef<mlir::ModuleOp> &module : modules) {
    llvm::FailureOr<plan::Plan> plan = kernels::embeddedPlan(*module);
    if (failed(plan))
      return fault("the module has no plan");
    if (std::string wrong = checkNames(*plan); !wrong.empty()) {
      report.error(options.input, wrong);
      return kInputError;
    }
    llvm::FailureOr<std::vector<char>> object = codegen::emitObject(*module, codegen);
    if (failed(object))
      return fault("no code could be generated");
    programs.push_back({std::move(*plan), std::move(*object)});
  }
  progress.stage("linking");
  llvm::Expected<std::vector<std::string>> archives = codegen::findRuntimeArchives(
      llvm::sys::fs::getMainExecutable(nullptr, nullptr), options.sanitizer);
  if (!archives)
    return fail(archives.takeError());
  std::string library = files.add("lib" + name + ".so");
  // If the library cannot be written, neither can the header. The error is printed once.
  std::string header = library.empty() ? "" : files.add(name + ".h");
  if (header.empty())
    return kInputError;
  if (llvm::Error error = codegen::linkLibrary(programs, *archives, library, options.sanitizer))
    return fail(namePlace(std::move(error), library));
  if (llvm::Error error = codegen::writeHeader(programs, header))
    return fail(namePlace(std::move(error), library));
  for (const codegen::Program &program : programs)
    if (!files.addText(planFile(name, program.plan.chip, &program == &programs.front()),
                       codegen::planToJson(program.plan)))
      return kInputError;
  return kSuccess;
}

/// Returns false, after an error, if a file to write is also a file to read, as a manifest "x.json" beside
/// "x.optim".
static bool areOutputsApart(const CompileCommand &command, llvm::ArrayRef<std::string> written,
                            Report &report) {
  std::vector<NamedFile> outputs;
  for (const std::string &name : written) {
    llvm::SmallString<128> path(command.output);
    llvm::sys::path::append(path, name);
    outputs.push_back({"-o", path.str().str()});
  }
  return areApart(report, outputs, inputsOf(command));
}

int driver::runCompile(const CompileCommand &command) {
  Input input;
  if (command.emit.empty() && command.output == "-") {
    input.report.error("expected a folder after -o for the library, found -");
    return kUsageError;
  }
  if (command.emit.empty() && command.input == "-") {
    input.report.error("expected a file for the specification, whose name becomes the library's, "
                       "found standard input");
    return kUsageError;
  }
  // Refuse options that only a later level uses, because they would be ignored.
  constexpr const char *kCode = "code is generated", *kDecided = "anything is decided";
  bool isOptim = command.emit == name(Level::Optim);
  for (auto [option, given, before] :
       {std::tuple("-O", command.optimize >= 0, kCode),
        std::tuple("--sanitize", command.sanitizer != codegen::Sanitizer::None, kCode),
        std::tuple("--strategy", isOptim && !command.strategies.empty(), kDecided),
        std::tuple("--waves", isOptim && command.waves != 0, kDecided)})
    if (given && !command.emit.empty()) {
      input.report.error("expected no " + llvm::Twine(option) + " beside --emit " + command.emit +
                         ", which stops before " + before);
      return kUsageError;
    }
  int exitCode = kSuccess;
  mlir::OwningOpRef<mlir::ModuleOp> module = input.load(command, exitCode);
  if (!module)
    return exitCode;
  std::string name = module->getSymName()->str();
  std::vector<std::string> written = {name + ".mlir"};
  if (command.emit.empty()) {
    written = {"lib" + name + ".so", name + ".h", name + ".json"};
    for (StringRef target : llvm::drop_begin(command.targets, !command.targets.empty()))
      if (std::string file = planFile(name, target, /*isFirst=*/false);
          !llvm::is_contained(written, file)) // checkPrograms refuses a target that is given twice
        written.push_back(file);
  }
  if (command.output != "-") {
    if (!areOutputsApart(command, written, input.report))
      return kUsageError;
    if (!canWrite(input.report, command.output, written))
      return kInputError;
  }
  if (!command.emit.empty()) {
    Level level = *parseLevel(command.emit);
    if (level > Level::Scheduled &&
        !expectOneTarget(command, "--emit " + command.emit + ", whose text is one target's",
                         input.report))
      return kUsageError;
    if (int code = lowerTo(*module, level, command, input.report))
      return code;
    if (level == Level::Scheduled)
      input.report.note("the text at level scheduled is not proven; level exec is");
    return emitModule(*module, command, input.report);
  }
  llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>> programs;
  if (int code = lowerForTargets(std::move(module), command, input.report, programs))
    return code;
  OutputFiles files(input.report, command.output);
  if (int code = makeLibrary(programs, command, files, input.report))
    return code;
  return files.commit() ? kSuccess : kInputError;
}
