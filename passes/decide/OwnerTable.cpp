//===- OwnerTable.cpp - Which blocks have which owners ---------------------===//

#include "passes/decide/OwnerTable.h"

#include "dialects/optim/Saturate.h"

#include <tuple>

using namespace mlir;
using namespace stepc;
using namespace stepc::decide;
using namespace stepc::optim;

int64_t decide::blockCost(GroupOp group, const cost::Cluster &cluster) {
  auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
  plan::Group layout = group.toPlan();
  plan::Mesh mesh = optim::toPlan(lookupMesh(group, group.getExemplar().getMeshAttr()));
  MatrixExtents block = MatrixExtents::whole(layout);
  double bytes =
      double(block.rows) * double(block.cols) * double(modelledBytes(rule, block).element);
  double seconds = blockSeconds(rule, block, cluster.device);
  for (const HopMeeting &hop : hopMeetings(layout, plan::home(layout, optim::toPlan(rule)).whose(),
                                           mesh, group.getPlanHops(), cluster))
    seconds += cluster.exchange(hop.there, 0, bytes) + cluster.exchange(hop.back, 0, bytes);
  return cost::picoseconds(seconds);
}

void OwnerTable::addFixed(GroupOp group) {
  if (!group.getHops())
    return;
  GroupGeometry geometry(group);
  Bases bases(geometry);
  int64_t cost = costOf(group);
  for (const Team &team : teams(geometry, geometry.group.hops))
    for (int64_t position : team.positions) {
      int64_t blocks = bases.owned.empty() ? team.blocks() * geometry.parameters
                                           : llvm::count(bases.of, bases.at(position));
      int64_t &sum = problem.fixed[geometry.mesh.ranks[position]];
      sum = saturatingAdd(sum, saturatingMul(blocks, cost));
    }
}

void OwnerTable::add(GroupOp group, const GroupGeometry &geometry, ArrayRef<int64_t> base) {
  Bases bases(geometry);
  int64_t cost = costOf(group);
  Owned &entry = owned.emplace_back(Owned{group, 0, {}});
  std::vector<int64_t> ranks;
  bool isTeam = false;
  for (int64_t position = 0, e = geometry.mesh.ranks.size(); position < e; ++position) {
    isTeam |= bases.at(position) != position;
    entry.choices.push_back(position);
    ranks.push_back(geometry.mesh.ranks[position]);
  }
  if (isTeam) {
    entry.choices.clear();
    for (int64_t position = 0, e = geometry.mesh.ranks.size(); position < e; ++position) {
      int64_t &sum = problem.fixed[geometry.mesh.ranks[position]];
      sum = saturatingAdd(sum, saturatingMul(llvm::count(base, bases.at(position)), cost));
    }
    return;
  }
  auto [found, isNew] = kinds.try_emplace({ranks, cost}, problem.kinds.size());
  entry.kind = found->second;
  if (isNew) {
    problem.kinds.push_back({ranks, cost, 0});
    counts.emplace_back(ranks.size(), 0);
  }
  problem.kinds[entry.kind].count += int64_t(base.size());
  for (int64_t position : base)
    ++counts[entry.kind][position];
}

void OwnerTable::addAll(ModuleOp module) {
  for (auto group : module.getOps<GroupOp>()) {
    GroupGeometry geometry(group);
    Bases bases(geometry);
    if (group.getHops() && !bases.of.empty())
      add(group, geometry, bases.of);
    else
      addFixed(group);
  }
}

std::vector<std::vector<int64_t>> OwnerTable::basesBy(cost::OwnerCounts left) const {
  std::vector<std::vector<int64_t>> result;
  for (const Owned &entry : owned) {
    std::vector<int64_t> &bases = result.emplace_back();
    if (entry.choices.empty())
      continue;
    GroupGeometry geometry(entry.group);
    std::vector<int64_t> &slots = left[entry.kind];
    for (int64_t block = 0, e = geometry.blockCount(); block < e; ++block) {
      int64_t within = block % geometry.blocksPerParameter(), best = -1;
      // Among ranks that hold equally much of the block, takes the rank that has most blocks left to get. So
      // the blocks of a group are spread over ranks like all blocks of the kind.
      auto key = [&](int64_t position) {
        return std::tuple(geometry.held(position, within), slots[position]);
      };
      for (int64_t position : entry.choices)
        if (slots[position] > 0 && (best < 0 || key(position) > key(best)))
          best = position;
      --slots[best];
      bases.push_back(best);
    }
  }
  return result;
}
