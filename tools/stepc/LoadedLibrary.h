//===- LoadedLibrary.h - A compiled library and its values ------*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_LOADEDLIBRARY_H
#define STEPC_TOOLS_STEPC_LOADEDLIBRARY_H

#include "runtime/plan/Plan.h"
#include "stepc/stepc.h"
#include "tools/stepc/LibraryFile.h"
#include "tools/stepc/Run.h"

namespace stepc::driver {

/// A global value of one parameter: itself, its gradient or a state.
struct GlobalValue {
  plan::ValueKind kind = plan::ValueKind::Full;
  manifest::TensorType type = manifest::TensorType::F32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
  std::vector<bool> filled; // per element, whether a shard has set it
};

/// A parameter of the plan, with its values before and after the steps.
struct StepParameter {
  size_t index = 0; // in the manifest
  const plan::Group *group = nullptr;
  const plan::Rule *rule = nullptr;
  const plan::Mesh *mesh = nullptr;
  GlobalValue value;
  std::vector<GlobalValue> states; // the states that exist for its type
  std::vector<std::string> stateNames;
  std::vector<GlobalValue> metrics;
  std::vector<std::string> metricNames;
  std::vector<KnownState> inputs;
  int64_t steps = 0;
};

/// An open library whose plan agrees with the manifest, and the values with which its parameters start.
class LoadedLibrary {
public:
  LoadedLibrary(const RunInput &run, const RunCommand &command, Report &report)
      : run(run), command(command), report(report) {}
  LoadedLibrary(const LoadedLibrary &) = delete;

  /// Opens a library and loads the values. Returns false after an error.
  bool load(const std::string &path);

  /// The states of the model, or its metrics. Empty if the library has no model.
  std::vector<plan::State> statesOfModel(bool metrics = false) const {
    std::vector<plan::State> found;
    if (plan.model >= 0)
      for (const plan::State &state : plan.rules[plan.groups[plan.groupOfModel()].rule].states)
        if (metrics ? state.metric : state.isKept())
          found.push_back(state);
    return found;
  }

  const stepc_library *table = nullptr;
  plan::Plan plan;
  std::vector<int64_t> world; ///< global ranks
  std::vector<StepParameter>
      parameters; ///< in the plan's order, without the one that stands for the model

private:
  bool refuse(const std::string &path, const llvm::Twine &message);
  bool open(const std::string &path);
  bool chooseTarget(const std::string &path);
  bool matchParameters(const std::string &path);
  bool matches(const std::string &path, const std::string &name, const plan::Group &group,
               const manifest::Parameter &parameter);
  void loadValues(StepParameter &p);
  void loadStates(StepParameter &p);

  const RunInput &run;
  const RunCommand &command;
  Report &report;
  std::unique_ptr<LibraryFile> file;
};

} // namespace stepc::driver

#endif
