//===- ReduceOnShards.cpp - Reductions of lines that are whole on their ranks ---===//

#include "passes/decide/CutSpaces.h"
#include "passes/decide/Forces.h"
#include "passes/decide/GroupGeometry.h"
#include "passes/decide/Passes.h"

#include "mlir/IR/Remarks.h"

#include <map>

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
    for (auto parameter : module.getOps<ParameterOp>())
      parameters[parameter.getSymNameAttr()] = parameter;
    for (auto group : module.getOps<GroupOp>()) {
      auto rule = symbols.lookup<RuleOp>(group.getRule());
      if (rule.getWrittenAttr())
        continue;
      SmallVector<int64_t> numbers = reductionsOnShards(group, rule);
      if (numbers.empty())
        continue;
      RuleOp copy = copyOf(rule, numbers, symbols);
      // A strategy says who computes whole blocks. A group on which one is forced keeps the rule if the copy
      // computes none.
      if (!copy || (!hasMatrixSpace(copy) && isForced(group, *forces)))
        continue;
      group.setRuleAttr(FlatSymbolRefAttr::get(copy));
      auto options =
          remark::RemarkOpts::name("reduced-on-shards").category("optim-reduce-on-shards");
      remark::passed(group.getLoc(), options) << remark::metric("group", group.getSymName())
                                              << remark::metric("rule", copy.getWrittenName())
                                              << remark::metric("reductions", numbers.size());
    }
  }

  /// Whether a strategy is forced on the group.
  bool isForced(GroupOp group, std::vector<Force> &forces) {
    return !forces.empty() && llvm::any_of(group.getParameters(), [&](Attribute name) {
      ParameterOp parameter = parameters.lookup(cast<FlatSymbolRefAttr>(name).getAttr());
      return lastMatch(forces, parameter, /*matrix=*/true);
    });
  }

  /// The numbers, among the operations of the rule, of the reductions whose lines are whole on each rank.
  SmallVector<int64_t> reductionsOnShards(GroupOp group, RuleOp rule) {
    SmallVector<int64_t> numbers;
    std::optional<GroupGeometry> geometry;
    std::map<ValueKind, bool> known; // whether lines are whole
    for (auto [number, op] : llvm::enumerate(rule.getBody().front())) {
      auto reduce = dyn_cast<ReduceOp>(op);
      if (!reduce || kindOf(reduce.getSource().getType()) != ValueKind::Full)
        continue;
      // Terms that are the same along a line have no elements to visit.
      if (llvm::none_of(placedOperands(&op),
                        [](Value value) { return kindOf(value.getType()) == ValueKind::Full; }))
        continue;
      ValueKind lines = *kindOf(reduce.getResult().getType());
      if (lines != ValueKind::Rows && lines != ValueKind::Cols)
        continue;
      if (!geometry)
        geometry.emplace(group);
      auto [found, isNew] = known.try_emplace(lines, false);
      if (isNew)
        found->second = areWhole(*geometry, lines);
      if (found->second)
        numbers.push_back(int64_t(number));
    }
    return numbers;
  }

  /// A copy of the rule in which these reductions may run on shards. Null if none of them does.
  RuleOp copyOf(RuleOp rule, ArrayRef<int64_t> numbers, SymbolTable &symbols) {
    auto [known, isNew] = copies.try_emplace({rule, SmallVector<int64_t>(numbers)});
    if (!isNew)
      return known->second;
    auto copy = cast<RuleOp>(rule->clone());
    llvm::DenseSet<Operation *> onShards;
    for (auto [number, op] : llvm::enumerate(copy.getBody().front())) {
      op.removeAttr(kSpaceAttr);
      if (llvm::is_contained(numbers, int64_t(number)))
        onShards.insert(&op);
    }
    cutSpaces(copy, onShards);
    if (llvm::all_of(onShards, [](Operation *op) { return spaceOf(op) == Space::Matrix; })) {
      copy->destroy();
      return {};
    }
    copy.setWrittenAttr(FlatSymbolRefAttr::get(rule));
    copy.setSymName((rule.getSymName() + ".on_shards").str());
    symbols.insert(copy, std::next(rule->getIterator()));
    return known->second = copy;
  }

  llvm::DenseMap<StringAttr, ParameterOp> parameters;
  std::map<std::pair<Operation *, SmallVector<int64_t>>, RuleOp> copies;
};

} // namespace
