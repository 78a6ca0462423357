//===- SizeEvaluator.cpp - What follows from a block's sizes --------------===//

#include "passes/decide/SizeEvaluator.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace stepc;
using namespace stepc::decide;
using namespace stepc::optim;

SizeEvaluator::SizeEvaluator(Block &body, ValueRange sizes, const plan::Group &group) {
  numbers[sizes[0]] = double(group.rows());
  numbers[sizes[1]] = double(group.cols());
  numbers[sizes[2]] = group.numel();
  for (auto [number, op] : llvm::enumerate(body.without_terminator()))
    if (op.getNumResults() == 1)
      visit(&op, int64_t(number));
}

std::optional<double> SizeEvaluator::numberOf(Value value) const {
  auto known = numbers.find(value);
  return known == numbers.end() ? std::nullopt : std::optional(known->second);
}

std::optional<bool> SizeEvaluator::truthOf(Value value) const {
  auto known = truths.find(value);
  return known == truths.end() ? std::nullopt : std::optional(known->second);
}

/// Notes that the result is the operand with this number.
void SizeEvaluator::choose(Operation *op, int64_t number, int64_t operand) {
  Value chosen = op->getOperand(unsigned(operand)), result = op->getResult(0);
  if (isa<RankedTensorType>(result.getType()))
    decisions.push_back({number, operand});
  if (std::optional<double> known = numberOf(chosen))
    numbers[result] = *known;
  if (std::optional<bool> known = truthOf(chosen))
    truths[result] = *known;
}

void SizeEvaluator::visit(Operation *op, int64_t number) {
  Value result = op->getResult(0);
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](arith::ConstantOp constant) { visitConstant(constant); })
      .Case([&](SplatOp splat) {
        std::optional<double> known = numberOf(splat->getOperand(0));
        if (known && splat.getType().getElementType().isF32())
          numbers[result] = double(float(*known));
      })
      .Case([&](BroadcastOp broadcast) {
        if (std::optional<double> known = numberOf(broadcast->getOperand(0)))
          numbers[result] = *known;
        if (std::optional<bool> known = truthOf(broadcast->getOperand(0)))
          truths[result] = *known;
      })
      .Case([&](arith::CmpFOp compare) {
        std::optional<double> a = numberOf(compare.getLhs()), b = numberOf(compare.getRhs());
        if (a && b)
          truths[result] =
              arith::applyCmpPredicate(compare.getPredicate(), APFloat(*a), APFloat(*b));
      })
      .Case([&](arith::SelectOp select) {
        if (std::optional<bool> known = truthOf(select.getCondition()))
          choose(op, number, *known ? 1 : 2);
      })
      .Case<arith::AndIOp, arith::OrIOp>([&](Operation *logic) {
        // One operand may decide alone. If it does not, the result is the other operand.
        bool decides = isa<arith::OrIOp>(logic);
        std::optional<bool> a = truthOf(logic->getOperand(0)), b = truthOf(logic->getOperand(1));
        if (a == decides || b == decides)
          truths[result] = decides;
        else if (a || b)
          choose(op, number, a ? 1 : 0);
      })
      .Case([&](arith::XOrIOp differs) {
        std::optional<bool> a = truthOf(differs.getLhs()), b = truthOf(differs.getRhs());
        if (a && b)
          truths[result] = *a != *b;
      })
      .Default([&](Operation *op) {
        if (result.getType().isF64())
          visitArithmetic(op);
      });
}

void SizeEvaluator::visitConstant(arith::ConstantOp op) {
  Attribute value = op.getValue();
  if (auto splat = dyn_cast<SplatElementsAttr>(value))
    value = splat.getSplatValue<Attribute>();
  if (auto number = dyn_cast<FloatAttr>(value))
    numbers[op.getResult()] = number.getValueAsDouble();
  else if (auto truth = dyn_cast<BoolAttr>(value))
    truths[op.getResult()] = truth.getValue();
}

/// IEEE 754's maximum, as arith.maximumf has it: of two zeros +0 if one is, and NaN of a NaN.
static double greater(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  if (a == 0 && b == 0)
    return std::signbit(a) ? b : a;
  return std::max(a, b);
}

void SizeEvaluator::visitArithmetic(Operation *op) {
  SmallVector<double> x;
  for (Value operand : op->getOperands()) {
    std::optional<double> known = numberOf(operand);
    if (!known)
      return;
    x.push_back(*known);
  }
  double &result = numbers[op->getResult(0)];
  bool isKnown = llvm::TypeSwitch<Operation *, bool>(op)
                     .Case([&](arith::AddFOp) { return result = x[0] + x[1], true; })
                     .Case([&](arith::SubFOp) { return result = x[0] - x[1], true; })
                     .Case([&](arith::MulFOp) { return result = x[0] * x[1], true; })
                     .Case([&](arith::DivFOp) { return result = x[0] / x[1], true; })
                     .Case([&](arith::NegFOp) { return result = -x[0], true; })
                     .Case([&](math::SqrtOp) { return result = std::sqrt(x[0]), true; })
                     .Case([&](math::FloorOp) { return result = std::floor(x[0]), true; })
                     .Case([&](math::AbsFOp) { return result = std::fabs(x[0]), true; })
                     .Case([&](arith::MaximumFOp) { return result = greater(x[0], x[1]), true; })
                     .Case([&](arith::MinimumFOp) { return result = -greater(-x[0], -x[1]), true; })
                     .Default([](Operation *) { return false; });
  if (!isKnown)
    numbers.erase(op->getResult(0));
}
