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

/// Gives blocks of one group to the least loaded rank; of equally loaded ones to the one that holds
/// most of the block, then to the first. Positions that hold equal parts of every block differ in
/// their load alone, so that each such class has a queue, and a block asks the queues.
class OwnerQueues {
public:
  /// `held` are elements per position and block within a parameter. All must outlive the queues;
  /// nothing else may change the loads meanwhile.
  OwnerQueues(const std::vector<int64_t> &ranks, const std::vector<std::vector<int64_t>> &held,
              Loads &loads);

  /// The position that gets block `block` (within a parameter), whose load grows by `cost`.
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
