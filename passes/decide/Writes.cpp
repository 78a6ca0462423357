//===- Writes.cpp - Where a rule's results are stored ----------------------===//

#include "passes/decide/Writes.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

/// Collects the arguments of the rule that `out` reads again to compute `value`. It stops at three kinds of
/// values: values of matrix space are sent, the caller visits values of `out` itself, and values in `stored`
/// are read from their state.
static void collectReads(Value value, const llvm::DenseSet<Value> &stored,
                         llvm::DenseSet<Value> &seen, llvm::SetVector<Value> &reads) {
  std::optional<Space> space = spaceOf(value.getDefiningOp());
  if (stored.contains(value) || space == Space::Matrix || space == Space::Out ||
      !seen.insert(value).second)
    return;
  if (isa<BlockArgument>(value)) {
    reads.insert(value);
    return;
  }
  for (Value operand : placedOperands(value.getDefiningOp()))
    collectReads(operand, stored, seen, reads);
}

Writes decide::decideWrites(RuleOp rule) {
  auto yield = cast<YieldOp>(rule.getBody().front().getTerminator());
  unsigned count = yield.getNumOperands();
  // Value i of the yield replaces this argument.
  auto argument = [&](unsigned i) -> Value {
    return i == 0 ? rule.getParameterArgument() : rule.getStateArgument(i - 1);
  };
  Writes writes(count);
  bool anyMatrix = false;
  for (Operation &op : rule.getBody().front())
    anyMatrix |= spaceOf(&op).value_or(Space::In) != Space::In;
  for (unsigned i = 0; i < count; ++i) {
    Value value = yield.getOperand(i);
    // With a master, the stored parameter is the rounded master, even if the rule changes neither.
    bool rounded = i == 0 && llvm::any_of(rule.getStates(), [](Attribute state) {
                     return cast<StateAttr>(state).getMaster();
                   });
    if (value == argument(i) && !rounded)
      continue;
    if (i > 0 && rule.isBlockState(i - 1)) {
      writes[i] = Space::Matrix;
      continue;
    }
    // A value without a space is made in the latest space of its operands.
    std::optional<Space> space;
    for (Value operand : placedOperands(value))
      if (std::optional<Space> made = spaceOf(operand.getDefiningOp()))
        space = std::max(space.value_or(*made), *made);
    if (i > 0 && rule.getState(i - 1).getKind() != ValueKind::Full) {
      // A line that follows from scalars and other states alone is computed on shards. Then nothing travels.
      writes[i] = space.value_or(Space::In);
      continue;
    }
    // A splat or another argument is made nowhere. It is stored in the rule's last space on shards.
    if (space)
      writes[i] = *space == Space::In ? Space::In : Space::Out;
    else
      writes[i] = anyMatrix ? Space::Out : Space::In;
  }
  if (!anyMatrix)
    return writes;
  // The parameter or a state must not be stored in `in` if `out` reads its old value: its store moves to
  // `out`. Each move may cause others.
  for (bool changed = true; changed;) {
    changed = false;
    llvm::DenseSet<Value> stored, seen;
    for (unsigned i = 1; i < count; ++i)
      if (writes[i] == Space::In && rule.getState(i - 1).getKind() == ValueKind::Full &&
          rule.getState(i - 1).getType().isF32())
        stored.insert(yield.getOperand(i));
    llvm::SetVector<Value> reads;
    for (Operation &op : rule.getBody().front())
      if (spaceOf(&op) == Space::Out)
        for (Value operand : placedOperands(&op))
          collectReads(operand, stored, seen, reads);
    for (unsigned i = 0; i < count; ++i)
      if (writes[i] == Space::Out)
        for (Value operand : placedOperands(yield.getOperand(i)))
          collectReads(operand, stored, seen, reads);
    for (unsigned i = 0; i < count; ++i) {
      // A stage of `out` reads a copy of a state per row, column or block.
      bool isLine = i > 0 && rule.getState(i - 1).getKind() != ValueKind::Full;
      if (writes[i] == Space::In && !isLine && reads.contains(argument(i))) {
        writes[i] = Space::Out;
        changed = true;
      }
    }
  }
  return writes;
}
