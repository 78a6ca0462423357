//===- ScratchBound.h - How much scratch kernels may take -------*- C++ -*-===//
//
// Products may use memory beside their operands (packed panels). The target decides how much, and levels 1 to
// 4 do not know the target. They reserve this bound, which follows from shapes alone. No target may exceed
// it. Functions of blocks have a method for their own bound (BlockFunctionAttrInterface::scratchBound).
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_COST_SCRATCHBOUND_H
#define STEPC_PASSES_COST_SCRATCHBOUND_H

#include "dialects/optim/Saturate.h"

namespace stepc::cost {

/// Bytes per block of a product of an m × k by a k × n matrix: room for both operands in f32. A target may
/// add a third and 16 to the left operand's rows and 32 to the right operand's columns. It may round the size
/// of each operand up to a multiple of 64 bytes.
inline int64_t productScratchBound(int64_t m, int64_t n, int64_t k) {
  int64_t lines = saturatingAdd(saturatingAdd(m, m / 3), saturatingAdd(n, 48));
  return k == 0 ? 0 : saturatingMul(4, saturatingAdd(saturatingMul(lines, k), 32));
}

} // namespace stepc::cost

#endif
