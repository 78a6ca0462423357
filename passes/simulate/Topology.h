//===- Topology.h - Which link a message takes ------------------*- C++ -*-===//
#ifndef STEPC_PASSES_SIMULATE_TOPOLOGY_H
#define STEPC_PASSES_SIMULATE_TOPOLOGY_H

#include "passes/cost/Cluster.h"

#include <utility>
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
  /// The place of another rank in the order in which a rank sends, which is NCCL's. A domain is the ranks
  /// that meet below the level at which the two ranks meet. The order goes through domains, beginning behind
  /// the sender's. In each domain it goes through places, beginning with the sender's place. If all ranks of
  /// one domain send to all of another, no two of them send to one rank at a time.
  std::pair<int64_t, int64_t> turn(int64_t rank, int64_t other) const {
    constexpr int64_t kAll = int64_t(1) << 40; // more than there are domains
    size_t level = levelOf(rank, other);
    int64_t inner = level == 0 ? 1 : cluster.levels[level - 1].ranks;
    int64_t from = world[size_t(rank)], to = world[size_t(other)];
    return {(to / inner - from / inner + kAll) % kAll, (to % inner - from % inner + inner) % inner};
  }
  int64_t globalRank(int64_t rank) const { return world[size_t(rank)]; }

private:
  const cost::Cluster &cluster;
  std::vector<int64_t> world;
};

} // namespace stepc::simulate

#endif
