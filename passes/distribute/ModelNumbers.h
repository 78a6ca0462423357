//===- ModelNumbers.h - What a step computes before its rules ---*- C++ -*-===//
#ifndef STEPC_PASSES_DISTRIBUTE_MODELNUMBERS_H
#define STEPC_PASSES_DISTRIBUTE_MODELNUMBERS_H

#include "passes/distribute/GroupChain.h"

#include <memory>

namespace stepc::distribute {

/// Handles that hold for all parameters of a step.
struct StepHandles {
  mlir::Value hyperparameters, steps, active;
};

/// Values of the step that have numbers of the model, and where each number is among the numbers of all of
/// them.
struct KnownNumbers {
  llvm::SmallVector<mlir::Value> values; ///< tables of scalars, and lines of one value
  llvm::DenseMap<int64_t, unsigned> indices;
  mlir::Value active; ///< the flags of what the model leaves in the step
  void add(mlir::Value value, llvm::ArrayRef<int64_t> numbers);
};

/// A group, what builds its operations, and its segments by wave.
struct ChainOfGroup {
  optim::GroupOp group;
  optim::RuleOp rule;
  GroupChain *chain;
  ScalarColumns *columns;
  llvm::SmallVector<mlir::FlatSymbolRefAttr> segments; ///< null: it has no blocks in that wave
};

/// Creates the comm.scalars of a group with these columns, and returns the table. `known`: the numbers of the
/// model that columns may read.
mlir::Value createScalars(mlir::OpBuilder &builder, const StepHandles &handles,
                          optim::GroupOp group, optim::RuleOp rule, const ScalarColumns &columns,
                          const KnownNumbers &known);

/// Builds all that the model's group does: it makes all numbers of the model known to every rank, changes the
/// model's states, and skips the step if the model says so. Marks these operations (comm::kOfModelAttr). The
/// builder must stand at the end of the step.
KnownNumbers buildModelNumbers(mlir::OpBuilder &builder, const StepHandles &handles,
                               optim::ModelOp model, llvm::ArrayRef<ChainOfGroup> chains);

} // namespace stepc::distribute

#endif
