//===- Maximum.cpp - The greatest of some numbers ---------------------------===//
#include "runtime/sums/Maximum.h"
#include "runtime/sums/Vectors.h"

namespace stepc::sums {
namespace {

/// An integer that orders numbers: NaN is the largest.
[[gnu::always_inline]] inline int32_t orderOf(float number) {
  auto bits = std::bit_cast<int32_t>(number);
  int32_t order = bits ^ ((bits >> 31) & 0x7fffffff);
  return (bits & 0x7fffffff) > int32_t(kInfinityBits) ? Maximum::kNaN : order;
}

template <typename Source, Terms>
[[gnu::always_inline]] inline int32_t largest(const Source *from, int64_t count) {
  int32_t found = Maximum::kLeast;
  for (int64_t i = 0; i < count; ++i)
    found = std::max(found, orderOf(valueOf(from[i])));
  return found;
}

template <typename Source, Terms>
[[gnu::always_inline]] inline void largestOfColumns(Maximum *found, const Source *from,
                                                    int64_t rows, int64_t columns, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      found[c].order = std::max(found[c].order, orderOf(valueOf(from[r * stride + c])));
}

STEPC_WITH_VECTORS(int32_t, largest)
STEPC_WITH_VECTORS(void, largestOfColumns)

} // namespace

float Maximum::number() const {
  if (order == kNaN)
    return std::bit_cast<float>(0x7fc00000);
  return std::bit_cast<float>(order ^ ((order >> 31) & 0x7fffffff));
}

void add(Maximum &most, const Line &line) {
  withSource(line, [&]<typename Source>(const Source *from) {
    most.add({largestOf<Source, Terms::Values>(from, line.count)});
  });
}

void add(Maximum *most, const Strip &strip) {
  withSource(strip, [&]<typename Source>(const Source *from) {
    largestOfColumnsOf<Source, Terms::Values>(most, from, strip.rows, strip.columns, strip.stride);
  });
}

} // namespace stepc::sums
