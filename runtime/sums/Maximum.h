//===- Maximum.h - The greatest of some numbers -----------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_SUMS_MAXIMUM_H
#define STEPC_RUNTIME_SUMS_MAXIMUM_H

#include "runtime/sums/Columns.h"

#include <algorithm>

namespace stepc::sums {

/// IEEE 754's maximum of numbers: it propagates NaN, which has the bits 0x7fc00000, and +0 is above −0. The
/// maximum of no numbers is −∞. Kernels of GPUs store the same integer.
struct Maximum {
  static constexpr int32_t kNaN = INT32_MAX, kLeast = int32_t(0xff800000 ^ 0x7fffffff);

  int32_t order = kLeast; ///< an integer that orders numbers: −∞ is kLeast, and NaN the largest
  void add(const Maximum &other) { order = std::max(order, other.order); }
  float number() const;
};

/// Adds the numbers of a line.
void add(Maximum &most, const Line &line);
/// Adds the numbers of each column to most[column].
void add(Maximum *most, const Strip &strip);

} // namespace stepc::sums

#endif
