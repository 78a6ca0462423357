//===- Definition.h - What a rule computes, as one number -------*- C++ -*-===//
#ifndef STEPC_PASSES_PLAN_DEFINITION_H
#define STEPC_PASSES_PLAN_DEFINITION_H

#include "dialects/optim/Optim.h"

namespace stepc {

/// A hash of what a rule computes. passes/plan/README.md says what it includes. Two specifications that
/// differ in comments, layout, names of intermediate values or order of independent statements give one hash.
/// The caller must run optim-expand-named first. The rule may be at any later level that still has rules.
uint64_t definitionHash(optim::RuleOp rule);
/// A hash of what the model computes. Its operations must have numbers (optim-expand-model).
uint64_t definitionHash(optim::ModelOp model);

} // namespace stepc

#endif
