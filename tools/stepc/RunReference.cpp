//===- RunReference.cpp - The float64 reference on global tensors ----------===//

#include "tools/stepc/Run.h"

#include "passes/reference/Reference.h"

#include <limits>

using namespace stepc;
using namespace stepc::driver;
using llvm::StringRef;

namespace {

class ReferenceRun {
public:
  ReferenceRun(Report &report, mlir::ModuleOp module, const RunInput &run,
               const RunCommand &command, std::vector<RunOutput> &outputs)
      : report(report), module(module), run(run), command(command), outputs(outputs) {}

  int start() {
    for (auto rule : module.getOps<optim::RuleOp>())
      rules[rule.getSymName()] = rule;
    for (auto route : module.getOps<optim::RouteOp>()) {
      routes[route.getSymName()] = route;
      hyperparameters[route.getSymName()] = route.getDefaults().vec();
    }
    setHyperparameters();
    model = optim::findModel(module);
    for (auto parameter : module.getOps<optim::ParameterOp>())
      if (parameter.getSymName() != optim::kModelName || !model)
        if (int code = load(parameter))
          return code;
    taken = run.stepsOfModel();
    if (model)
      for (auto state : model.getStates().getAsRange<optim::StateAttr>())
        states.push_back(state.getMetric() ? std::numeric_limits<double>::quiet_NaN()
                                           : run.stateOfModel(state.getName().getValue(),
                                                              state.getInit().getValueAsDouble()));
    for (int64_t k = 0; k < command.steps; ++k)
      if (int code = step(k))
        return code;
    for (const Parameter &each : parameters)
      write(each.index, each.rule, each.tensors, each.taken);
    if (model) {
      outputs.push_back(stepsOutput(optim::kModelName.str(), taken));
      for (auto [attribute, value] : llvm::zip_equal(model.getStates(), states))
        outputs.push_back({outputName(cast<optim::StateAttr>(attribute), optim::kModelName.str()),
                           manifest::TensorType::F64,
                           {},
                           toBytes(std::vector<double>{value})});
    }
    for (const std::string &text : watchedText)
      textOutput(command) << text;
    return kSuccess;
  }

private:
  /// A parameter between two steps.
  struct Parameter {
    optim::ParameterOp op;
    optim::RouteOp route;
    optim::RuleOp rule;
    size_t index; ///< in the manifest
    reference::Tensors tensors;
    int64_t taken; ///< steps
    bool steps = true;
  };

  /// Sets the hyperparameters of the command line. Their names were checked.
  void setHyperparameters() {
    for (const auto &[name, value] : command.hyperparameters) {
      auto [routeName, hyperparameter] = StringRef(name).rsplit('.');
      mlir::ArrayAttr names = rules[routes[routeName].getRule()].getHyperparameters();
      auto all = names.getAsValueRange<mlir::StringAttr>();
      hyperparameters[routeName][llvm::find(all, hyperparameter) - all.begin()] = value;
    }
  }

  int load(optim::ParameterOp op) {
    optim::RouteOp route = routes[*op.getRoute()];
    optim::RuleOp rule = optim::ruleOf(op);
    size_t index = run.indexOfName.lookup(op.getSymName());
    const manifest::RunTensors &in = run.tensors[index];

    std::vector<KnownState> known, inputs;
    for (unsigned i = 0; i < rule.getNumStates(); ++i)
      if (optim::StateAttr state = rule.getState(i); state.getInput())
        inputs.push_back(
            {state.getName().str(), reference::stateShape(op, state.getKind()), std::nullopt});
      else if (reference::stateExists(op, state) && !state.getMetric() &&
               !isWatchState(state.getName()))
        known.push_back(
            {state.getName().str(), reference::stateShape(op, state.getKind()), std::nullopt});
    if (!checkStates(run, index, known, report) || !checkInputs(run, index, inputs, report))
      return kInputError;

    Parameter &made =
        parameters.emplace_back(Parameter{op, route, rule, index, {}, run.stepsTaken(index)});
    made.tensors.parameter = {in.parameter->shape, toDoubles(*in.parameter)};
    made.tensors.gradient.shape = in.parameter->shape;
    made.tensors.states = reference::initialStates(rule, op, made.tensors.parameter);
    for (unsigned i = 0; i < rule.getNumStates(); ++i)
      if (const manifest::TensorView *view =
              rule.getState(i).getMetric()
                  ? nullptr
                  : run.state(index, rule.getState(i).getName().getValue()))
        made.tensors.states[i].data = toDoubles(*view);
    return kSuccess;
  }

  /// Reads the gradients of a step, and says which parameters take it.
  void readGradients(int64_t k) {
    for (Parameter &each : parameters) {
      const manifest::RunTensors &in = run.tensors[each.index];
      each.steps = true;
      if (const manifest::TensorView *gradient = in.gradients[k]) {
        const manifest::Parameter &given = run.manifest->parameters[each.index];
        each.tensors.gradient.data =
            reduced(toDoubles(*gradient), given.contributions(*run.manifest->findMesh(given.mesh)),
                    gradient->type);
      } else if (each.route.getMissingGrad() == optim::MissingGrad::Skip) {
        each.steps = false;
      } else if (each.route.getMissingGrad() == optim::MissingGrad::Zero) {
        each.tensors.gradient.data.assign(each.tensors.parameter.data.size(), 0.0);
      }
    }
  }

