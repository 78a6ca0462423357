//===- Run.h - Global tensors through a number of steps ---------*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_RUN_H
#define STEPC_TOOLS_STEPC_RUN_H

#include "frontends/manifest/RunTensors.h"
#include "runtime/plan/Plan.h"
#include "tools/stepc/Input.h"
#include "tools/stepc/Watch.h"

namespace stepc::driver {

/// What `stepc run` steps: one entry per parameter of the manifest, in its order.
struct RunInput {
  const manifest::Manifest *manifest = nullptr;
  std::vector<manifest::RunTensors> tensors;
  std::vector<std::string> names;      ///< canonical, as the library calls them
  llvm::StringMap<size_t> indexOfName; ///< by canonical name
  std::string tensorFile;              ///< for messages
  /// What the specification defines, if a ready library is to be compared with it; otherwise null.
  const plan::Plan *specified = nullptr;
  WatchedValues watched;
  manifest::States modelStates; ///< of the model

  /// The tensor "state:NAME:STATE" of a parameter. Null if there is none.
  const manifest::TensorView *state(size_t parameter, llvm::StringRef name) const;
  /// The number of steps that the parameter has taken ("state:NAME:step"); 0 without this tensor.
  int64_t stepsTaken(size_t parameter) const;
  int64_t stepsOfModel() const;
  /// The state "state:model:NAME" of the model, one number; `init` without this tensor.
  double stateOfModel(llvm::StringRef name, double init) const;
};

/// A whole tensor of the output.
struct RunOutput {
  std::string name;
  manifest::TensorType type;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

/// A state of a parameter's rule, with its global shape.
struct KnownState {
  std::string name;
  std::vector<int64_t> shape;
  std::optional<manifest::TensorType> type; ///< nothing: any type
};
/// Checks the states of the input against `known`, those of the parameter's rule. Returns false after an
/// error.
bool checkStates(const RunInput &input, size_t parameter, llvm::ArrayRef<KnownState> known,
                 Report &report);

/// Checks the inputs of the input likewise.
bool checkInputs(const RunInput &input, size_t parameter, llvm::ArrayRef<KnownState> known,
                 Report &report);

/// The elements of a tensor as double, exactly.
std::vector<double> toDoubles(const manifest::TensorView &tensor);
/// The sum of contributions to a gradient, which lie one after the other in `values`. Adds them up in f32 in
/// their order, divides once, and rounds once to their type.
std::vector<double> reduced(std::vector<double> values, const plan::Contributions &contributions,
                            manifest::TensorType type);
/// The bytes of numbers as F64.
std::vector<uint8_t> toBytes(llvm::ArrayRef<double> values);
/// The bytes of `count` copies of a value, rounded to a type.
std::vector<uint8_t> filled(double value, manifest::TensorType type, int64_t count);

/// The output "state:NAME:step".
RunOutput stepsOutput(const std::string &name, int64_t steps);

/// Check, before anything is compiled or stepped, the hyperparameters that the command line sets, and the
/// gradients that routes need. One error names the first parameter without a gradient, its step and the
/// tensors that would do, and counts the other parameters. `module` is at level optim.
bool checkHyperparameters(mlir::ModuleOp module, const RunCommand &command, Report &report);
bool checkGradients(mlir::ModuleOp module, const RunInput &run, Report &report);
/// Checks that no tensor gives a state that the first step takes from the parameter.
bool checkFirstStates(mlir::ModuleOp module, const RunInput &run, Report &report);
/// Checks the states of the model among the tensors.
bool checkModelStates(mlir::ModuleOp module, const RunInput &run, bool isReference, Report &report);

/// Where text about the steps goes: standard output, unless that is the tensors' place.
llvm::raw_ostream &textOutput(const RunCommand &command);

/// Both append to `outputs` and return an exit code. After a failure errors were printed.
int runReference(Input &input, mlir::ModuleOp module, const RunInput &run,
                 const RunCommand &command, std::vector<RunOutput> &outputs);
int runLibrary(const std::string &library, const RunInput &run, const RunCommand &command,
               std::vector<RunOutput> &outputs, Report &report);

} // namespace stepc::driver

#endif
