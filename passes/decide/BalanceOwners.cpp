//===- BalanceOwners.cpp - Longest processing time first -------------------===//

#include "passes/decide/Passes.h"

#include "dialects/optim/Optim.h"
#include "passes/cost/OwnerQueues.h"
#include "passes/cost/Saturate.h"
#include "passes/decide/ClusterOfModule.h"
#include "passes/decide/StrategyModel.h"

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

/// Picoseconds that a block costs where it is computed: its work and its way there and back.
int64_t blockCost(GroupOp group, const cost::Cluster &cluster) {
  auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
  plan::Group layout = group.toPlan();
  int64_t rows = layout.rows(), cols = layout.cols();
  double bytes = 2 * double(rows) * double(cols) * double(modelledBytes(rule, rows, cols).element);
  MeshOp mesh = lookupMesh(group, group.getExemplar().getMeshAttr());
  std::vector<double> meeting = cluster.meeting(mesh.getRanks().vec());
  return cost::picoseconds(blockSeconds(rule, rows, cols, cluster.device) +
                           cluster.exchange(meeting, 0, bytes));
}

/// What ranks compute whoever owns the rest: blocks without bases, or with some already.
void addFixedLoad(GroupOp group, const cost::Cluster &cluster, cost::Loads &load) {
  if (!group.getHops())
    return;
  GroupGeometry geometry(group);
  Bases bases(geometry);
  int64_t cost = blockCost(group, cluster);
  for (int64_t position = 0, e = geometry.mesh.ranks.size(); position < e; ++position) {
    int64_t blocks = 0;
    if (!bases.owned.empty())
      blocks = llvm::count(bases.of, bases.at(position));
    else if (!geometry.group.hops.empty())
      blocks = geometry.blockCount();
    else
      for (int64_t block = 0; block < geometry.blocksPerParameter(); ++block)
        blocks += geometry.held(position, block) > 0 ? geometry.parameters : 0;
    int64_t &sum = load[geometry.mesh.ranks[position]];
    sum = saturatingAdd(sum, saturatingMul(blocks, cost));
  }
}

/// Gives each block of a group a base: of the positions that differ along owned factors, which stand
/// for all that they leave open, the least loaded one.
std::vector<int64_t> balance(const GroupGeometry &geometry, int64_t cost, cost::Loads &load) {
  Bases bases(geometry);
  std::vector<int64_t> choices, ranks;
  std::vector<std::vector<int64_t>> held;
  std::map<int64_t, std::vector<int64_t>> others; // ranks that compute what a choice does
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

/// Says how even the loads are: the mean in per cent of the most.
void reportBalance(Location loc, int64_t blocks, const std::set<int64_t> &ranks,
                   cost::Loads &load) {
  auto named = [](StringRef name) {
    return remark::RemarkOpts::name(name).category("optim-balance-owners");
  };
  double most = 0, sum = 0;
  for (int64_t rank : ranks) {
    most = std::max(most, double(load[rank]));
    sum += double(load[rank]);
  }
  remark::passed(loc, named("owners-balanced"))
      << remark::metric("blocks", blocks) << remark::metric("ranks", ranks.size())
      << remark::metric("balance-percent",
                        most > 0 ? int64_t(100 * sum / double(ranks.size()) / most) : 100);
  if (blocks < int64_t(ranks.size()))
    remark::missed(loc, named("ranks-without-blocks"))
        << remark::metric("blocks", blocks) << remark::metric("ranks", ranks.size())
        << remark::reason("a block is computed by one rank, and there are fewer than ranks");
}

class BalanceOwners : public stepc::decide::impl::BalanceOwnersBase<BalanceOwners> {
  void runOnOperation() override {
    std::vector<std::tuple<int64_t, size_t, GroupOp>> groups; // -cost of a block, number
    cost::Cluster cluster = clusterOf(getOperation());
    cost::Loads load;
    for (auto group : getOperation().getOps<GroupOp>())
      if (group.lacksBases())
        groups.push_back({-blockCost(group, cluster), groups.size(), group});
      else
        addFixedLoad(group, cluster, load);
    if (groups.empty())
      return;
    llvm::sort(groups, [](auto &a, auto &b) {
      return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    });
    std::set<int64_t> ranks;
    int64_t blocks = 0;
    for (auto [negativeCost, number, group] : groups) {
      GroupGeometry geometry(group);
      std::vector<int64_t> base = balance(geometry, -negativeCost, load);
      for (plan::Hop &hop : geometry.group.hops)
        if (!hop.owned.empty())
          hop.base = base;
      group.setPlanHops(geometry.group.hops);
      ranks.insert(geometry.mesh.ranks.begin(), geometry.mesh.ranks.end());
      blocks += int64_t(base.size());
    }
    reportBalance(getOperation().getLoc(), blocks, ranks, load);
  }
};

} // namespace
