//===- RunReference.cpp - The float64 reference on global tensors ----------===//

#include "tools/stepc/Run.h"

#include "passes/reference/Reference.h"

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
    for (auto parameter : module.getOps<optim::ParameterOp>())
      if (int code = stepParameter(parameter))
        return code;
    for (const std::string &text : watchedText)
      textOutput(command) << text;
    return kSuccess;
  }

private:
  /// Sets the hyperparameters of the command line. Their names were checked.
  void setHyperparameters() {
    for (const auto &[name, value] : command.hyperparameters) {
      auto [routeName, hyperparameter] = StringRef(name).rsplit('.');
      mlir::ArrayAttr names = rules[routes[routeName].getRule()].getHyperparameters();
      auto all = names.getAsValueRange<mlir::StringAttr>();
      hyperparameters[routeName][llvm::find(all, hyperparameter) - all.begin()] = value;
    }
  }

  int stepParameter(optim::ParameterOp op) {
    optim::RouteOp route = routes[*op.getRoute()];
    optim::RuleOp rule = rules[route.getRule()];
    size_t index = run.indexOfName.lookup(op.getSymName());
    const manifest::RunTensors &in = run.tensors[index];

    std::vector<KnownState> known;
    for (unsigned i = 0; i < rule.getNumStates(); ++i)
      if (optim::StateAttr state = rule.getState(i);
          reference::stateExists(op, state) && !isWatchState(state.getName()))
        known.push_back(
            {state.getName().str(), reference::stateShape(op, state.getKind()), std::nullopt});
    if (!checkStates(run, index, known, report))
      return kInputError;

    reference::Tensors tensors;
    tensors.parameter = {in.parameter->shape, toDoubles(*in.parameter)};
    tensors.states = reference::initialStates(rule, op, tensors.parameter);
    for (unsigned i = 0; i < rule.getNumStates(); ++i)
      if (const manifest::TensorView *view =
              run.state(index, rule.getState(i).getName().getValue()))
        tensors.states[i].data = toDoubles(*view);

    int64_t taken = run.stepsTaken(index);
    for (int64_t k = 0; k < command.steps; ++k) {
      tensors.gradient.shape = tensors.parameter.shape;
      if (const manifest::TensorView *gradient = in.gradients[k]) {
        const manifest::Parameter &given = run.manifest->parameters[index];
        tensors.gradient.data =
            reduced(toDoubles(*gradient), given.contributions(*run.manifest->findMesh(given.mesh)),
                    gradient->type);
      } else if (route.getMissingGrad() == optim::MissingGrad::Skip) {
        printWatched(k, index, op, rule, tensors, /*skipped=*/true);
        continue;
      } else if (route.getMissingGrad() == optim::MissingGrad::Zero) {
        tensors.gradient.data.assign(tensors.parameter.data.size(), 0.0);
      }
      if (failed(
              reference::step(rule, op, tensors, hyperparameters[route.getSymName()], ++taken))) {
        report.internalError("the reference cannot interpret rule '" + rule.getSymName() + "'");
        return kInternalError;
      }
      printWatched(k, index, op, rule, tensors, /*skipped=*/false);
    }
    write(index, rule, tensors, taken);
    return kSuccess;
  }

  /// Collects the text by step, because each parameter takes all of its steps before the next.
  void printWatched(int64_t step, size_t index, optim::ParameterOp op, optim::RuleOp rule,
                    const reference::Tensors &tensors, bool skipped) {
    auto watched = run.watched.find(rule.getSymName());
    if (watched == run.watched.end())
      return;
    watchedText.resize(command.steps);
    llvm::raw_string_ostream os(watchedText[step]);
    const std::string &name = run.manifest->parameters[index].name;
    if (skipped)
      return printSkipped(os, step + 1, name);
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

  void write(size_t index, optim::RuleOp rule, const reference::Tensors &tensors, int64_t taken) {
    const std::string &name = run.manifest->parameters[index].name;
    auto add = [&](std::string output, const reference::Tensor &tensor) {
      outputs.push_back(
          {std::move(output), manifest::TensorType::F64, tensor.shape, toBytes(tensor.data)});
    };
    add("param:" + name, tensors.parameter);
    for (unsigned i = 0; i < rule.getNumStates(); ++i)
      if (!tensors.states[i].data.empty() && !isWatchState(rule.getState(i).getName()))
        add("state:" + name + ":" + rule.getState(i).getName().str(), tensors.states[i]);
    std::vector<uint8_t> bytes(sizeof(taken));
    std::memcpy(bytes.data(), &taken, sizeof(taken));
    outputs.push_back({"state:" + name + ":step", manifest::TensorType::I64, {}, std::move(bytes)});
  }

  Report &report;
  mlir::ModuleOp module;
  const RunInput &run;
  const RunCommand &command;
  std::vector<RunOutput> &outputs;
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
