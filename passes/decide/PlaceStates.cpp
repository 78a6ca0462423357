//===- PlaceStates.cpp - Which states stay with blocks --------------------===//

#include "passes/decide/CutSpaces.h"
#include "passes/decide/GroupGeometry.h"
#include "passes/decide/Passes.h"
#include "passes/decide/StateLimit.h"
#include "runtime/plan/BlockStates.h"

#include "mlir/IR/Remarks.h"

#include <map>

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

namespace stepc::decide {
#define GEN_PASS_DEF_PLACESTATES
#include "passes/decide/Passes.h.inc"
} // namespace stepc::decide

using namespace stepc::decide;

namespace {

/// Numbers of states of a rule, ascending.
using States = std::vector<unsigned>;

/// The room that the limit of states' bytes leaves for states that stay with blocks. No block has an owner.
class Room {
public:
  explicit Room(ModuleOp module) {
    if (auto given = module->getAttrOfType<IntegerAttr>(kStateLimitAttr)) {
      limit = given.getInt();
      // Blocks whose states have sizes of their own have no owners yet.
      SmallVector<GroupOp> owned;
      for (auto group : module.getOps<GroupOp>())
        if (auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
            rule.hasStatesOfOtherSizes() && group.lacksBases()) {
          GroupGeometry geometry(group);
          int64_t each = plan::blockStateBytes(geometry.group, optim::toPlan(rule));
          bytes.kinds.push_back({geometry.mesh.ranks, each, geometry.blockCount()});
          owned.push_back(group);
        }
      bytes.fixed = fixedStateBytes(module, owned);
    }
  }

  /// Whether ranks have room for the states of groups, if each takes this copy of its rule: some owners of
  /// all blocks so far then obey the limit. Takes the room.
  bool take(ArrayRef<std::pair<GroupOp, RuleOp>> groups) {
    if (!limit)
      return true;
    cost::OwnerProblem next = bytes;
    for (auto [group, copy] : groups)
      add(next, GroupGeometry(group), copy);
    if (cost::mostOf(cost::loadsOf(next, cost::longestFirst(next))) > *limit)
      return false;
    bytes = std::move(next);
    return true;
  }

private:
  /// Moves the bytes of the states that a copy keeps with blocks from shards to owners.
  static void add(cost::OwnerProblem &next, const GroupGeometry &geometry, RuleOp copy) {
    plan::Rule rule = optim::toPlan(copy);
    plan::Group placed = geometry.group;
    placed.blockStates.clear();
    for (unsigned i = 0; i < copy.getNumStates(); ++i)
      if (copy.isBlockState(i))
        placed.blockStates.push_back(i);
    // States of sizes of their own stay with the blocks anyway. Their bytes are counted already.
    int64_t each =
        plan::blockStateBytes(placed, rule) - plan::blockStateBytes(geometry.group, rule);
    for (auto [position, rank] : llvm::enumerate(geometry.mesh.ranks))
      next.fixed[rank] +=
          geometry.parameters *
          (plan::shardStateBytes(placed, rule, geometry.mesh, int64_t(position)) -
           plan::shardStateBytes(geometry.group, rule, geometry.mesh, int64_t(position)));
    bool hasOwners =
        llvm::any_of(geometry.group.hops, [](const plan::Hop &hop) { return !hop.owned.empty(); });
    if (hasOwners)
      next.kinds.push_back({geometry.mesh.ranks, each, geometry.blockCount()});
    else
      for (const Team &team : teams(geometry, geometry.group.hops))
        for (int64_t position : team.positions)
          next.fixed[geometry.mesh.ranks[position]] += team.blocks() * geometry.parameters * each;
  }

