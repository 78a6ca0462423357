//===- Lines.cpp - Exact sums of lines --------------------------------------===//
#include "runtime/sums/Lines.h"
#include "runtime/sums/Sweep.h"
#include "runtime/sums/Vectors.h"

#include <algorithm>

namespace stepc::sums {
namespace {

/// What a sweep found: its sums, or that some term is no finite number, and whether terms have bits below.
template <Terms terms> struct Swept {
  Words<terms> words;
  bool isFinite = true, hasRests = false;

  bool isAll() const { return isFinite && !hasRests; }
};

/// How many terms are added up between prefetches, and bytes of a line of the cache.
constexpr int64_t kPrefetchTerms = 256, kCacheLine = 64;

/// The first sweep over terms in memory. Prefetches what is ahead, because memory would be idle meanwhile.
template <typename Source, Terms terms>
[[gnu::always_inline]] inline Swept<terms>
sweep(const Source *from, int64_t count, const char *ahead = nullptr, int64_t aheadBytes = 0) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; ++i)
    largest = std::max(largest, magnitudeOf(from[i]));
  Swept<terms> found;
  if (largest == 0 || largest >= kInfinityBits)
    return found.isFinite = largest == 0, found;
  Splitter<terms> splitter(topOf(largest, terms));
  uint64_t bits[wordsOf(terms)] = {};
  int64_t rests = 0; // without a sign 0 if nothing is left of any term
  for (int64_t begin = 0; begin < count; begin += kPrefetchTerms) {
    int64_t end = std::min(count, begin + kPrefetchTerms);
    for (int64_t at = begin * aheadBytes; at < end * aheadBytes; at += kCacheLine)
      __builtin_prefetch(ahead + at);
    for (int64_t i = begin; i < end; ++i)
      rests |= std::bit_cast<int64_t>(splitter.take(termOf<terms>(from[i]), bits));
  }
  return {splitter.words(bits, count), true, (rests & INT64_MAX) != 0};
}

/// What the first sweep leaves of each term. Returns the largest magnitude, as bits.
template <typename Source, Terms terms>
[[gnu::always_inline]] inline int64_t storeRests(const Source *from, int64_t count, int top,
                                                 double *rests) {
  Splitter<terms> splitter(top);
  uint64_t unused[wordsOf(terms)] = {};
  int64_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    rests[i] = splitter.take(termOf<terms>(from[i]), unused);
    largest = std::max(largest, magnitudeOf(rests[i]));
  }
  return largest;
}

/// A sweep over what the one before left. `rests` gets what this one leaves, and `largest` its largest
/// magnitude.
template <typename, Terms terms>
[[gnu::always_inline]] inline Words<terms> sweepRests(double *rests, int64_t count,
                                                      int64_t *largest) {
  Splitter<terms> splitter(int(*largest >> 52) - 1022);
  uint64_t bits[wordsOf(terms)] = {};
  int64_t left = 0;
  for (int64_t i = 0; i < count; ++i) {
    rests[i] = splitter.take(rests[i], bits);
    left = std::max(left, magnitudeOf(rests[i]));
  }
  *largest = left;
  return splitter.words(bits, count);
}

STEPC_WITH_VECTORS(Swept<terms>, sweep)
STEPC_WITH_VECTORS(int64_t, storeRests)
STEPC_WITH_VECTORS(Words<terms>, sweepRests)

/// Adds terms that a first sweep could not take as a whole.
template <typename Source, Terms terms>
void addRest(Accumulator<terms> &sum, const Source *from, int64_t count,
             const Swept<terms> &found) {
  if (!found.isFinite) {
    for (int64_t i = 0; i < count; ++i) {
      uint32_t magnitude = magnitudeOf(from[i]);
      if (magnitude > kInfinityBits)
        sum.addNaN();
      else if (magnitude == kInfinityBits)
        sum.addInfinity(terms == Terms::Values && valueOf(from[i]) < 0);
    }
    return;
  }
  double rests[kSweepTerms];
  for (int64_t largest = storeRestsOf<Source, terms>(from, count, found.words.top, rests); largest;)
    sweepRestsOf<double, terms>(rests, count, &largest).addTo(sum);
}

template <typename Source, Terms terms>
void addAll(Accumulator<terms> &sum, const Source *from, const Line &line) {
  const char *ahead = line.ahead;
  for (int64_t count = line.count; count > 0; from += kSweepTerms, count -= kSweepTerms) {
    int64_t some = std::min(count, kSweepTerms);
    Swept<terms> found = sweepOf<Source, terms>(from, some, ahead, line.aheadBytes);
    ahead += some * line.aheadBytes;
    found.words.addTo(sum);
    if (!found.isAll())
      addRest(sum, from, some, found);
  }
}

} // namespace

template <Terms terms> void add(Accumulator<terms> &sum, const Line &line) {
  withSource(line, [&](const auto *from) { addAll(sum, from, line); });
}

template <Terms terms> double total(const Line &line) {
  return withSource(line, [&]<typename Source>(const Source *from) {
    if (line.count <= kSweepTerms) {
      Swept<terms> found = sweepOf<Source, terms>(from, line.count, line.ahead, line.aheadBytes);
      double sum = 0;
      if (found.isAll() && found.words.round(sum))
        return sum;
    }
    Accumulator<terms> sum;
    addAll(sum, from, line);
    return sum.total();
  });
}

template void add(Accumulator<Terms::Values> &, const Line &);
template void add(Accumulator<Terms::Squares> &, const Line &);
template double total<Terms::Values>(const Line &);
template double total<Terms::Squares>(const Line &);

} // namespace stepc::sums
