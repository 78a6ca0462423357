//===- OwnerSearch.h - Better owners than the longest first -----*- C++ -*-===//
#ifndef STEPC_PASSES_COST_OWNERSEARCH_H
#define STEPC_PASSES_COST_OWNERSEARCH_H

#include "passes/cost/OwnerBalance.h"

namespace stepc::cost {

/// Splits the blocks of the busiest rank and of another rank anew, as long as that helps and the busiest
/// rank's load is above `enough`. The busiest rank is that of `among`, or of all ranks if `among` is empty.
/// No other rank gets as much load as the busiest rank had. The search does at most `share` of the allowed
/// work.
void improve(const OwnerProblem &problem, OwnerCounts &counts, int64_t enough,
             const std::vector<int64_t> &among = {}, double share = 1);

} // namespace stepc::cost

#endif
