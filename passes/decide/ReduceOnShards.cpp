//===- ReduceOnShards.cpp - Which reductions run on shards ----------------===//

#include "passes/decide/CutSpaces.h"
#include "passes/decide/Forces.h"
#include "passes/decide/GroupGeometry.h"
#include "passes/decide/Passes.h"
#include "runtime/sums/Parts.h"

#include "mlir/IR/Remarks.h"

#include <map>
#include <numeric>

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

namespace stepc::decide {
#define GEN_PASS_DEF_REDUCEONSHARDS
#include "passes/decide/Passes.h.inc"
} // namespace stepc::decide

using namespace stepc::decide;

namespace {

/// Whether each rank has all elements of each line of which it holds the value: of its rows if `lines` is
/// Rows, of its columns if it is Cols. A line must be in one rectangle.
bool areWhole(const GroupGeometry &geometry, ValueKind lines) {
  bool ofRows = lines == ValueKind::Rows;
  plan::View view = plan::view(geometry.group, ValueKind::Full);
  int64_t whole = ofRows ? view.cols : view.rows;
  for (int64_t position = 0, e = geometry.mesh.ranks.size(); position < e; ++position) {
    auto rectangles = [&](ValueKind kind) {
      return geometry::rectangles(geometry.group, geometry.mesh, position, kind, geometry.home);
    };
    int64_t has = 0, holds = 0;
    for (const geometry::Rect &rect : rectangles(ValueKind::Full)) {
      if ((ofRows ? rect.cols : rect.rows) != whole)
        return false;
      has += ofRows ? rect.rows : rect.cols;
    }
    for (const geometry::Rect &rect : rectangles(lines))
      holds += rect.rows * rect.cols;
    if (has != holds)
      return false;
  }
  return true;
}

/// Bytes that a rank sends for the lines of a kind, per parameter of a group, if each rank adds up what it
/// has: its parts, and about as many results as it adds up. The most of any rank.
int64_t bytesOfParts(const GroupGeometry &geometry, ValueKind lines, plan::Reduction reduction) {
  int64_t most = 0;
  for (int64_t position = 0, e = geometry.mesh.ranks.size(); position < e; ++position) {
    int64_t values = 0;
    for (const geometry::Rect &rect :
         geometry::rectangles(geometry.group, geometry.mesh, position, lines, geometry.home))
      values += rect.rows * rect.cols;
    most = std::max(most, values);
  }
  int64_t sums = geometry::sumsPerValue(geometry.group, geometry.mesh, lines);
  return most * (sums * sums::bytesOf(reduction) + int64_t(sizeof(float)));
}

/// A reduction that may run on shards.
struct Reduced {
  int64_t number; ///< of the operation in the rule
  bool isCut;     ///< several ranks have elements of the same lines
  auto operator<=>(const Reduced &) const = default;
};

class ReduceOnShards : public stepc::decide::impl::ReduceOnShardsBase<ReduceOnShards> {
public:
  using ReduceOnShardsBase::ReduceOnShardsBase;

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<std::vector<Force>> forces =
        parseForces(module, SmallVector<std::string>(force.begin(), force.end()));
    if (failed(forces))
      return signalPassFailure();
    SymbolTable symbols(module);
    parameters.clear();
    copies.clear();
    llvm::DenseSet<Operation *> used;
    for (auto parameter : module.getOps<ParameterOp>())
      parameters[parameter.getSymNameAttr()] = parameter;
    for (auto group : module.getOps<GroupOp>()) {
      auto rule = symbols.lookup<RuleOp>(group.getRule());
      if (reducesOnShards(rule))
        continue;
      std::vector<Reduced> reduced = reductionsOnShards(group, rule);
      if (reduced.empty())
        continue;
      RuleOp copy = cheapest(group, rule, std::move(reduced));
      // A strategy says who computes whole blocks. A group on which one is forced keeps the rule if the copy
      // computes none.
      if (!copy || (!hasMatrixSpace(copy) && isForced(group, *forces)))
        continue;
      if (used.insert(copy).second)
        symbols.insert(copy, std::next(rule->getIterator()));
      group.setRuleAttr(FlatSymbolRefAttr::get(copy));
      int64_t count = 0;
      for (auto op : copy.getBody().getOps<ReduceOp>())
        count += spaceOf(op) != Space::Matrix;
      auto options =
          remark::RemarkOpts::name("reduced-on-shards").category("optim-reduce-on-shards");
      remark::passed(group.getLoc(), options)
          << remark::metric("group", group.getSymName())
          << remark::metric("rule", copy.getWrittenName()) << remark::metric("reductions", count);
    }
    for (auto &[key, copy] : copies)
      if (copy && !used.contains(copy))
        copy->destroy();
  }

