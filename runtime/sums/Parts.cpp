//===- Parts.cpp - Reductions of lines that are cut between ranks ----------===//
#include "runtime/sums/Parts.h"
#include "runtime/sums/Columns.h"
#include "runtime/sums/Maximum.h"
#include "stepc/kernel_abi.h"

#include <algorithm>
#include <vector>

namespace stepc::sums {

/// Calls body with an accumulator of no terms, of the type that a reduction has.
template <typename Body> static auto withAccumulator(plan::Reduction kind, Body &&body) {
  if (kind == plan::Reduction::Max)
    return body(Maximum());
  if (termsOf(kind) == Terms::Squares)
    return body(Accumulator<Terms::Squares>());
  return body(Accumulator<Terms::Values>());
}

void begin(plan::Reduction kind, int64_t count, void *sums) {
  withAccumulator(kind, [&]<typename Of>(Of none) {
    static_assert(std::is_trivially_copyable_v<Of>);
    std::fill_n(static_cast<Of *>(sums), count, none);
  });
}

void add(plan::Reduction kind, const TermMatrix &matrix, void *sums) {
  constexpr auto type = plan::DType::F32;
  withAccumulator(kind, [&]<typename Of>(Of) {
    auto *of = static_cast<Of *>(sums);
    if (matrix.remains == Remains::Columns) {
      for (int64_t col = 0; col < matrix.cols; col += kColumns)
        add(of + col, Strip{matrix.terms + col, matrix.rows, std::min(kColumns, matrix.cols - col),
                            matrix.stride, type});
      return;
    }
    for (int64_t row = 0; row < matrix.rows; ++row)
      add(of[matrix.remains == Remains::Rows ? row : 0],
          Line{matrix.terms + row * matrix.stride, matrix.cols, type});
  });
}

void addSum(plan::Reduction kind, const void *sum, void *to) {
  withAccumulator(
      kind, [&]<typename Of>(Of) { static_cast<Of *>(to)->add(*static_cast<const Of *>(sum)); });
}

float finish(plan::Reduction kind, int64_t terms, std::span<const void *const> parts,
             int64_t count) {
  return withAccumulator(kind, [&]<typename Of>(Of all) {
    for (const void *part : parts)
      for (int64_t i = 0; i < count; ++i)
        all.add(static_cast<const Of *>(part)[i]);
    if constexpr (std::is_same_v<Of, Maximum>)
      return all.number();
    else
      return finish(kind, all.total(), terms, /*exponent=*/0);
  });
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

extern "C" void stepc_rt_collect_sums(int64_t kind, const int64_t *rows, const void *from,
                                      const stepc_parameter_record *records, void *to) {
  sums::begin(plan::Reduction(kind), 1, to);
  for (const int64_t *row = rows + 1, *last = row + 2 * rows[0]; row != last; row += 2)
    if (records[row[0]].active)
      sums::addSum(plan::Reduction(kind), static_cast<const char *>(from) + row[1], to);
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
