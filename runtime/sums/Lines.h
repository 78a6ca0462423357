//===- Lines.h - Exact sums of lines ----------------------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_SUMS_LINES_H
#define STEPC_RUNTIME_SUMS_LINES_H

#include "runtime/model/Model.h"
#include "runtime/sums/Accumulator.h"

namespace stepc::sums {

/// Numbers of one type in memory, one after another.
struct Line {
  const void *first = nullptr;
  int64_t count = 0;
  plan::DType type = plan::DType::F32; ///< f32, bf16 or f16
  /// Memory to prefetch while the line is added up, `aheadBytes` for each number. Need not be readable.
  const char *ahead = nullptr;
  int64_t aheadBytes = 0;
};

/// Adds the numbers of a line, or their squares.
template <Terms terms> void add(Accumulator<terms> &sum, const Line &line);

/// The sum of a line, rounded once. Quicker than an accumulator for lines that are short.
template <Terms terms> double total(const Line &line);

} // namespace stepc::sums

#endif
