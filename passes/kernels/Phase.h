//===- Phase.h - A run of launches as a function ----------------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_PHASE_H
#define STEPC_PASSES_KERNELS_PHASE_H

#include "passes/kernels/StageKernel.h"
#include "passes/kernels/TargetShape.h"
#include "passes/plan/StepScratch.h"

namespace stepc::kernels {

/// Writes one phase, `llvm.func internal @phase(%context, %numbers)`: straight-line calls of the
/// runtime for the operations it is given, in their order. Whatever depends on the parameters or
/// the wave (offsets into the workspace, tables, orders) is read from `numbers`, so that equal
/// phases are one function. Appends the plan's launches on the way, in the order of the calls, and
/// makes its scratch large enough for them.
class Phase {
public:
  /// Begins a function at the module's end. KernelCache::enter makes its name unique if it is kept.
  Phase(mlir::ModuleOp module, ProgramPlan &program, MostBlocks &mostBlocks,
        const TargetShape &shape, KernelCache &cache, llvm::StringRef name);

  mlir::LogicalResult lower(mlir::Operation *op);

  mlir::LLVM::LLVMFuncOp function() { return phase; }
  llvm::ArrayRef<int64_t> numbers() const { return list; }

private:
  mlir::LogicalResult lowerStage(comm::StageOp op);
  mlir::LogicalResult lowerScalars(comm::ScalarsOp op);
  mlir::LogicalResult lowerCopy(comm::CopyOp op);
  mlir::LogicalResult lowerStart(comm::StartOp op);
  mlir::LogicalResult lowerWait(comm::WaitOp op);
  template <typename Op, typename Emit> mlir::LogicalResult lowerBatch(Op op, Emit emit);
  mlir::Value scratchBase();

  /// Appends a number; returns what loads it.
  mlir::Value number(int64_t value);
  /// The base of a buffer, or the pointer table of shards.
  mlir::FailureOr<mlir::Value> pointerOf(mlir::Value value);
  /// The index of a state among its rule's, from the handle of its shards.
  mlir::FailureOr<int64_t> stateOf(comm::ShardsOp op);
  /// A pointer of the context that never changes within a step: asked for once per `key`.
  mlir::Value lookUp(llvm::StringRef name, int64_t key = 0,
                     llvm::function_ref<mlir::Value()> argument = {});
  /// Calls a runtime function with the context in front.
  mlir::Value call(llvm::StringRef name, mlir::Type result, mlir::ValueRange arguments);
  void launch(plan::LaunchKind kind, mlir::LLVM::LLVMFuncOp kernel, mlir::ValueRange arguments,
              int64_t index, int64_t itemsPerBlock = 1);
  int64_t firstParameter(mlir::FlatSymbolRefAttr group);

  mlir::ModuleOp module;
  ProgramPlan &program;
  MostBlocks &mostBlocks;
  const TargetShape &shape;
  KernelCache &cache;
  KernelBuilder b;
  mlir::LLVM::LLVMFuncOp phase;
  mlir::Value context, numberList, scratch;
  /// The arguments of a launch, shared by all: the runtime reads them before it returns.
  mlir::LLVM::AllocaOp arguments;
  int64_t argumentCount = 0;
  mlir::IRMapping bases;
  llvm::SmallVector<int64_t> list;
  llvm::DenseMap<std::pair<mlir::Operation *, int64_t>, mlir::Value> lookUps;
};

} // namespace stepc::kernels

#endif
