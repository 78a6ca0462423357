//===- CutSpaces.cpp - Cut a rule between shard and matrix space -----------===//
//
// Tensor operations that need whole blocks, or lie between two of these, are the core. A reduction is one of
// them unless the lines that it adds up are whole on their ranks (optim-reduce-on-shards). Operations that
// lead to the core run in `in` or `matrix`, operations that follow from it in `matrix` or `out`. On each
// side a minimum cut decides, over the bytes per element of values that cross. Scalars, splats, conditions,
// broadcasts, widenings and what is computed from values per row, column or block run wherever they are used
// and get no label. An operation that uses one counts as a reader of its operands.
//
//===----------------------------------------------------------------------===//

#include "passes/decide/CutSpaces.h"

#include "passes/decide/MinimumCut.h"
#include "passes/decide/Passes.h"
#include "passes/decide/Writes.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace stepc::optim;

namespace stepc::decide {
#define GEN_PASS_DEF_CUTSPACES
#include "passes/decide/Passes.h.inc"
} // namespace stepc::decide

using namespace stepc::decide;

namespace {

/// The cost of a value that crosses between shards and matrix space, in 1/1024 bytes per element of the
/// block.
int64_t crossingCost(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  // Rows, cols and one values are negligible beside full values, but not free.
  return kindOf(type) == ValueKind::Full ? 1024 * (type.getElementTypeBitWidth() / 8) : 1;
}

/// The cost of a reduction that runs on shards although its source is made in matrix space, in the same unit.
/// It takes another pass over what arrives, and saves nothing if only values per row, column or block cross
/// less.
constexpr int64_t kReductionCost = 8;

bool isTensor(Value value) { return isa<RankedTensorType>(value.getType()); }

class Cutter {
public:
  Cutter(RuleOp rule, const llvm::DenseSet<Operation *> &onShards)
      : rule(rule), onShards(onShards),
        yield(cast<YieldOp>(rule.getBody().front().getTerminator())) {
    for (Operation &op : rule.getBody().front()) {
      if (!hasSpace(&op) && &op != yield)
        continue;
      if (&op != yield)
        ops.push_back(&op);
      reads[&op] = placedOperands(&op);
      for (Value value : reads[&op])
        users[value].push_back(&op);
    }
  }

  void run() {
    findCore();
    if (core.empty()) {
      for (Operation *op : ops)
        space[op] = Space::In;
      return;
    }
    for (Operation *op : ops)
      space[op] = core.contains(op) ? Space::Matrix : leads.contains(op) ? Space::In : Space::Out;
    placeFree();
    cutIn();
    cutOut();
    settleFree();
  }

  llvm::DenseMap<Operation *, Space> space;

private:
  void findCore() {
    llvm::DenseSet<Operation *> required;
    for (Operation *op : ops)
      if ((isa<MatrixOpInterface>(op) && !onShards.contains(op)) ||
          !kindOf(op->getResult(0).getType())->isStored() ||
          llvm::any_of(reads[op], [&](Value value) { return bool(rule.findBlockState(value)); }))
        required.insert(op);
    for (auto [number, value] : llvm::enumerate(yield.getOperands()))
      if (isBlockState(number))
        for (Value placed : placedOperands(value))
          if (Operation *from = placed.getDefiningOp())
            required.insert(from);
    // Program order is topological, so one sweep in each direction is enough.
    for (Operation *op : ops)
      for (Value operand : reads[op])
        if (Operation *from = operand.getDefiningOp())
          if (required.contains(from) || follows.contains(from))
            follows.insert(op);
    for (Operation *op : llvm::reverse(ops))
      for (Operation *user : usersOf(op))
        if (required.contains(user) || leads.contains(user))
          leads.insert(op);
    for (Operation *op : ops)
      if (required.contains(op) || (follows.contains(op) && leads.contains(op)))
        core.insert(op);
    for (Operation *op : core) {
      follows.erase(op);
      leads.erase(op);
    }
  }

  /// Gives a space to free operations, which neither lead to the core nor follow from it: `out` if an
  /// operation of `out` or the new parameter uses the result, otherwise `in`.
  void placeFree() {
    for (Operation *op : llvm::reverse(ops)) {
      if (core.contains(op) || leads.contains(op) || follows.contains(op))
        continue;
      bool usedOut = llvm::any_of(usersOf(op), [&](Operation *user) {
        auto it = space.find(user);
        return (it != space.end() && it->second == Space::Out) ||
               (user == yield && yield.getOperand(0) == op->getResult(0));
      });
      space[op] = usedOut ? Space::Out : Space::In;
    }
  }

