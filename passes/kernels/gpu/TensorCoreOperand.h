//===- TensorCoreOperand.h - An operand on its way to tensor cores -*- C++ -*-===//
//
// The GPU block's memory has slabs of an operand, in the operand's type and order; a slab is some steps of k.
// The slabs are in a ring of buffers, the stages. Asynchronous copies fill it, and warps load matrices of 8
// × 8 from it.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_GPU_TENSORCOREOPERAND_H
#define STEPC_PASSES_KERNELS_GPU_TENSORCOREOPERAND_H

#include "passes/kernels/gpu/BlockBuilder.h"

namespace stepc::kernels {

/// Elements of one access of 16 bytes, and of an edge of the matrices that warps load.
inline constexpr int64_t kEight = 8;

class TensorCoreOperand {
public:
  struct Shape {
    mlir::Type type;
    int64_t lines, k;
    bool alongK; ///< neighbours are steps of one line, not lines of one step
  };
  struct Ring {
    int64_t tile; ///< lines
    int64_t slab; ///< steps of k
    int64_t stages;
    int64_t elements() const { return tile * slab; } ///< of a stage
  };
  /// Lines are rows of the product for the left operand, and its columns for the right one. A warp has
  /// `warpLines` lines of the tile, from `warpLine` on. `base`: the address of the slot's block. `line0`: the
  /// tile's first line.
  TensorCoreOperand(BlockBuilder &b, const Ring &ring, const Shape &shape, bool isLeft,
                    mlir::Value base, mlir::Value line0, mlir::Value warpLine, int64_t warpLines);

  /// Begins to copy the slab that begins at step `step0` to a stage of the ring. Elements past the ends
  /// become zeros.
  void copy(mlir::Value stage, mlir::Value step0);
  /// Loads what this lane holds of 16 steps, from `step` on, of the slab at a stage. That is four words per
  /// 16 lines of a left operand, and two per 8 lines of a right one.
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> fragments(mlir::Value stage, int64_t step);

private:
  mlir::Value both(mlir::Value a, mlir::Value c) { return !a ? c : !c ? a : b.both(a, c); }
  mlir::Value below(mlir::Value x, int64_t bound, int64_t step);
  mlir::Value swizzled(mlir::Value row, mlir::Value access);
  mlir::Value oneByOne(mlir::Value from, mlir::Value line, mlir::Value step);

  BlockBuilder &b;
  Ring ring;
  Shape shape;
  bool isLeft;
  mlir::Value base, line0, warpLine;
  int64_t warpLines;
  int64_t perRow;                      ///< accesses of a row of the slab
  mlir::Value isAligned;               ///< null: no access can be aligned
  mlir::Value memory;                  ///< all stages
  mlir::Value row, access;             ///< of the thread's first copy
  mlir::Value matrixRow, matrixAccess; ///< of the lane's row of its first matrices
};

} // namespace stepc::kernels

#endif
