//===- GpuProduct.h - What all kernels of products share --------*- C++ -*-===//
//
// A block makes a square tile of the result. Which one, and what becomes of its sums, is here; how they
// are added up is each accumulation's own.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_GPU_GPUPRODUCT_H
#define STEPC_PASSES_KERNELS_GPU_GPUPRODUCT_H

#include "passes/kernels/gpu/BlockBuilder.h"
#include "passes/kernels/products/ProductKernels.h"

namespace stepc::kernels {

class GpuProduct {
public:
  /// `tile`: elements along an edge, `width`: of those that a thread stores at once.
  GpuProduct(exec::ProductOp op, BlockBuilder &b, int64_t tile, int64_t width);
  virtual ~GpuProduct() = default;

  std::string name();
  int64_t blocksPerSlot() const;
  unsigned arguments() const { return unsigned(factorsArgument(bool(addend))) + 1; }
  /// The kernel, where the builder stands.
  void emit();

protected:
  /// `width` neighbours in a row of the tile that one thread has.
  struct Run {
    mlir::Value row, column; ///< of the result
    mlir::Value sums;        ///< a vector of f32
  };
  /// The sums of the tile that begins at row0, column0.
  virtual llvm::SmallVector<Run> accumulate() = 0;
  /// Stores what `store` has stored a second time, transposed.
  virtual void mirror(llvm::ArrayRef<Run> runs, llvm::ArrayRef<mlir::Value> results) = 0;

  mlir::Value pointer(unsigned index) { return b.function.getArgument(index); }
  /// Where an operand's block begins, of so many elements.
  mlir::Value blockOf(unsigned argument, mlir::Type type, int64_t elements) {
    return b.element(pointer(argument), type, b.mul(b.slot, elements));
  }
  /// Stores a run at once: of the result's row and column.
  void store(mlir::Value value, mlir::Value row, mlir::Value column) {
    b.store(value, at(outBase, out, row, column),
            unsigned(width * out.getIntOrFloatBitWidth() / 8));
  }

  exec::ProductOp op;
  BlockBuilder &b;
  int64_t m, n, k;
  mlir::Type out;
  bool isSymmetric;
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
  mlir::Value alpha, beta;
  mlir::Type addend;               ///< null without one
  mlir::Value outBase, addendBase; ///< of the slot
};

/// Builders of products, one for each accumulation.
std::unique_ptr<GpuProduct> chainProduct(exec::ProductOp op, BlockBuilder &b);
std::unique_ptr<GpuProduct> tensorCoreProduct(exec::ProductOp op, BlockBuilder &b);

} // namespace stepc::kernels

#endif
