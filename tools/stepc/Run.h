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

  /// "state:NAME:STATE" of a parameter, or null.
  const manifest::TensorView *state(size_t parameter, llvm::StringRef name) const;
  /// The step that the parameter has reached ("state:NAME:step"), 0 without.
  int64_t stepsTaken(size_t parameter) const;
};

/// A whole tensor that comes out.
struct RunOutput {
  std::string name;
  manifest::TensorType type;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

/// Checks the states that came in: `known` are those of the parameter's rule with their global
/// shapes. False after an error.
struct KnownState {
  std::string name;
  std::vector<int64_t> shape;
  std::optional<manifest::TensorType> type; ///< nothing: any number
};
bool checkStates(const RunInput &input, size_t parameter, llvm::ArrayRef<KnownState> known,
                 Report &report);

/// Elements as double, exactly, and back, rounded to nearest even.
std::vector<double> toDoubles(const manifest::TensorView &tensor);
/// The sum of contributions to a gradient, which stand one after the other: added up in f32 in their order,
/// divided once and rounded once to their type.
std::vector<double> reduced(std::vector<double> values, const plan::Contributions &contributions,
                            manifest::TensorType type);
std::vector<uint8_t> toBytes(llvm::ArrayRef<double> values);
/// `count` copies of a value in a type.
std::vector<uint8_t> filled(double value, manifest::TensorType type, int64_t count);

/// Checks, before anything is compiled or stepped, the hyperparameters that the command line sets,
/// and the gradients that routes ask for: one error names the first parameter without, its step and
/// the tensors that would do, and counts the others. `module` is at level optim.
bool checkHyperparameters(mlir::ModuleOp module, const RunCommand &command, Report &report);
bool checkGradients(mlir::ModuleOp module, const RunInput &run, Report &report);

/// Where text about the steps goes: standard output, unless that is the tensors' place.
llvm::raw_ostream &textOutput(const RunCommand &command);

/// Both append to `outputs` and return an exit code; errors were printed.
int runReference(Input &input, mlir::ModuleOp module, const RunInput &run,
                 const RunCommand &command, std::vector<RunOutput> &outputs);
int runLibrary(const std::string &library, const RunInput &run, const RunCommand &command,
               std::vector<RunOutput> &outputs, Report &report);

} // namespace stepc::driver

#endif
