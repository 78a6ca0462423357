//===- Pools.cpp - Where batches stand that share memory ------------------===//

#include "runtime/plan/Checks.h"
#include "runtime/plan/Tables.h"

#include <algorithm>

namespace stepc::plan {

namespace {
constexpr int64_t kMemberAlignment = 64;
} // namespace

RankPool Expander::pool(const Pool &pool, int64_t rank) {
  RankPool made;
  made.begins.reserve(pool.members.size());
  for (const Pool::Member &member : pool.members) {
    int64_t begin = (made.bytes + kMemberAlignment - 1) / kMemberAlignment * kMemberAlignment;
    int64_t blocks = computedBlocks(member.segment, rank);
    made.begins.push_back(begin);
    if (blocks == 0 || member.blockBytes == 0)
      continue;
    // No sum leaves 64 bits, whatever a plan says: nothing so large passes as a workspace.
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

std::string checkPool(const Plan &plan, const Pool &pool) {
  if (pool.offset < 0 || pool.offset % kMemberAlignment || pool.bytes < 0 ||
      pool.offset > kMostArenaBytes || pool.bytes > kMostArenaBytes)
    return "expected a pool at a multiple of 64 bytes, found " + std::to_string(pool.bytes) +
           " bytes from byte " + std::to_string(pool.offset);
  for (const Pool::Member &member : pool.members) {
    if (!inside(member.segment, plan.segments))
      return outside("segment", member.segment);
    if (member.blockBytes < 0 || member.blockBytes > kMostArenaBytes)
      return "expected blocks of no more bytes than a workspace, found " +
             std::to_string(member.blockBytes);
  }
  return {};
}

} // namespace stepc::plan
