//===- Parts.cpp - Sums of lines that are cut between ranks ----------------===//
#include "runtime/sums/Parts.h"
#include "runtime/sums/Columns.h"
#include "stepc/kernel_abi.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace stepc::sums {

void begin(plan::Reduction kind, int64_t count, void *sums) {
  std::memset(sums, 0, static_cast<size_t>(count * bytesOf(kind)));
}

template <Terms terms> static void addLines(const TermMatrix &matrix, void *sums) {
  auto *of = static_cast<Accumulator<terms> *>(sums);
  constexpr auto type = plan::DType::F32;
  if (matrix.remains == Remains::Columns) {
    for (int64_t col = 0; col < matrix.cols; col += kColumns)
      add(of + col, Strip{matrix.terms + col, matrix.rows, std::min(kColumns, matrix.cols - col),
                          matrix.stride, type});
    return;
  }
  for (int64_t row = 0; row < matrix.rows; ++row)
    add(of[matrix.remains == Remains::Rows ? row : 0],
        Line{matrix.terms + row * matrix.stride, matrix.cols, type});
}

void add(plan::Reduction kind, const TermMatrix &matrix, void *sums) {
  if (termsOf(kind) == Terms::Squares)
    addLines<Terms::Squares>(matrix, sums);
  else
    addLines<Terms::Values>(matrix, sums);
}

template <Terms terms> static double totalOf(std::span<const void *const> parts, int64_t count) {
  Accumulator<terms> all;
  for (const void *part : parts)
    for (int64_t i = 0; i < count; ++i)
      all.add(static_cast<const Accumulator<terms> *>(part)[i]);
  return all.total();
}

float finish(plan::Reduction kind, int64_t terms, std::span<const void *const> parts,
             int64_t count) {
  double sum = termsOf(kind) == Terms::Squares ? totalOf<Terms::Squares>(parts, count)
                                               : totalOf<Terms::Values>(parts, count);
  return finish(kind, sum, terms, /*exponent=*/0);
}

} // namespace stepc::sums

using namespace stepc;

extern "C" void stepc_rt_begin_sums(int64_t kind, int64_t count, void *sums) {
  sums::begin(plan::Reduction(kind), count, sums);
}

extern "C" void stepc_rt_add_terms(int64_t kind, int64_t remains, int64_t rows, int64_t cols,
                                   const float *terms, int64_t stride, void *sums) {
  sums::add(plan::Reduction(kind), {sums::Remains(remains), rows, cols, terms, stride}, sums);
}

extern "C" void stepc_rt_finish_sums(int64_t kind, int64_t terms, int64_t count,
                                     const int64_t *places, int64_t parts, const void *from,
                                     int64_t values, float *out) {
  const int64_t each = count * sums::bytesOf(plan::Reduction(kind));
  std::vector<const void *> list(static_cast<size_t>(parts));
  for (int64_t value = 0; value < values; ++value) {
    for (int64_t i = 0; i < parts; ++i)
      list[static_cast<size_t>(i)] = static_cast<const char *>(from) + places[i] + value * each;
    out[value] = sums::finish(plan::Reduction(kind), terms, list, count);
  }
}
