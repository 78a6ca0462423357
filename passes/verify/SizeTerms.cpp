//===- SizeTerms.cpp - Terms that follow from sizes and literals alone ----===//
//
// Written apart from optim-fold-conditions, which is under proof.
//
//===----------------------------------------------------------------------===//

#include "passes/verify/Terms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;

std::optional<double> Terms::valueOf(Operation *op, ArrayRef<Term> operands) const {
  // One operand of a condition may decide alone.
  if (isa<arith::AndIOp, arith::OrIOp>(op))
    for (Term operand : operands)
      if (nodes[operand].value == double(isa<arith::OrIOp>(op)))
        return nodes[operand].value;
  SmallVector<double, 3> x;
  for (Term operand : operands) {
    if (!nodes[operand].value)
      return std::nullopt;
    x.push_back(*nodes[operand].value);
  }
  using Value = std::optional<double>;
  bool isNumber = op->getResult(0).getType().isF64();
  bool areNumbers = isNumber && x.size() == 2 && x[0] == x[0] && x[1] == x[1];
  // Equal numbers are the same, but for zeros: these differ in their sign.
  auto least = [&] { return x[0] == x[1] && std::signbit(x[0]) ? x[0] : std::min(x[1], x[0]); };
  auto most = [&] { return x[0] == x[1] && std::signbit(x[0]) ? x[1] : std::max(x[0], x[1]); };
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](arith::CmpFOp op) -> Value {
        return arith::applyCmpPredicate(op.getPredicate(), APFloat(x[0]), APFloat(x[1]));
      })
      .Case([&](arith::AndIOp) -> Value { return x[0] != 0 && x[1] != 0; })
      .Case([&](arith::OrIOp) -> Value { return x[0] != 0 || x[1] != 0; })
      .Case([&](arith::XOrIOp) -> Value { return (x[0] != 0) != (x[1] != 0); })
      .Case([&](arith::AddFOp) { return isNumber ? Value(x[0] + x[1]) : Value(); })
      .Case([&](arith::SubFOp) { return isNumber ? Value(x[0] - x[1]) : Value(); })
      .Case([&](arith::MulFOp) { return isNumber ? Value(x[0] * x[1]) : Value(); })
      .Case([&](arith::DivFOp) { return isNumber ? Value(x[0] / x[1]) : Value(); })
      .Case([&](arith::NegFOp) { return isNumber ? Value(-x[0]) : Value(); })
      .Case([&](math::SqrtOp) { return isNumber ? Value(std::sqrt(x[0])) : Value(); })
      .Case([&](math::FloorOp) { return isNumber ? Value(std::floor(x[0])) : Value(); })
      .Case([&](math::AbsFOp) { return isNumber ? Value(std::fabs(x[0])) : Value(); })
      .Case([&](arith::MaximumFOp) { return areNumbers ? Value(most()) : Value(); })
      .Case([&](arith::MinimumFOp) { return areNumbers ? Value(least()) : Value(); })
      .Default([](Operation *) { return Value(); });
}

std::optional<Term> Terms::chosenOf(Operation *op, ArrayRef<Term> operands) const {
  auto value = [&](size_t i) { return nodes[operands[i]].value; };
  if (isa<arith::SelectOp>(op) && value(0))
    return operands[*value(0) != 0 ? 1 : 2];
  if (isa<arith::AndIOp, arith::OrIOp>(op)) {
    double decides = isa<arith::OrIOp>(op);
    for (size_t i : {0, 1})
      if (value(i) && value(i) != decides && value(1 - i) != decides)
        return operands[1 - i];
  }
  return std::nullopt;
}
