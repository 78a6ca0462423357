//===- Travel.h - What a strategy makes travel and compute ------*- C++ -*-===//
#ifndef STEPC_PASSES_EXPLAIN_TRAVEL_H
#define STEPC_PASSES_EXPLAIN_TRAVEL_H

#include "dialects/optim/Optim.h"

namespace stepc::explain {

/// A table for each value of a group that travels by its hops. The tables are for segment 0.
std::vector<plan::Table> travellers(optim::RuleOp rule, const plan::Group &group);
/// Tables of the values that ranks with slabs of a block add up, for segment 0, in the order of starts.
std::vector<plan::Table> sums(optim::RuleOp rule, const plan::Group &group);
/// Operations of a rule's matrix operations for one block, or for one slab if the group has slabs.
Flops matrixFlops(optim::RuleOp rule, const plan::Group &group);

} // namespace stepc::explain

#endif
