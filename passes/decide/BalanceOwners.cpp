//===- BalanceOwners.cpp - Longest processing time first, and better -------===//

#include "passes/decide/Passes.h"

#include "dialects/optim/Optim.h"
#include "dialects/optim/Saturate.h"
#include "passes/decide/ClusterOfModule.h"
#include "passes/decide/OwnerTable.h"
#include "passes/decide/StateLimit.h"

#include "mlir/IR/Remarks.h"

#include <map>
#include <set>

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

namespace stepc::decide {
#define GEN_PASS_DEF_BALANCEOWNERS
#include "passes/decide/Passes.h.inc"
} // namespace stepc::decide

using namespace stepc::decide;

namespace {

/// A base of a block that has none yet.
constexpr int64_t kNone = -1;

/// The bases that blocks of a group had in the previous plan, from the value of kKeptOwnersAttr. Only states
/// that stay with blocks make it worth to keep a base, so groups without such states have none.
std::vector<int64_t> keptBases(GroupOp group, const GroupGeometry &geometry,
                               DictionaryAttr owners) {
  auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
  std::vector<int64_t> kept(size_t(geometry.blockCount()), kNone);
  if (!rule.getBlockStatesAttr() && !rule.hasStatesOfOtherSizes())
    return kept;
  Bases bases(geometry);
  llvm::DenseMap<int64_t, int64_t> baseOf; // by global rank
  for (auto [position, rank] : llvm::enumerate(geometry.mesh.ranks))
    baseOf[rank] = bases.at(int64_t(position));
  auto next = kept.begin();
  for (auto parameter : group.getParameters().getAsRange<FlatSymbolRefAttr>()) {
    auto of = owners.getAs<DenseI64ArrayAttr>(parameter.getValue());
    for (int64_t block = 0; block < geometry.blocksPerParameter(); ++block, ++next)
      if (auto known = of && block < of.size() ? baseOf.find(of[block]) : baseOf.end();
          known != baseOf.end())
        *next = known->second;
  }
  return kept;
}

/// Adds the loads of the blocks that have bases.
void addLoads(const GroupGeometry &geometry, ArrayRef<int64_t> bases, int64_t cost,
              cost::Loads &load) {
  std::map<int64_t, int64_t> blocks; // by base
  for (int64_t base : bases)
    if (base != kNone)
      ++blocks[base];
  if (blocks.empty())
    return;
  Bases computed(geometry);
  for (auto [position, rank] : llvm::enumerate(geometry.mesh.ranks))
    if (auto found = blocks.find(computed.at(int64_t(position))); found != blocks.end())
      load[rank] = saturatingAdd(load[rank], saturatingMul(found->second, cost));
}

/// Gives each block of a group a base, if it has none. The candidates are the positions that are 0 along
/// factors that are not owned. Each stands for all ranks that differ from it along these factors. The least
/// loaded one is chosen.
void balance(const GroupGeometry &geometry, int64_t cost, cost::Loads &load,
             std::vector<int64_t> &result) {
  Bases bases(geometry);
  std::vector<int64_t> choices, ranks;
  std::vector<std::vector<int64_t>> held;
  std::map<int64_t, std::vector<int64_t>>
      others; // per base: the other ranks that compute its blocks
  for (int64_t position = 0, e = geometry.mesh.ranks.size(); position < e; ++position) {
    if (int64_t base = bases.at(position); base != position) {
      others[base].push_back(geometry.mesh.ranks[position]);
      continue;
    }
    choices.push_back(position);
    ranks.push_back(geometry.mesh.ranks[position]);
    held.push_back(geometry.held()[position]);
  }
  cost::OwnerQueues queues(ranks, held, load);
  for (int64_t block = 0, e = geometry.blockCount(); block < e; ++block) {
    int64_t &base = result[size_t(block)];
    if (base != kNone)
      continue;
    base = choices[queues.give(block % geometry.blocksPerParameter(), cost)];
    for (int64_t rank : others[base])
      load[rank] = saturatingAdd(load[rank], cost);
  }
}

/// Emits remarks on how even the loads are: the mean load and the bound, in per cent of the busiest rank's
/// load.
void reportBalance(Location loc, int64_t blocks, const std::set<int64_t> &ranks,
                   const cost::OwnerBalance &balance, cost::Loads load) {
  auto named = [](StringRef name) {
    return remark::RemarkOpts::name(name).category("optim-balance-owners");
  };
  double most = 0, sum = 0;
  for (int64_t rank : ranks) {
    most = std::max(most, double(load[rank]));
    sum += double(load[rank]);
  }
  auto percent = [&](double part) { return most > 0 ? int64_t(100 * part / most) : 100; };
  remark::passed(loc, named("owners-balanced"))
      << remark::metric("blocks", blocks) << remark::metric("ranks", ranks.size())
      << remark::metric("balance-percent", percent(sum / double(ranks.size())))
      << remark::metric("bound-percent", std::min<int64_t>(100, percent(double(balance.bound))));
  if (blocks < int64_t(ranks.size()))
    remark::missed(loc, named("ranks-without-blocks"))
        << remark::metric("blocks", blocks) << remark::metric("ranks", ranks.size())
        << remark::reason("a block is computed by one rank, and there are fewer than ranks");
}

/// The groups whose blocks get owners here, in decreasing order of a block's cost.
struct Owned {
  GroupOp group;
  GroupGeometry geometry;
  int64_t cost;
};

/// The owners of all these groups' blocks: bases, and the table that says how busy ranks are with them.
struct Choice {
  std::vector<std::vector<int64_t>> bases; // per group and block
  OwnerTable table;
  cost::OwnerBalance balance;

