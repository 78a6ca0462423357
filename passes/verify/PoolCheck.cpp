//===- PoolCheck.cpp - Members of a pool are apart on every rank ----------===//

#include "passes/verify/TableProof.h"

namespace stepc::verify {

/// Members begin at multiples of this, as every buffer does. The proof says the number itself, so
/// that a plan whose own constant were changed does not pass.
static constexpr int64_t kAlignment = 64;

static std::string text(int64_t number) { return std::to_string(number); }

std::string TableProof::checkPool(int64_t index) {
  const plan::Pool &pool = plan.pools[index];
  for (int64_t rank = 0; rank < truth.rankCount(); ++rank) {
    plan::RankPool made = expand.pool(index, rank);
    if (made.begins.size() != pool.members.size())
      return "expected places of " + text(int64_t(pool.members.size())) + " members on rank " +
             text(rank) + ", found " + text(int64_t(made.begins.size()));
    // From behind: a member ends where the next one begins at the latest.
    int64_t end = pool.bytes;
    for (size_t i = pool.members.size(); i-- > 0;) {
      const plan::Pool::Member &member = pool.members[i];
      int64_t position = truth.position(truth.groupOf(member.segment), rank);
      int64_t blocks = position < 0 ? 0 : int64_t(truth.computed(member.segment, position).size());
      if (blocks == 0)
        continue;
      int64_t begin = made.begins[i], room = end - begin;
      if (begin < 0 || begin % kAlignment || room < 0 || member.blockBytes > room / blocks)
        return "expected room for " + text(blocks) + " blocks of " + text(member.blockBytes) +
               " bytes each, which rank " + text(rank) + " computes of member " + text(int64_t(i)) +
               ", found " + text(room) + " bytes from byte " + text(begin) + " of " +
               text(pool.bytes);
      end = begin;
    }
  }
  return {};
}

} // namespace stepc::verify
