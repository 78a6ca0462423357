//===- Travel.h - What a strategy makes travel and compute ------*- C++ -*-===//
#ifndef STEPC_PASSES_EXPLAIN_TRAVEL_H
#define STEPC_PASSES_EXPLAIN_TRAVEL_H

#include "dialects/optim/Optim.h"

namespace stepc::explain {

/// The tables of the values of a group that travel by its hops, of a program's first segment.
std::vector<plan::Table> travellers(optim::RuleOp rule, const plan::Group &group);
/// The sums over ranks of the slabs of a group, start by start.
std::vector<plan::Table> sums(optim::RuleOp rule, const plan::Group &group);
/// Operations for one block, or for a slab of it, in the matrix operations of a rule.
int64_t matrixFlops(optim::RuleOp rule, const plan::Group &group);

} // namespace stepc::explain

#endif
