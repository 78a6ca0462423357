//===- Saturate.h - Sums and products that stay in range --------*- C++ -*-===//
#ifndef STEPC_DIALECTS_OPTIM_SATURATE_H
#define STEPC_DIALECTS_OPTIM_SATURATE_H

#include <cstdint>
#include <limits>

namespace stepc {

/// The sum or product of numbers that are not negative, or the largest int64_t if the result exceeds it. Sums
/// of costs and sizes of legal parameters may exceed 64 bits. A saturated sum still compares as large.
inline int64_t saturatingAdd(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}
inline int64_t saturatingMul(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

} // namespace stepc

#endif