  /// Moves operations that lead to the core into matrix space if fewer bytes then cross.
  void cutIn() {
    MinimumCut cut;
    llvm::DenseMap<Operation *, int> nodes;
    for (Operation *op : ops)
      if (leads.contains(op))
        nodes[op] = cut.addNode();
    auto payForUsers = [&](Value value, int producer) {
      // The cost is paid once if the producer stays on shards (0) and any user is in matrix space (1).
      int any = cut.addNode();
      bool used = false;
      for (Operation *user : usersOf(value)) {
        if (core.contains(user)) {
          cut.fixOne(any);
          used = true;
        } else if (auto it = nodes.find(user); it != nodes.end()) {
          cut.pay(it->second, any, MinimumCut::kNever);
          used = true;
        }
      }
      if (!used)
        return;
      if (producer < 0)
        cut.payIfOne(any, crossingCost(value));
      else
        cut.pay(any, producer, crossingCost(value));
    };
    for (BlockArgument argument : rule.getBody().getArguments())
      if (isTensor(argument) && !rule.findBlockState(argument))
        payForUsers(argument, -1);
    for (auto &[op, node] : nodes) {
      payForUsers(op->getResult(0), node);
      bool usedElsewhere = false;
      for (Operation *user : usersOf(op)) {
        if (auto it = nodes.find(user); it != nodes.end())
          cut.pay(node, it->second, MinimumCut::kNever); // spaces never decrease
        else if (!core.contains(user))
          usedElsewhere =
              true; // by `out` or the yield: from matrix space the value would travel back
      }
      if (usedElsewhere)
        cut.payIfOne(node, crossingCost(op->getResult(0)));
    }
    std::vector<bool> one = cut.solve();
    for (auto &[op, node] : nodes)
      if (one[node])
        space[op] = Space::Matrix;
  }

  /// Moves operations that follow from the core into matrix space if fewer bytes then cross.
  void cutOut() {
    MinimumCut cut;
    llvm::DenseMap<Operation *, int> nodes;
    for (Operation *op : ops)
      if (follows.contains(op))
        nodes[op] = cut.addNode();
    for (Operation *op : ops) {
      bool inMatrix = space[op] == Space::Matrix;
      auto node = nodes.find(op);
      if (!inMatrix && node == nodes.end())
        continue;
      // The cost is paid once if the producer is in matrix space (1) and any user is not (0).
      int all = cut.addNode();
      for (Operation *user : usersOf(op)) {
        if (auto it = nodes.find(user); it != nodes.end())
          cut.pay(all, it->second, MinimumCut::kNever);
        else if (user == yield ? isStoredOnShards(op->getResult(0))
                               : space.lookup(user) != Space::Matrix)
          cut.fixZero(all);
      }
      int64_t cost = crossingCost(op->getResult(0));
      if (inMatrix) {
        cut.payIfZero(all, cost);
      } else {
        cut.pay(node->second, all, cost);
        for (Value operand : reads[op])
          if (auto it = nodes.find(operand.getDefiningOp()); it != nodes.end())
            cut.pay(node->second, it->second, MinimumCut::kNever); // spaces never decrease
        if (isa<ReduceOp>(op))
          cut.payIfZero(node->second, kReductionCost);
      }
    }
    // A value on shards costs its bytes if an operation that moves into matrix space reads it. It costs
    // nothing if it crosses anyway.
    auto payForShardValue = [&](Value value) {
      bool crosses = false;
      int any = cut.addNode();
      for (Operation *user : usersOf(value)) {
        if (auto it = nodes.find(user); it != nodes.end())
          cut.pay(it->second, any, MinimumCut::kNever);
        else if (user != yield && space.lookup(user) == Space::Matrix)
          crosses = true;
      }
      cut.payIfOne(any, crosses ? 0 : crossingCost(value));
    };
    for (BlockArgument argument : rule.getBody().getArguments())
      if (isTensor(argument) && !rule.findBlockState(argument))
        payForShardValue(argument);
    for (Operation *op : ops)
      if (!nodes.contains(op) && space[op] != Space::Matrix)
        payForShardValue(op->getResult(0));
    std::vector<bool> one = cut.solve();
    for (auto &[op, node] : nodes)
      if (one[node])
        space[op] = Space::Matrix;
  }

  /// Whether value `number` of the yield is a state that stays with blocks.
  bool isBlockState(size_t number) { return number > 0 && rule.isBlockState(unsigned(number - 1)); }

  /// Whether a value is stored on shards.
  bool isStoredOnShards(Value value) {
    return llvm::any_of(llvm::enumerate(yield.getOperands()), [&](auto each) {
      return !isBlockState(each.index()) && llvm::is_contained(placedOperands(each.value()), value);
    });
  }

  bool isFree(Operation *op) const {
    return !core.contains(op) && !leads.contains(op) && !follows.contains(op);
  }

