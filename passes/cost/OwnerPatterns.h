//===- OwnerPatterns.h - Which blocks ranks can have together ---*- C++ -*-===//
#ifndef STEPC_PASSES_COST_OWNERPATTERNS_H
#define STEPC_PASSES_COST_OWNERPATTERNS_H

#include <cstdint>
#include <utility>
#include <vector>

namespace stepc::cost {

/// Blocks of a few sizes on ranks that are all alike, as patterns: what one rank has of each size.
class Patterns {
public:
  /// Sizes above 0, falling, with how many blocks there are of each; and the ranks.
  Patterns(std::vector<std::pair<int64_t, int64_t>> sizes, int64_t ranks)
      : sizes(std::move(sizes)), ranks(ranks) {}

  /// Whether it is proven that ranks with room for `room` each cannot have all blocks, not even if each had parts of
  /// patterns. Bounded in its work, over all calls together.
  bool cannotFit(int64_t room);

private:
  /// The pattern that fits into the room and is worth most, by integers that each block is worth; and what it is worth,
  /// or -1 where that takes too much work.
  int64_t mostWorth(int64_t room, const std::vector<int64_t> &worth, std::vector<int64_t> &pattern);

  std::vector<std::pair<int64_t, int64_t>> sizes;
  int64_t ranks;
  int64_t work = 0;
};

} // namespace stepc::cost

#endif
