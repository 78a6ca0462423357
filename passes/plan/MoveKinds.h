//===- MoveKinds.h - What messages are sent for -----------------*- C++ -*-===//
#ifndef STEPC_PASSES_PLAN_MOVEKINDS_H
#define STEPC_PASSES_PLAN_MOVEKINDS_H

#include "runtime/plan/Plan.h"

#include <array>

namespace stepc::plan {

/// What a message is sent for. Reports count the bytes of each kind.
enum class MoveKind {
  Contributions, ///< contributions to a partial gradient, to the ranks that add them up
  Lists,         ///< shards of gradient or parameter, to ranks with other placements of shards
  There,         ///< shards, to the ranks of the first hop
  Further,       ///< pieces, from hop to hop, on the way there and back
  Back,          ///< results, to shards
  Sums,          ///< norms and Gram matrices of slabs, and sums of lines
};
inline constexpr size_t kMoveKinds = 6;

inline MoveKind kindOf(const Place &move) {
  if (move.from.isSummed() || move.to.isSummed() || move.from.isOfLines())
    return MoveKind::Sums;
  if (move.to.kind == Distribution::ReducedShards)
    return MoveKind::Contributions;
  if (move.from.isShards())
    return move.to.isShards() ? MoveKind::Lists : MoveKind::There;
  return move.to.isShards() ? MoveKind::Back : MoveKind::Further;
}

/// The names of the kinds as keys of JSON.
inline constexpr std::array<const char *, kMoveKinds> kMoveKeys = {
    "contributions", "lists", "there", "further_hops", "back", "sums"};
/// The names of the kinds in reports for people.
inline constexpr std::array<const char *, kMoveKinds> kMoveNames = {
    "partial gradients", "between lists", "there", "further hops", "back", "sums"};

/// Bytes of each kind that all ranks together send to others.
struct BytesByKind : std::array<int64_t, kMoveKinds> {
  BytesByKind() : array{} {}
  int64_t &of(MoveKind kind) { return (*this)[size_t(kind)]; }
  /// Whether there are bytes of other kinds than There and Back.
  bool hasOthers() const {
    for (size_t kind = 0; kind < kMoveKinds; ++kind)
      if ((*this)[kind] > 0 && kind != size_t(MoveKind::There) && kind != size_t(MoveKind::Back))
        return true;
    return false;
  }
};

} // namespace stepc::plan

#endif
