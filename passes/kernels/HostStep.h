//===- HostStep.h - The step function --------------------------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_HOSTSTEP_H
#define STEPC_PASSES_KERNELS_HOSTSTEP_H

#include "passes/kernels/StageKernel.h"
#include "passes/kernels/TargetShape.h"
#include "passes/plan/PlanFromIR.h"

namespace stepc::kernels {

/// Writes `llvm.func @stepc_program_step` from the scheduled step: one call of the runtime per
/// operation. Fills the plan's launches on the way, in the order of the calls.
class HostStep {
public:
  HostStep(mlir::ModuleOp module, ProgramPlan &program, const TargetShape &shape);

  mlir::LogicalResult lower(mlir::Block &step);
  mlir::LLVM::LLVMFuncOp function() { return step; }

private:
  mlir::LogicalResult lowerOp(mlir::Operation *op);
  mlir::LogicalResult lowerStage(comm::StageOp op);
  mlir::LogicalResult lowerScalars(comm::ScalarsOp op);
  mlir::LogicalResult lowerCopy(comm::CopyOp op);
  mlir::LogicalResult lowerStart(comm::StartOp op);
  mlir::LogicalResult lowerWait(comm::WaitOp op);
  template <typename Op, typename Emit> mlir::LogicalResult lowerBatch(Op op, Emit emit);

  /// A number that grows with the parameters, read from a table: as constants in the code, such
  /// numbers would make its size depend on them.
  mlir::Value number(int64_t value);
  /// The table of these numbers.
  void writeNumbers();
  /// The base of a buffer, or the pointer table of shards.
  mlir::FailureOr<mlir::Value> pointerOf(mlir::Value value);
  /// The index of a state among its rule's, from the handle of its shards.
  mlir::FailureOr<int64_t> stateOf(comm::ShardsOp op);
  /// An array on the stack, shared by all calls: the runtime reads it before it returns.
  struct Scratch {
    mlir::LLVM::AllocaOp array;
    int64_t size = 0;
  };
  mlir::Value fill(Scratch &scratch, mlir::Type element, mlir::ValueRange values);
  /// Calls a runtime function with the context in front.
  mlir::Value call(llvm::StringRef name, mlir::Type result, mlir::ValueRange arguments);
  /// The same once per step: its result never changes in between.
  mlir::Value lookUp(llvm::StringRef name, mlir::ValueRange arguments, int64_t key);
  mlir::Value kernelAddress(mlir::LLVM::LLVMFuncOp kernel);
  void launch(plan::LaunchKind kind, mlir::LLVM::LLVMFuncOp kernel, mlir::ValueRange arguments,
              int64_t index, int64_t itemsPerBlock = 1);
  int64_t firstParameter(mlir::FlatSymbolRefAttr group);

  mlir::ModuleOp module;
  ProgramPlan &program;
  const TargetShape &shape;
  KernelCache cache;
  KernelBuilder b;
  mlir::LLVM::LLVMFuncOp step;
  mlir::Block *entry = nullptr, *done = nullptr;
  mlir::Value context;
  Scratch pointers, tables, sends, receives;
  mlir::IRMapping bases;
  llvm::SmallVector<int64_t> numbers;
  llvm::DenseMap<std::pair<mlir::Operation *, int64_t>, mlir::Value> lookUps;
};

} // namespace stepc::kernels

#endif
