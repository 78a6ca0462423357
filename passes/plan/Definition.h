//===- Definition.h - What a rule computes, as one number -------*- C++ -*-===//
#ifndef STEPC_PASSES_PLAN_DEFINITION_H
#define STEPC_PASSES_PLAN_DEFINITION_H

#include "dialects/optim/Optim.h"

namespace stepc {

/// A hash of what a rule computes; passes/plan/README.md says of what exactly. Two specifications
/// that differ in comments, layout, names of intermediate values or order of independent statements
/// give one hash. Rules are compared past optim-expand-named, at any level that still has them.
uint64_t definitionHash(optim::RuleOp rule);

} // namespace stepc

#endif
