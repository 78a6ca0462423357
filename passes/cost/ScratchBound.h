//===- ScratchBound.h - How much scratch kernels may take -------*- C++ -*-===//
//
// Products may use memory beside their operands (packed panels). How much is the target's decision, which
// levels 1 to 4 do not know. They allow for this bound, which follows from shapes alone, and no target may
// exceed it. Functions of blocks say theirs themselves (BlockFunctionAttrInterface).
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_COST_SCRATCHBOUND_H
#define STEPC_PASSES_COST_SCRATCHBOUND_H

#include "dialects/optim/Saturate.h"

namespace stepc::cost {

/// Bytes per block of a product of an m × k by a k × n matrix: both operands in f32. A target may
/// round the left one's rows up by a third and 16, the right one's columns by 32, and each to a
/// multiple of 64 bytes.
inline int64_t productScratchBound(int64_t m, int64_t n, int64_t k) {
  int64_t lines = saturatingAdd(saturatingAdd(m, m / 3), saturatingAdd(n, 48));
  return k == 0 ? 0 : saturatingMul(4, saturatingAdd(saturatingMul(lines, k), 32));
}

} // namespace stepc::cost

#endif
