//===- TensorCore.h - How a tensor core adds up ------------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_EMULATED_TENSORCORE_H
#define STEPC_RUNTIME_EMULATED_TENSORCORE_H

#include <cstdint>

namespace stepc::runtime {

/// What the 32 lanes of a warp bring to PTX's mma.sync.m16n8k16, in its order: words of two 16-bit elements
/// each, the lower half first, and numbers of f32, which become the results.
struct WarpProduct {
  uint32_t left[32][4], right[32][2];
  uint32_t sums[32][4];
};

/// Adds left · right to sums. With `half` elements are f16, otherwise bf16. runtime/emulated/README.md
/// says how this rounds.
void multiply(WarpProduct &product, bool half);

} // namespace stepc::runtime

#endif
