//===- Accumulator.h - Exact sums -------------------------------*- C++ -*-===//
//
// A sum of f32 numbers, or of their squares, as an integer that counts units of 2^-149 or 2^-298. No bit is
// lost, so neither the order of the terms nor the way in which they are shared out can change the result.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_SUMS_ACCUMULATOR_H
#define STEPC_RUNTIME_SUMS_ACCUMULATOR_H

#include <array>
#include <bit>
#include <cstdint>

namespace stepc::sums {

/// 2 to a power from -1022 to 1023.
constexpr double powerOfTwo(int exponent) {
  return std::bit_cast<double>(uint64_t(exponent + 1023) << 52);
}

/// What is added up.
enum class Terms : int32_t { Values = 0, Squares = 1 };

/// The number of 32-bit digits of a sum of values, which has room for 2^40 of the largest f32, and of a sum
/// of squares, which has room for 2^80 of them.
inline constexpr int kValueDigits = 10, kSquareDigits = 20;
inline constexpr int digitsOf(Terms terms) {
  return terms == Terms::Squares ? kSquareDigits : kValueDigits;
}
/// The unit of a sum is 2 to this power: the last bit of the least f32, and of its square.
inline constexpr int unitOf(Terms terms) { return terms == Terms::Squares ? -298 : -149; }

/// An exact sum: digits from low to high, in two's complement. The three highest bits of a finite sum are
/// equal. If a term was no finite number, they are flags, and all other bits are 0: 001 stands for +∞, 010
/// for −∞, and 011 for NaN, which +∞ and −∞ together give. Equal sums have equal bits.
template <Terms terms> class Accumulator {
public:
  static constexpr int kDigits = digitsOf(terms);

  /// Adds integer · 2^exponent. The exponent may be so low that only bits of 0 lie below the unit.
  void add(int64_t integer, int exponent);
  void add(const Accumulator &other);
  void addInfinity(bool isNegative) { set(isNegative ? 2 : 1); }
  void addNaN() { set(3); }

  /// The sum, rounded once: to nearest, ties to even. A sum of 0 is +0.
  double total() const;

  bool operator==(const Accumulator &) const = default;

  std::array<uint32_t, kDigits> digits = {};

private:
  /// The flags; 0 if the sum is finite.
  uint32_t flags() const {
    uint32_t high = digits[kDigits - 1] >> 29;
    return high == 7 ? 0 : high;
  }
  void set(uint32_t more);
};

extern template class Accumulator<Terms::Values>;
extern template class Accumulator<Terms::Squares>;

} // namespace stepc::sums

#endif
