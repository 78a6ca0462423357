//===- StateLimit.cpp - Owners that obey a limit of states' bytes ---------===//

#include "passes/decide/StateLimit.h"

#include "dialects/optim/Saturate.h"
#include "runtime/plan/BlockStates.h"

#include <tuple>

using namespace mlir;
using namespace stepc;
using namespace stepc::decide;
using namespace stepc::optim;

static plan::Rule planOfRule(GroupOp group) {
  return optim::toPlan(SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr()));
}

/// The bytes of those states of a group's block that stay with it.
static int64_t bytesOfBlock(GroupOp group) {
  return plan::blockStateBytes(group.toPlan(), planOfRule(group));
}

cost::Loads decide::fixedStateBytes(ModuleOp module, ArrayRef<GroupOp> owned) {
  cost::Loads bytes;
  for (auto group : module.getOps<GroupOp>()) {
    GroupGeometry geometry(group);
    plan::Rule rule = planOfRule(group);
    // A parameter whose matrices are in several groups counts for the group of their first part.
    bool isFirst = !group.getParts() || group.getParts()->front() == 0;
    for (int64_t position = 0, e = geometry.mesh.ranks.size(); isFirst && position < e;
         ++position) {
      int64_t &sum = bytes[geometry.mesh.ranks[position]];
      sum = saturatingAdd(
          sum, saturatingMul(geometry.parameters,
                             plan::shardStateBytes(geometry.group, rule, geometry.mesh, position)));
    }
    int64_t each = plan::blockStateBytes(geometry.group, rule);
    if (each == 0 || llvm::is_contained(owned, group))
      continue;
    Bases bases(geometry);
    for (const Team &team : teams(geometry, geometry.group.hops))
      for (int64_t position : team.positions) {
        int64_t blocks = bases.owned.empty() ? team.blocks() * geometry.parameters
                                             : llvm::count(bases.of, bases.at(position));
        int64_t &sum = bytes[geometry.mesh.ranks[position]];
        sum = saturatingAdd(sum, saturatingMul(blocks, each));
      }
  }
  return bytes;
}

namespace {

/// The blocks of one group, and who may own them.
struct OwnedGroup {
  OwnedGroup(GroupOp group, const cost::Cluster &cluster)
      : geometry(group), cost(blockCost(group, cluster)), bytes(bytesOfBlock(group)) {
    Bases bases(geometry);
    for (int64_t position = 0, e = geometry.mesh.ranks.size(); position < e; ++position)
      ranks[bases.at(position)].push_back(geometry.mesh.ranks[position]);
  }
  GroupGeometry geometry;
  int64_t cost, bytes; // of a block
  std::map<int64_t, std::vector<int64_t>>
      ranks; // per base, the global ranks that compute its blocks
};

/// Adds the bytes of the blocks' states at these bases.
cost::Loads withBlocks(cost::Loads bytes, ArrayRef<OwnedGroup> groups,
                       ArrayRef<std::vector<int64_t>> bases) {
  for (auto [group, all] : llvm::zip(groups, bases))
    for (int64_t base : all)
      for (int64_t rank : group.ranks.at(base)) {
        int64_t &sum = bytes[rank];
        sum = saturatingAdd(sum, group.bytes);
      }
  return bytes;
}

/// Longest processing time first, among the ranks that have room for a block's states. Returns nothing if
/// some block finds none.
std::optional<std::vector<std::vector<int64_t>>>
longestWithRoom(ArrayRef<OwnedGroup> groups, cost::Loads load, cost::Loads bytes, int64_t limit) {
  std::vector<std::tuple<int64_t, int64_t, size_t>> order; // -cost, -bytes, number
  for (auto [number, group] : llvm::enumerate(groups))
    order.push_back({-group.cost, -group.bytes, number});
  llvm::sort(order);
  std::vector<std::vector<int64_t>> bases(groups.size());
  for (auto [cost, size, number] : order) {
    const OwnedGroup &group = groups[number];
    for (int64_t block = 0, e = group.geometry.blockCount(); block < e; ++block) {
      int64_t within = block % group.geometry.blocksPerParameter();
      std::optional<std::tuple<int64_t, int64_t, int64_t>> best; // load, -elements, base
      for (const auto &[base, ranks] : group.ranks) {
        int64_t most = 0;
        bool hasRoom = true;
        for (int64_t rank : ranks) {
          most = std::max(most, load[rank]);
          hasRoom = hasRoom && saturatingAdd(bytes[rank], group.bytes) <= limit;
        }
        std::tuple key(most, -group.geometry.held(base, within), base);
        if (hasRoom && (!best || key < *best))
          best = key;
      }
      if (!best)
        return std::nullopt;
      bases[number].push_back(std::get<2>(*best));
      for (int64_t rank : group.ranks.at(bases[number].back())) {
        load[rank] = saturatingAdd(load[rank], group.cost);
        bytes[rank] = saturatingAdd(bytes[rank], group.bytes);
      }
    }
  }
  return bases;
}

/// The rank with the most bytes.
std::pair<int64_t, int64_t> most(const cost::Loads &bytes) {
  std::pair<int64_t, int64_t> found{0, 0};
  for (auto [rank, sum] : bytes)
    if (sum > found.second)
      found = {rank, sum};
  return found;
}

} // namespace

