//===- Run.cpp - stepc run -------------------------------------------------===//

#include "tools/stepc/Run.h"
#include "passes/codegen/TemporaryFolder.h"

#include "frontends/manifest/Names.h"
#include "passes/decide/Passes.h"
#include "passes/kernels/TargetShape.h"
#include "passes/plan/PlanFromIR.h"
#include "tools/stepc/Compile.h"
#include "tools/stepc/Pipeline.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <cstring>

using namespace stepc;
using namespace stepc::driver;
using llvm::StringRef;
using llvm::Twine;
using manifest::TensorType;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// The float semantics of a type that has them.
static const llvm::fltSemantics &semantics(TensorType type) {
  switch (type) {
  case TensorType::F64:
    return llvm::APFloat::IEEEdouble();
  case TensorType::BF16:
    return llvm::APFloat::BFloat();
  case TensorType::F16:
    return llvm::APFloat::IEEEhalf();
  default:
    return llvm::APFloat::IEEEsingle();
  }
}

static double element(const uint8_t *at, TensorType type) {
  switch (type) {
  case TensorType::F64: {
    double value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  case TensorType::F32: {
    float value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  case TensorType::BF16: {
    uint32_t bits = uint32_t(at[0]) << 16 | uint32_t(at[1]) << 24;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  case TensorType::F16:
    return llvm::APFloat(llvm::APFloat::IEEEhalf(),
                         llvm::APInt(16, uint64_t(at[0]) | uint64_t(at[1]) << 8))
        .convertToDouble();
  case TensorType::I64: {
    int64_t value;
    std::memcpy(&value, at, sizeof(value));
    return double(value);
  }
  case TensorType::Unsupported:
    break;
  }
  return 0;
}

std::vector<double> driver::toDoubles(const manifest::TensorView &tensor) {
  std::vector<double> values(tensor.numElements());
  int64_t size = manifest::byteSize(tensor.type);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = element(tensor.bytes.data() + i * size, tensor.type);
  return values;
}

std::vector<double> driver::reduced(std::vector<double> values,
                                    const plan::Contributions &contributions, TensorType type) {
  if (contributions.count == 1)
    return values;
  std::vector<double> result(values.size() / contributions.count);
  for (size_t i = 0; i < result.size(); ++i) {
    auto sum = float(values[i]);
    for (int64_t each = 1; each < contributions.count; ++each)
      sum += float(values[each * result.size() + i]);
    llvm::APFloat number(sum / float(contributions.divisor));
    bool losesInfo;
    number.convert(semantics(type), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    result[i] = number.convertToDouble();
  }
  return result;
}

std::vector<uint8_t> driver::toBytes(llvm::ArrayRef<double> values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(double));
  if (!bytes.empty())
    std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<uint8_t> driver::filled(double value, TensorType type, int64_t count) {
  llvm::APFloat number(value);
  bool losesInfo;
  number.convert(semantics(type), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  uint64_t bits = number.bitcastToAPInt().getZExtValue();
  int64_t size = manifest::byteSize(type);
  std::vector<uint8_t> bytes(count * size);
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(bytes.data() + i * size, &bits, size); // little-endian, as the file
  return bytes;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

const manifest::TensorView *RunInput::state(size_t parameter, StringRef name) const {
  for (const auto &[state, view] : tensors[parameter].states)
    if (state == name)
      return view;
  return nullptr;
}

int64_t RunInput::stepsTaken(size_t parameter) const {
  const manifest::TensorView *view = state(parameter, "step");
  return view ? int64_t(toDoubles(*view)[0]) : 0;
}

int64_t RunInput::stepsOfModel() const { return int64_t(stateOfModel("step", 0)); }

double RunInput::stateOfModel(StringRef name, double init) const {
  for (const auto &[state, view] : modelStates)
    if (state == name)
      return toDoubles(*view)[0];
  return init;
}

RunOutput driver::stepsOutput(const std::string &name, int64_t steps) {
  std::vector<uint8_t> bytes(sizeof(steps));
  std::memcpy(bytes.data(), &steps, sizeof(steps));
  return {"state:" + name + ":step", TensorType::I64, {}, std::move(bytes)};
}

static std::string spell(llvm::ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

/// What is wrong with a count of steps; empty if nothing is.
static std::string checkSteps(const manifest::TensorView &view) {
  bool whole = view.type == TensorType::I64 || view.type == TensorType::F64;
  constexpr double kMostSteps = double(int64_t(1) << 53); // rules see the count as f64
  if (view.numElements() != 1 || !whole)
    return ("expected one number of steps (I64) in '" + view.name + "', found " +
            manifest::toString(view.type) + " " + spell(view.shape))
        .str();
  if (double steps = toDoubles(view)[0]; !(steps >= 0 && steps <= kMostSteps))
    return "expected a number of steps from 0 to 2^53 in '" + view.name + "', found " +
           llvm::formatv("{0:F0}", steps).str();
  return {};
}

/// What is wrong with a state of the model; empty if nothing is.
static std::string checkModelState(optim::ModelOp model, StringRef state,
                                   const manifest::TensorView &view, bool isReference) {
  if (!model)
    return "expected tensors of parameters of the manifest, because the specification has no "
           "model, found '" +
           view.name + "'";
  if (state == "step")
    return checkSteps(view);
  std::string names = "step";
  bool isKnown = false;
  for (auto each : model.getStates().getAsRange<optim::StateAttr>()) {
    if (each.getMetric())
      continue;
    isKnown |= each.getName() == state;
    names = each.getName().str() + ", " + names;
  }
  if (!isKnown)
    return "expected a state of the model (" + names + "), found '" + view.name + "'";
  bool fits = view.type == TensorType::F32 || (isReference && view.type == TensorType::F64);
  if (view.shape.empty() && fits)
    return {};
  return "expected one number (F32 []) in '" + view.name + "', found " +
         manifest::toString(view.type).str() + " " + spell(view.shape);
}

bool driver::checkModelStates(mlir::ModuleOp module, const RunInput &run, bool isReference,
                              Report &report) {
  for (const auto &[state, view] : run.modelStates) {
    std::string wrong = checkModelState(optim::findModel(module), state, *view, isReference);
    if (wrong.empty())
      continue;
    report.error(run.tensorFile, wrong);
    return false;
  }
  return true;
}

/// Checks a tensor of a state or input against those of the parameter's rule. Returns what is wrong; empty if
/// nothing is. `what` reads as "a state", and `others` are further names that are known.
static std::string wrongTensor(const manifest::TensorView &view, StringRef name,
                               llvm::ArrayRef<KnownState> known, StringRef what,
                               std::string others) {
  const KnownState *found = nullptr;
  for (const KnownState &candidate : known) {
    others = candidate.name + (others.empty() ? "" : ", ") + others;
    if (candidate.name == name)
      found = &candidate;
  }
  if (!found)
    return ("expected " + what + " of the parameter's rule" +
            (others.empty() ? ", which has none" : " (" + others + ")") + ", found '" + view.name +
            "'")
        .str();
  if (view.shape != found->shape)
    return "expected shape " + spell(found->shape) + " of '" + view.name + "', found " +
           spell(view.shape);
  if (found->type && view.type != *found->type)
    return ("expected " + manifest::toString(*found->type) + " in '" + view.name + "', found " +
            manifest::toString(view.type))
        .str();
  if (view.type == TensorType::Unsupported)
    return "expected F64, F32, BF16, F16 or I64 in '" + view.name + "', found " + view.typeName;
  return {};
}

/// Reports what is wrong with a tensor of a parameter, and whether nothing is.
static bool accepts(const RunInput &input, size_t parameter, const std::string &wrong,
                    Report &report) {
  if (wrong.empty())
    return true;
  report.error(input.tensorFile,
               wrong + " (parameter '" + input.manifest->parameters[parameter].name + "')");
  return false;
}

bool driver::checkStates(const RunInput &input, size_t parameter, llvm::ArrayRef<KnownState> known,
                         Report &report) {
  return llvm::all_of(input.tensors[parameter].states, [&](const auto &given) {
    const auto &[state, view] = given;
    return accepts(input, parameter,
                   state == "step" ? checkSteps(*view)
                                   : wrongTensor(*view, state, known, "a state", "step"),
                   report);
  });
}

bool driver::checkInputs(const RunInput &input, size_t parameter, llvm::ArrayRef<KnownState> known,
                         Report &report) {
  return llvm::all_of(input.tensors[parameter].inputs, [&](const auto &given) {
    const auto &[key, view] = given;
    return accepts(input, parameter, wrongTensor(*view, key.first, known, "an input", ""), report);
  });
}

/// Checks that the output can be written, before anything is compiled or stepped.
static bool checkOutput(const std::string &output, Report &report) {
  if (output == "-")
    return true;
  StringRef folder = llvm::sys::path::parent_path(output);
  if (folder.empty())
    folder = ".";
  if (!llvm::sys::fs::is_directory(folder)) {
    report.error(output,
                 "expected a file in a folder that exists, found no folder '" + folder + "'");
    report.hint("make the folder, or name another file after -o");
    return false;
  }
  return canWriteFile(report, "-o", output);
}

static bool loadTensors(const RunCommand &command, const manifest::SafetensorsFile &file,
                        RunInput &run, manifest::ErrorList &errors) {
  // Whether a gradient may be absent depends on its route (missing_grad), not on the file.
  auto tensors =
      manifest::collectRunTensors(file, *run.manifest, command.steps,
                                  /*allowMissingGradients=*/true, errors, &run.modelStates);
  if (!tensors)
    return false;
  run.tensors = std::move(*tensors);
  run.tensorFile = command.tensors;
  for (const manifest::Parameter &parameter : run.manifest->parameters) {
    run.indexOfName[manifest::canonicalName(parameter.name)] = run.names.size();
    run.names.push_back(manifest::canonicalName(parameter.name));
  }
  return true;
}

/// Adds frozen parameters to the outputs as they came in.
static void passFrozen(const RunInput &run, bool reference, std::vector<RunOutput> &outputs) {
  for (auto [index, parameter] : llvm::enumerate(run.manifest->parameters)) {
    if (parameter.requiresGrad)
      continue;
    const manifest::TensorView &view = *run.tensors[index].parameter;
    if (reference)
      outputs.push_back(
          {"param:" + parameter.name, TensorType::F64, view.shape, toBytes(toDoubles(view))});
    else
      outputs.push_back({"param:" + parameter.name, view.type, view.shape, view.bytes.vec()});
  }
}

/// Steps a ready library, after checking that it is what the specification says.
static int stepLibrary(Input &input, mlir::ModuleOp module, const RunCommand &command, RunInput run,
                       std::vector<RunOutput> &outputs) {
  if (int code = lowerTo(module, Level::Decided, command, input.report))
    return code;
  llvm::FailureOr<ProgramPlan> specified = planFromModule(module);
  if (failed(specified))
    return kInputError;
  run.specified = &specified->plan;
  return runLibrary(command.library, run, command, outputs, input.report);
}

llvm::raw_ostream &driver::textOutput(const RunCommand &command) {
  return command.output == "-" ? llvm::errs() : llvm::outs();
}

static int execute(Input &input, const RunCommand &command, RunInput &run,
                   std::vector<RunOutput> &outputs) {
  mlir::OwningOpRef<mlir::ModuleOp> module = input.import(command);
  if (!module)
    return kInputError;
  if (!input.allowNoMatch(*module, command.ifPresent))
    return kUsageError;
  if (!checkHyperparameters(*module, command, input.report))
    return kUsageError;
  if (!checkGradients(*module, run, input.report) ||
      !checkFirstStates(*module, run, input.report) ||
      !checkModelStates(*module, run, command.reference, input.report))
    return kInputError;
  if (!command.watch.empty()) {
    auto watched = watchValues(*module, command.watch, input.report);
    if (!watched)
      return kUsageError;
    run.watched = std::move(*watched);
  }
  if (!command.library.empty())
    return stepLibrary(input, *module, command, run, outputs);
  if (command.reference) {
    mlir::PassManager manager(&input.context());
    decide::buildRoutePipeline(manager);
    manager.addPass(decide::createExpandModel());
    if (failed(manager.run(*module)))
      return kInputError;
    return runReference(input, *module, run, command, outputs);
  }
  std::string name = module->getSymName()->str();
  llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>> programs;
  if (int code = lowerForTargets(std::move(module), command, input.report, programs))
    return code;
  codegen::TemporaryFolder folder;
  if (llvm::Error error = folder.create()) {
    input.report.error(std::move(error));
    return kInputError;
  }
  OutputFiles files(input.report, folder.file("library"));
  if (int code = makeLibrary(programs, command, files, input.report))
    return code;
  if (!files.commit())
    return kInputError;
  std::string library = folder.file("library/lib" + name + ".so");
  return runLibrary(library, run, command, outputs, input.report);
}

int driver::runRun(const RunCommand &command) {
  Input input;
  auto usage = [&](const Twine &message) {
    input.report.error(message);
    return kUsageError;
  };
  if (isModulePath(command.input))
    return usage("expected a specification, whose rules the tensors are for, found '" +
                 command.input + "'");
  if (command.manifest.empty())
    return usage("expected --manifest with the parameters of '" + command.input + "', found none");
  if (command.reference && !command.library.empty())
    return usage("expected --reference or --library, found both");
  if (!command.watch.empty() && !command.library.empty()) {
    input.report.error("expected no --watch beside --library, in which values have no names");
    input.report.hint("without --library the specification is compiled for it");
    return kUsageError;
  }
  if (!expectOneTarget(command, "run, which steps one", input.report))
    return kUsageError;
  StringRef target = command.targets.empty() ? "cpu" : StringRef(command.targets.front());
  if (target.starts_with("cuda"))
    return usage(
        "expected a target that steps on this machine, cpu, emulated or interpret, found '" +
        target + "'");
  if (command.graph && command.library.empty() && !command.reference &&
      kindOfChip(target) != "emulated")
    return usage("expected --graph with a target that has graphs, say emulated, found '" + target +
                 "'");
  // Refuse options that would be ignored.
  for (auto [option, given] :
       {std::pair("--strategy", !command.strategies.empty()),
        std::pair("--cluster", !command.cluster.empty()), std::pair("--waves", command.waves != 0),
        std::pair("--workspace-limit", command.workspaceLimit != 0),
        std::pair("--state-limit", command.stateLimit != 0),
        std::pair("--max-peers", command.maxPeers != 0),
        std::pair("--keep-owners", !command.keepOwners.empty()),
        std::pair("--target", command.reference && !command.targets.empty()),
        std::pair("--products", !command.products.empty()), std::pair("-O", command.optimize >= 0),
        std::pair("--threads", command.reference && command.threads != 0),
        std::pair("--remarks", command.reference && !command.remarks.empty()),
        std::pair("--graph", command.reference && command.graph)})
    if (given && (command.reference || !command.library.empty()))
      return usage("expected no " + Twine(option) +
                   (command.reference ? " beside --reference, which steps whole tensors in float64"
                                      : " beside --library, which was compiled already"));

  std::vector<NamedFile> inputs = inputsOf(command);
  inputs.push_back({"--library", command.library});
  if (!areApart(input.report, {{"-o", command.output}}, inputs))
    return kUsageError;
  if (!checkOutput(command.output, input.report))
    return kInputError;
  if (!command.remarks.empty() && !input.enableRemarks(command.remarks))
    return kUsageError;
  if (refuseInputs(input.report, command.input, command.manifest))
    return kUsageError;
  bool good = input.loadSpecification(command.input, /*requireRoute=*/true);
  good &= input.loadManifest(command.manifest);
  if (!good)
    return kInputError;
  manifest::ErrorList errors;
  RunInput run;
  run.manifest = &*input.manifest;
  auto file = manifest::SafetensorsFile::open(command.tensors, errors);
  std::vector<NamedFile> shards;
  for (const std::string &shard : file ? file->files() : llvm::ArrayRef<std::string>())
    shards.push_back({"--tensors", shard});
  if (!areApart(input.report, {{"-o", command.output}}, shards))
    return kUsageError;
  if (!file || !loadTensors(command, *file, run, errors)) {
    input.report.errors(errors);
    return kInputError;
  }
  std::vector<RunOutput> outputs;
  if (int code = execute(input, command, run, outputs))
    return code;
  passFrozen(run, command.reference, outputs);
  std::vector<manifest::TensorView> views;
  for (const RunOutput &output : outputs)
    views.push_back({output.name, output.type, "", output.shape, output.bytes});
  if (!manifest::writeSafetensors(command.output, views, {}, errors)) {
    input.report.errors(errors);
    return kInputError;
  }
  return kSuccess;
}
