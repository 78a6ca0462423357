//===- RuleSizes.h - Sizes of a rule's values, by parameter -----*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_RULESIZES_H
#define STEPC_PASSES_DECIDE_RULESIZES_H

#include "dialects/optim/Optim.h"

namespace stepc::decide {

/// Whether the rule computes sizes of values, or has states of other sizes than the parameter.
bool hasRuleSizes(optim::RuleOp rule);

/// Computes the sizes of the rule (`optim.size`) for the blocks of a parameter, and sets `sizes` of the
/// parameter. Emits an error if one is no whole number from 1 to 2^20, if the blocks differ in size, or if a
/// state of the rule would have more than 8 GiB for a block.
mlir::LogicalResult setRuleSizes(optim::ParameterOp parameter, optim::RuleOp rule);

} // namespace stepc::decide

#endif
