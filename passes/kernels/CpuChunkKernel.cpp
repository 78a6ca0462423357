//===- CpuChunkKernel.cpp - Loops over the chunks of a kernel --------------===//
//
// The loops walk the rows of the chunks. Along a row they take 16 elements at a time and
// the rest one by one, through clones of one region.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/ChunkKernel.h"
#include "passes/kernels/CpuKernels.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

/// Elements per vector: one AVX-512 register of f32, two of AVX2, four of SSE and Neon. Wider ones
/// gain nothing, as stages wait for memory.
constexpr int64_t kWidth = 16;

class CpuEmitter : public ChunkEmitter {
public:
  using ChunkEmitter::ChunkEmitter;

  void emit(LLVM::LLVMFuncOp function) {
    Value list = function.getArgument(0);
    int64_t next = 3; // behind the records
    bind(b.argument(list, 0), b.argument(list, 1), [&] { return b.argument(list, next++); });
    b.loop(function.getArgument(1), function.getArgument(2), 1, [&](Value item) {
      chunkAt(item);
      emitItem();
    });
  }

private:
  void emitRows(Value rows, Value cols, bool storeStaged) override {
    Value zero = b.constant(0);
    Value whole = arith::AndIOp::create(b, b.loc, cols, b.constant(-kWidth));
    b.loop(zero, rows, 1, [&](Value row) {
      for (ChunkOperand &operand : kernel.reads)
        if (operand.place == ChunkOperand::Place::Row)
          operand.single = loadElements(b, operand.element, at(operand, row, {}), 0);
      b.loop(zero, whole, kWidth,
             [&](Value column) { emitElements(row, column, kWidth, storeStaged); });
      b.loop(whole, cols, 1, [&](Value column) { emitElements(row, column, 0, storeStaged); });
    });
  }
};

} // namespace

FailureOr<LLVM::LLVMFuncOp> lowerChunkKernel(func::FuncOp function,
                                             ArrayRef<exec::DispatchChunksOp> dispatches) {
  FailureOr<ChunkKernel> kernel = ChunkKernel::read(function, dispatches);
  if (failed(kernel))
    return failure();
  KernelBuilder b(function.getContext(), function.getLoc());
  LLVM::LLVMFuncOp made =
      beginKernel(function->getParentOfType<ModuleOp>(), function.getSymName(), b);
  CpuEmitter(*kernel, b).emit(made);
  kernel->addBlockRows(dispatches);
  return made;
}

} // namespace stepc::kernels
