//===- Topology.h - Which link a message takes ------------------*- C++ -*-===//
#ifndef STEPC_PASSES_SIMULATE_TOPOLOGY_H
#define STEPC_PASSES_SIMULATE_TOPOLOGY_H

#include "passes/cost/Cluster.h"

#include <vector>

namespace stepc::simulate {

/// The levels of a cluster, for ranks of a world.
class Topology {
public:
  Topology(const cost::Cluster &cluster, std::vector<int64_t> world)
      : cluster(cluster), world(std::move(world)) {}

  size_t ranks() const { return world.size(); }
  size_t levels() const { return cluster.levels.size(); }
  const cost::Level &level(size_t index) const { return cluster.levels[index]; }
  const cost::Link &link(size_t index) const { return cluster.levels[index].link; }
  size_t levelOf(int64_t from, int64_t to) const {
    return cluster.levelOf(world[size_t(from)], world[size_t(to)]);
  }
  int64_t globalRank(int64_t rank) const { return world[size_t(rank)]; }

private:
  const cost::Cluster &cluster;
  std::vector<int64_t> world;
};

} // namespace stepc::simulate

#endif
