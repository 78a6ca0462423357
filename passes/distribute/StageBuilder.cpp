//===- StageBuilder.cpp - Fuse elementwise operations of a rule ------------===//

#include "passes/distribute/StageBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::distribute;
using namespace stepc::optim;

int64_t ScalarColumns::find(Value value) const {
  auto it = llvm::find(values, value);
  return it == values.end() ? -1 : it - values.begin();
}

ScalarColumns distribute::collectColumns(RuleOp rule) {
  llvm::SetVector<Value> values;
  rule.walk([&](SplatOp splat) {
    if (!matchPattern(splat.getScalar(), m_Constant()) && !splat->use_empty())
      values.insert(splat.getScalar());
  });
  return {SmallVector<Value>(values.begin(), values.end()), Value()};
}

ScalarColumns distribute::columnsFor(ArrayRef<Value> values) {
  llvm::SetVector<Value> next(values.begin(), values.end()), columns;
  for (size_t i = 0; i < next.size(); ++i) {
    Operation *op = next[i].getDefiningOp();
    if (auto splat = dyn_cast_if_present<SplatOp>(op)) {
      if (!matchPattern(splat.getScalar(), m_Constant()))
        columns.insert(splat.getScalar());
    } else if (op) {
      next.insert(op->operand_begin(), op->operand_end());
    }
  }
  return {SmallVector<Value>(columns.begin(), columns.end()), Value()};
}

Value distribute::cloneScalar(OpBuilder &builder, Value value, IRMapping &mapping) {
  if (Value done = mapping.lookupOrNull(value))
    return done;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    cloneScalar(builder, operand, mapping);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

/// Widens or rounds a float to another type.
static Value convert(OpBuilder &builder, Location loc, Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
  if (value.getType() == type)
    return value;
  if (from < to)
    return arith::ExtFOp::create(builder, loc, type, value);
  if (from > to)
    return arith::TruncFOp::create(builder, loc, type, value);
  // bf16 ↔ f16: through f32, which holds both exactly.
  Value wide = arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
  return arith::TruncFOp::create(builder, loc, type, wide);
}

void StageBuilder::collect(Value value) {
  if (!visited.insert(value).second)
    return;
  if (leaves.contains(value)) {
    inputs.insert(value);
    return;
  }
  Operation *op = value.getDefiningOp();
  assert(op && "an argument that is no leaf");
  if (auto splat = dyn_cast<SplatOp>(op)) {
    usesColumns |= columns.find(splat.getScalar()) >= 0;
    return;
  }
  for (Value operand : op->getOperands())
    collect(operand);
}

Value StageBuilder::scalarOf(OpBuilder &builder, Value value) {
  if (Value done = scalars.lookup(value))
    return done;
  Operation *op = value.getDefiningOp();
  Location loc = op->getLoc();
  Value result;
  if (auto splat = dyn_cast<SplatOp>(op)) {
    Type type = comm::elementOf(splat);
    int64_t column = columns.find(splat.getScalar());
    if (column >= 0) {
      result = convert(builder, loc, body->getArgument(inputs.size() + column), type);
    } else {
      FloatAttr constant;
      matchPattern(splat.getScalar(), m_Constant(&constant));
      // Rounded once, f64 to the tensor's type.
      APFloat rounded = constant.getValue();
      bool losesInfo;
      rounded.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven,
                      &losesInfo);
      result = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, rounded));
    }
  } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    result = scalarOf(builder, broadcast.getSource());
  } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto dense = cast<SplatElementsAttr>(constant.getValue());
    result =
        arith::ConstantOp::create(builder, loc, cast<TypedAttr>(dense.getSplatValue<Attribute>()));
  } else {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(isa<ShapedType>(operand.getType()) ? scalarOf(builder, operand) : operand);
    OperationState state(loc, op->getName(), operands, TypeRange(comm::elementOf(value)),
                         op->getAttrs());
    state.attributes.erase(kSpaceAttr);
    result = builder.create(state)->getResult(0);
  }
  return scalars[value] = result;
}

ArrayRef<Value> StageBuilder::reads() {
  for (const Output &output : writes)
    collect(output.value);
  for (const Output &output : outs)
    collect(output.value);
  return inputs.getArrayRef();
}

comm::StageOp StageBuilder::create(OpBuilder &builder, Location loc, FlatSymbolRefAttr segment,
                                   comm::Distribution::Kind iteration, Value active) {
  SmallVector<Value> ins, written, inits;
  SmallVector<Type> arguments, results;
  for (Value input : reads()) {
    ins.push_back(leaves.lookup(input));
    arguments.push_back(comm::elementOf(ins.back()));
  }
  Value table = usesColumns ? columns.table : Value();
  if (table)
    arguments.append(columns.values.size(), builder.getF32Type());
  for (const Output &output : writes)
    written.push_back(output.place);
  for (const Output &output : outs) {
    inits.push_back(output.place);
    results.push_back(output.place.getType());
  }
  auto stage =
      comm::StageOp::create(builder, loc, results, segment.getValue(), iteration, ins, written,
                            inits, table, active, comm::WalkedAttr(), comm::ReductionAttr());
  if (walked)
    stage.setWalked(*walked);
  if (reduction)
    stage.setReduction(*reduction);
  body = builder.createBlock(&stage.getBody(), {}, arguments,
                             SmallVector<Location>(arguments.size(), loc));
  for (auto [index, input] : llvm::enumerate(inputs))
    scalars[input] = convert(builder, loc, body->getArgument(index), comm::elementOf(input));
  SmallVector<Value> yields;
  for (ArrayRef<Output> list : {ArrayRef<Output>(writes), ArrayRef<Output>(outs)})
    for (const Output &output : list)
      yields.push_back(convert(builder, loc, scalarOf(builder, output.value),
                               reduction ? builder.getF32Type() : comm::elementOf(output.place)));
  comm::YieldOp::create(builder, loc, yields);
  builder.setInsertionPointAfter(stage);
  return stage;
}
