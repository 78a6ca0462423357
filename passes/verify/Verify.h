//===- Verify.h - The proof of level 5 --------------------------*- C++ -*-===//
//
// `exec-verify-program` proves the commands and kernels of level 5 for all ranks (VerifyProgram.cpp). The
// proof reads the printed program and the tables that the runtime expands from it. It neither calls the
// passes that decide or schedule nor reads their bookkeeping.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_VERIFY_H
#define STEPC_PASSES_VERIFY_VERIFY_H

#include "passes/plan/PlanFromIR.h"
#include "passes/verify/TableProof.h"

#include "mlir/IR/BuiltinOps.h"

namespace stepc::verify {

/// The size of a command's operand in the workspace. checkNeeds compares it with what ranks need there.
struct Need {
  /// What `index` counts: starts (Sent, Received), tables (From, To) or segments (Blocks).
  enum Unit { Sent, Received, From, To, Blocks } unit;
  int64_t bytes, elementBytes; ///< `elementBytes` is 1 if the unit is Sent or Received
  mlir::Operation *user;
  int64_t index;    ///< the start, table or segment
  int64_t elements; ///< per computed block (Blocks)
};

/// What checkCommands finds out about the commands: what is left to prove of tables and sizes.
struct StepFacts {
  ProgramUse program;
  std::vector<Need> needs;
  llvm::DenseMap<int64_t, mlir::Operation *> userOf; ///< the first command that uses a table
};

/// Whether the table fills slabs of a batch from shards. Elements after a shorter slab then stay as they are,
/// so they must be zero before.
inline bool leavesZeros(const plan::Plan &plan, const plan::Table &table) {
  return table.from.isOfShards() && table.to.isResting(plan::Distribution::Blocks) &&
         table.to.value == plan::ValueKind::Full &&
         endsInZeros(plan.groups[plan.segments[table.to.segment].group]);
}

/// Expands tables, starts and pools by the functions that the runtime calls when it opens a library.
Expand runtimeExpand(const plan::Plan &plan);

/// Lists the effects on memory that a command declares. The default is plan::effects; a test may pass another
/// function.
using EffectsOf = std::function<plan::Effects(const plan::Plan &, const plan::Command &)>;

/// Runs the commands of a module at level 5 on terms (Terms.h), which stand at bytes of the workspace. `plan`
/// must be the plan of the module.
mlir::FailureOr<StepFacts> checkCommands(const plan::Plan &plan, mlir::ModuleOp module,
                                         EffectsOf effectsOf = {});

/// A proof of at least this many tables, counted over all ranks, is shared among the context's threads.
inline constexpr size_t kManyTables = 1 << 15;

/// Proves a module at level 5; this is what `exec-verify-program` runs. Without `makeExpand`, tables come
/// from runtimeExpand. `many`: from how many tables on threads share the proof.
mlir::LogicalResult verifyProgram(mlir::ModuleOp module, MakeExpand makeExpand = {},
                                  size_t many = kManyTables);

} // namespace stepc::verify

#endif
