//===- BlockBuilder.h - Threads that work together --------------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_GPU_BLOCKBUILDER_H
#define STEPC_PASSES_KERNELS_GPU_BLOCKBUILDER_H

#include "passes/kernels/gpu/GpuKernels.h"
#include "passes/kernels/products/VectorBuilder.h"

namespace stepc::kernels {

/// The address space of a GPU block's shared memory, and the number of threads in a warp.
inline constexpr unsigned kWorkgroup = 3;
inline constexpr int64_t kWarp = 32;

/// Builds kernels of products and functions of blocks. Each slot has some GPU blocks of kThreads threads.
/// Threads exchange values inside a warp, or by shared memory after a barrier. In this folder "block" mostly
/// means a GPU block, and "the block's memory" its shared memory.
class BlockBuilder : public VectorBuilder {
public:
  BlockBuilder(mlir::MLIRContext *context, mlir::Location loc)
      : VectorBuilder(context, loc, kGlobal) {}

  /// Begins a kernel of `arguments` arguments, each a pointer or 8 bytes in the place of one. The builder
  /// then stands before its return.
  void begin(mlir::gpu::GPUModuleOp code, llvm::StringRef name, unsigned arguments,
             int64_t blocksPerSlot) {
    function = beginGpuKernel(code, name, llvm::SmallVector<mlir::Type>(arguments, pointer), *this);
    Value block = blockIndex(*this);
    thread = threadIndex(*this);
    slot = quotient(block, blocksPerSlot);
    item = blocksPerSlot == 1 ? constant(0) : remainder(block, blocksPerSlot);
  }

  /// All threads of the GPU block must come here, or none.
  void barrier() { mlir::gpu::BarrierOp::create(*this, loc); }
  /// Returns x of the lane whose number differs from this lane's in the bits `lanes`. All lanes of a warp
  /// must come here, or none.
  Value exchange(Value x, int32_t lanes) {
    return mlir::gpu::ShuffleOp::create(*this, loc, x, lanes, int32_t(kWarp),
                                        mlir::gpu::ShuffleMode::XOR)
        .getShuffleResult();
  }
  /// Exchanges a float or an integer of at most 32 bits between lanes in the same way.
  Value exchangeBits(Value x, int32_t lanes);

  //===--- what tensor cores take ---===//
  /// Begins to copy 16 bytes to the GPU block's memory. If `isThere` is given and false, it writes zeros.
  void copyAsync(Value to, Value from, Value isThere);
  /// Ends the thread's group of copies.
  void commitGroup();
  /// Waits until at most `groups` of the thread's last groups are under way.
  void waitGroup(int64_t groups);
  /// Loads `count` (2 or 4) matrices of 8 × 8 16-bit elements from the GPU block's memory. Each lane gets
  /// two neighbours of a row, or of a column, per matrix. Lane i passes the address of row i. All lanes of a
  /// warp must come here, or none.
  llvm::SmallVector<Value> loadMatrices(Value row, int64_t count, bool transposed);
  /// Computes c + a · b by a warp: 16 × 8 numbers over 16 steps of k. Each lane passes words of a and b and
  /// numbers of c, as mma.sync.m16n8k16 defines them.
  llvm::SmallVector<Value> multiplyMatrices(mlir::Type type, mlir::ValueRange left,
                                            mlir::ValueRange right, mlir::ValueRange sums);

  /// a < bound
  Value below(Value a, Value bound) {
    return mlir::arith::CmpIOp::create(*this, loc, mlir::arith::CmpIPredicate::slt, a, bound);
  }
  Value below(Value a, int64_t bound) { return below(a, constant(bound)); }
  /// Whether an address is a multiple of `bytes`, a power of two.
  Value isMultiple(Value address, int64_t bytes);
  /// Allocates shared memory of the GPU block, aligned for accesses of 16 bytes.
  Value memory(mlir::Type element, int64_t elements);

  mlir::gpu::GPUFuncOp function;
  Value slot;   ///< the slot for which the GPU block computes
  Value item;   ///< the number of the GPU block within its slot
  Value thread; ///< the number of the thread in the GPU block

private:
  llvm::SmallVector<Value> fields(Value record);
};

} // namespace stepc::kernels

#endif
