//===- ExactSum.h - Sums digit by digit -------------------------------------===//
//
// What sums are compared with. It shares nothing with the sums of the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef STEPC_TEST_SUPPORT_EXACTSUM_H
#define STEPC_TEST_SUPPORT_EXACTSUM_H

#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>

namespace stepc::test {

/// An exact sum of f64 numbers of at most 2^1000 and at least 2^-1000. A digit weighs 2^(32 i - 1120), and is not
/// carried.
class ExactSum {
public:
  void add(double number, int64_t times = 1) {
    if (number == 0)
      return;
    int exponent;
    auto bits = int64_t(std::ldexp(std::frexp(number, &exponent), 53));
    int shift = exponent - 53 + 1120;
    __int128 wide = static_cast<__int128>(bits) << shift % 32;
    for (int i = shift / 32; wide != 0; ++i, wide /= int64_t(1) << 32)
      digit[i] += times * int64_t(wide % (int64_t(1) << 32));
  }
  void add(const ExactSum &other) {
    for (size_t i = 0; i < std::size(digit); ++i)
      digit[i] += other.digit[i];
  }
  /// -1, 0 or 1.
  int sign() const {
    int64_t carry = 0;
    bool isZero = true;
    for (int64_t each : digit) {
      each += carry;
      carry = each >> 32;
      isZero &= (each & 0xffffffff) == 0;
    }
    return carry < 0 ? -1 : !isZero || carry > 0;
  }
  /// Whether a number is the f64 that is nearest to the sum. If two are equally near, it must be the one whose
  /// last bit is 0. A zero must be +0.
  bool isRoundedTo(double number) const {
    ExactSum rest = *this;
    rest.add(number, -1);
    int side = rest.sign();
    if (side == 0)
      return std::bit_cast<int64_t>(number) != INT64_MIN;
    double next = std::nextafter(number, side * kInfinity);
    rest.add(*this);
    rest.add(next, -1); // twice the sum, less both neighbors
    int nearer = rest.sign() * side;
    return nearer < 0 || (nearer == 0 && std::bit_cast<uint64_t>(number) % 2 == 0);
  }
  /// The sum, rounded once.
  double rounded() const {
    // Carried digits of the sum's size, each in [0, 2^32), are added up from the highest on.
    int side = sign();
    int64_t carried[kDigits], carry = 0;
    for (int i = 0; i < kDigits; ++i) {
      int64_t each = side * digit[i] + carry;
      carry = each >> 32;
      carried[i] = each & 0xffffffff;
    }
    double sum = 0;
    for (int i = kDigits; i-- > 0;)
      sum += std::ldexp(double(carried[i]), 32 * i - 1120);
    // The true one is this or a neighbor.
    sum *= side;
    for (double near : {sum, std::nextafter(sum, kInfinity), std::nextafter(sum, -kInfinity)})
      if (isRoundedTo(near))
        return near;
    return std::numeric_limits<double>::quiet_NaN();
  }

private:
  static constexpr int kDigits = 68;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  int64_t digit[kDigits] = {};
};

} // namespace stepc::test

#endif // STEPC_TEST_SUPPORT_EXACTSUM_H
