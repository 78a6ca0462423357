//===- ProductOperand.h - An operand in a block's memory --------*- C++ -*-===//
//
// A GPU block computes a square tile of a product. Its memory has slabs of both operands as f32; a slab is
// some steps of k. For each step, the lines of the tile are neighbours.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_GPU_PRODUCTOPERAND_H
#define STEPC_PASSES_KERNELS_GPU_PRODUCTOPERAND_H

#include "passes/kernels/gpu/GpuProduct.h"

namespace stepc::kernels {

/// Threads along an edge of a tile.
inline constexpr int64_t kEdge = 16;
static_assert(kEdge * kEdge == kThreads);

/// How a product's shape is cut for GPU blocks. The cut decides speed alone.
struct Cut {
  int64_t tile;   ///< elements along an edge
  int64_t slab;   ///< steps of k of a slab
  int64_t group;  ///< elements of a thread that are neighbours, along each axis of the tile
  int64_t groups; ///< groups of a thread along each axis, kEdge groups apart

  Cut(const ProductTile &cut) : tile(cut.rows), slab(cut.steps) {
    group = std::min<int64_t>(4, tile / kEdge);
    groups = tile / kEdge / group;
  }
  int64_t perThread() const { return group * groups; }
  /// How far element i of a thread is in the tile from the thread's first element.
  int64_t inTile(int64_t i) const { return i / group * kEdge * group + i % group; }
  /// Elements from one step of a slab to the next; the extra ones keep threads that store a line's
  /// steps out of each other's banks.
  int64_t pitch() const { return tile + 4; }
  int64_t slabElements() const { return slab * pitch(); }
};

/// `lines` lines of the product (rows of the left operand, columns of the right) by k steps.
class ProductOperand {
public:
  struct Shape {
    mlir::Type type;
    int64_t lines, k;
    bool alongK;   ///< neighbours are steps of one line, not lines of one step
    float neutral; ///< the value of steps past the last one
  };
  /// `base`: the address of the slot's block. `line0`: the tile's first line.
  ProductOperand(BlockBuilder &b, const Cut &cut, const Shape &shape, mlir::Value base,
                 mlir::Value line0);

  /// Loads this thread's share of the slab that begins at step `step0`, in the operand's type.
  llvm::SmallVector<mlir::Value> fetch(mlir::Value step0);
  /// Stores what `fetch` returned to the slab at `offset` of the memory, as f32.
  void keep(mlir::Value offset, llvm::ArrayRef<mlir::Value> fetched);
  /// What a thread needs of one step of k: a vector for each group of neighbouring lines (Cut::groups). The
  /// step begins at `at` in the block's memory; `line` is the thread's first line in the tile.
  llvm::SmallVector<mlir::Value> groups(mlir::Value at, mlir::Value line);

private:
  mlir::Value fetch(mlir::Value line, mlir::Value step);
  mlir::Value both(mlir::Value a, mlir::Value c) { return !a ? c : !c ? a : b.both(a, c); }

  BlockBuilder &b;
  const Cut &cut;
  Shape shape;
  mlir::Value base, line0;
  int64_t width;          ///< elements of an access
  int64_t across;         ///< threads side by side along a run of neighbours
  int64_t count;          ///< accesses of a thread for a slab
  mlir::Value inRun, run; ///< of the thread's first access
  mlir::Value isAligned;  ///< null: no access can be aligned
  mlir::Value memory;     ///< two slabs
};

} // namespace stepc::kernels

#endif
