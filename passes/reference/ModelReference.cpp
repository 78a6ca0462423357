//===- ModelReference.cpp - What a step computes of all parameters ---------===//

#include "passes/reference/Interpreter.h"
#include "passes/reference/Reference.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::reference;

namespace {

/// All elements of a tensor as one row. A model does not see rows and columns.
Matrix rowOf(const Tensor &tensor) {
  Matrix row(1, int64_t(tensor.data.size()));
  row.data = tensor.data;
  return row;
}

} // namespace

FailureOr<ModelStep> reference::stepModel(optim::ModelOp model, ArrayRef<Stepping> parameters,
                                          ArrayRef<double> hyperparameters, int64_t step,
                                          ArrayRef<double> states) {
  SmallVector<Operation *> ops = model.getNumbers();
  ModelStep result;
  std::vector<double> &numbers = result.numbers;
  numbers.resize(ops.size());
  // Runs the model on some elements, with the numbers that are known, and hands on a value that it computes.
  auto run = [&](Matrix parameter, Matrix gradient, Value of,
                 function_ref<void(const Matrix &)> take) -> LogicalResult {
    int64_t count = parameter.cols;
    std::vector<Matrix> arguments{std::move(parameter), std::move(gradient)};
    for (double value : hyperparameters)
      arguments.push_back(Matrix(1, 1, value));
    arguments.push_back(Matrix(1, 1, double(step)));
    Interpreter interpreter(model.getBody().front(), std::move(arguments), 1, count, numbers);
    if (failed(interpreter.run()))
      return failure();
    take(interpreter.at(of));
    return success();
  };
  // Runs the model for a value of numbers and scalars, which no element of a parameter changes.
  auto evaluate = [&](Value of, double &made) {
    return run(Matrix(1, 1), Matrix(1, 1), of, [&](const Matrix &value) { made = value.at(0, 0); });
  };
  for (auto [number, op] : llvm::enumerate(ops)) {
    double &made = numbers[number];
    if (auto state = dyn_cast<optim::ModelStateOp>(op)) {
      made = states[size_t(state.getIndex())];
      continue;
    }
    auto reduce = dyn_cast<optim::ReduceOp>(op);
    if (!reduce) {
      if (failed(evaluate(op->getOperand(0), made)))
        return failure();
      continue;
    }
    Matrix terms(1, 0); // of all parameters
    for (Stepping each : parameters) {
      const Tensor *parameter = &each.tensors->parameter;
      for (auto [state, tensor] : llvm::zip(each.rule.getStates(), each.tensors->states))
        if (cast<optim::StateAttr>(state).getMaster() && !tensor.data.empty())
          parameter = &tensor;
      if (failed(run(rowOf(*parameter), rowOf(each.tensors->gradient), reduce.getSource(),
                     [&](const Matrix &value) { llvm::append_range(terms.data, value.data); })))
        return failure();
    }
    terms.cols = int64_t(terms.data.size());
    made = computeMatrix(reduce, &terms, 1, 1)->at(0, 0);
  }
  for (Value state : model.getNewStates())
    if (failed(evaluate(state, result.states.emplace_back())))
      return failure();
  double skipped = 0;
  if (Value value = model.getSkipped(); value && failed(evaluate(value, skipped)))
    return failure();
  result.isSkipped = skipped != 0;
  return result;
}
