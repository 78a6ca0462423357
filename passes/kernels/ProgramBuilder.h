//===- ProgramBuilder.h - The scheduled step as commands --------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_PROGRAMBUILDER_H
#define STEPC_PASSES_KERNELS_PROGRAMBUILDER_H

#include "dialects/exec/Exec.h"
#include "passes/kernels/StageKernel.h"
#include "passes/kernels/Target.h"
#include "passes/plan/ProductForms.h"
#include "passes/plan/StepScratch.h"

#include <set>

namespace stepc::kernels {

/// Writes `exec.program` from the scheduled step: a command per operation, its kernels beside it.
class ProgramBuilder {
public:
  ProgramBuilder(mlir::ModuleOp module, const ProgramPlan &program, const Target &target)
      : module(module), program(program), mostBlocks(program), target(target), cache(module),
        b(module.getContext()) {}

  mlir::LogicalResult lower(mlir::Block &step);

private:
  mlir::LogicalResult lower(mlir::Operation *op);
  mlir::LogicalResult lowerStage(comm::StageOp op);
  mlir::LogicalResult lowerScalars(comm::ScalarsOp op);
  mlir::LogicalResult lowerCopy(comm::CopyOp op);
  mlir::LogicalResult lowerSum(comm::SumOp op);
  mlir::LogicalResult lowerCollect(comm::CollectOp op);
  mlir::LogicalResult lowerSkip(comm::SkipOp op);
  /// The operand for a line, which a kernel finds by its rows alone.
  mlir::FailureOr<exec::LineAttr> lineOf(mlir::Operation *user, mlir::Value value);
  mlir::LogicalResult lowerStart(comm::StartOp op);
  mlir::LogicalResult lowerWait(comm::WaitOp op);
  mlir::LogicalResult lowerProduct(optim::ProductOp op);
  /// Says why a product does not run on warpgroups, if the target has them. Says so once for a group's equal
  /// products.
  void remarkKernel(optim::ProductOp op);
  mlir::LogicalResult lowerApply(optim::ApplyOp op);
  /// Sizes the scratch of the command that `op` became.
  mlir::LogicalResult sizeScratch(mlir::Operation *op, exec::BatchOpInterface made);

  /// The attribute by which a command names a value: a part of the workspace, or shards. Fails with an error
  /// if the value is neither.
  mlir::FailureOr<exec::OperandAttrInterface> operandOf(mlir::Operation *user, mlir::Value value);
  mlir::FailureOr<exec::WorkspaceAttr> workspaceOf(mlir::Operation *user, mlir::Value value);
  mlir::FailureOr<exec::BatchAttr> batchOf(mlir::Operation *user, mlir::Value value);
  exec::TableAttr tableOf(int64_t number) const {
    return exec::toAttribute(b.getContext(), program.plan, program.plan.tables[number]);
  }

  mlir::ModuleOp module;
  const ProgramPlan &program;
  MostBlocks mostBlocks;
  const Target &target;
  KernelCache cache;
  mlir::OpBuilder b; // inserts into the program
  mlir::IRMapping tokens;
  int64_t scratchBytes = 0;                                      // the largest need of a command
  std::set<std::pair<std::string, cost::BlockProduct>> remarked; // by group
};

} // namespace stepc::kernels

#endif
