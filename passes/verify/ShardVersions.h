//===- ShardVersions.h - What shards hold as a step goes on -----*- C++ -*-===//
#ifndef STEPC_PASSES_VERIFY_SHARDVERSIONS_H
#define STEPC_PASSES_VERIFY_SHARDVERSIONS_H

#include "passes/verify/Terms.h"

#include "mlir/IR/BuiltinOps.h"

namespace stepc::verify {

/// What shards of a segment's blocks hold, and who wrote it.
struct Version {
  Term term;
  mlir::Operation *writer = nullptr;
};

/// The versions of all shards, and what the rules make of those with which a step began.
class ShardVersions {
public:
  ShardVersions(const plan::Plan &plan, mlir::ModuleOp module);

  /// The parameter is target 0, after it the rule's states, then the gradient. Segments hold
  /// each block once, so that no two share a version.
  Version &at(int64_t segment, size_t target) { return versions[segment][target]; }
  optim::RuleOp ruleOf(int64_t group) { return rulesOf[group]; }
  /// The terms of what a region yields.
  llvm::SmallVector<Term> evaluate(mlir::Block &body, llvm::ArrayRef<Term> arguments);
  /// The scalars of a group's parameters, in f32, that a region makes of the rule's.
  llvm::SmallVector<Term> scalars(int64_t group, mlir::Block &body);

  /// At the end of the step: the shards of all segments hold what the rules say.
  mlir::LogicalResult check();
  /// Every block of a group stands in a segment, unless its rule changes nothing.
  mlir::LogicalResult checkAllBlocks(mlir::ModuleOp module);

  Terms terms;

private:
  bool checkSegment(size_t index);
  bool refuse(const plan::Segment &segment, size_t target, const Version &version, Term wanted);
  /// What stands before "parameter 'w'" in an error.
  std::string describeTarget(int64_t group, size_t target);

  const plan::Plan &plan;
  llvm::SmallVector<optim::RuleOp> rulesOf;   // per group
  std::vector<RuleTerms> expected;            // per group
  std::vector<std::vector<Version>> versions; // per segment
};

} // namespace stepc::verify

#endif
