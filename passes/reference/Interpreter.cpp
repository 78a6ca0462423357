//===- Interpreter.cpp - One block through a rule's body -------------------===//

#include "passes/reference/Interpreter.h"

#include "runtime/random/Philox.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace stepc;
using namespace stepc::reference;

Interpreter::Interpreter(Block &body, std::vector<Matrix> arguments, int64_t rows, int64_t cols,
                         ArrayRef<double> numbers, std::vector<int64_t> sizes)
    : body(body), rows(rows), cols(cols), numbers(numbers), sizes(std::move(sizes)) {
  for (auto [argument, value] : llvm::zip(body.getArguments(), arguments))
    values[argument] = std::move(value);
}

/// Zeros, of the size that the type of `value` has for this block.
Matrix Interpreter::shaped(Value value) const {
  std::optional<optim::ValueKind> kind = optim::kindOf(value.getType());
  if (!kind)
    return Matrix();
  auto [r, c] = kind->extents(rows, cols, std::min(rows, cols), sizes);
  return Matrix(r, c);
}

static bool compare(arith::CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::OEQ:
    return a == b;
  case P::OGT:
    return a > b;
  case P::OGE:
    return a >= b;
  case P::OLT:
    return a < b;
  case P::OLE:
    return a <= b;
  case P::ONE:
    return !unordered && a != b;
  case P::ORD:
    return !unordered;
  case P::UEQ:
    return unordered || a == b;
  case P::UGT:
    return unordered || a > b;
  case P::UGE:
    return unordered || a >= b;
  case P::ULT:
    return unordered || a < b;
  case P::ULE:
    return unordered || a <= b;
  case P::UNE:
    return unordered || a != b;
  case P::UNO:
    return unordered;
  case P::AlwaysTrue:
    return true;
  }
  llvm_unreachable("unknown predicate");
}

/// NaN if an operand is NaN. -0 counts as less than 0.
static double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return a + b;
  return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}
static double minimum(double a, double b) { return -maximum(-a, -b); }

std::optional<double> Interpreter::compute(Operation &op, ArrayRef<double> x) {
  return llvm::TypeSwitch<Operation *, std::optional<double>>(&op)
      .Case([&](arith::AddFOp) { return x[0] + x[1]; })
      .Case([&](arith::SubFOp) { return x[0] - x[1]; })
      .Case([&](arith::MulFOp) { return x[0] * x[1]; })
      .Case([&](arith::DivFOp) { return x[0] / x[1]; })
      .Case([&](arith::NegFOp) { return -x[0]; })
      .Case([&](arith::MaximumFOp) { return maximum(x[0], x[1]); })
      .Case([&](arith::MinimumFOp) { return minimum(x[0], x[1]); })
      .Case([&](arith::MaxNumFOp) { return std::fmax(x[0], x[1]); })
      .Case([&](arith::MinNumFOp) { return std::fmin(x[0], x[1]); })
      .Case([&](arith::CmpFOp cmp) { return double(compare(cmp.getPredicate(), x[0], x[1])); })
      .Case([&](arith::SelectOp) { return x[0] != 0 ? x[1] : x[2]; })
      // Operations on conditions, whose values are 0 and 1.
      .Case([&](arith::AndIOp) { return double(x[0] != 0 && x[1] != 0); })
      .Case([&](arith::OrIOp) { return double(x[0] != 0 || x[1] != 0); })
      .Case([&](arith::XOrIOp) { return double((x[0] != 0) != (x[1] != 0)); })
      // Casts do not round: this interpreter computes what a rule means without roundings.
      .Case<arith::TruncFOp, arith::ExtFOp, optim::StochasticOp>([&](auto) { return x[0]; })
      .Case([&](math::SqrtOp) { return std::sqrt(x[0]); })
      .Case([&](math::RsqrtOp) { return 1.0 / std::sqrt(x[0]); })
      .Case([&](math::FloorOp) { return std::floor(x[0]); })
      .Case([&](math::AbsFOp) { return std::abs(x[0]); })
      .Case([&](math::ExpOp) { return std::exp(x[0]); })
      .Case([&](math::LogOp) { return std::log(x[0]); })
      .Case([&](math::PowFOp) { return std::pow(x[0], x[1]); })
      .Case([&](optim::LerpOp) { return x[0] + x[2] * (x[1] - x[0]); })
      .Case([&](optim::MomentumOp) { return x[2] * x[0] + x[1]; })
      .Case([&](optim::DecayOp) { return (1 - x[1] * x[2]) * x[0]; })
      .Case<optim::SplatOp, optim::BroadcastOp>([&](auto) { return x[0]; })
      .Default([](Operation *) { return std::optional<double>(); });
}

