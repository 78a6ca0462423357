//===- TensorCore.cpp - How a tensor core adds up --------------------------===//

#include "runtime/emulated/TensorCore.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <functional>

namespace stepc::runtime {
namespace {

/// Steps of k that are added at once.
constexpr int kGroup = 8;
/// Bits that are kept below the largest exponent of a sum's terms.
constexpr int kBits = 24;
/// Exponents below those of all products, of a sum without terms, and of a zero.
constexpr int32_t kLeast = -400, kOfZero = -10000;

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

/// 2^exponent, of an exponent that f64 has for normal numbers.
double twoTo(int exponent) { return std::bit_cast<double>(uint64_t(exponent + 1023) << 52); }

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

/// Adds the products of kGroup elements of a row and a column, each of which may be any, to a sum.
uint32_t add(const Number *left, const Number *right, int fractionBits, uint32_t given) {
  Number start = decode(given, 8, 23);
  bool isNaN = start.isNaN, positive = start.isInfinite && start.significand > 0,
       negative = start.isInfinite && start.significand < 0;
  int64_t products[kGroup];
  int exponents[kGroup], most = start.significand ? start.exponent : -10000;
  for (int i = 0; i < kGroup; ++i) {
    const Number &a = left[i], &b = right[i];
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
    sum += shifted(products[i], exponents[i] - 2 * fractionBits - most + kBits);
  return cutOff(sum, most - kBits);
}

/// Cuts off a number of at most 31 bits by f64, which holds it.
uint32_t cutOffQuickly(int32_t x, int exponent) {
  double exact = x * twoTo(exponent);
  if (std::abs(exact) >= 0x1p128)
    return cutOff(x, exponent);
  auto nearest = float(exact);
  // The next number toward zero differs in the last place.
  return std::bit_cast<uint32_t>(nearest) - (std::abs(double(nearest)) > std::abs(exact));
}

/// Elements of an operand, line by line: rows of the left one, columns of the right one.
template <int64_t lines> struct Elements {
  const uint16_t (&bits)[lines][kFragmentSteps];
  bool half;
  /// For each step: the values, and their exponents, which are small for zeros.
  double value[kFragmentSteps][lines];
  int32_t exponent[kFragmentSteps][lines];
  bool isFinite[lines];

  Elements(const uint16_t (&given)[lines][kFragmentSteps], bool isHalf)
      : bits(given), half(isHalf) {
    for (int64_t line = 0; line < lines; ++line) {
      isFinite[line] = true;
      for (int64_t step = 0; step < kFragmentSteps; ++step) {
        Number one = at(line, step);
        value[step][line] = double(one.significand) * twoTo(one.exponent - fractionBits());
        exponent[step][line] = one.significand ? one.exponent : kOfZero;
        isFinite[line] &= !one.isNaN && !one.isInfinite;
      }
    }
  }

  int fractionBits() const { return half ? 10 : 7; }
  Number at(int64_t line, int64_t step) const {
    return decode(bits[line][step], half ? 5 : 8, fractionBits());
  }
};

/// Adds the products of the steps [begin, begin + kGroup) of one row and of all columns to the columns' sums.
void addAny(const Elements<kFragmentRows> &left, const Elements<kFragmentColumns> &right,
            int64_t row, int64_t begin, uint32_t *sums) {
  for (int64_t j = 0; j < kFragmentColumns; ++j) {
    Number a[kGroup], b[kGroup];
    for (int64_t i = 0; i < kGroup; ++i) {
      a[i] = left.at(row, begin + i);
      b[i] = right.at(j, begin + i);
    }
    sums[j] = add(a, b, left.fractionBits(), sums[j]);
  }
}

/// Adds products of finite elements to finite sums. There f64 holds each product.
void addFinite(const Elements<kFragmentRows> &left, const Elements<kFragmentColumns> &right,
               int64_t row, int64_t begin, uint32_t *sums) {
  int32_t most[kFragmentColumns], whole[kFragmentColumns];
  double scale[kFragmentColumns];
  for (int64_t j = 0; j < kFragmentColumns; ++j) {
    int field = int(sums[j] >> 23 & 0xff);
    most[j] = sums[j] << 1 ? std::max(field, 1) - 127 : kLeast;
  }
  for (int64_t step = begin; step < begin + kGroup; ++step)
    for (int64_t j = 0; j < kFragmentColumns; ++j)
      most[j] = std::max(most[j], left.exponent[step][row] + right.exponent[step][j]);
  for (int64_t j = 0; j < kFragmentColumns; ++j) {
    scale[j] = twoTo(kBits - most[j]);
    whole[j] = int32_t(double(std::bit_cast<float>(sums[j])) * scale[j]);
  }
  // A conversion to a whole number cuts off.
  for (int64_t step = begin; step < begin + kGroup; ++step)
    for (int64_t j = 0; j < kFragmentColumns; ++j)
      whole[j] += int32_t(left.value[step][row] * right.value[step][j] * scale[j]);
  for (int64_t j = 0; j < kFragmentColumns; ++j)
    sums[j] = cutOffQuickly(whole[j], most[j] - kBits);
}

} // namespace

void multiply(WarpProduct &product, bool half) {
  uint16_t leftBits[kFragmentRows][kFragmentSteps], rightBits[kFragmentColumns][kFragmentSteps];
  for (int lane = 0; lane < 32; ++lane)
    for (int e = 0; e < 2; ++e) {
      int line = lane / 4, step = lane % 4 * 2 + e;
      for (int i = 0; i < 4; ++i)
        leftBits[line + i % 2 * 8][step + i / 2 * 8] = uint16_t(product.left[lane][i] >> 16 * e);
      for (int i = 0; i < 2; ++i)
        rightBits[line][step + i * 8] = uint16_t(product.right[lane][i] >> 16 * e);
    }
  Elements<kFragmentRows> left(leftBits, half);
  Elements<kFragmentColumns> right(rightBits, half);
  bool areFinite = std::ranges::all_of(right.isFinite, std::identity());
  for (int64_t row = 0; row < kFragmentRows; ++row) {
    // Lane 4 · (row % 8) + i has columns 2 · i and 2 · i + 1.
    uint32_t (*lanes)[4] = product.sums + row % 8 * 4;
    int64_t place = row / 8 * 2;
    uint32_t sums[kFragmentColumns];
    for (int64_t j = 0; j < kFragmentColumns; ++j)
      sums[j] = lanes[j / 2][place + j % 2];
    bool isFast = areFinite && left.isFinite[row];
    for (int64_t step = 0; step < kFragmentSteps; step += kGroup) {
      isFast &= std::ranges::all_of(sums, [](uint32_t sum) { return (sum >> 23 & 0xff) != 0xff; });
      if (isFast)
        addFinite(left, right, row, step, sums);
      else
        addAny(left, right, row, step, sums);
    }
    for (int64_t j = 0; j < kFragmentColumns; ++j)
      lanes[j / 2][place + j % 2] = sums[j];
  }
}

} // namespace stepc::runtime
