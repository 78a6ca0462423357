//===- Accumulator.cpp - Exact sums -----------------------------------------===//
#include "runtime/sums/Accumulator.h"

#include <limits>

namespace stepc::sums {

template <Terms terms> void Accumulator<terms>::add(int64_t integer, int exponent) {
  if (integer == 0 || flags())
    return;
  int shift = exponent - unitOf(terms);
  if (shift < 0) {
    // The bits that leave are 0, because every term is a whole number of units.
    integer = shift > -64 ? integer >> -shift : 0;
    shift = 0;
  }
  auto wide = static_cast<unsigned __int128>(static_cast<__int128>(integer)) << (shift % 32);
  // The sign is repeated in all digits above.
  auto sign = static_cast<uint32_t>(integer >> 63);
  uint64_t carry = 0;
  for (int i = shift / 32, j = 0; i < kDigits; ++i, ++j) {
    uint32_t digit = j < 3 ? static_cast<uint32_t>(wide >> (32 * j)) : sign;
    if (j >= 3 && digit + carry == (sign ? uint64_t(1) << 32 : 0))
      break;
    carry += uint64_t(digits[i]) + digit;
    digits[i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
}

template <Terms terms> void Accumulator<terms>::add(const Accumulator &other) {
  if (uint32_t more = flags() | other.flags())
    return set(more);
  uint64_t carry = 0;
  for (int i = 0; i < kDigits; ++i) {
    carry += uint64_t(digits[i]) + other.digits[i];
    digits[i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
}

template <Terms terms> void Accumulator<terms>::set(uint32_t more) {
  more |= flags();
  digits = {};
  digits[kDigits - 1] = more << 29;
}

template <Terms terms> double Accumulator<terms>::total() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (flags()) {
  case 1:
    return kInfinity;
  case 2:
    return -kInfinity;
  case 3:
    return std::numeric_limits<double>::quiet_NaN();
  }
  bool isNegative = digits[kDigits - 1] >> 31;
  std::array<uint32_t, kDigits> size = digits;
  if (isNegative) {
    uint64_t carry = 1;
    for (uint32_t &digit : size) {
      carry += static_cast<uint32_t>(~digit);
      digit = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }
  int top = kDigits - 1;
  while (top > 0 && size[top] == 0)
    --top;
  auto digit = [&](int i) -> uint64_t { return i >= 0 ? size[i] : 0; };
  // The 64 bits from the highest one on. What lies below only matters by whether it is 0.
  int lead = std::countl_zero(size[top]);
  if (lead == 32)
    return 0.0;
  uint64_t bits =
      (digit(top) << 32 | digit(top - 1)) << lead | (lead ? digit(top - 2) >> (32 - lead) : 0);
  bool rest = top >= 2 && static_cast<uint32_t>(size[top - 2] << lead) != 0;
  for (int i = top - 3; i >= 0; --i)
    rest |= size[i] != 0;
  // A bit that is set below the 53 of an f64 and below the next one keeps a tie from looking like one.
  double result = static_cast<double>(bits | uint64_t(rest)) *
                  powerOfTwo(32 * (top - 1) - lead + unitOf(terms));
  return isNegative ? -result : result;
}

template class Accumulator<Terms::Values>;
template class Accumulator<Terms::Squares>;

} // namespace stepc::sums