  int64_t most() const { return cost::mostOf(cost::loadsOf(table.problem, balance.counts)); }
};

/// Chooses the owners of a module.
class Owners {
public:
  explicit Owners(ModuleOp module) : module(module), cluster(clusterOf(module)) {
    OwnerTable table(cluster);
    for (auto group : module.getOps<GroupOp>())
      if (group.lacksBases())
        owned.push_back({group, GroupGeometry(group), blockCost(group, cluster)});
      else
        table.addFixed(group);
    fixed = table.problem.fixed;
    llvm::stable_sort(owned, [](const Owned &a, const Owned &b) { return a.cost > b.cost; });
    for (const Owned &each : owned)
      groups.push_back(each.group);
  }

  LogicalResult run() {
    // The bases will say who owns what. So equal programs are equal, whatever the previous plan was.
    auto previous = cast_or_null<DictionaryAttr>(module->removeAttr(kKeptOwnersAttr));
    if (owned.empty()) {
      std::vector<std::vector<int64_t>> none;
      return obeyStateLimit(module, groups, cluster, {}, none);
    }
    Choice choice = best();
    std::vector<std::vector<int64_t>> balanced = choice.bases;
    if (failed(obeyStateLimit(module, groups, cluster, fixed, choice.bases)))
      return failure();
    if (choice.bases != balanced)
      takeCounts(choice);
    if (previous)
      keep(choice, previous);
    std::set<int64_t> ranks;
    int64_t blocks = 0;
    for (auto [each, base] : llvm::zip(owned, choice.bases)) {
      std::vector<plan::Hop> hops = each.group.getPlanHops();
      for (plan::Hop &hop : hops)
        if (!hop.owned.empty())
          hop.base = base;
      each.group.setPlanHops(hops);
      ranks.insert(each.geometry.mesh.ranks.begin(), each.geometry.mesh.ranks.end());
      blocks += int64_t(base.size());
    }
    reportBalance(module.getLoc(), blocks, ranks, choice.balance,
                  cost::loadsOf(choice.table.problem, choice.balance.counts));
    return success();
  }

private:
  /// Deals out the blocks that have no base yet in `kept`, the longest first.
  Choice deal(std::vector<std::vector<int64_t>> kept) {
    Choice choice{std::move(kept), OwnerTable(cluster), {}};
    cost::Loads load = fixed;
    for (auto [each, bases] : llvm::zip(owned, choice.bases))
      addLoads(each.geometry, bases, each.cost, load);
    for (auto [each, bases] : llvm::zip(owned, choice.bases))
      balance(each.geometry, each.cost, load, bases);
    takeCounts(choice);
    return choice;
  }

  /// Makes the table of the bases.
  void takeCounts(Choice &choice) {
    choice.table = OwnerTable(cluster);
    choice.table.problem.fixed = fixed;
    for (auto [each, bases] : llvm::zip(owned, choice.bases))
      choice.table.add(each.group, each.geometry, bases);
    choice.balance.counts = choice.table.counts;
  }

  Choice best() {
    std::vector<std::vector<int64_t>> none;
    for (const Owned &each : owned)
      none.emplace_back(size_t(each.geometry.blockCount()), kNone);
    Choice choice = deal(std::move(none));
    choice.balance = cost::balanceOwners(choice.table.problem, choice.table.counts);
    if (!choice.balance.isStart)
      for (auto [base, other] :
           llvm::zip(choice.bases, choice.table.basesBy(choice.balance.counts)))
        if (!other.empty())
          base = std::move(other);
    return choice;
  }

  /// Takes the owners of the previous plan if they obey the limit of states, and make the busiest rank at
  /// most 5 % busier.
  void keep(Choice &choice, DictionaryAttr previous) {
    std::vector<std::vector<int64_t>> kept;
    int64_t count = 0;
    for (const Owned &each : owned) {
      kept.push_back(keptBases(each.group, each.geometry, previous));
      count += llvm::count_if(kept.back(), [](int64_t base) { return base != kNone; });
    }
    if (count == 0)
      return;
    Choice other = deal(std::move(kept));
    int64_t most = choice.most(), with = other.most();
    bool isFast = with <= saturatingAdd(most, most / 20);
    bool stays = isFast && obeysStateLimit(module, groups, cluster, other.bases);
    auto named = [](StringRef name) {
      return remark::RemarkOpts::name(name).category("optim-balance-owners");
    };
    auto percent =
        remark::metric("percent", most > 0 ? int64_t(100.0 * double(with) / double(most)) : 100);
    if (stays)
      remark::passed(module.getLoc(), named("owners-kept"))
          << remark::metric("blocks", count) << percent;
    else
      remark::missed(module.getLoc(), named("owners-changed"))
          << remark::metric("blocks", count) << percent
          << remark::reason(
                 isFast
                     ? "with the previous owners a rank would have more states than the limit"
                     : "with the previous owners the busiest rank would be more than 5 % busier");
    if (!stays)
      return;
    other.balance.bound = choice.balance.bound;
    choice = std::move(other);
  }

  ModuleOp module;
  const cost::Cluster cluster;
  std::vector<Owned> owned;
  SmallVector<GroupOp> groups; ///< those of `owned`
  cost::Loads fixed;           ///< of groups whose owners are not chosen here
};

class BalanceOwners : public stepc::decide::impl::BalanceOwnersBase<BalanceOwners> {
  void runOnOperation() override {
    if (failed(Owners(getOperation()).run()))
      signalPassFailure();
  }
};

} // namespace
