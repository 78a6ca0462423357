//===- Verify.h - The parts of the plan verifier ----------------*- C++ -*-===//
//
// What VerifyPlan.cpp runs, in this order. Each part emits its own errors and
// relies on what the parts before it have shown. Nothing here calls the passes
// that decide or schedule, or reads their bookkeeping: the printed program and
// the runtime's expansion are all there is.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_VERIFY_H
#define STEPC_PASSES_VERIFY_VERIFY_H

#include "passes/plan/PlanFromIR.h"
#include "passes/verify/TableProof.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace stepc::verify {

/// The function @step of a scheduled module after the checks of its form: nothing allocates,
/// copies memory or is a tensor; collectives stand in the function's one block, in one total order
/// from 0 on, each with one wait.
mlir::FailureOr<mlir::func::FuncOp> checkForm(mlir::ModuleOp module);

/// A part of the workspace that an operation uses, and how much of it.
struct Need {
  /// By start, by table, by computed block, or fixed.
  enum Unit { Sent, Received, From, To, Blocks, Elements } unit;
  mlir::Operation *holder;     ///< says how many bytes it has
  int64_t bytes, elementBytes; ///< bytes alone of what travels
  mlir::Operation *user;
  int64_t index;    ///< the start (Sent, Received), table (From, To) or segment (Blocks)
  int64_t elements; ///< per computed block, or fixed
};

/// From when to when (operations of the step, in order) a value lives in its buffer.
struct Life {
  mlir::Value value;
  int64_t begin, end;
  mlir::Operation *writer, *lastUser;
  comm::BufferOp buffer() const { return value.getDefiningOp<comm::BufferOp>(); }
};

/// What the step does, as far as it was shown to be in order.
struct StepFacts {
  ProgramUse program;
  std::vector<Need> needs;
  std::vector<Life> lives;
  llvm::DenseMap<int64_t, mlir::Operation *> userOf; ///< the first operation that uses a table
};

/// Whether what comes from shards leaves of a batch what is behind a shorter slab, which has to be zero.
inline bool leavesZeros(const plan::Plan &plan, const plan::Table &table) {
  return table.from.isOfShards() && table.to.isResting(plan::Distribution::Blocks) &&
         table.to.value == plan::ValueKind::Full &&
         endsInZeros(plan.groups[plan.segments[table.to.segment].group]);
}

/// Shows that each read finds the value that it wants, fully written and arrived, and that
/// nothing in flight is touched.
mlir::FailureOr<StepFacts> checkFlow(const ProgramPlan &program, mlir::func::FuncOp step);

/// Shows that the segments of a group hold each block once, that the operations of each kind handle
/// every block, equally often, stages over shards once, and that every parameter and state is
/// written once.
mlir::LogicalResult checkCoverage(const ProgramPlan &program, mlir::ModuleOp module,
                                  mlir::func::FuncOp step);

/// Shows that the shards of every block end as what the group's rule makes of what they held.
mlir::LogicalResult checkValues(const ProgramPlan &program, mlir::ModuleOp module,
                                mlir::func::FuncOp step);

/// Shows that buffers are large enough on every rank, stand inside of the workspace, apart while
/// they live, and that the workspace obeys its limit.
mlir::LogicalResult checkWorkspace(const ProgramPlan &program, mlir::ModuleOp module,
                                   mlir::func::FuncOp step, const StepFacts &facts,
                                   TableProof &proof);

/// Shows that the members of every pool are apart on every rank, and inside of it. `poolOps`: whom to
/// blame, per pool of the plan.
mlir::LogicalResult checkPools(const plan::Plan &plan, llvm::ArrayRef<mlir::Operation *> poolOps,
                               TableProof &proof);

/// Shows that every need is met on the rank that reaches furthest.
mlir::LogicalResult checkNeeds(llvm::ArrayRef<Need> needs, TableProof &proof);

/// Shows that each block of a group stands in at most one segment.
mlir::LogicalResult checkSegments(const plan::Plan &plan, mlir::ModuleOp module);

/// What the runtime does when a library is opened.
Expand runtimeExpand(const plan::Plan &plan);
/// Proves what a program does with its tables, and blames the operations that first use them.
/// Where all ranks together have so many, the context's threads share the work.
inline constexpr size_t kManyTables = 1 << 15;
mlir::LogicalResult proveTables(TableProof &proof, const StepFacts &facts,
                                mlir::MLIRContext *context, size_t many = kManyTables);

/// All of it: what `comm-verify-plan` runs, of tables whose rows have so many elements at most. Without `makeExpand`,
/// the runtime's function.
mlir::LogicalResult verifyPlan(mlir::ModuleOp module, MakeExpand makeExpand = {},
                               int64_t rowElements = plan::kChunkElements,
                               size_t many = kManyTables);

/// What `exec-verify-program` runs.
mlir::LogicalResult verifyProgram(mlir::ModuleOp module, int64_t provenRowElements = 0);

} // namespace stepc::verify

#endif
