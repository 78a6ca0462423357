//===- Tiling.h - How a product is cut for a chip ---------------*- C++ -*-===//
//
// Both operands are packed into panels: rowPanels panels of the left one, each k × rowStride with tileRows
// of them used, and colPanels panels of the right one, each k × tileCols. A tile is tileRows × tileCols of
// the result, added up in registers over the whole k; an item of a launch is itemRows × itemCols tiles. The
// cut decides speed alone, because an element is one chain of additions over k wherever it lands.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_PRODUCTS_TILING_H
#define STEPC_PASSES_KERNELS_PRODUCTS_TILING_H

#include "passes/kernels/TargetShape.h"

#include <string>

namespace stepc::kernels {

struct Tiling {
  Tiling(int64_t m, int64_t n, int64_t k, bool fused, const TargetShape &target);

  int64_t m, n, k;
  bool fused;    ///< multiply-adds are rounded once
  int64_t lanes; ///< f32 numbers in a register
  int64_t tileRows, tileCols;
  int64_t rowStride; ///< of one step of k in a left panel; tileRows rounded up to lanes
  int64_t rowPanels, colPanels;
  int64_t itemRows, itemCols; ///< the tiles of an item

  /// Panels begin at multiples of this number of f32, so they keep the alignment of the scratch.
  static constexpr int64_t kAlignment = 16;
  int64_t rightOffset() const { return aligned(rowPanels * k * rowStride); }
  int64_t scratchElements() const { return rightOffset() + aligned(colPanels * k * tileCols); }
  /// "512f": names what the code depends on besides the shape.
  std::string chip() const { return std::to_string(lanes * 32) + (fused ? "f" : ""); }

private:
  static int64_t aligned(int64_t elements) {
    return (elements + kAlignment - 1) / kAlignment * kAlignment;
  }
};

inline int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

} // namespace stepc::kernels

#endif
