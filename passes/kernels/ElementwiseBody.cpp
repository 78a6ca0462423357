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

Value ElementwiseBody::draw(KernelBuilder &b, optim::NormalOp op, Value element, Type type) {
  auto choice = scf::IfOp::create(b, b.loc, type, uniform.lookup(op.getCondition()),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  Value seed = emitSeed(b, b.loc, uniform.lookup(op.getHigh()), uniform.lookup(op.getLow()));
  Value drawn =
      emitNormal(b, b.loc, element, seed, uniform.lookup(op.getKey()), uint32_t(op.getCall()));
  scf::YieldOp::create(b, b.loc, drawn);
  b.setInsertionPointToStart(choice.elseBlock());
  Value none = arith::ConstantOp::create(b, b.loc, b.getZeroAttr(type));
  scf::YieldOp::create(b, b.loc, none);
  return choice.getResult(0);
}

SmallVector<Value> ElementwiseBody::emit(KernelBuilder &builder, ValueRange arguments,
                                         int64_t width) {
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
    if (auto normal = dyn_cast<optim::NormalOp>(op)) {
      values.map(normal,
                 draw(builder, normal, lookup(normal.getElement()), typeOf(normal.getType())));
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
