//===- OwnerSearch.h - Better owners than the longest first -----*- C++ -*-===//
#ifndef STEPC_PASSES_COST_OWNERSEARCH_H
#define STEPC_PASSES_COST_OWNERSEARCH_H

#include "passes/cost/OwnerBalance.h"

#include <optional>

namespace stepc::cost {

/// Splits the blocks of the busiest rank and of another one anew, as long as that helps and the busiest rank has
/// more than `enough`: the busiest of `among`, or of all where these are none. Other ranks stay below it, too. Of the
/// work that is allowed a `share` is done.
void improve(const OwnerProblem &problem, OwnerCounts &counts, int64_t enough,
             const std::vector<int64_t> &among = {}, double share = 1);

/// Counts by which no rank has more than some load between two, the least that is found by halving: blocks in
/// decreasing order of cost, each to the fullest rank that has room. Nothing where that fails below `most`.
std::optional<OwnerCounts> pack(const OwnerProblem &problem, int64_t least, int64_t most);

/// What a search through all assignments below `most` found.
struct Exhausted {
  std::optional<OwnerCounts> counts; ///< the best of those that were found below it
  bool isComplete = false;           ///< there is none better
};
/// Bounded in its work, of which a `share` is done: complete for a few dozen blocks, mostly.
Exhausted searchAll(const OwnerProblem &problem, int64_t most, double share = 1);

} // namespace stepc::cost

#endif
