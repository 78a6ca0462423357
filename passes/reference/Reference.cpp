//===- Reference.cpp - The float64 reference of level 1 --------------------===//

#include "passes/reference/Reference.h"

#include "passes/reference/Interpreter.h"
#include "runtime/geometry/Geometry.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::reference;

/// The parameter as the geometry sees it, placements apart.
static plan::Group groupOf(optim::ParameterOp parameter) {
  plan::Group group;
  group.shape = parameter.getShape().vec();
  group.batchAxes = static_cast<int64_t>(parameter.getBatch());
  return group;
}

std::vector<int64_t> reference::stateShape(optim::ParameterOp parameter, optim::ValueKind kind) {
  return geometry::stateShape(groupOf(parameter), plan::ValueKind(kind));
}

bool reference::stateExists(optim::ParameterOp parameter, optim::StateAttr state) {
  return !state.getMaster() || !parameter.getType().isF32();
}

std::vector<Tensor> reference::initialStates(optim::RuleOp rule, optim::ParameterOp parameter,
                                             const Tensor &value) {
  std::vector<Tensor> states;
  for (Attribute attr : rule.getStates()) {
    auto state = cast<optim::StateAttr>(attr);
    Tensor &tensor = states.emplace_back();
    if (!stateExists(parameter, state))
      continue;
    tensor.shape = stateShape(parameter, state.getKind());
    tensor.data.assign(static_cast<size_t>(geometry::elements(tensor.shape)),
                       state.getInit().getValueAsDouble());
    if (state.getMaster())
      tensor = value;
  }
  return states;
}

namespace {

/// A tensor cut into the blocks of its view. A value of one block (a state of kind one of a
/// parameter whose leading axes were never declared) is the same for all.
struct Blocks {
  geometry::View view;

  size_t offset(int64_t block) const {
    return static_cast<size_t>((view.blocks == 1 ? 0 : block) * view.rows * view.cols);
  }
  Matrix read(const Tensor &tensor, int64_t block) const {
    Matrix matrix(view.rows, view.cols);
    std::copy_n(tensor.data.begin() + static_cast<ptrdiff_t>(offset(block)), matrix.data.size(),
                matrix.data.begin());
    return matrix;
  }
  void write(Tensor &tensor, int64_t block, const Matrix &matrix) const {
    std::copy(matrix.data.begin(), matrix.data.end(),
              tensor.data.begin() + static_cast<ptrdiff_t>(offset(block)));
  }
};

LogicalResult checkShape(optim::ParameterOp parameter, StringRef what, const Tensor &tensor,
                         const std::vector<int64_t> &expected) {
  if (tensor.shape == expected &&
      static_cast<int64_t>(tensor.data.size()) == geometry::elements(expected))
    return success();
  return parameter.emitError("expected ")
         << what << " of parameter '" << parameter.getSymName() << "' to have shape [" << expected
         << "], found [" << tensor.shape << "]";
}

} // namespace

LogicalResult reference::step(optim::RuleOp rule, optim::ParameterOp parameter, Tensors &tensors,
                              ArrayRef<double> hyperparameters, int64_t step) {
  plan::Group group = groupOf(parameter);
  if (hyperparameters.size() != rule.getNumHyperparameters() ||
      tensors.states.size() != rule.getNumStates())
    return parameter.emitError("expected ")
           << rule.getNumHyperparameters() << " hyperparameters and " << rule.getNumStates()
           << " states for rule " << rule.getSymName() << ", found " << hyperparameters.size()
           << " and " << tensors.states.size();
  if (failed(checkShape(parameter, "the value", tensors.parameter, group.shape)) ||
      failed(checkShape(parameter, "the gradient", tensors.gradient, group.shape)))
    return failure();

  Blocks full{geometry::view(group, plan::ValueKind::Full)};
  std::vector<Blocks> views;
  std::optional<unsigned> master;
  for (unsigned i = 0; i < rule.getNumStates(); ++i) {
    optim::StateAttr state = rule.getState(i);
    views.push_back({geometry::view(group, plan::ValueKind(state.getKind()))});
    if (!stateExists(parameter, state))
      continue;
    if (failed(checkShape(parameter, ("state '" + state.getName().getValue() + "'").str(),
                          tensors.states[i], stateShape(parameter, state.getKind()))))
      return failure();
    if (state.getMaster())
      master = i;
  }

  // Every block reads what was before the step, also where blocks share a state.
  Tensors result = tensors;
  const Tensor &current = master ? tensors.states[*master] : tensors.parameter;
  double numel = static_cast<double>(group.batchAxes > 0 ? full.view.rows * full.view.cols
                                                         : geometry::elements(group.shape));
  for (int64_t block = 0; block < full.view.blocks; ++block) {
    std::vector<Matrix> arguments;
    arguments.push_back(full.read(current, block));
    arguments.push_back(full.read(tensors.gradient, block));
    for (unsigned i = 0; i < rule.getNumStates(); ++i)
      arguments.push_back(rule.getState(i).getMaster() ? arguments[0]
                                                       : views[i].read(tensors.states[i], block));
    auto addScalar = [&](double value) { arguments.push_back(Matrix(1, 1, value)); };
    for (double value : hyperparameters)
      addScalar(value);
    addScalar(static_cast<double>(step));
    addScalar(static_cast<double>(full.view.rows));
    addScalar(static_cast<double>(full.view.cols));
    addScalar(numel);
    FailureOr<std::vector<Matrix>> yielded =
        Interpreter(rule, std::move(arguments), full.view.rows, full.view.cols).run();
    if (failed(yielded))
      return failure();
    full.write(result.parameter, block, (*yielded)[0]);
    for (unsigned i = 0; i < rule.getNumStates(); ++i) {
      if (i == master)
        full.write(result.states[i], block, (*yielded)[0]);
      else if (!rule.getState(i).getMaster())
        views[i].write(result.states[i], block, (*yielded)[1 + i]);
    }
  }
  tensors = std::move(result);
  return success();
}
