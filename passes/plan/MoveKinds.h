//===- MoveKinds.h - What travels for what ----------------------*- C++ -*-===//
#ifndef STEPC_PASSES_PLAN_MOVEKINDS_H
#define STEPC_PASSES_PLAN_MOVEKINDS_H

#include "runtime/plan/Plan.h"

#include <array>

namespace stepc::plan {

/// What a message is sent for, so that reports can count each apart.
enum class MoveKind {
  Contributions, ///< parts of gradients, to who adds them up
  Lists,         ///< between the shards of gradient, parameter and states
  There,         ///< shards, to where blocks come together: the first hop
  Further,       ///< pieces, from hop to hop, there and back
  Back,          ///< results, to shards
  Sums,          ///< norms and Gram matrices of slabs
};
inline constexpr size_t kMoveKinds = 6;

inline MoveKind kindOf(const Place &move) {
  if (move.from.isSummed() || move.to.isSummed())
    return MoveKind::Sums;
  if (move.to.kind == Distribution::ReducedShards)
    return MoveKind::Contributions;
  if (move.from.isShards())
    return move.to.isShards() ? MoveKind::Lists : MoveKind::There;
  return move.to.isShards() ? MoveKind::Back : MoveKind::Further;
}

/// As keys of JSON.
inline constexpr std::array<const char *, kMoveKinds> kMoveKeys = {
    "contributions", "lists", "there", "further_hops", "back", "sums"};
/// For people.
inline constexpr std::array<const char *, kMoveKinds> kMoveNames = {
    "partial gradients", "between lists", "there", "further hops", "back", "sums"};

/// Bytes that all ranks send to others.
struct BytesByKind : std::array<int64_t, kMoveKinds> {
  BytesByKind() : array{} {}
  int64_t &of(MoveKind kind) { return (*this)[size_t(kind)]; }
  /// Whether there is more than what goes to where blocks are computed, and back.
  bool hasOthers() const {
    for (size_t kind = 0; kind < kMoveKinds; ++kind)
      if ((*this)[kind] > 0 && kind != size_t(MoveKind::There) && kind != size_t(MoveKind::Back))
        return true;
    return false;
  }
};

} // namespace stepc::plan

#endif
