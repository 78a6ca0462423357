//===- TensorCore.h - How a tensor core adds up ------------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_EMULATED_TENSORCORE_H
#define STEPC_RUNTIME_EMULATED_TENSORCORE_H

#include <bit>
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

/// Rows, columns and steps of k of what a warp multiplies at once.
inline constexpr int64_t kFragmentRows = 16, kFragmentColumns = 8, kFragmentSteps = 16;

/// Computes the elements of a fragment of a product over all `steps` steps of k, as a warp does that
/// multiplies fragment by fragment. `left(row, step)` and `right(column, step)` return the bits of the
/// operands' elements, which are 0 past their ends. `store(row, column, sum)` takes the results.
template <typename Left, typename Right, typename Store>
void multiplyFragments(int64_t steps, bool half, Left &&left, Right &&right, Store &&store) {
  constexpr int64_t kLanes = 32;
  WarpProduct product{};
  auto pair = [](auto &element, int64_t line, int64_t step) {
    return element(line, step) | uint32_t(element(line, step + 1)) << 16;
  };
  for (int64_t begin = 0; begin < steps; begin += kFragmentSteps) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      int64_t line = lane / 4, step = begin + lane % 4 * 2;
      for (int64_t i = 0; i < 4; ++i)
        product.left[lane][i] = pair(left, line + i % 2 * 8, step + i / 2 * 8);
      for (int64_t i = 0; i < 2; ++i)
        product.right[lane][i] = pair(right, line, step + i * 8);
    }
    multiply(product, half);
  }
  for (int64_t lane = 0; lane < kLanes; ++lane)
    for (int64_t i = 0; i < 4; ++i)
      store(lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2,
            std::bit_cast<float>(product.sums[lane][i]));
}

} // namespace stepc::runtime

#endif
