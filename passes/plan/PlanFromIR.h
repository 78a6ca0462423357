//===- PlanFromIR.h - The plan that a module's symbols spell out -*- C++
//-*-===//
//
// The one place that turns IR into a plan::Plan. Levels comm to exec share
// it: the verifier expands this plan, the code generator refers to its table
// numbers, and the library carries it.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_PLAN_PLANFROMIR_H
#define STEPC_PASSES_PLAN_PLANFROMIR_H

#include "dialects/comm/Comm.h"
#include "runtime/plan/Plan.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace stepc {

/// A plan, and which of its parts each symbol and operation stands for.
struct ProgramPlan {
  plan::Plan plan;

  /// Table indices of an operation: one for comm.stage, comm.copy,
  /// optim.product and optim.apply, one per send/receive pair for
  /// comm.start.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<int64_t>> tables;

  /// The pool of the plan that a comm.buffer of several results is.
  llvm::DenseMap<mlir::Operation *, int64_t> pools;

  /// Indices by symbol name.
  using Index = llvm::DenseMap<mlir::StringAttr, int64_t>;
  Index meshes, rules, routes, parameters, groups, segments;

  /// Index of the symbol that `name` refers to, or -1.
  static int64_t find(const Index &index, mlir::FlatSymbolRefAttr name) {
    auto found = index.find(name.getAttr());
    return found == index.end() ? -1 : found->second;
  }

  /// The one table of an operation.
  int64_t table(mlir::Operation *op) const {
    auto found = tables.find(op);
    return found == tables.end() ? -1 : found->second.front();
  }
};

/// Builds the plan of a module at level comm, scheduled or exec.
///
/// Parameters are ordered by group, then by the group's list, so that a group's
/// parameters are contiguous; all other symbols keep the module's order. Tables
/// are numbered in program order and equal ones are shared. Of the
/// commands only the starts are there, in their `order`; the others, `kernels`,
/// `chip` and `programHash` are left to the code generator.
///
/// Fails, with an error at the operation, when a symbol is missing, a parameter
/// stands in no group or in two, or the orders of the exchanges are not 0, 1,
/// 2, …
mlir::FailureOr<ProgramPlan> planFromModule(mlir::ModuleOp module);

/// Which value kind a stage over blocks iterates: the smallest that all of its
/// batches
/// [?, R | 1, C | 1] broadcast to. Its BlockChunks table has this kind.
plan::ValueKind iteratedKind(comm::StageOp stage, const plan::Group &group);

} // namespace stepc

#endif
