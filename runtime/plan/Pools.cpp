//===- Pools.cpp - Where batches stand that share memory ------------------===//

#include "runtime/plan/Tables.h"

#include <algorithm>

namespace stepc::plan {

RankPool Expander::pool(const Pool &pool, int64_t rank) {
  RankPool made;
  made.begins.reserve(pool.members.size());
  for (const Pool::Batch &member : pool.members) {
    int64_t begin = aligned(made.bytes);
    int64_t blocks = computedBlocks(member.segment, rank);
    made.begins.push_back(begin);
    if (blocks == 0 || member.blockBytes == 0)
      continue;
    // No sum overflows 64 bits, whatever a plan says. A size that is capped here is too large for any
    // workspace.
    bool fits = member.blockBytes <= kMostArenaBytes / blocks;
    made.bytes = std::min(begin + (fits ? blocks * member.blockBytes : 2 * kMostArenaBytes),
                          2 * kMostArenaBytes);
  }
  return made;
}

int64_t RankPool::room(const Pool &pool, int64_t member) const {
  auto next = static_cast<size_t>(member) + 1;
  return std::max<int64_t>(0,
                           (next < begins.size() ? begins[next] : pool.bytes) - begins[next - 1]);
}

} // namespace stepc::plan
