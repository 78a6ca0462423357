//===- Reference.cpp - The float64 reference of level 1 --------------------===//

#include "passes/reference/Reference.h"

#include "passes/reference/Interpreter.h"
#include "runtime/geometry/Geometry.h"
#include "runtime/random/Philox.h"

#include <limits>

using namespace mlir;
using namespace stepc;
using namespace stepc::reference;

/// The parameter's group, with all elements on one rank.
static plan::Group groupOf(optim::ParameterOp parameter) {
  plan::Group group = parameter.toPlan();
  group.placements.clear();
  group.gradientPlacements.clear();
  group.statePlacements.clear();
  return group;
}

std::vector<int64_t> reference::stateShape(optim::ParameterOp parameter, optim::ValueKind kind) {
  return geometry::stateShape(groupOf(parameter), kind);
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
    double init = state.getMetric() ? std::numeric_limits<double>::quiet_NaN()
                                    : state.getInit().getValueAsDouble();
    tensor.data.assign(static_cast<size_t>(geometry::elements(tensor.shape)), init);
    if (state.getMaster())
      tensor = value;
  }
  return states;
}

namespace {

/// A tensor cut into the blocks of its view, or of one part if matrices are divided. A value of one block (a
/// state of kind one of a parameter whose leading axes were never declared) belongs to all blocks.
struct Blocks {
  geometry::View view;
  std::vector<geometry::Rect> rects; // by block

  Blocks(const plan::Group &group, plan::ValueKind kind)
      : view(geometry::view(group, kind)), rects(geometry::rectangles(group, {}, 0, kind)) {}

  /// Calls visit(offset in the tensor, offset in the block, length) for each run of elements of the block.
  template <typename Visit> void forRuns(int64_t block, Visit visit) const {
    block = view.blocks == 1 ? 0 : block;
    auto before = [](const geometry::Rect &rect, int64_t block) { return rect.block < block; };
    for (auto rect = std::lower_bound(rects.begin(), rects.end(), block, before);
         rect != rects.end() && rect->block == block; ++rect)
      for (int64_t row = 0; row < rect->rows; ++row)
        visit(rect->offset + row * rect->stride, (rect->row + row) * view.cols + rect->col,
              rect->cols);
  }
  Matrix read(const Tensor &tensor, int64_t block) const {
    Matrix matrix(view.rows, view.cols);
    forRuns(block, [&](int64_t from, int64_t to, int64_t length) {
      std::copy_n(tensor.data.begin() + from, length, matrix.data.begin() + to);
    });
    return matrix;
  }
  void write(Tensor &tensor, int64_t block, const Matrix &matrix) const {
    forRuns(block, [&](int64_t to, int64_t from, int64_t length) {
      std::copy_n(matrix.data.begin() + from, length, tensor.data.begin() + to);
    });
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
                              ArrayRef<double> hyperparameters, int64_t step,
                              ArrayRef<double> numbers) {
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

  std::optional<unsigned> master;
  for (unsigned i = 0; i < rule.getNumStates(); ++i) {
    optim::StateAttr state = rule.getState(i);
    if (!stateExists(parameter, state))
      continue;
    if (failed(checkShape(parameter, ("state '" + state.getName().getValue() + "'").str(),
                          tensors.states[i], stateShape(parameter, state.getKind()))))
      return failure();
    if (state.getMaster())
      master = i;
  }

  // Every block reads the values before the step, also if blocks share a state.
  Tensors result = tensors;
  const Tensor &current = master ? tensors.states[*master] : tensors.parameter;
  auto stepBlock = [&](const Blocks &full, ArrayRef<Blocks> views, int64_t block,
                       double numel) -> LogicalResult {
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
    Interpreter interpreter(rule.getBody().front(), std::move(arguments), full.view.rows,
                            full.view.cols, numbers, group.sizes);
    auto each = std::max<int64_t>(1, static_cast<int64_t>(group.division.parts.size()));
    int64_t part = group.parts.empty() ? 0 : group.parts.front();
    interpreter.countElements(plan::ElementOrder(group).before(block), block * each + part,
                              random::keyOf(parameter.getSymName()));
    FailureOr<std::vector<Matrix>> yielded = interpreter.run();
    if (failed(yielded))
      return failure();
    full.write(result.parameter, block, (*yielded)[0]);
    for (unsigned i = 0; i < rule.getNumStates(); ++i) {
      if (i == master)
        full.write(result.states[i], block, (*yielded)[0]);
      else if (!rule.getState(i).getMaster())
        views[i].write(result.states[i], block, (*yielded)[1 + i]);
    }
    return success();
  };
  int64_t parts = rule.seesBlocks() ? static_cast<int64_t>(group.division.parts.size()) : 0;
  for (int64_t part = 0; part < std::max<int64_t>(1, parts); ++part) {
    group.parts = parts ? std::vector<int64_t>{part} : std::vector<int64_t>();
    Blocks full(group, plan::ValueKind::Full);
    std::vector<Blocks> views;
    for (unsigned i = 0; i < rule.getNumStates(); ++i)
      views.push_back({group, rule.getState(i).getKind()});
    for (int64_t block = 0; block < full.view.blocks; ++block)
      if (failed(stepBlock(full, views, block, group.numel())))
        return failure();
  }
  tensors = std::move(result);
  return success();
}
