//===- Maximum.cpp - The greatest of some numbers ---------------------------===//
#include "runtime/sums/Maximum.h"
#include "runtime/sums/Vectors.h"

#include <algorithm>

namespace stepc::sums {
namespace {

/// An integer that orders numbers: NaN is the largest.
[[gnu::always_inline]] inline int32_t orderOf(float number) {
  auto bits = std::bit_cast<int32_t>(number);
  int32_t order = bits ^ ((bits >> 31) & 0x7fffffff);
  return (bits & 0x7fffffff) > int32_t(kInfinityBits) ? INT32_MAX : order;
}
/// The order of −∞.
constexpr int32_t kLeast = int32_t(0xff800000 ^ 0x7fffffff);

float numberOf(int32_t order) {
  if (order == INT32_MAX)
    return std::bit_cast<float>(0x7fc00000);
  return std::bit_cast<float>(order ^ ((order >> 31) & 0x7fffffff));
}

template <typename Source, Terms>
[[gnu::always_inline]] inline int32_t largest(const Source *from, int64_t count) {
  int32_t found = kLeast;
  for (int64_t i = 0; i < count; ++i)
    found = std::max(found, orderOf(valueOf(from[i])));
  return found;
}

template <typename Source, Terms>
[[gnu::always_inline]] inline void largestOfColumns(int32_t *found, const Source *from,
                                                    int64_t rows, int64_t columns, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      found[c] = std::max(found[c], orderOf(valueOf(from[r * stride + c])));
}

STEPC_WITH_VECTORS(int32_t, largest)
STEPC_WITH_VECTORS(void, largestOfColumns)

} // namespace

float maximum(float a, float b) { return numberOf(std::max(orderOf(a), orderOf(b))); }

float maximum(const Line &line) {
  return withSource(line, [&]<typename Source>(const Source *from) {
    return numberOf(largestOf<Source, Terms::Values>(from, line.count));
  });
}

void maximum(float *out, const Strip &strip) {
  int32_t found[kColumns];
  std::fill_n(found, kColumns, kLeast);
  withSource(strip, [&]<typename Source>(const Source *from) {
    largestOfColumnsOf<Source, Terms::Values>(found, from, strip.rows, strip.columns, strip.stride);
  });
  for (int64_t c = 0; c < strip.columns; ++c)
    out[c] = numberOf(found[c]);
}

} // namespace stepc::sums
