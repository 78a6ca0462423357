//===- Reduce.h - Reductions of blocks --------------------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_SUMS_REDUCE_H
#define STEPC_RUNTIME_SUMS_REDUCE_H

#include "runtime/model/Model.h"
#include "runtime/sums/Accumulator.h"

namespace stepc::sums {

/// The shape of a reduction's result: one number per block, per row or per column.
enum class Remains : int64_t { One = 0, Rows = 1, Columns = 2 };

/// A reduction is one loop over items, or two if a block is to become one number and has several parts: the
/// first reduces each part into the scratch, the second combines the parts.
enum class Phase : int64_t { Whole = 0, Parts = 1, Combine = 2 };

/// Elements of a part of a block.
inline constexpr int64_t kPartElements = 1 << 15;
/// Bytes of scratch for a part.
inline constexpr int64_t kPartBytes = sizeof(Accumulator<Terms::Squares>);

inline constexpr Terms termsOf(plan::Reduction kind) {
  return kind == plan::Reduction::Norm || kind == plan::Reduction::Rms ? Terms::Squares
                                                                       : Terms::Values;
}

/// The parts of some elements.
inline constexpr int64_t partsOf(int64_t elements) {
  return elements / kPartElements + (elements % kPartElements != 0);
}

/// What #optim.block_reduce computes: numbers of f32, bf16 or f16 become f32. What each kind means, to the
/// last bit, stands with optim.reduce.
struct BlockReduction {
  plan::Reduction kind = plan::Reduction::Sum;
  int64_t exponent = 0; ///< a norm or rms is multiplied by 2 to this power before it is rounded
  Remains remains = Remains::One;
  plan::DType type = plan::DType::F32;
  int64_t rows = 0, cols = 0;

  static void fields(auto &self, auto &&visit) {
    visit("reduction", self.kind);
    visit("exponent", self.exponent);
    visit("remains", self.remains);
    visit("type", self.type);
    visit("rows", self.rows);
    visit("cols", self.cols);
  }

  int64_t parts() const { return partsOf(rows * cols); }
  /// Whether the loop over parts and the one that combines them are worth it.
  bool hasParts() const { return remains == Remains::One && parts() > 1; }
  std::vector<Phase> phases() const {
    return hasParts() ? std::vector{Phase::Parts, Phase::Combine} : std::vector{Phase::Whole};
  }
  /// The items of a loop, for each block.
  int64_t items(Phase phase) const;

  /// Runs items [first, last) of a loop: item i of block b is number b · items(phase) + i. The scratch has
  /// kPartBytes for each part of each block, and is not read in the phase Whole.
  void run(Phase phase, void *scratch, const void *source, float *out, int64_t first,
           int64_t last) const;
};

/// The result from an exact sum of `count` terms. A NaN has the bits 0x7fc00000.
float finish(plan::Reduction kind, double sum, int64_t count, int64_t exponent);

} // namespace stepc::sums

namespace stepc::plan {
template <>
inline constexpr auto kNames<sums::Remains> =
    std::to_array<std::string_view>({"one", "rows", "columns"});
template <>
inline constexpr auto kNames<sums::Phase> =
    std::to_array<std::string_view>({"whole", "parts", "combine"});
} // namespace stepc::plan

#endif
