//===- PoolCheck.cpp - Members of a pool are apart on every rank ----------===//

#include "passes/verify/TableProof.h"

namespace stepc::verify {

/// Members must begin at multiples of this number of bytes. The proof does not use plan::kAlignment, so that
/// it refuses plans made with another number.
static constexpr int64_t kAlignment = 64;

std::string TableProof::checkPool(int64_t index) {
  const plan::Pool &pool = plan.pools[index];
  for (int64_t rank = 0; rank < truth.rankCount(); ++rank) {
    plan::RankPool made = expand.pool(index, rank);
    if (made.begins.size() != pool.members.size())
      return "expected places of " + std::to_string(int64_t(pool.members.size())) +
             " members on rank " + std::to_string(rank) + ", found " +
             std::to_string(int64_t(made.begins.size()));
    // From the last member to the first: a member must end where the next one begins, or before.
    int64_t end = pool.bytes;
    for (size_t i = pool.members.size(); i-- > 0;) {
      const plan::Pool::Batch &member = pool.members[i];
      int64_t position = truth.position(truth.groupOf(member.segment), rank);
      int64_t blocks = position < 0 ? 0 : int64_t(truth.computed(member.segment, position).size());
      if (blocks == 0)
        continue;
      int64_t begin = made.begins[i], room = end - begin;
      if (begin < 0 || begin % kAlignment || room < 0 || member.blockBytes > room / blocks)
        return "expected room for " + std::to_string(blocks) + " blocks of " +
               std::to_string(member.blockBytes) + " bytes each, which rank " +
               std::to_string(rank) + " computes of member " + std::to_string(int64_t(i)) +
               ", found " + std::to_string(room) + " bytes from byte " + std::to_string(begin) +
               " of " + std::to_string(pool.bytes);
      end = begin;
    }
  }
  return {};
}

} // namespace stepc::verify
