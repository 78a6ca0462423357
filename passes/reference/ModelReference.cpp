//===- ModelReference.cpp - What a step computes of all parameters ---------===//

#include "passes/reference/Interpreter.h"
#include "passes/reference/Reference.h"

#include <cmath>

using namespace mlir;
using namespace stepc;
using namespace stepc::reference;

namespace {

/// A reduction of the elements of several tensors, in f64.
struct Total {
  optim::Reduction kind;
  double sum = 0, most = -HUGE_VAL;
  size_t count = 0;

  void add(const Matrix &matrix) {
    bool squares = kind == optim::Reduction::Norm || kind == optim::Reduction::Rms;
    for (double x : matrix.data) {
      sum += squares ? x * x : x;
      bool isGreater = x > most || (x == 0 && most == 0 && !std::signbit(x));
      most = std::isnan(x) || std::isnan(most) ? NAN : isGreater ? x : most;
    }
    count += matrix.data.size();
  }
  double result() const {
    switch (kind) {
    case optim::Reduction::Sum:
      return sum;
    case optim::Reduction::Mean:
      return sum / double(count);
    case optim::Reduction::Rms:
      return std::sqrt(sum / double(count));
    case optim::Reduction::Norm:
      return std::sqrt(sum);
    case optim::Reduction::Max:
      return most;
    }
    llvm_unreachable("unknown reduction");
  }
};

/// All elements of a tensor as one row. A model does not see rows and columns.
Matrix rowOf(const Tensor &tensor) {
  Matrix row(1, int64_t(tensor.data.size()));
  row.data = tensor.data;
  return row;
}

} // namespace

FailureOr<std::vector<double>> reference::modelNumbers(optim::ModelOp model,
                                                       ArrayRef<Stepping> parameters,
                                                       ArrayRef<double> hyperparameters,
                                                       int64_t step) {
  SmallVector<Operation *> ops = model.getNumbers();
  std::vector<double> numbers(ops.size(), 0.0);
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
  for (auto [number, op] : llvm::enumerate(ops)) {
    double &made = numbers[number];
    auto reduce = dyn_cast<optim::ReduceOp>(op);
    if (!reduce) {
      if (failed(run(Matrix(1, 1), Matrix(1, 1), op->getOperand(0),
                     [&](const Matrix &value) { made = value.at(0, 0); })))
        return failure();
      continue;
    }
    Total total{reduce.getKind()};
    for (Stepping each : parameters) {
      const Tensor *parameter = &each.tensors->parameter;
      for (auto [state, tensor] : llvm::zip(each.rule.getStates(), each.tensors->states))
        if (cast<optim::StateAttr>(state).getMaster() && !tensor.data.empty())
          parameter = &tensor;
      if (failed(run(rowOf(*parameter), rowOf(each.tensors->gradient), reduce.getSource(),
                     [&](const Matrix &value) { total.add(value); })))
        return failure();
    }
    made = total.result();
  }
  return numbers;
}
