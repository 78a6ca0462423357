//===- Columns.cpp - Exact sums of columns ----------------------------------===//
#include "runtime/sums/Columns.h"
#include "runtime/sums/Sweep.h"
#include "runtime/sums/Vectors.h"

#include <algorithm>

namespace stepc::sums {
namespace {

/// What a sweep down some columns found.
template <Terms terms> struct Sweeps {
  int64_t word[wordsOf(terms)][kColumns] = {};
  int32_t top[kColumns] = {};
  int64_t rests[kColumns] = {}; ///< not 0: of terms that the words could not take as a whole

  Words<terms> of(int64_t column) const {
    Words<terms> words;
    for (int k = 0; k < Words<terms>::kCount; ++k)
      words.word[k] = word[k][column];
    words.top = top[column];
    return words;
  }
};

template <typename Source, Terms terms>
[[gnu::always_inline]] inline void sweepColumns(Sweeps<terms> *found, const Source *from,
                                                int64_t rows, int64_t columns, int64_t stride) {
  uint32_t largest[kColumns] = {};
  double scale[kColumns];
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      largest[c] = std::max(largest[c], magnitudeOf(from[r * stride + c]));
  for (int64_t c = 0; c < columns; ++c) {
    bool isFinite = largest[c] < kInfinityBits;
    found->top[c] = topOf(isFinite ? largest[c] : 0, terms);
    found->rests[c] = !isFinite;
    // Terms that are no finite numbers leave garbage in the words, which nobody reads: `rests` is set.
    scale[c] = isFinite ? powerOfTwo(kWordBits - found->top[c]) : 0.0;
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      Words<terms> words;
      double rest = words.take(termOf<terms>(from[r * stride + c]) * scale[c]);
      for (int k = 0; k < Words<terms>::kCount; ++k)
        found->word[k][c] = int64_t(uint64_t(found->word[k][c]) + uint64_t(words.word[k]));
      found->rests[c] |= magnitudeOf(rest);
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
    Sweeps<terms> found;
    sweepColumnsOf<Source, terms>(&found, from, rows, strip.columns, strip.stride);
    for (int64_t c = 0; c < strip.columns; ++c) {
      if (found.rests[c])
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
    Sweeps<terms> found;
    sweepColumnsOf<Source, terms>(&found, from, strip.rows, strip.columns, strip.stride);
    for (int64_t c = 0; c < strip.columns; ++c)
      if (found.rests[c] || !found.of(c).round(sums[c])) {
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
