//===- HopRoutes.cpp - What ranks pass on, hop by hop ----------------------===//

#include "passes/decide/HopRoutes.h"

using namespace stepc;
using namespace stepc::decide;

HopRoutes::HopRoutes(const GroupGeometry &geometry) {
  const std::vector<plan::Hop> &hops = geometry.group.hops;
  auto leadsToOwner = [](const plan::Hop &hop) {
    return hop.replicated.empty() && !hop.owned.empty();
  };
  if (hops.size() < 2 || !llvm::all_of(hops, leadsToOwner))
    return;
  std::vector<bool> replicated =
      geometry::replicatedAxes(geometry.group, plan::ValueKind::Full, geometry.home);
  auto ranks = int64_t(geometry.mesh.ranks.size());
  for (const plan::Hop &hop : hops) {
    std::vector<plan::Factor> copied;
    llvm::copy_if(hop.owned, std::back_inserter(copied),
                  [&](const plan::Factor &factor) { return replicated[factor.axis]; });
    std::vector<int64_t> &all = coordinates.emplace_back(), &some = copies.emplace_back();
    for (int64_t position = 0; position < ranks; ++position) {
      all.push_back(plan::along(geometry.mesh, hop.owned, position));
      some.push_back(plan::along(geometry.mesh, copied, position));
    }
  }
  holders.resize(geometry.blocksPerParameter());
  for (int64_t position = 0; position < ranks; ++position)
    for (auto [block, area] : llvm::enumerate(geometry.heldByBlock(position)))
      if (area > 0)
        holders[block].push_back({position, area});
}

HopRoutes::Loads HopRoutes::none() const {
  size_t ranks = coordinates.empty() ? 0 : coordinates.front().size();
  return Loads(coordinates.size(), std::vector<Load>(ranks));
}

void HopRoutes::add(int64_t place, int64_t base, int64_t count, Loads &loads) const {
  for (const Holder &holder : holders[place]) {
    double elements = double(holder.area) * double(count);
    // If there are several replicas, only the owner's replica sends. On the way back a result goes only once
    // to a position that passes it on to several replicas.
    bool sends = true, isFirst = true;
    for (const std::vector<int64_t> &copy : copies)
      sends &= copy[holder.position] == copy[base];
    int64_t at = holder.position;
    for (size_t hop = 0; hop < coordinates.size(); ++hop) {
      int64_t next = at - coordinates[hop][at] + coordinates[hop][base];
      if (next != at && sends) {
        loads[hop][at].sentThere += elements;
        loads[hop][next].receivedThere += elements;
      }
      if (next != at && isFirst) {
        loads[hop][next].sentBack += elements;
        loads[hop][at].receivedBack += elements;
      }
      isFirst &= copies[hop][holder.position] == copies[hop][base];
      at = next;
    }
  }
}