  std::optional<int64_t> limit;
  cost::OwnerProblem bytes; // in the place of picoseconds
};

class PlaceStates : public stepc::decide::impl::PlaceStatesBase<PlaceStates> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    copies.clear();
    Room room(module);
    SmallVector<std::pair<GroupOp, RuleOp>> found; // groups, and copies that save bytes
    for (auto group : module.getOps<GroupOp>()) {
      if (!group.getHops() || group.getHops()->empty() || group.getParts())
        continue;
      auto rule = symbols.lookup<RuleOp>(group.getRule());
      if (rule.getBlockStates())
        continue;
      if (RuleOp copy = cheapest(rule, goesBack(group)))
        found.push_back({group, copy});
    }
    llvm::DenseSet<Operation *> used;
    bool haveAll = room.take(found);
    for (auto each : found) {
      auto [group, copy] = each;
      auto rule = symbols.lookup<RuleOp>(group.getRule());
      bool comesBack = goesBack(group);
      if (!haveAll && !room.take(each)) {
        auto options = remark::RemarkOpts::name("states-on-shards").category("optim-place-states");
        remark::missed(group.getLoc(), options)
            << remark::metric("group", group.getSymName())
            << remark::reason("with its states at their blocks a rank may have more than "
                              "the limit on states");
        continue;
      }
      if (used.insert(copy).second)
        symbols.insert(copy, std::next(rule->getIterator()));
      group.setRuleAttr(FlatSymbolRefAttr::get(copy));
      auto options = remark::RemarkOpts::name("states-placed").category("optim-place-states");
      remark::passed(group.getLoc(), options)
          << remark::metric("group", group.getSymName())
          << remark::metric("rule", copy.getWrittenName())
          << remark::metric("states", copy.getBlockStatesAttr().size())
          << remark::metric("bytes-before", costOf(rule, comesBack) / 1024)
          << remark::metric("bytes-after", costOf(copy, comesBack) / 1024);
    }
    for (auto &[key, copy] : copies)
      if (!used.contains(copy))
        copy->destroy();
  }

  /// Whether results travel back: not if all ranks have them by then.
  static bool goesBack(GroupOp group) {
    return llvm::any_of(group.getPlanHops(),
                        [](const plan::Hop &hop) { return !hop.owned.empty(); });
  }

  /// The cost of the cut for each element of a block. Results count if they go back.
  static int64_t costOf(RuleOp rule, bool goesBack) {
    CrossingCost cost = crossingCostOf(rule);
    return cost.there + (goesBack ? cost.back : 0);
  }

  /// The copy of a rule with the block states that save most bytes, or null if none saves any. Adds one state
  /// after the other, tries all together, and leaves out those without which no more bytes cross.
  RuleOp cheapest(RuleOp rule, bool goesBack) {
    States candidates = candidatesOf(rule), chosen;
    if (candidates.empty())
      return {};
    int64_t least = costOf(rule, goesBack);
    auto costWith = [&](const States &states) { return costOf(copyWith(rule, states), goesBack); };
    for (bool found = true; found;) {
      found = false;
      States next = chosen;
      for (unsigned state : candidates) {
        if (llvm::is_contained(chosen, state))
          continue;
        States with = chosen;
        with.insert(llvm::upper_bound(with, state), state);
        if (int64_t cost = costWith(with); cost < least) {
          least = cost;
          next = with;
          found = true;
        }
      }
      chosen = next;
    }
    if (int64_t cost = costWith(candidates); cost < least) {
      least = cost;
      chosen = candidates;
    }
    for (size_t i = 0; i < chosen.size() && chosen.size() > 1;) {
      States without = chosen;
      without.erase(without.begin() + int64_t(i));
      if (int64_t cost = costWith(without); cost <= least) {
        least = cost;
        chosen = without;
        i = 0;
      } else {
        ++i;
      }
    }
    return chosen.empty() ? RuleOp() : copyWith(rule, chosen);
  }

  /// The states that matrix space could read and write alone.
  static States candidatesOf(RuleOp rule) {
    auto yield = cast<YieldOp>(rule.getBody().front().getTerminator());
    States result;
    for (unsigned i = 0; i < rule.getNumStates(); ++i) {
      StateAttr state = rule.getState(i);
      Value old = rule.getStateArgument(i);
      if (state.getMaster() || state.getInput() || state.getKind() != ValueKind::Full ||
          old.use_empty())
        continue;
      SmallVector<Value> made = placedOperands(yield.getOperand(i + 1));
      bool isMade = !made.empty() && llvm::all_of(made, [](Value value) {
        return value.getDefiningOp() && hasSpace(value.getDefiningOp());
      });
      // Another state, or the parameter, may be stored as the old value is.
      bool isStored = llvm::any_of(yield.getOperands(), [&](Value value) {
        return llvm::is_contained(placedOperands(value), old);
      });
      if (isMade && !isStored)
        result.push_back(i);
    }
    return result;
  }

  /// A copy of the rule with these block states.
  RuleOp copyWith(RuleOp rule, const States &states) {
    auto [known, isNew] = copies.try_emplace({rule, states});
    if (!isNew)
      return known->second;
    RuleOp copy = copyOf(rule, ".with_blocks");
    SmallVector<Attribute> names;
    for (unsigned state : states)
      names.push_back(rule.getState(state).getName());
    copy.setBlockStatesAttr(ArrayAttr::get(rule.getContext(), names));
    llvm::DenseSet<Operation *> onShards;
    for (auto op : copy.getBody().getOps<ReduceOp>())
      if (spaceOf(op) != Space::Matrix)
        onShards.insert(op);
    cutSpaces(copy, onShards);
    return known->second = copy;
  }

  std::map<std::pair<Operation *, States>, RuleOp> copies;
};

} // namespace
