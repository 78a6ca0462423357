//===- Sweep.h - Many terms as two integers ---------------------*- C++ -*-===//
//
// How a core adds up thousands of terms without losing a bit. Let every |term| be below 2^top. One sweep adds
// up the bits of all terms from 2^(top - 50) on in an integer, and the next 50 bits in another. What a term
// has below them, a remainder, is left for the next sweep, whose top is that of the largest remainder. A
// term has 24 bits, or 48 as a square, so terms of like sizes take one sweep.
//
// Source of the splitting by a constant that is added and subtracted: Rump, Ogita, Oishi, Accurate
// floating-point summation, part I (2008).
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_SUMS_SWEEP_H
#define STEPC_RUNTIME_SUMS_SWEEP_H

#include "runtime/sums/Accumulator.h"

#include <bit>
#include <cstdint>

namespace stepc::sums {

/// The most terms of a sweep. Its integers are sums of numbers of at most 2^50.
inline constexpr int64_t kSweepTerms = 4096;

/// The bits of a term that an integer takes.
inline constexpr int kWordBits = 50;

/// The number of integers of a sweep. Squares have twice the bits.
inline constexpr int wordsOf(Terms terms) { return terms == Terms::Squares ? 3 : 2; }

/// The sums of one sweep: word[k] · 2^(top - 50 (k + 1)).
template <Terms terms> struct Words {
  static constexpr int kCount = wordsOf(terms);
  int64_t word[kCount] = {};
  int top = 0;

  void addTo(Accumulator<terms> &sum) const {
    for (int k = 0; k < kCount; ++k)
      sum.add(word[k], top - kWordBits * (k + 1));
  }
  /// The sum, rounded once. Fails if the words cancel out so far that only an accumulator can round them.
  bool round(double &sum) const {
    auto both = (static_cast<__int128>(word[0]) << kWordBits) + word[1];
    if constexpr (kCount > 2) {
      // Below a unit of `both` it only matters whether any bit is set.
      both += word[2] >> kWordBits;
      bool rest = word[2] & ((int64_t(1) << kWordBits) - 1);
      auto size = both < 0 ? -both : both;
      if (rest && size >> 60 == 0)
        return false;
      both = both << 1 | rest;
    }
    sum = static_cast<double>(both) * powerOfTwo(top - 2 * kWordBits - (kCount > 2));
    return true;
  }
};

/// Splits terms below 2^top.
template <Terms terms> struct Splitter {
  static constexpr int kCount = wordsOf(terms);
  int top;
  /// A term plus constant[k] is rounded to units of word k, and has their number in its low bits.
  double constant[kCount];

  [[gnu::always_inline]] explicit Splitter(int top) : top(top) {
    for (int k = 0; k < kCount; ++k)
      constant[k] = 1.5 * powerOfTwo(52 + top - kWordBits * (k + 1));
  }
  /// Adds the bits of a term and of each constant to `bits`. Returns what is left of the term.
  [[gnu::always_inline]] double take(double term, uint64_t *bits) const {
    for (int k = 0; k < kCount; ++k) {
      double moved = term + constant[k];
      bits[k] += std::bit_cast<uint64_t>(moved);
      term -= moved - constant[k];
    }
    return term;
  }
  /// The words of `count` terms whose bits were added up.
  [[gnu::always_inline]] Words<terms> words(const uint64_t *bits, int64_t count) const {
    Words<terms> found;
    found.top = top;
    for (int k = 0; k < kCount; ++k)
      found.word[k] = int64_t(bits[k] - uint64_t(count) * std::bit_cast<uint64_t>(constant[k]));
    return found;
  }
};

} // namespace stepc::sums

#endif