LogicalResult Interpreter::runOp(Operation &op) {
  if (isa<optim::SizeOp>(op)) // known from outside
    return success();
  if (op.getNumResults() != 1)
    return op.emitOpError("expected an operation that the reference interpreter knows");
  Value result = op.getResult(0);
  auto setNumber = [&](int64_t number) {
    values[result] = Matrix(1, 1, numbers[size_t(number)]);
    return success();
  };
  if (auto number = dyn_cast<optim::ModelNumberOp>(op))
    return setNumber(int64_t(number.getNumber()));
  if (auto number = op.getAttrOfType<IntegerAttr>(optim::kNumberAttr);
      number && isa<optim::ReduceOp, optim::ModelStateOp>(op))
    return setNumber(number.getInt());
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    Matrix &value = values[result] = shaped(result);
    double number = 0;
    Attribute attr = constant.getValue();
    if (auto splat = dyn_cast<SplatElementsAttr>(attr))
      attr = splat.getSplatValue<Attribute>();
    if (auto real = dyn_cast<FloatAttr>(attr))
      number = real.getValueAsDouble();
    else if (auto integer = dyn_cast<IntegerAttr>(attr); integer && integer.getType().isInteger(1))
      number = integer.getValue().getBoolValue();
    else
      return op.emitOpError("expected a number or a condition for the reference interpreter");
    std::fill(value.data.begin(), value.data.end(), number);
    return success();
  }
  Matrix out = shaped(result);
  if (auto position = dyn_cast<optim::PositionOp>(op)) {
    bool ofRows = position.getAxis() == plan::Division::Rows;
    for (int64_t i = 0, e = ofRows ? out.rows : out.cols; i < e; ++i)
      (ofRows ? out.at(i, 0) : out.at(0, i)) = double(i);
    values[result] = std::move(out);
    return success();
  }
  if (auto draw = dyn_cast<optim::RandomOp>(op)) {
    auto half = [&](Value value) { return uint32_t(values.at(value).at(0, 0)); };
    uint32_t seed = half(draw.getHigh()) << 16 | half(draw.getLow());
    uint32_t step = half(draw.getStepHigh()) << 16 | half(draw.getStepLow());
    bool isFull = optim::kindOf(result.getType()) == optim::ValueKind::Full;
    int64_t first = isFull ? firstElement : numberOfBlock * out.rows * out.cols;
    if (!draw.getCondition() || values.at(draw.getCondition()).at(0, 0) != 0)
      for (auto [i, number] : llvm::enumerate(out.data))
        number = random::number(draw.getDraw(), uint64_t(first) + i, step, uint32_t(draw.getCall()),
                                random::keyFor(seed, keyOfName));
    values[result] = std::move(out);
    return success();
  }
  SmallVector<const Matrix *, 4> operands;
  for (Value operand : op.getOperands())
    operands.push_back(&values.at(operand));
  if (std::optional<Matrix> made = computeMatrix(&op, operands, out.rows, out.cols)) {
    values[result] = std::move(*made);
    return success();
  }
  SmallVector<double, 4> x(operands.size());
  for (int64_t i = 0; i < out.rows; ++i)
    for (int64_t j = 0; j < out.cols; ++j) {
      for (auto [value, operand] : llvm::zip(x, operands))
        value = operand->at(operand->rows == 1 ? 0 : i, operand->cols == 1 ? 0 : j);
      std::optional<double> computed = compute(op, x);
      if (!computed)
        return op.emitOpError("expected an operation that the reference interpreter knows");
      out.at(i, j) = *computed;
    }
  values[result] = std::move(out);
  return success();
}

FailureOr<std::vector<Matrix>> Interpreter::run() {
  for (Operation &op : body.without_terminator())
    if (failed(runOp(op)))
      return failure();
  std::vector<Matrix> results;
  for (Value value : body.getTerminator()->getOperands())
    results.push_back(values.at(value));
  return results;
}