  /// Reads the inputs of a step. Returns false, after an error, if one is missing that a step reads.
  bool readInputs(int64_t k) {
    for (Parameter &each : parameters)
      for (unsigned i = 0; i < each.rule.getNumStates(); ++i) {
        optim::StateAttr state = each.rule.getState(i);
        if (!state.getInput())
          continue;
        std::string name = state.getName().str();
        std::vector<double> &data = each.tensors.states[i].data;
        llvm::APFloat init = state.getInit().getValue();
        if (const manifest::TensorView *view = run.tensors[each.index].input(name, k + 1)) {
          data = toDoubles(*view);
        } else if (!init.isNaN()) {
          bool losesInfo;
          init.convert(cast<mlir::FloatType>(state.getType()).getFloatSemantics(),
                       llvm::APFloat::rmNearestTiesToEven, &losesInfo);
          data.assign(data.size(), init.convertToDouble());
        } else {
          if (!each.steps)
            continue;
          report.error(run.tensorFile,
                       "expected a tensor 'input:" + run.manifest->parameters[each.index].name +
                           ":" + name + "', because input '" + name +
                           "' has no default, found none");
          return false;
        }
      }
    return true;
  }

  int step(int64_t k) {
    readGradients(k);
    if (!readInputs(k))
      return kInputError;
    std::vector<double> numbers;
    if (model) {
      std::vector<reference::Stepping> stepping;
      for (const Parameter &each : parameters)
        if (each.steps)
          stepping.push_back({each.rule, each.op, &each.tensors});
      auto made = reference::stepModel(model, stepping, hyperparameters[optim::kModelName],
                                       taken + 1, states);
      if (failed(made)) {
        report.internalError("the reference cannot interpret the model");
        return kInternalError;
      }
      numbers = std::move(made->numbers);
      states = std::move(made->states);
      skipsAll = made->isSkipped;
      taken += !skipsAll;
      for (Parameter &each : parameters)
        each.steps &= !skipsAll;
    }
    for (Parameter &each : parameters) {
      if (each.steps && failed(reference::step(each.rule, each.op, each.tensors,
                                               hyperparameters[each.route.getSymName()],
                                               ++each.taken, numbers))) {
        report.internalError("the reference cannot interpret rule '" + each.rule.getSymName() +
                             "'");
        return kInternalError;
      }
      printWatched(k, each.index, each.op, each.rule, each.tensors, /*skipped=*/!each.steps);
    }
    return kSuccess;
  }

  /// Collects the text by step. It is printed when nothing can fail any more.
  void printWatched(int64_t step, size_t index, optim::ParameterOp op, optim::RuleOp rule,
                    const reference::Tensors &tensors, bool skipped) {
    auto watched = run.watched.find(rule.getSymName());
    if (watched == run.watched.end())
      return;
    watchedText.resize(command.steps);
    llvm::raw_string_ostream os(watchedText[step]);
    const std::string &name = run.manifest->parameters[index].name;
    if (skipped)
      return printSkipped(os, step + 1, name, skipsAll);
    plan::Group group = op.toPlan();
    if (rule.seesBlocks() && !group.division.parts.empty())
      group.parts = {0};
    for (const WatchedValue &one : watched->second) {
      plan::ValueKind kind = plan::ValueKind::Full;
      const std::vector<double> *values = &tensors.parameter.data;
      for (unsigned i = 0; i < rule.getNumStates(); ++i)
        if (optim::StateAttr state = rule.getState(i); state.getName() == one.state) {
          kind = state.getKind();
          values = &tensors.states[i].data;
        }
      if (!values->empty()) // a parameter of f32 has no master
        printValue(os, step + 1, name, one, group, kind, manifest::TensorType::F64, *values);
    }
  }

  /// The name of a state's tensor in the output.
  static std::string outputName(optim::StateAttr state, const std::string &parameter) {
    return (state.getMetric() ? "metric:" : "state:") + parameter + ":" + state.getName().str();
  }

  void write(size_t index, optim::RuleOp rule, const reference::Tensors &tensors, int64_t taken) {
    const std::string &name = run.manifest->parameters[index].name;
    auto add = [&](std::string output, const reference::Tensor &tensor) {
      outputs.push_back(
          {std::move(output), manifest::TensorType::F64, tensor.shape, toBytes(tensor.data)});
    };
    add("param:" + name, tensors.parameter);
    for (unsigned i = 0; i < rule.getNumStates(); ++i)
      if (!tensors.states[i].data.empty() && !rule.getState(i).getInput() &&
          !isWatchState(rule.getState(i).getName()))
        add(outputName(rule.getState(i), name), tensors.states[i]);
    outputs.push_back(stepsOutput(name, taken));
  }

  Report &report;
  mlir::ModuleOp module;
  const RunInput &run;
  const RunCommand &command;
  std::vector<RunOutput> &outputs;
  optim::ModelOp model;
  bool skipsAll = false;             ///< whether the model skips the step
  int64_t taken = 0;                 ///< steps that the model took
  std::vector<double> states;        ///< of the model
  std::vector<Parameter> parameters; ///< in the module's order
  llvm::StringMap<optim::RuleOp> rules;
  llvm::StringMap<optim::RouteOp> routes;
  llvm::StringMap<std::vector<double>> hyperparameters;
  std::vector<std::string> watchedText; ///< by step
};

} // namespace

int driver::runReference(Input &input, mlir::ModuleOp module, const RunInput &run,
                         const RunCommand &command, std::vector<RunOutput> &outputs) {
  return ReferenceRun(input.report, module, run, command, outputs).start();
}
