//===- CutSpaces.h - Which operations of a rule run on shards ---*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_CUTSPACES_H
#define STEPC_PASSES_DECIDE_CUTSPACES_H

#include "dialects/optim/Optim.h"

#include "llvm/ADT/DenseSet.h"

#include <array>

namespace stepc::decide {

/// How many operations of a rule run in each space, by the number of the space.
using SpaceCounts = std::array<int64_t, 3>;

/// Labels the operations of a rule with their spaces, and its yield with the spaces in which results are
/// stored; labels from before are replaced. Of the operations that need whole blocks, those of `onShards` may
/// run on shards. Those that do not are no longer marked as cut.
SpaceCounts cutSpaces(optim::RuleOp rule, const llvm::DenseSet<mlir::Operation *> &onShards);

/// A copy of a rule for groups that compute it in their own way: it knows the rule that was written, and its
/// name ends in the suffix. It is in no module yet, and has the spaces of the rule.
optim::RuleOp copyOf(optim::RuleOp rule, llvm::StringRef suffix);

/// How many bytes of full values cross between shards and matrix space, there and back, for each element of a
/// block. They are counted in units of 1/1024.
struct CrossingCost {
  int64_t there = 0, back = 0;
  int64_t bothWays() const { return there + back; }
};
/// The rule must have spaces.
CrossingCost crossingCostOf(optim::RuleOp rule);

} // namespace stepc::decide

#endif
