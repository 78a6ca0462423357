//===- Writes.cpp - Where a rule's results are stored ----------------------===//

#include "passes/decide/Writes.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

static std::optional<Space> spaceOf(Value value) {
  Operation *op = value.getDefiningOp();
  auto attr = op ? op->getAttrOfType<IntegerAttr>(kSpaceAttr) : IntegerAttr();
  if (!attr)
    return std::nullopt;
  return symbolizeSpace(attr.getInt());
}

/// Collects the block arguments that `out` reads again to compute `value`. Values of matrix space
/// have crossed, those of `out` are looked at on their own, and `stored` ones are read from their
/// state.
static void collectReads(Value value, const llvm::DenseSet<Value> &stored,
                         llvm::DenseSet<Value> &seen, llvm::SetVector<Value> &reads) {
  std::optional<Space> space = spaceOf(value);
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

SmallVector<int64_t> decide::decideWrites(RuleOp rule) {
  auto yield = cast<YieldOp>(rule.getBody().front().getTerminator());
  unsigned count = yield.getNumOperands();
  // Value i of the yield replaces this argument.
  auto argument = [&](unsigned i) -> Value {
    return i == 0 ? rule.getParameterArgument() : rule.getStateArgument(i - 1);
  };
  SmallVector<int64_t> writes(count, -1);
  bool anyMatrix = false;
  for (Operation &op : rule.getBody().front())
    if (auto attr = op.getAttrOfType<IntegerAttr>(kSpaceAttr))
      anyMatrix |= attr.getInt() != int64_t(Space::In);
  for (unsigned i = 0; i < count; ++i) {
    Value value = yield.getOperand(i);
    // With a master the parameter is the master rounded, also where the rule leaves both alone.
    bool rounded = i == 0 && llvm::any_of(rule.getStates(), [](Attribute state) {
                     return cast<StateAttr>(state).getMaster();
                   });
    if (value == argument(i) && !rounded)
      continue;
    if (i > 0 && rule.getState(i - 1).getKind() != ValueKind::Full) {
      writes[i] = int64_t(Space::Matrix);
      continue;
    }
    std::optional<Space> space = spaceOf(value);
    // A splat or another argument has no space: it is stored where the parameter is.
    if (space)
      writes[i] = *space == Space::In ? int64_t(Space::In) : int64_t(Space::Out);
    else
      writes[i] = anyMatrix ? int64_t(Space::Out) : int64_t(Space::In);
  }
  if (!anyMatrix)
    return writes;
  // Until nothing changes: a state stored in `in` whose old value `out` reads moves to `out`.
  for (bool changed = true; changed;) {
    changed = false;
    llvm::DenseSet<Value> stored, seen;
    for (unsigned i = 1; i < count; ++i)
      if (writes[i] == int64_t(Space::In) && rule.getState(i - 1).getType().isF32())
        stored.insert(yield.getOperand(i));
    llvm::SetVector<Value> reads;
    for (Operation &op : rule.getBody().front())
      if (auto attr = op.getAttrOfType<IntegerAttr>(kSpaceAttr))
        if (attr.getInt() == int64_t(Space::Out))
          for (Value operand : placedOperands(&op))
            collectReads(operand, stored, seen, reads);
    for (unsigned i = 0; i < count; ++i)
      if (writes[i] == int64_t(Space::Out))
        for (Value operand : placedOperands(yield.getOperand(i)))
          collectReads(operand, stored, seen, reads);
    for (unsigned i = 0; i < count; ++i)
      if (writes[i] == int64_t(Space::In) && reads.contains(argument(i))) {
        writes[i] = int64_t(Space::Out);
        changed = true;
      }
  }
  return writes;
}
