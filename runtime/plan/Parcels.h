//===- Parcels.h - One message per peer and start ---------------*- C++ -*-===//
//
// Message tables number a value's packed elements as if the value travelled alone. All values that travel
// with one start share one buffer per side, with one part per peer. Only `layOut` says where each value
// lies in it. Both ends order the values of a part alike, so that what arrives is laid out as what was
// sent.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_PARCELS_H
#define STEPC_RUNTIME_PLAN_PARCELS_H

#include "runtime/plan/Tables.h"

#include <span>

namespace stepc::plan {

/// A value that travels with a start: its Message table on this rank.
struct Traveller {
  const std::vector<Message> *messages;
  int64_t elementBytes;
};

/// Lays out what one start sends and receives on one rank, in a world of `worldSize` ranks.
RankStart layOut(CollectiveKind kind, std::span<const Traveller> values, int64_t worldSize);

/// Whether two values may travel in one all-gather: the same ranks must share the copies of either value.
bool gatherTogether(const Plan &plan, const Place &one, const Place &other);
/// Whether several ranks get copies of what is sent.
bool isShared(const Plan &plan, const Place &place);

} // namespace stepc::plan

#endif
