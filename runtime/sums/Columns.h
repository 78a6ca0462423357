//===- Columns.h - Exact sums of columns ------------------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_SUMS_COLUMNS_H
#define STEPC_RUNTIME_SUMS_COLUMNS_H

#include "runtime/sums/Lines.h"

namespace stepc::sums {

/// The most columns that are added up side by side.
inline constexpr int64_t kColumns = 64;

/// Some columns side by side of a matrix.
struct Strip {
  const void *first = nullptr; ///< of the first row
  int64_t rows = 0;
  int64_t columns = 0; ///< at most kColumns
  int64_t stride = 0;  ///< from row to row, in numbers
  plan::DType type = plan::DType::F32;
};

/// Adds the numbers of each column, or their squares, to sums[column].
template <Terms terms> void add(Accumulator<terms> *sums, const Strip &strip);

/// The sum of each column, rounded once.
template <Terms terms> void total(double *sums, const Strip &strip);

} // namespace stepc::sums

#endif
