//===- BalanceOwners.cpp - Longest processing time first -------------------===//

#include "passes/decide/Passes.h"

#include "dialects/optim/Optim.h"
#include "passes/decide/GroupGeometry.h"
#include "passes/plan/Saturate.h"

#include "mlir/IR/Remarks.h"

#include <queue>
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

/// Gives blocks of one group to the least loaded rank; of equally loaded ones to the one that holds
/// most of the block, then to the first. Positions that hold equal parts of every block differ in
/// their load alone, so that each such class has a queue, and a block asks the queues.
class Queues {
public:
  Queues(const GroupGeometry &geometry, std::map<int64_t, int64_t> &load)
      : geometry(geometry), load(load) {
    std::map<ArrayRef<int64_t>, size_t> classOf;
    for (auto [position, rank] : llvm::enumerate(geometry.mesh.ranks)) {
      size_t number =
          classOf.try_emplace(geometry.heldByBlock(position), queues.size()).first->second;
      if (number == queues.size())
        queues.emplace_back();
      queues[number].push({-load[rank], -int64_t(position)});
    }
  }

  int64_t give(int64_t block, int64_t cost) {
    Queue *best = nullptr;
    std::tuple<int64_t, int64_t, int64_t> bestKey;
    for (Queue &queue : queues) {
      auto [negativeLoad, negativePosition] = queue.top();
      std::tuple key(negativeLoad, geometry.held(-negativePosition, block), negativePosition);
      if (!best || key > bestKey) {
        best = &queue;
        bestKey = key;
      }
    }
    int64_t position = -best->top().second;
    best->pop();
    int64_t &sum = load[geometry.mesh.ranks[position]];
    sum = saturatingAdd(sum, cost);
    best->push({-sum, -position});
    return position;
  }

private:
  using Queue = std::priority_queue<std::pair<int64_t, int64_t>>; // of -load, -position
  const GroupGeometry &geometry;
  std::map<int64_t, int64_t> &load;
  std::vector<Queue> queues;
};

/// Says how even the loads are: the mean in per cent of the most.
void reportBalance(Location loc, int64_t blocks, const std::set<int64_t> &ranks,
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
    // Load of each of the job's global ranks: meshes may overlap.
    std::map<int64_t, int64_t> load;
    for (auto group : getOperation().getOps<GroupOp>())
      if (group.getStrategy() != Strategy::Owner || group.getOwners())
        addFixedLoad(group, load);
      else
        groups.push_back({-blockCost(group), groups.size(), group});
    if (groups.empty())
      return;
    llvm::sort(groups, [](auto &a, auto &b) {
      return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    });
    std::set<int64_t> ranks;
    int64_t blocks = 0;
    for (auto [negativeCost, number, group] : groups) {
      GroupGeometry geometry(group);
      Queues queues(geometry, load);
      SmallVector<int64_t> owners;
      for (int64_t block = 0, e = geometry.blockCount(); block < e; ++block)
        owners.push_back(queues.give(block % geometry.blocksPerParameter(), -negativeCost));
      group.setOwnersAttr(DenseI64ArrayAttr::get(&getContext(), owners));
      ranks.insert(geometry.mesh.ranks.begin(), geometry.mesh.ranks.end());
      blocks += int64_t(owners.size());
    }
    reportBalance(getOperation().getLoc(), blocks, ranks, load);
  }
};

} // namespace
