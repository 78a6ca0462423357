//===- PlanAttributes.h - Tables, exchanges, launches as text ---*- C++ -*-===//
//
// From level 5 on the operations that needed tables are gone, so the step function
// carries what the plan says of them:
//
//   stepc.tables = [{kind = "shard_chunks", segment = @g0, layout = "send", …}, …]
//   stepc.exchanges = [array<i64: 1, 2>, …]       the tables of each, by number
//   stepc.launches = [{kind = "chunks", index = 0 : i64}, …]
//   stepc.scratch_bytes = 4096 : i64              behind the arena
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_PLANATTRIBUTES_H
#define STEPC_PASSES_KERNELS_PLANATTRIBUTES_H

#include "passes/plan/PlanFromIR.h"

namespace stepc::kernels {

/// The symbol of the step function from level 5 on (runtime/include/stepc/kernel_abi.h).
inline constexpr llvm::StringLiteral kStepFunction = "stepc_program_step";
/// What the step reads: how many rows, then per row a phase, how many numbers it has, and these.
inline constexpr llvm::StringLiteral kNumbers = "stepc_program_numbers";
/// The functions of the distinct phases.
inline constexpr llvm::StringLiteral kPhases = "stepc_program_phases";

/// Writes the tables, exchanges, launches and scratch of `plan` on the step function.
void attachProgram(mlir::Operation *step, const plan::Plan &plan);

/// The whole plan of a module at level kernels: its symbols, and what attachProgram wrote.
mlir::FailureOr<plan::Plan> planOfKernels(mlir::ModuleOp module);

} // namespace stepc::kernels

#endif
