//===- GpuProduct.h - What all kernels of products share --------*- C++ -*-===//
//
// A GPU block computes a square tile of the result. This class chooses the tile and stores its sums. A
// subclass for each accumulation adds them up.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_GPU_GPUPRODUCT_H
#define STEPC_PASSES_KERNELS_GPU_GPUPRODUCT_H

#include "passes/kernels/gpu/BlockBuilder.h"
#include "passes/kernels/products/ProductKernels.h"

namespace stepc::kernels {

class GpuProduct {
public:
  /// `tile`: elements along an edge of the tile. `width`: neighbours that a thread stores at once.
  GpuProduct(exec::ProductOp op, BlockBuilder &b, int64_t tile, int64_t width);
  virtual ~GpuProduct() = default;

  std::string name();
  int64_t blocksPerSlot() const;
  unsigned arguments() const {
    return unsigned(factorsArgument(bool(addend))) + (hasShift ? 2 : 1);
  }
  /// Emits the kernel at the builder's insertion point.
  void emit();

protected:
  /// `width` neighbours in a row of the tile that one thread has.
  struct Run {
    mlir::Value row, column; ///< of the result
    mlir::Value sums;        ///< a vector of f32
  };
  /// Emits the sums of the tile that begins at row0, column0. Returns those of this thread.
  virtual llvm::SmallVector<Run> accumulate() = 0;
  /// Stores `results` a second time, transposed. The caller has stored them as they are.
  virtual void mirror(llvm::ArrayRef<Run> runs, llvm::ArrayRef<mlir::Value> results) = 0;

  mlir::Value pointer(unsigned index) { return b.function.getArgument(index); }
  /// The address of the slot's block of an operand, whose blocks have `elements` elements.
  mlir::Value blockOf(unsigned argument, mlir::Type type, int64_t elements) {
    return b.element(pointer(argument), type, b.mul(b.slot, elements));
  }
  /// Stores `width` neighbours in one access, at a row and column of the result.
  void store(mlir::Value value, mlir::Value row, mlir::Value column) {
    b.store(value, at(outBase, out, row, column),
            unsigned(width * out.getIntOrFloatBitWidth() / 8));
  }

  exec::ProductOp op;
  BlockBuilder &b;
  int64_t m, n, k;
  mlir::Type out;
  bool isSymmetric, hasShift;
  mlir::Value row0, column0; ///< of the tile

private:
  std::pair<mlir::Value, mlir::Value> place();
  void finish(llvm::ArrayRef<Run> runs, mlir::Value tileRow, mlir::Value tileColumn);
  void whole(llvm::ArrayRef<Run> runs);
  void oneByOne(llvm::ArrayRef<Run> runs);
  mlir::Value result(mlir::Value sum, mlir::Value term);
  mlir::Value at(mlir::Value base, mlir::Type type, mlir::Value row, mlir::Value column) {
    return b.element(base, type, b.add(b.mul(row, n), column));
  }

  int64_t tile, width;
  mlir::Value alpha, beta, shift;
  mlir::Type addend;               ///< null without one
  mlir::Value outBase, addendBase; ///< of the slot
};

/// Builders of products, one for each accumulation.
std::unique_ptr<GpuProduct> chainProduct(exec::ProductOp op, BlockBuilder &b);
std::unique_ptr<GpuProduct> tensorCoreProduct(exec::ProductOp op, BlockBuilder &b);

} // namespace stepc::kernels

#endif