bool decide::obeysStateLimit(ModuleOp module, ArrayRef<GroupOp> groups,
                             const cost::Cluster &cluster, ArrayRef<std::vector<int64_t>> bases) {
  auto given = module->getAttrOfType<IntegerAttr>(kStateLimitAttr);
  if (!given)
    return true;
  std::vector<OwnedGroup> owned;
  for (GroupOp group : groups)
    owned.emplace_back(group, cluster);
  return most(withBlocks(fixedStateBytes(module, groups), owned, bases)).second <= given.getInt();
}

LogicalResult decide::obeyStateLimit(ModuleOp module, ArrayRef<GroupOp> groups,
                                     const cost::Cluster &cluster, const cost::Loads &fixed,
                                     std::vector<std::vector<int64_t>> &bases) {
  auto given = module->getAttrOfType<IntegerAttr>(kStateLimitAttr);
  if (!given)
    return success();
  int64_t limit = given.getInt();
  cost::Loads bytes = fixedStateBytes(module, groups);
  auto refuse = [&](std::pair<int64_t, int64_t> found, const char *why) {
    return module.emitError("expected at most ")
           << limit << " bytes of states on a rank (--state-limit), found no less than "
           << found.second << " on rank " << found.first << ", " << why;
  };
  if (auto found = most(bytes); found.second > limit)
    return refuse(found, "whoever owns blocks");
  std::vector<OwnedGroup> owned;
  for (GroupOp group : groups)
    owned.emplace_back(group, cluster);
  if (most(withBlocks(bytes, owned, bases)).second <= limit)
    return success();
  if (auto found = longestWithRoom(owned, fixed, bytes, limit)) {
    bases = std::move(*found);
    return success();
  }
  // The most even bytes, whatever the time.
  OwnerTable table([](GroupOp group) { return bytesOfBlock(group); });
  std::vector<std::vector<int64_t>> even = bases;
  std::vector<size_t> added; // groups without such states keep their owners
  for (auto [number, group, each] : llvm::enumerate(groups, owned))
    if (each.bytes > 0) {
      table.add(group, each.geometry, even[number]);
      added.push_back(number);
    }
  for (auto [rank, sum] : bytes)
    table.problem.fixed[rank] = saturatingAdd(table.problem.fixed[rank], sum);
  cost::OwnerBalance balance =
      cost::balanceOwners(table.problem, cost::longestFirst(table.problem));
  for (auto [number, other] : llvm::zip(added, table.basesBy(balance.counts)))
    if (!other.empty())
      even[number] = std::move(other);
  std::pair<int64_t, int64_t> least = most(withBlocks(bytes, owned, even));
  if (least.second > limit)
    return refuse(least,
                  "with the most even choice of owners for blocks whose states stay with them");
  bases = std::move(even);
  return success();
}
