//===- Verify.h - The proof of level 5 --------------------------*- C++ -*-===//
//
// `exec-verify-program` proves the commands and kernels of level 5 for all ranks (VerifyProgram.cpp).
// Nothing here calls the passes that decide or schedule, or reads their bookkeeping: the printed program
// and the runtime's expansion are all there is.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_VERIFY_H
#define STEPC_PASSES_VERIFY_VERIFY_H

#include "passes/plan/PlanFromIR.h"
#include "passes/verify/TableProof.h"

#include "mlir/IR/BuiltinOps.h"

namespace stepc::verify {

/// A part of the workspace that a command uses, and how much of it.
struct Need {
  /// By start, by table, or by computed block.
  enum Unit { Sent, Received, From, To, Blocks } unit;
  int64_t bytes, elementBytes; ///< bytes alone of what travels
  mlir::Operation *user;
  int64_t index;    ///< the start (Sent, Received), table (From, To) or segment (Blocks)
  int64_t elements; ///< per computed block
};

/// What the commands do, as far as it was shown to be in order.
struct StepFacts {
  ProgramUse program;
  std::vector<Need> needs;
  llvm::DenseMap<int64_t, mlir::Operation *> userOf; ///< the first command that uses a table
};

/// Whether what comes from shards leaves of a batch what is after a shorter slab, which has to be zero.
inline bool leavesZeros(const plan::Plan &plan, const plan::Table &table) {
  return table.from.isOfShards() && table.to.isResting(plan::Distribution::Blocks) &&
         table.to.value == plan::ValueKind::Full &&
         endsInZeros(plan.groups[plan.segments[table.to.segment].group]);
}

/// What the runtime does when a library is opened.
Expand runtimeExpand(const plan::Plan &plan);

/// What a command says that it does to memory: plan::effects, unless a test says otherwise.
using EffectsOf = std::function<plan::Effects(const plan::Plan &, const plan::Command &)>;

/// Runs the commands of a module at level 5, whose plan is given, on terms over the bytes of the workspace.
mlir::FailureOr<StepFacts> checkCommands(const plan::Plan &plan, mlir::ModuleOp module,
                                         EffectsOf effectsOf = {});

/// A proof of so many tables, those of all ranks together, is shared among the context's threads.
inline constexpr size_t kManyTables = 1 << 15;

/// What `exec-verify-program` runs. Without `makeExpand`, tables are made by the runtime's function.
mlir::LogicalResult verifyProgram(mlir::ModuleOp module, MakeExpand makeExpand = {},
                                  size_t many = kManyTables);

} // namespace stepc::verify

#endif
