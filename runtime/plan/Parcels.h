//===- Parcels.h - One message per peer and start ---------------*- C++ -*-===//
//
// The tables number a value's packed elements as if it stood alone. What travels with one start
// stands in one buffer per side, in one part per peer; this is the one place that says where.
// Both ends order a part's values alike, so that what leaves is what arrives.
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

/// Lays out what one start sends and receives on one rank of a world of that size.
RankStart layOut(CollectiveKind kind, std::span<const Traveller> values, int64_t worldSize);

/// Whether two values may travel in one all-gather: where peers share one copy of a value, those of the
/// other share it alike.
bool gatherTogether(const Plan &plan, const Place &one, const Place &other);
/// Whether several ranks get copies of what is sent.
bool isShared(const Plan &plan, const Place &place);

} // namespace stepc::plan

#endif
