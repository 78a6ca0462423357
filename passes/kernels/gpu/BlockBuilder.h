//===- BlockBuilder.h - Threads that work together --------------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_GPU_BLOCKBUILDER_H
#define STEPC_PASSES_KERNELS_GPU_BLOCKBUILDER_H

#include "passes/kernels/gpu/GpuKernels.h"
#include "passes/kernels/products/VectorBuilder.h"

namespace stepc::kernels {

/// The address space of a block's own memory, and the threads of a warp.
inline constexpr unsigned kWorkgroup = 3;
inline constexpr int64_t kWarp = 32;

/// What kernels of products and reductions are written in: of each slot some blocks of kThreads threads,
/// which exchange values inside a warp, and by memory of the block behind a barrier.
class BlockBuilder : public VectorBuilder {
public:
  BlockBuilder(mlir::MLIRContext *context, mlir::Location loc)
      : VectorBuilder(context, loc, kGlobal) {}

  /// Begins a kernel of `buffers` pointers; the builder stands before its return.
  void begin(mlir::gpu::GPUModuleOp code, llvm::StringRef name, unsigned buffers,
             int64_t blocksPerSlot) {
    function = beginGpuKernel(code, name, llvm::SmallVector<mlir::Type>(buffers, pointer), *this);
    Value block = blockIndex(*this);
    thread = threadIndex(*this);
    slot = quotient(block, blocksPerSlot);
    item = blocksPerSlot == 1 ? constant(0) : remainder(block, blocksPerSlot);
  }

  /// All threads of the block come here, or none.
  void barrier() { mlir::gpu::BarrierOp::create(*this, loc); }
  /// x of the lane whose number differs in these bits; all lanes of a warp come here, or none.
  Value exchange(Value x, int32_t lanes) {
    return mlir::gpu::ShuffleOp::create(*this, loc, x, lanes, int32_t(kWarp),
                                        mlir::gpu::ShuffleMode::XOR)
        .getShuffleResult();
  }
  /// a < bound
  Value below(Value a, Value bound) {
    return mlir::arith::CmpIOp::create(*this, loc, mlir::arith::CmpIPredicate::slt, a, bound);
  }
  Value below(Value a, int64_t bound) { return below(a, constant(bound)); }
  /// Whether an address is a multiple of so many bytes, a power of two.
  Value isMultiple(Value address, int64_t bytes);
  /// Memory of the block, aligned for accesses of 16 bytes.
  Value memory(mlir::Type element, int64_t elements);

  mlir::gpu::GPUFuncOp function;
  Value slot;   ///< of the block
  Value item;   ///< of the slot's blocks, which one
  Value thread; ///< in the block
};

} // namespace stepc::kernels

#endif
