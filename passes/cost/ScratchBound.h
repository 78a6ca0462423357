//===- ScratchBound.h - How much scratch kernels may take -------*- C++ -*-===//
//
// Products and reductions may use memory beside their operands (packed panels, partial results).
// How much is the target's decision, which levels 1 to 4 do not know. They allow for these bounds,
// which follow from shapes alone, and no target may exceed them.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_COST_SCRATCHBOUND_H
#define STEPC_PASSES_COST_SCRATCHBOUND_H

#include "passes/cost/Saturate.h"

namespace stepc::cost {

/// Bytes per block of a product of an m × k by a k × n matrix: both operands in f32. A target may
/// round the left one's rows up by a third and 16, the right one's columns by 32, and each to a
/// multiple of 64 bytes.
inline int64_t productScratchBound(int64_t m, int64_t n, int64_t k) {
  int64_t lines = saturatingAdd(saturatingAdd(m, m / 3), saturatingAdd(n, 48));
  return k == 0 ? 0 : saturatingMul(4, saturatingAdd(saturatingMul(lines, k), 32));
}

/// Bytes per block of a reduction of a block of `rows` rows to one value: one number of f32 per
/// row.
inline int64_t reduceScratchBound(int64_t rows) { return saturatingMul(4, rows); }

} // namespace stepc::cost

#endif
