//===- PlanFromIR.h - The plan of a module from its IR ----------*- C++ -*-===//
//
// Turns the symbols and the operations of a module into a plan::Plan. Levels comm to exec share this plan:
// the proof expands it for each rank, the code generator uses its numbers of tables, and the library contains
// it.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_PLAN_PLANFROMIR_H
#define STEPC_PASSES_PLAN_PLANFROMIR_H

#include "dialects/comm/Comm.h"
#include "runtime/plan/Plan.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace stepc {

/// A plan, and the indices in it that symbols and operations of the module have.
struct ProgramPlan {
  plan::Plan plan;

  /// Table indices of an operation: one for comm.stage, comm.copy, comm.sum, optim.product and optim.apply;
  /// one per pair of send and receive for comm.start.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<int64_t>> tables;

  /// Per comm.buffer with several results: the index of its pool.
  llvm::DenseMap<mlir::Operation *, int64_t> pools;

  /// Indices by symbol name.
  using Index = llvm::DenseMap<mlir::StringAttr, int64_t>;
  Index meshes, rules, routes, parameters, groups, segments;

  /// Index of the symbol that `name` refers to. Returns -1 if it is not in `index`.
  static int64_t find(const Index &index, mlir::FlatSymbolRefAttr name) {
    auto found = index.find(name.getAttr());
    return found == index.end() ? -1 : found->second;
  }

  /// The first table of an operation. Returns -1 if it has none.
  int64_t table(mlir::Operation *op) const {
    auto found = tables.find(op);
    return found == tables.end() ? -1 : found->second.front();
  }
};

/// Builds the plan of a module at level comm, scheduled or exec.
///
/// Parameters are ordered by their first group, then by this group's list. All other symbols keep the
/// module's order. Tables are numbered in program order, and equal tables share a number. The plan's commands
/// are only the starts, in their `order`. The code generator adds the other commands, `kernels`, `chip` and
/// `programHash`.
///
/// Emits an error at the operation if a symbol is missing, or if the orders of the starts are not 0, 1,
/// 2, … A parameter in no group is also an error, and so is a parameter without parts in two groups.
mlir::FailureOr<ProgramPlan> planFromModule(mlir::ModuleOp module);

/// The kind of value over which a stage over blocks iterates: the smallest kind to which all its batches
/// [?, R | 1, C | 1] broadcast. If an out is of a kind that no state can have, it is this kind. The stage's
/// BlockChunks table has the same kind.
plan::ValueKind iteratedKind(comm::StageOp stage, const plan::Group &group);

} // namespace stepc

#endif
