//===- ElementwiseBody.cpp - A scalar region on scalars and vectors --------===//
//
// The vector body and the tail are clones of one region, operation by
// operation, so an element's bits do not depend on which of them computes it.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/ElementwiseBody.h"

#include "passes/kernels/RandomNumbers.h"

using namespace mlir;

namespace stepc::kernels {

Value broadcast(KernelBuilder &b, Value scalar, int64_t width) {
  Type type = scalar.getType();
  bool isSmall = type.isBF16() || type.isF16();
  if (isSmall)
    scalar = arith::BitcastOp::create(b, b.loc, b.getI16Type(), scalar);
  scalar = vector::BroadcastOp::create(b, b.loc, VectorType::get(width, scalar.getType()), scalar);
  return isSmall ? arith::BitcastOp::create(b, b.loc, VectorType::get(width, type), scalar)
                 : scalar;
}

void ElementwiseBody::emitUniform(KernelBuilder &builder, ValueRange uniformArguments) {
  for (auto [index, value] : llvm::enumerate(uniformArguments))
    uniform.map(body.getArgument(firstUniform + index), value);
  for (Operation &op : body.without_terminator())
    if (llvm::all_of(op.getOperands(), [&](Value v) { return uniform.contains(v); }))
      builder.clone(op, uniform);
}

void ElementwiseBody::draw(KernelBuilder &b, optim::RandomOp op, Value element, bool isAligned,
                           IRMapping &values) {
  auto operandsOf = [&](optim::RandomOp of) {
    return kernels::operandsOf(of, [&](Value value) { return uniform.lookup(value); });
  };
  DrawOperands operands = operandsOf(op);
  if (!operands.condition) {
    SmallVector<optim::RandomOp> together{op};
    SmallVector<uint32_t> calls{uint32_t(op.getCall())};
    for (auto each : body.getOps<optim::RandomOp>())
      if (together.size() < callsAtOnce(op.getDraw(), element) && each != op &&
          !values.contains(each) && each.getDraw() == op.getDraw() &&
          each.getElement() == op.getElement() && operandsOf(each) == operands) {
        together.push_back(each);
        calls.push_back(uint32_t(each.getCall()));
      }
    for (auto [each, numbers] : llvm::zip_equal(
             together, emitNumbers(b, b.loc, op.getDraw(), element, operands, calls, isAligned)))
      values.map(each.getResult(), numbers);
    return;
  }
  Type type = op.getType();
  if (auto vector = dyn_cast<VectorType>(element.getType()))
    type = vector.clone(type);
  auto choice = scf::IfOp::create(b, b.loc, type, operands.condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(
      b, b.loc, emitNumbers(b, b.loc, op.getDraw(), element, operands, uint32_t(op.getCall())));
  b.setInsertionPointToStart(choice.elseBlock());
  Value none = arith::ConstantOp::create(b, b.loc, b.getZeroAttr(type));
  scf::YieldOp::create(b, b.loc, none);
  values.map(op.getResult(), choice.getResult(0));
}

SmallVector<Value> ElementwiseBody::emit(KernelBuilder &builder, ValueRange arguments,
                                         int64_t width, bool isAligned) {
  auto typeOf = [&](Type type) -> Type { return width ? VectorType::get(width, type) : type; };
  IRMapping values;
  for (auto [index, value] : llvm::enumerate(arguments))
    values.map(body.getArgument(index), value);
  auto lookup = [&](Value value) {
    if (Value known = values.lookupOrNull(value))
      return known;
    Value same = uniform.lookup(value);
    if (width)
      same = broadcast(builder, same, width);
    values.map(value, same);
    return same;
  };
  for (Operation &op : body.without_terminator()) {
    if (llvm::all_of(op.getResults(), [&](Value v) { return uniform.contains(v); }))
      continue;
    if (auto random = dyn_cast<optim::RandomOp>(op)) {
      if (!values.contains(random))
        draw(builder, random, lookup(random.getElement()), isAligned, values);
      continue;
    }
    if (auto rounding = dyn_cast<optim::StochasticOp>(op)) {
      Value source = lookup(rounding.getSource()), number = lookup(rounding.getUniform());
      values.map(rounding, emitStochastic(builder, builder.loc, source, number));
      continue;
    }
    for (Value operand : op.getOperands())
      lookup(operand);
    Operation *copy = builder.clone(op, values);
    for (OpResult result : copy->getResults())
      result.setType(typeOf(result.getType()));
  }
  SmallVector<Value> yielded;
  for (Value value : body.getTerminator()->getOperands())
    yielded.push_back(lookup(value));
  return yielded;
}

} // namespace stepc::kernels
