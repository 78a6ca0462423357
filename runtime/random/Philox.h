//===- Philox.h - Random numbers by counters ----------------------*- C++ -*-===//
//
// Philox4x32-10 of J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy
// as 1, 2, 3" (SC 2011). It makes four words of 32 bits of a counter of four words and a key of two. It has
// no state, so a number depends on its counter and key alone: not on the rank, thread or chunk that draws it.
//
// The key of a parameter's numbers is made of the seed and of a hash of its name (keyFor). The counter is
// (position, its lower word first; step; draw). A rule's draws are numbered by `call`, and each may take
// kCountersOfCall counters. The position of a normal number is its element. Neighbouring elements share those
// of uniform numbers.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_RANDOM_PHILOX_H
#define STEPC_RUNTIME_RANDOM_PHILOX_H

#include "runtime/model/Enum.h"
#include "runtime/plan/Fnv1a.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace stepc::plan {
/// The kinds of random numbers. No plan holds them, but IR text has their names, like those of enumerations
/// of plans.
enum class Draw : int64_t { Normal = 0, Uniform = 1, Uniform16 = 2 };
template <>
inline constexpr auto kNames<Draw> =
    std::to_array<std::string_view>({"normal", "uniform", "uniform16"});
} // namespace stepc::plan

namespace stepc::random {
using plan::Draw;

inline constexpr int kRounds = 10;
/// In each round, words 0 and 2 of the counter are multiplied by the factors.
inline constexpr std::array<uint32_t, 2> kFactors = {0xD2511F53, 0xCD9E8D57};
/// After each round, these are added to the two words of the key.
inline constexpr std::array<uint32_t, 2> kGrowth = {0x9E3779B9, 0xBB67AE85};

inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                                      std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    uint64_t a = uint64_t(kFactors[0]) * counter[0], b = uint64_t(kFactors[1]) * counter[2];
    counter = {uint32_t(b >> 32) ^ counter[1] ^ key[0], uint32_t(b),
               uint32_t(a >> 32) ^ counter[3] ^ key[1], uint32_t(a)};
    key = {key[0] + kGrowth[0], key[1] + kGrowth[1]};
  }
  return counter;
}

/// The hash of a parameter's name. All of its 64 bits enter the key (keyFor), so that two parameters of a
/// model do not draw the same numbers.
inline uint64_t keyOf(std::string_view name) {
  plan::Fnv1a hash;
  hash.bytes(name);
  return hash.state;
}
/// The key: the seed, differing by the upper half of the hash, and the lower half.
inline std::array<uint32_t, 2> keyFor(uint32_t seed, uint64_t nameKey) {
  return {seed ^ uint32_t(nameKey >> 32), uint32_t(nameKey)};
}

inline constexpr uint32_t kCountersOfCall = 4;
inline constexpr uint32_t kMostCalls = uint32_t((uint64_t(1) << 32) / kCountersOfCall);
/// The counters of a number of the normal distribution: 12 words.
inline constexpr int kNormalCounters = 3;
/// Bits of a uniform number. f32 holds them exactly.
inline constexpr int kUniformBits = 24;

/// Half of the words that are added up, so that the mean is 0.
inline constexpr int kNormalMean = 4 * kNormalCounters / 2;

/// The sum of 12 uniform numbers less 6, of which the mean is 0 and the variance 1. A uniform number is
/// (w + 1/2) / 2^24, w being the upper 24 bits of a word. The sum is exact, and rounded once as f32.
inline double normal(uint64_t element, uint32_t step, uint32_t call, std::array<uint32_t, 2> key) {
  int64_t sum = kNormalMean - (int64_t(kNormalMean) << kUniformBits);
  for (uint32_t i = 0; i < kNormalCounters; ++i)
    for (uint32_t word : philox(
             {uint32_t(element), uint32_t(element >> 32), step, kCountersOfCall * call + i}, key))
      sum += word >> (32 - kUniformBits);
  return double(sum) / (1 << kUniformBits);
}

inline constexpr int kWords = 4; ///< of a counter

/// Random bits of a uniform number of 24 or of 16 bits.
inline constexpr int bitsOf(Draw draw) { return draw == Draw::Uniform16 ? 16 : kUniformBits; }
/// How many of them have room in a word.
inline constexpr int perWord(Draw draw) { return 32 / bitsOf(draw); }
/// How many neighbouring elements share a counter. The first ones have its first word.
inline constexpr int sharing(Draw draw) { return kWords * perWord(draw); }

/// A uniform number k / 2^bits, at least 0 and below 1. For 24 bits k is the upper ones of a word. Of two
/// elements that share a word, the first has its lower half.
inline double uniform(Draw draw, uint64_t element, uint32_t step, uint32_t call,
                      std::array<uint32_t, 2> key) {
  uint64_t position = element / sharing(draw), number = element % sharing(draw);
  uint32_t word =
      philox({uint32_t(position), uint32_t(position >> 32), step, kCountersOfCall * call},
             key)[number / perWord(draw)];
  bool isLower = perWord(draw) == 2 && number % 2 == 0;
  uint32_t bits = isLower ? word & 0xFFFF : word >> (32 - bitsOf(draw));
  return double(bits) / (1 << bitsOf(draw));
}

/// The number of a draw for an element.
inline double number(Draw draw, uint64_t element, uint32_t step, uint32_t call,
                     std::array<uint32_t, 2> key) {
  return draw == Draw::Normal ? normal(element, step, call, key)
                              : uniform(draw, element, step, call, key);
}

} // namespace stepc::random

#endif