  static bool reducesOnShards(RuleOp rule) {
    return llvm::any_of(rule.getBody().getOps<ReduceOp>(), [](ReduceOp op) {
      std::optional<Space> space = spaceOf(op);
      return space && *space != Space::Matrix;
    });
  }

  /// Whether a strategy is forced on the group.
  bool isForced(GroupOp group, std::vector<Force> &forces) {
    return !forces.empty() && llvm::any_of(group.getParameters(), [&](Attribute name) {
      ParameterOp parameter = parameters.lookup(cast<FlatSymbolRefAttr>(name).getAttr());
      return lastMatch(forces, parameter, /*matrix=*/true);
    });
  }

  /// The reductions of the rule that may run on the group's shards.
  std::vector<Reduced> reductionsOnShards(GroupOp group, RuleOp rule) {
    std::vector<Reduced> result;
    std::optional<GroupGeometry> geometry;
    std::map<ValueKind, std::optional<bool>>
        known; // whether lines are cut; nullopt: they may not run there
    for (auto [number, op] : llvm::enumerate(rule.getBody().front())) {
      auto reduce = dyn_cast<ReduceOp>(op);
      if (!reduce || kindOf(reduce.getSource().getType()) != ValueKind::Full)
        continue;
      // Terms that are the same along a line have no elements to visit.
      if (llvm::none_of(placedOperands(&op),
                        [](Value value) { return kindOf(value.getType()) == ValueKind::Full; }))
        continue;
      ValueKind lines = *kindOf(reduce.getResult().getType());
      if (!geometry)
        geometry.emplace(group);
      auto [found, isNew] = known.try_emplace(lines);
      if (isNew)
        found->second = areCut(*geometry, lines);
      if (found->second)
        result.push_back({int64_t(number), *found->second});
    }
    return result;
  }

  /// Whether lines are cut between ranks, or nullopt if they cannot be reduced on shards.
  static std::optional<bool> areCut(const GroupGeometry &geometry, ValueKind lines) {
    if ((lines == ValueKind::Rows || lines == ValueKind::Cols) && areWhole(geometry, lines))
      return false;
    bool ofStates = plan::shardsOf(geometry.group, geometry.home) ==
                    plan::shardsOf(geometry.group, plan::ShardsKind::State);
    if (ofStates && geometry::checkLines(geometry.group, geometry.mesh, lines).empty())
      return true;
    return std::nullopt;
  }

  /// The copy of the rule for a group: with all reductions on shards or, if parts of cut lines would be more
  /// bytes than the elements that need not travel, with whole lines alone. Null if neither helps.
  RuleOp cheapest(GroupOp group, RuleOp rule, std::vector<Reduced> reduced) {
    RuleOp copy = copyWith(rule, reduced);
    if (copy && isCheaper(group, rule, copy))
      return copy;
    std::erase_if(reduced, [](const Reduced &each) { return each.isCut; });
    return reduced.empty() ? RuleOp() : copyWith(rule, reduced);
  }

  static bool isCheaper(GroupOp group, RuleOp rule, RuleOp copy) {
    GroupGeometry geometry(group);
    int64_t parts = 0, elements = 0;
    for (auto op : copy.getBody().getOps<ReduceOp>())
      if (op->hasAttr(kCutAttr))
        parts += bytesOfParts(geometry, *kindOf(op.getResult().getType()), op.getKind());
    for (ArrayRef<int64_t> area : geometry.held())
      elements = std::max(elements, std::accumulate(area.begin(), area.end(), int64_t(0)));
    auto saved = double(crossingCostOf(rule).bothWays() - crossingCostOf(copy).bothWays()) / 1024;
    return double(parts) <= saved * double(elements);
  }

  /// A copy of the rule in which these reductions may run on shards. Null if none of them does.
  RuleOp copyWith(RuleOp rule, const std::vector<Reduced> &reduced) {
    auto [known, isNew] = copies.try_emplace({rule, reduced});
    if (!isNew)
      return known->second;
    RuleOp copy = copyOf(rule, ".on_shards");
    llvm::DenseSet<Operation *> onShards;
    for (auto [number, op] : llvm::enumerate(copy.getBody().front())) {
      auto found = llvm::find_if(
          reduced, [&](const Reduced &each) { return each.number == int64_t(number); });
      if (found == reduced.end())
        continue;
      onShards.insert(&op);
      if (found->isCut)
        op.setAttr(kCutAttr, UnitAttr::get(op.getContext()));
    }
    cutSpaces(copy, onShards);
    if (llvm::all_of(onShards, [](Operation *op) { return spaceOf(op) == Space::Matrix; })) {
      copy->destroy();
      return {};
    }
    return known->second = copy;
  }

  llvm::DenseMap<StringAttr, ParameterOp> parameters;
  std::map<std::pair<Operation *, std::vector<Reduced>>, RuleOp> copies;
};

} // namespace
