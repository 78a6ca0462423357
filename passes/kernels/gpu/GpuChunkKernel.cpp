//===- GpuChunkKernel.cpp - A chunk per block ------------------------------===//

#include "passes/kernels/ChunkKernel.h"
#include "passes/kernels/gpu/GpuKernels.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

/// Elements that a thread computes at once. If they have 16 bits, they move in one wide access, f32 in two.
constexpr int64_t kStageWidth = 8;

class GpuEmitter : public ChunkEmitter {
public:
  using ChunkEmitter::ChunkEmitter;

  void emit(gpu::GPUFuncOp function) {
    unsigned next = 3;
    bind(function.getArgument(0), function.getArgument(1),
         [&] { return function.getArgument(next++); });
    chunkAt(blockIndex(b));
    auto all = [&] { emitItem(); };
    if (kernel.overShards)
      ifActive(b, function.getArgument(2), field(offsetof(stepc_chunk, parameter)), all);
    else
      all();
  }

private:
  /// Whether every operand with an element per column is aligned for vectors in all rows. If nothing is
  /// staged, staged operands do not count.
  Value isAligned(Value rows, bool storeStaged) {
    SmallVector<Value> bases, strides;
    for (const auto *list : {&kernel.reads, &kernel.writes})
      for (const ChunkOperand &operand : *list) {
        bool leftOut = list == &kernel.writes && !storeStaged && kernel.mayBeAbsent(operand);
        if (!operand.alongColumns() || leftOut)
          continue;
        bases.push_back(operand.base);
        if (operand.stride)
          strides.push_back(
              b.mul(operand.stride, b.constant(operand.element.getIntOrFloatBitWidth() / 8)));
      }
    return areAligned(b, rows, bases, strides);
  }

  void emitRows(Value rows, Value cols, bool storeStaged) override {
    auto beginRow = [&](Value row) {
      for (ChunkOperand &operand : kernel.reads)
        if (operand.place == ChunkOperand::Place::Row)
          operand.single = loadStored(b, operand.element, at(operand, row, {}));
    };
    shareOut(b, rows, cols, kStageWidth, isAligned(rows, storeStaged), beginRow,
             [&](Value row, Value column, bool isWide) {
               emitElements(row, column, isWide ? kStageWidth : 0, storeStaged,
                            isWide ? kWideBytes : 0);
             });
  }
};

} // namespace

FailureOr<gpu::GPUFuncOp> addGpuChunkKernel(gpu::GPUModuleOp code, func::FuncOp function,
                                            ArrayRef<exec::DispatchChunksOp> dispatches) {
  FailureOr<ChunkKernel> kernel = ChunkKernel::read(function, dispatches);
  if (failed(kernel))
    return failure();
  KernelBuilder b(function.getContext(), function.getLoc(), kGlobal);
  // Arguments: the rows, the workspace, the records, and a list of shards for each operand that is shards.
  SmallVector<Type> arguments(3, b.pointer);
  for (size_t i = 0; i < kernel->each; ++i)
    if (isa<exec::ShardsAttr>(kernel->operand(i)))
      arguments.push_back(b.pointer);
  gpu::GPUFuncOp made = beginGpuKernel(code, function.getSymName(), arguments, b);
  GpuEmitter(*kernel, b).emit(made);
  return made;
}

} // namespace stepc::kernels
