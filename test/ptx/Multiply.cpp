//===- Multiply.cpp - A quarter of a wgmma ---------------------------------===//
//
// runtime/emulated/TensorCore.cpp is the model. Here its arithmetic is done for eight columns at once, in f32 and i32:
// products of two elements and their multiples by powers of two are exact. Where exponents are too far from zero for
// that, the model itself does a fragment.
//
//===----------------------------------------------------------------------===//

#include "test/ptx/Multiply.h"
#include "runtime/emulated/TensorCore.h"
#include "test/ptx/Numbers.h"

#include <algorithm>
#include <cstring>

#pragma STDC FP_CONTRACT OFF

namespace stepc::ptx {
namespace {

constexpr int kRows = 16, kSteps = 16, kGroup = 8, kWidth = 8, kMostColumns = 256;
/// The exponent of a zero: below all others, also if it is added to one of them.
constexpr int kZero = -1000;
/// Exponents of factors and of sums for which f32 is exact.
constexpr int kMostFactor = 45, kLeastSum = -90, kMostSum = 100;

using Floats = float __attribute__((vector_size(4 * kWidth)));
using Ints = int32_t __attribute__((vector_size(4 * kWidth)));

struct Element {
  float value;
  int exponent;
  bool isFar; ///< it needs the model itself
};

Element element(uint16_t bits, bool half) {
  int field = half ? bits >> 10 & 31 : bits >> 7 & 255;
  if (!(bits & 0x7fff))
    return {0, kZero, false};
  if (half)
    return {fromF16(bits), std::max(field, 1) - 15, field == 31};
  int exponent = std::max(field, 1) - 127;
  return {fromBf16(bits), exponent, std::abs(exponent) > kMostFactor};
}

struct Operands {
  float left[kRows][kSteps], right[kSteps][kMostColumns];
  int leftExponent[kRows][kSteps], rightExponent[kSteps][kMostColumns];
};

__attribute__((target_clones("arch=x86-64-v3", "default"))) bool
multiplyStrip(const Operands &of, float *sums, int columns, int begin) {
  Ints far = {};
  for (int row = 0; row < kRows; ++row) {
    Floats sum;
    std::memcpy(&sum, sums + row * columns + begin, sizeof sum);
    for (int first = 0; first < kSteps; first += kGroup) {
      Ints bits;
      std::memcpy(&bits, &sum, sizeof bits);
      Ints most = (bits >> 23 & 255) - 127;
      Ints isZero = (bits & 0x7fffffff) == 0;
      most = isZero ? Ints{} + kZero : most;
      for (int step = first; step < first + kGroup; ++step) {
        Ints exponent;
        std::memcpy(&exponent, of.rightExponent[step] + begin, sizeof exponent);
        exponent += of.leftExponent[row][step];
        most = exponent > most ? exponent : most;
      }
      far |= (most > kMostSum) | ((most < kLeastSum) & (most > kZero / 2));
      Ints clamped = most < kLeastSum  ? Ints{} + kLeastSum
                     : most > kMostSum ? Ints{} + kMostSum
                                       : most;
      Ints up = (24 - clamped + 127) << 23, down = (clamped - 24 + 127) << 23;
      Floats scale, back;
      std::memcpy(&scale, &up, sizeof scale);
      std::memcpy(&back, &down, sizeof back);
      Ints total = __builtin_convertvector(sum * scale, Ints);
      for (int step = first; step < first + kGroup; ++step) {
        Floats right;
        std::memcpy(&right, of.right[step] + begin, sizeof right);
        total += __builtin_convertvector(right * of.left[row][step] * scale, Ints);
      }
      // To f32 towards zero: what was rounded away from it goes back by one place.
      Floats rounded = __builtin_convertvector(total, Floats);
      Ints again = __builtin_convertvector(rounded, Ints);
      Ints sign = total >> 31, sizeOf = (total ^ sign) - sign, sizeAgain = (again ^ sign) - sign;
      Ints roundedBits;
      std::memcpy(&roundedBits, &rounded, sizeof rounded);
      roundedBits += sizeAgain > sizeOf; // a comparison gives -1
      std::memcpy(&rounded, &roundedBits, sizeof rounded);
      sum = rounded * back;
    }
    std::memcpy(sums + row * columns + begin, &sum, sizeof sum);
  }
  int any = 0;
  for (int i = 0; i < kWidth; ++i)
    any |= far[i];
  return any == 0;
}

/// The model itself, on fragments as mma.sync has them.
void multiplyFragment(const uint16_t (*left)[16], const uint16_t (*right)[16], float *sums,
                      int columns, int begin, bool half) {
  runtime::WarpProduct product;
  auto pair = [](const uint16_t *row, int step) {
    return row[step] | uint32_t(row[step + 1]) << 16;
  };
  for (int lane = 0; lane < 32; ++lane) {
    int line = lane / 4, step = lane % 4 * 2;
    for (int i = 0; i < 4; ++i) {
      product.left[lane][i] = pair(left[line + i % 2 * 8], step + i / 2 * 8);
      float sum = sums[(line + i / 2 * 8) * columns + begin + step + i % 2];
      product.sums[lane][i] = std::bit_cast<uint32_t>(sum);
    }
    for (int i = 0; i < 2; ++i)
      product.right[lane][i] = pair(right[begin + line], step + i * 8);
  }
  runtime::multiply(product, half);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i)
      sums[(lane / 4 + i / 2 * 8) * columns + begin + lane % 4 * 2 + i % 2] =
          std::bit_cast<float>(product.sums[lane][i]);
}

} // namespace

void multiply(const uint16_t (*left)[16], const uint16_t (*right)[16], float *sums, int columns,
              bool half) {
  static thread_local Operands of;
  bool leftIsFar = false, isFar[kMostColumns / kWidth] = {};
  for (int row = 0; row < kRows; ++row)
    for (int step = 0; step < kSteps; ++step) {
      Element e = element(left[row][step], half);
      of.left[row][step] = e.value, of.leftExponent[row][step] = e.exponent;
      leftIsFar |= e.isFar;
    }
  for (int column = 0; column < columns; ++column)
    for (int step = 0; step < kSteps; ++step) {
      Element e = element(right[column][step], half);
      of.right[step][column] = e.value, of.rightExponent[step][column] = e.exponent;
      isFar[column / kWidth] |= e.isFar;
    }
  for (int begin = 0; begin < columns; begin += kWidth) {
    float saved[kRows][kWidth];
    for (int row = 0; row < kRows; ++row)
      std::memcpy(saved[row], sums + row * columns + begin, sizeof saved[row]);
    if (!leftIsFar && !isFar[begin / kWidth] && multiplyStrip(of, sums, columns, begin))
      continue;
    for (int row = 0; row < kRows; ++row)
      std::memcpy(sums + row * columns + begin, saved[row], sizeof saved[row]);
    multiplyFragment(left, right, sums, columns, begin, half);
  }
}

} // namespace stepc::ptx
