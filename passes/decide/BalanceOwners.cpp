//===- BalanceOwners.cpp - Longest processing time first, and better -------===//

#include "passes/decide/Passes.h"

#include "dialects/optim/Optim.h"
#include "dialects/optim/Saturate.h"
#include "passes/decide/ClusterOfModule.h"
#include "passes/decide/OwnerTable.h"
#include "passes/decide/StateLimit.h"

#include "mlir/IR/Remarks.h"

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

/// Gives each block of a group a base. The candidates are the positions that are 0 along factors that are not
/// owned. Each stands for all ranks that differ from it along these factors. The least loaded one is chosen.
std::vector<int64_t> balance(const GroupGeometry &geometry, int64_t cost, cost::Loads &load) {
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
  std::vector<int64_t> result;
  for (int64_t block = 0, e = geometry.blockCount(); block < e; ++block) {
    result.push_back(choices[queues.give(block % geometry.blocksPerParameter(), cost)]);
    for (int64_t rank : others[result.back()])
      load[rank] = saturatingAdd(load[rank], cost);
  }
  return result;
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

class BalanceOwners : public stepc::decide::impl::BalanceOwnersBase<BalanceOwners> {
  void runOnOperation() override {
    std::vector<std::tuple<int64_t, size_t, GroupOp>>
        groups; // -cost of a block, number: the sort key
    cost::Cluster cluster = clusterOf(getOperation());
    OwnerTable table(cluster);
    for (auto group : getOperation().getOps<GroupOp>())
      if (group.lacksBases())
        groups.push_back({-blockCost(group, cluster), groups.size(), group});
      else
        table.addFixed(group);
    if (groups.empty()) {
      std::vector<std::vector<int64_t>> none;
      if (failed(obeyStateLimit(getOperation(), {}, cluster, {}, none)))
        signalPassFailure();
      return;
    }
    llvm::sort(groups, [](auto &a, auto &b) {
      return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    });
    std::set<int64_t> ranks;
    int64_t blocks = 0;
    std::vector<std::vector<int64_t>> bases;
    cost::Loads load = table.problem.fixed, fixed = load;
    for (auto [negativeCost, number, group] : groups) {
      GroupGeometry geometry(group);
      bases.push_back(balance(geometry, -negativeCost, load));
      table.add(group, geometry, bases.back());
      ranks.insert(geometry.mesh.ranks.begin(), geometry.mesh.ranks.end());
      blocks += int64_t(bases.back().size());
    }
    cost::OwnerBalance better = cost::balanceOwners(table.problem, table.counts);
    if (!better.isStart)
      for (auto [base, other] : llvm::zip(bases, table.basesBy(better.counts)))
        if (!other.empty())
          base = std::move(other);
    SmallVector<GroupOp> owned;
    for (auto &entry : groups)
      owned.push_back(std::get<2>(entry));
    std::vector<std::vector<int64_t>> balanced = bases;
    if (failed(obeyStateLimit(getOperation(), owned, cluster, table.problem.fixed, bases)))
      return signalPassFailure();
    if (bases != balanced) {
      OwnerTable obeying(cluster);
      obeying.problem.fixed = fixed;
      for (auto [group, base] : llvm::zip(owned, bases))
        obeying.add(group, GroupGeometry(group), base);
      better.counts = std::move(obeying.counts);
      table.problem = std::move(obeying.problem);
    }
    for (auto [entry, base] : llvm::zip(groups, bases)) {
      GroupOp group = std::get<2>(entry);
      std::vector<plan::Hop> hops = group.getPlanHops();
      for (plan::Hop &hop : hops)
        if (!hop.owned.empty())
          hop.base = base;
      group.setPlanHops(hops);
    }
    reportBalance(getOperation().getLoc(), blocks, ranks, better,
                  cost::loadsOf(table.problem, better.counts));
  }
};

} // namespace
