//===- ShardVersions.h - What shards hold as a step goes on -----*- C++ -*-===//
#ifndef STEPC_PASSES_VERIFY_SHARDVERSIONS_H
#define STEPC_PASSES_VERIFY_SHARDVERSIONS_H

#include "passes/verify/Terms.h"

#include "mlir/IR/BuiltinOps.h"

namespace stepc::verify {

/// The term that the shards of a segment's blocks hold, and the command that wrote it (null: none so far).
struct Version {
  Term term;
  mlir::Operation *writer = nullptr;
};

/// The current versions of all shards, and the terms that the rules compute from the first versions of a
/// step.
class ShardVersions {
public:
  ShardVersions(const plan::Plan &plan, mlir::ModuleOp module);

  /// Target 0 is the parameter. After it come the rule's states, then the gradient. Each block stands in one
  /// segment, so segments share no version.
  Version &at(int64_t segment, size_t target) { return versions[segment][target]; }
  optim::RuleOp ruleOf(int64_t group) { return rulesOf[group]; }
  /// Returns the terms that a region yields if its arguments have the given terms.
  llvm::SmallVector<Term> evaluate(mlir::Block &body, llvm::ArrayRef<Term> arguments);
  /// Returns the terms of a group's scalars, in f32: what a kernel's region computes from the rule's scalar
  /// arguments, and from `numbers` behind them.
  llvm::SmallVector<Term> scalars(int64_t group, mlir::Block &body, llvm::ArrayRef<Term> numbers);

  /// Called after the last command. Checks that the shards of all segments hold what the rules yield.
  mlir::LogicalResult check();
  /// Checks that every block of a group stands in a segment, unless the group's rule changes nothing.
  mlir::LogicalResult checkAllBlocks(mlir::ModuleOp module);

  /// What must be 0 in a step that the model does not skip. Nullopt if the model skips none.
  std::optional<Term> skipped() const { return skips; }

  Terms terms;

private:
  bool checkSegment(size_t index);
  bool refuse(const plan::Segment &segment, size_t target, const Version &version, Term wanted);
  /// The words before "parameter 'w'" in an error. Empty for the parameter itself.
  std::string describeTarget(int64_t group, size_t target);

  const plan::Plan &plan;
  std::optional<Term> skips;
  llvm::SmallVector<optim::RuleOp> rulesOf;   // per group
  std::vector<RuleTerms> expected;            // per group
  std::vector<std::vector<Version>> versions; // per segment
};

} // namespace stepc::verify

#endif