  /// Gives each free operation a space between those of its operands and those of its users. Operands and
  /// users may have moved into matrix space since `placeFree`.
  void settleFree() {
    llvm::DenseSet<Operation *> late, early; // late: reads matrix space; early: is read there
    for (Operation *op : ops)
      for (Value operand : reads[op])
        if (Operation *from = operand.getDefiningOp(); from && isFree(op))
          if (isFree(from) ? late.contains(from) : space[from] == Space::Matrix)
            late.insert(op);
    for (Operation *op : llvm::reverse(ops)) {
      if (!isFree(op))
        continue;
      bool usedIn = false;
      for (Operation *user : usersOf(op)) {
        if (user == yield)
          continue;
        if (isFree(user) ? early.contains(user) : space[user] == Space::Matrix)
          early.insert(op);
        usedIn |= space[user] == Space::In;
      }
      if (early.contains(op))
        space[op] = late.contains(op) ? Space::Matrix : Space::In;
      else if (late.contains(op))
        space[op] = Space::Out;
      else if (usedIn)
        space[op] = Space::In;
    }
  }

  ArrayRef<Operation *> usersOf(Value value) const {
    auto it = users.find(value);
    return it == users.end() ? ArrayRef<Operation *>() : ArrayRef<Operation *>(it->second);
  }
  ArrayRef<Operation *> usersOf(Operation *op) const { return usersOf(op->getResult(0)); }

  RuleOp rule;
  const llvm::DenseSet<Operation *> &onShards;
  YieldOp yield;
  SmallVector<Operation *> ops; // operations with a space
  llvm::DenseMap<Operation *, SmallVector<Value>> reads;
  llvm::DenseMap<Value, SmallVector<Operation *>> users; // users in `ops`, and the yield
  llvm::SetVector<Operation *> core;
  llvm::DenseSet<Operation *> leads, follows;
};

class CutSpaces : public stepc::decide::impl::CutSpacesBase<CutSpaces> {
  void runOnOperation() override {
    for (auto rule : getOperation().getOps<RuleOp>()) {
      SpaceCounts counts = cutSpaces(rule, {});
      remark::passed(rule.getLoc(),
                     remark::RemarkOpts::name("spaces-assigned").category("optim-cut-spaces"))
          << remark::metric("rule", rule.getSymName()) << remark::metric("in", counts[0])
          << remark::metric("matrix", counts[1]) << remark::metric("out", counts[2]);
    }
  }
};

} // namespace

SpaceCounts stepc::decide::cutSpaces(RuleOp rule, const llvm::DenseSet<Operation *> &onShards) {
  for (Operation &op : rule.getBody().front())
    op.removeAttr(kSpaceAttr);
  Builder builder(rule.getContext());
  Cutter cutter(rule, onShards);
  cutter.run();
  for (auto &[op, space] : cutter.space)
    op->setAttr(kSpaceAttr, SpaceAttr::get(rule.getContext(), space));
  for (Operation *op : onShards)
    if (spaceOf(op) == Space::Matrix)
      op->removeAttr(kCutAttr);
  SmallVector<Attribute> writes;
  for (std::optional<Space> write : decideWrites(rule))
    writes.push_back(write ? Attribute(SpaceAttr::get(rule.getContext(), *write))
                           : builder.getUnitAttr());
  rule.getBody().front().getTerminator()->setAttr(kWritesAttr, builder.getArrayAttr(writes));
  SpaceCounts counts = {};
  for (auto &[op, space] : cutter.space)
    ++counts[size_t(space)];
  return counts;
}

RuleOp stepc::decide::copyOf(RuleOp rule, llvm::StringRef suffix) {
  auto copy = cast<RuleOp>(rule->clone());
  if (!rule.getWrittenAttr())
    copy.setWrittenAttr(FlatSymbolRefAttr::get(rule));
  copy.setSymName((rule.getSymName() + suffix).str());
  return copy;
}

CrossingCost stepc::decide::crossingCostOf(RuleOp rule) {
  CrossingCost cost;
  llvm::DenseSet<Value> crossing;
  auto read = [&](ArrayRef<Value> values, Space reader) {
    for (Value value : values) {
      if (rule.findBlockState(value))
        continue; // it is where it is read
      bool isThere = spaceOf(value.getDefiningOp()) == Space::Matrix;
      if (kindOf(value.getType()) == ValueKind::Full && isThere != (reader == Space::Matrix) &&
          crossing.insert(value).second)
        (isThere ? cost.back : cost.there) += crossingCost(value);
    }
  };
  Block &body = rule.getBody().front();
  for (Operation &op : body)
    if (std::optional<Space> space = spaceOf(&op))
      read(placedOperands(&op), *space);
  for (auto [value, write] : llvm::zip(body.getTerminator()->getOperands(), writesOf(rule)))
    if (write)
      read(placedOperands(value), *write);
  return cost;
}
