//===- OwnerSearch.h - Better owners than the longest first -----*- C++ -*-===//
#ifndef STEPC_PASSES_COST_OWNERSEARCH_H
#define STEPC_PASSES_COST_OWNERSEARCH_H

#include "passes/cost/OwnerBalance.h"

namespace stepc::cost {

/// Splits the blocks of the busiest rank and of another one anew, as long as that helps and the busiest
/// rank has more than `enough`: the busiest of `among`, or of all where these are none. Other ranks stay
/// below it, too. Of the work that is allowed a `share` is done.
void improve(const OwnerProblem &problem, OwnerCounts &counts, int64_t enough,
             const std::vector<int64_t> &among = {}, double share = 1);

} // namespace stepc::cost

#endif
