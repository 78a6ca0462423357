//===- TensorCore.cpp - How a tensor core adds up --------------------------===//

#include "runtime/emulated/TensorCore.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace stepc::runtime {
namespace {

constexpr int kRows = 16, kColumns = 8, kSteps = 16;
/// Steps of k that are added at once.
constexpr int kGroup = 8;
/// Bits that are kept below the largest exponent of a sum's terms.
constexpr int kBits = 24;

/// The number significand · 2^(exponent - fraction bits). A denormal number has the least exponent of
/// normal ones.
struct Number {
  int64_t significand = 0;
  int exponent = 0;
  bool isInfinite = false, isNaN = false;
};

Number decode(uint32_t bits, int exponentBits, int fractionBits) {
  int bias = (1 << (exponentBits - 1)) - 1;
  int field = int(bits >> fractionBits) & ((1 << exponentBits) - 1);
  int64_t fraction = bits & ((1u << fractionBits) - 1);
  bool isSpecial = field == (1 << exponentBits) - 1;
  Number number{fraction, std::max(field, 1) - bias, isSpecial && !fraction, isSpecial && fraction};
  if (field)
    number.significand |= int64_t(1) << fractionBits;
  if (bits >> (exponentBits + fractionBits) & 1)
    number.significand = -number.significand;
  return number;
}

/// x · 2^by, cut off to a whole number.
int64_t shifted(int64_t x, int by) {
  if (x == 0 || by < -62)
    return 0;
  if (by >= 0)
    return x * (int64_t(1) << by);
  return x < 0 ? -(-x >> -by) : x >> -by;
}

constexpr uint32_t kNaN = 0x7fffffff, kInfinity = 0x7f800000;

/// x · 2^exponent as f32, cut off.
uint32_t cutOff(int64_t x, int exponent) {
  uint32_t sign = x < 0 ? 0x80000000u : 0;
  auto magnitude = uint64_t(std::abs(x));
  if (!magnitude)
    return 0;
  int top = exponent + int(std::bit_width(magnitude)) - 1;
  if (top > 127)
    return sign | kInfinity;
  // The exponent of the last place that f32 has for this magnitude.
  int unit = std::max(top, -126) - 23;
  auto bits = uint32_t(shifted(int64_t(magnitude), exponent - unit));
  // The leading bit adds one to the exponent field. A denormal number has no leading bit.
  return sign | (bits + (uint32_t(std::max(top, -126) + 126) << 23));
}

struct Terms {
  const Number *left, *right; ///< kGroup each
  int fractionBits;           ///< of an element
};

uint32_t add(const Terms &terms, uint32_t given) {
  Number start = decode(given, 8, 23);
  bool isNaN = start.isNaN, positive = start.isInfinite && start.significand > 0,
       negative = start.isInfinite && start.significand < 0;
  int64_t products[kGroup];
  int exponents[kGroup], most = start.significand ? start.exponent : -10000;
  for (int i = 0; i < kGroup; ++i) {
    const Number &a = terms.left[i], &b = terms.right[i];
    products[i] = a.significand * b.significand;
    exponents[i] = a.exponent + b.exponent;
    if (a.isNaN || b.isNaN || a.isInfinite || b.isInfinite) {
      isNaN |= a.isNaN || b.isNaN || products[i] == 0;
      (products[i] > 0 ? positive : negative) = true;
    }
    if (products[i])
      most = std::max(most, exponents[i]);
  }
  if (isNaN || (positive && negative))
    return kNaN;
  if (positive || negative)
    return negative ? kInfinity | 0x80000000u : kInfinity;
  int64_t sum = shifted(start.significand, start.exponent - 23 - most + kBits);
  for (int i = 0; i < kGroup; ++i)
    sum += shifted(products[i], exponents[i] - 2 * terms.fractionBits - most + kBits);
  return cutOff(sum, most - kBits);
}

} // namespace

void multiply(WarpProduct &product, bool half) {
  int exponentBits = half ? 5 : 8, fractionBits = half ? 10 : 7;
  Number left[kRows][kSteps], right[kColumns][kSteps];
  for (int lane = 0; lane < 32; ++lane)
    for (int e = 0; e < 2; ++e) {
      auto number = [&](uint32_t word) {
        return decode(word >> 16 * e & 0xffff, exponentBits, fractionBits);
      };
      int line = lane / 4, step = lane % 4 * 2 + e;
      for (int i = 0; i < 4; ++i)
        left[line + i % 2 * 8][step + i / 2 * 8] = number(product.left[lane][i]);
      for (int i = 0; i < 2; ++i)
        right[line][step + i * 8] = number(product.right[lane][i]);
    }
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      const Number *row = left[lane / 4 + i / 2 * 8], *column = right[lane % 4 * 2 + i % 2];
      uint32_t &sum = product.sums[lane][i];
      for (int step = 0; step < kSteps; step += kGroup)
        sum = add({row + step, column + step, fractionBits}, sum);
    }
}

} // namespace stepc::runtime
