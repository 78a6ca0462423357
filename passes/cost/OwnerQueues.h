//===- OwnerQueues.h - Blocks to the least loaded ranks ---------*- C++ -*-===//
#ifndef STEPC_PASSES_COST_OWNERQUEUES_H
#define STEPC_PASSES_COST_OWNERQUEUES_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <queue>
#include <vector>

namespace stepc::cost {

/// Load of each global rank in picoseconds; meshes may overlap.
using Loads = std::map<int64_t, int64_t>;

/// Gives each block of a group to the least loaded rank. Among equally loaded ranks it goes to the rank that
/// holds most of the block, then to the first. Positions that hold equally much of every block differ only in
/// their loads. Each class of such positions has a queue, so a block is compared with queues, not with ranks.
class OwnerQueues {
public:
  /// `held` has the elements per position and block of a parameter. All three arguments must outlive the
  /// queues. As long as the queues live, nothing else may change the loads.
  OwnerQueues(const std::vector<int64_t> &ranks, const std::vector<std::vector<int64_t>> &held,
              Loads &loads);

  /// Returns the position that gets block `block` of a parameter. Adds `cost` to the load of this position.
  int64_t give(int64_t block, int64_t cost);

private:
  using Queue = std::priority_queue<std::pair<int64_t, int64_t>>; // of -load, -position
  const std::vector<int64_t> &ranks;
  const std::vector<std::vector<int64_t>> &held;
  Loads &loads;
  std::vector<Queue> queues;
};

} // namespace stepc::cost

#endif
