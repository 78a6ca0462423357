//===- Parts.h - Reductions of lines that are cut between ranks -*- C++ -*-===//
//
// A rank adds up what it has of a line, exactly, and one rank adds up the parts of all ranks. A part may be
// several accumulators, which different threads fill. The accumulator of maxima is the largest number so far.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_SUMS_PARTS_H
#define STEPC_RUNTIME_SUMS_PARTS_H

#include "runtime/sums/Reduce.h"

#include <span>

namespace stepc::sums {

/// Bytes of an accumulator for the terms of a reduction.
inline constexpr int64_t bytesOf(plan::Reduction kind) {
  return int64_t(sizeof(uint32_t)) * (kind == plan::Reduction::Max ? 1 : digitsOf(termsOf(kind)));
}

/// Terms of f32 that a kernel has computed, and which of them form a line: those of a row, those of a column,
/// or all.
struct TermMatrix {
  Remains remains = Remains::One;
  int64_t rows = 0, cols = 0;
  const float *terms = nullptr; ///< rows are `stride` apart
  int64_t stride = 0;
};

/// Begins `count` accumulators, one after another. They have no terms yet.
void begin(plan::Reduction kind, int64_t count, void *sums);
/// Adds the terms of each line to its accumulator. Accumulators of lines stand one after another.
void add(plan::Reduction kind, const TermMatrix &matrix, void *sums);
/// Adds a sum to an accumulator.
void addSum(plan::Reduction kind, const void *sum, void *to);
/// The result of a line of `terms` terms. Each part has `count` accumulators.
float finish(plan::Reduction kind, int64_t terms, std::span<const void *const> parts,
             int64_t count);

} // namespace stepc::sums

#endif
