//===- BalanceOwners.cpp - Longest processing time first -------------------===//

#include "passes/decide/Passes.h"

#include "dialects/optim/Optim.h"
#include "passes/decide/GroupGeometry.h"
#include "passes/plan/Saturate.h"

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

struct Job {
  int64_t cost;
  size_t group;
  int64_t block;
};

/// Modelled cost of a block where it is computed. A byte on the wire costs as much as some tens of
/// operations; exactness is not needed, order is.
int64_t blockCost(GroupOp group) {
  auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
  return saturatingAdd(modelledFlops(rule, group.getRows(), group.getCols()),
                       64 * group.getRows() * group.getCols());
}

/// What ranks compute whoever owns the rest: local, gathered and owned blocks.
void addFixedLoad(GroupOp group, std::map<int64_t, int64_t> &load) {
  std::optional<Strategy> strategy = group.getStrategy();
  if (!strategy || *strategy == Strategy::Elementwise)
    return;
  GroupGeometry geometry(group);
  int64_t cost = blockCost(group);
  for (int64_t position = 0, e = geometry.mesh.ranks.size(); position < e; ++position) {
    int64_t blocks = 0;
    if (*strategy == Strategy::Gather)
      blocks = geometry.blockCount();
    else if (*strategy == Strategy::Owner)
      blocks = llvm::count(*group.getOwners(), position);
    else
      for (int64_t block = 0; block < geometry.blocksPerParameter(); ++block)
        blocks += geometry.held(position, block) > 0 ? geometry.parameters : 0;
    int64_t &sum = load[geometry.mesh.ranks[position]];
    sum = saturatingAdd(sum, saturatingMul(blocks, cost));
  }
}

/// Says how even the loads are: the mean in per cent of the most.
void reportBalance(Location loc, const std::vector<Job> &jobs, const std::set<int64_t> &ranks,
                   std::map<int64_t, int64_t> &load) {
  auto named = [](StringRef name) {
    return remark::RemarkOpts::name(name).category("optim-balance-owners");
  };
  double most = 0, sum = 0;
  for (int64_t rank : ranks) {
    most = std::max(most, double(load[rank]));
    sum += double(load[rank]);
  }
  remark::passed(loc, named("owners-balanced"))
      << remark::metric("blocks", jobs.size()) << remark::metric("ranks", ranks.size())
      << remark::metric("balance-percent",
                        most > 0 ? int64_t(100 * sum / double(ranks.size()) / most) : 100);
  if (jobs.size() < ranks.size())
    remark::missed(loc, named("ranks-without-blocks"))
        << remark::metric("blocks", jobs.size()) << remark::metric("ranks", ranks.size())
        << remark::reason("a block is computed by one rank, and there are fewer than ranks");
}

class BalanceOwners : public stepc::decide::impl::BalanceOwnersBase<BalanceOwners> {
  void runOnOperation() override {
    SmallVector<GroupOp> groups;
    std::vector<GroupGeometry> geometries;
    SmallVector<SmallVector<int64_t>> owners;
    std::vector<Job> jobs;
    // Load of each of the job's global ranks: meshes may overlap.
    std::map<int64_t, int64_t> load;
    for (auto group : getOperation().getOps<GroupOp>()) {
      if (group.getStrategy() != Strategy::Owner || group.getOwners()) {
        addFixedLoad(group, load);
        continue;
      }
      const GroupGeometry &geometry = geometries.emplace_back(GroupGeometry(group));
      int64_t cost = blockCost(group);
      for (int64_t block = 0, e = geometry.blockCount(); block < e; ++block)
        jobs.push_back({cost, groups.size(), block});
      owners.emplace_back(geometry.blockCount(), 0);
      groups.push_back(group);
    }
    llvm::sort(jobs, [](const Job &a, const Job &b) {
      return std::tuple(-a.cost, a.group, a.block) < std::tuple(-b.cost, b.group, b.block);
    });
    for (const Job &job : jobs) {
      const GroupGeometry &geometry = geometries[job.group];
      int64_t block = job.block % geometry.blocksPerParameter();
      int64_t best = 0;
      auto better = [&](int64_t a, int64_t b) { // is a a better owner than b
        int64_t loadA = load[geometry.mesh.ranks[a]], loadB = load[geometry.mesh.ranks[b]];
        if (loadA != loadB)
          return loadA < loadB;
        return geometry.held(a, block) > geometry.held(b, block);
      };
      for (int64_t position = 1, e = geometry.mesh.ranks.size(); position < e; ++position)
        if (better(position, best))
          best = position;
      owners[job.group][job.block] = best;
      int64_t &sum = load[geometry.mesh.ranks[best]];
      sum = saturatingAdd(sum, job.cost);
    }
    for (auto [group, list] : llvm::zip(groups, owners))
      group.setOwnersAttr(DenseI64ArrayAttr::get(&getContext(), list));
    if (jobs.empty())
      return;
    std::set<int64_t> ranks;
    for (const GroupGeometry &geometry : geometries)
      ranks.insert(geometry.mesh.ranks.begin(), geometry.mesh.ranks.end());
    reportBalance(getOperation().getLoc(), jobs, ranks, load);
  }
};

} // namespace
