//===- Columns.cpp - Exact sums of columns ----------------------------------===//
#include "runtime/sums/Columns.h"
#include "runtime/sums/Sweep.h"
#include "runtime/sums/Vectors.h"

#include <algorithm>

namespace stepc::sums {
namespace {

/// What a sweep down some columns found.
template <Terms terms> struct Sweeps {
  int64_t rows;
  uint64_t bits[wordsOf(terms)][kColumns] = {};
  int32_t top[kColumns] = {};
  int64_t rests[kColumns] = {}; ///< all bits that are left of terms, and of their signs

  bool isAll(int64_t column) const { return (rests[column] & INT64_MAX) == 0; }
  Words<terms> of(int64_t column) const {
    uint64_t own[wordsOf(terms)];
    for (int k = 0; k < wordsOf(terms); ++k)
      own[k] = bits[k][column];
    return Splitter<terms>(top[column]).words(own, rows);
  }
};

template <typename Source, Terms terms>
[[gnu::always_inline]] inline void sweepColumns(Sweeps<terms> *found, const Source *from,
                                                int64_t rows, int64_t columns, int64_t stride) {
  uint32_t largest[kColumns] = {};
  double constant[wordsOf(terms)][kColumns];
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      largest[c] = std::max(largest[c], magnitudeOf(from[r * stride + c]));
  for (int64_t c = 0; c < columns; ++c) {
    bool isFinite = largest[c] < kInfinityBits;
    found->top[c] = topOf(isFinite ? largest[c] : 0, terms);
    found->rests[c] = !isFinite;
    // Terms that are no finite numbers leave garbage in the words, which nobody reads: `rests` is set.
    Splitter<terms> splitter(found->top[c]);
    for (int k = 0; k < wordsOf(terms); ++k)
      constant[k][c] = splitter.constant[k];
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      double term = termOf<terms>(from[r * stride + c]);
      for (int k = 0; k < wordsOf(terms); ++k) {
        double moved = term + constant[k][c];
        found->bits[k][c] += std::bit_cast<uint64_t>(moved);
        term -= moved - constant[k][c];
      }
      found->rests[c] |= std::bit_cast<int64_t>(term);
    }
}

STEPC_WITH_VECTORS(void, sweepColumns)

/// Adds up to kSweepTerms numbers of one column by way of a line.
template <typename Source, Terms terms>
void addColumn(Accumulator<terms> &sum, const Source *from, int64_t rows, int64_t stride,
               plan::DType type) {
  Source line[kSweepTerms];
  for (int64_t r = 0; r < rows; ++r)
    line[r] = from[r * stride];
  add(sum, Line{line, rows, type});
}

template <typename Source, Terms terms>
void addAll(Accumulator<terms> *sums, const Source *from, const Strip &strip) {
  for (int64_t row = 0; row < strip.rows; row += kSweepTerms, from += kSweepTerms * strip.stride) {
    int64_t rows = std::min(strip.rows - row, kSweepTerms);
    Sweeps<terms> found{rows};
    sweepColumnsOf<Source, terms>(&found, from, rows, strip.columns, strip.stride);
    for (int64_t c = 0; c < strip.columns; ++c) {
      if (!found.isAll(c))
        addColumn(sums[c], from + c, rows, strip.stride, strip.type);
      else
        found.of(c).addTo(sums[c]);
    }
  }
}

} // namespace

template <Terms terms> void add(Accumulator<terms> *sums, const Strip &strip) {
  withSource(strip, [&](const auto *from) { addAll(sums, from, strip); });
}

template <Terms terms> void total(double *sums, const Strip &strip) {
  withSource(strip, [&]<typename Source>(const Source *from) {
    if (strip.rows > kSweepTerms) {
      Accumulator<terms> all[kColumns];
      addAll(all, from, strip);
      for (int64_t c = 0; c < strip.columns; ++c)
        sums[c] = all[c].total();
      return;
    }
    Sweeps<terms> found{strip.rows};
    sweepColumnsOf<Source, terms>(&found, from, strip.rows, strip.columns, strip.stride);
    for (int64_t c = 0; c < strip.columns; ++c)
      if (!found.isAll(c) || !found.of(c).round(sums[c])) {
        Accumulator<terms> sum;
        addColumn(sum, from + c, strip.rows, strip.stride, strip.type);
        sums[c] = sum.total();
      }
  });
}

template void add(Accumulator<Terms::Values> *, const Strip &);
template void add(Accumulator<Terms::Squares> *, const Strip &);
template void total<Terms::Values>(double *, const Strip &);
template void total<Terms::Squares>(double *, const Strip &);

} // namespace stepc::sums
