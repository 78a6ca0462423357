//===- PackArenaTest.cpp - Random buffers, packed --------------------------===//

#include "passes/schedule/PackArena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace stepc::schedule;

namespace {

std::mt19937_64 source(11);
int64_t draw(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(source);
}

bool aliveTogether(const ArenaBuffer &a, const ArenaBuffer &b) {
  return a.first <= b.last && b.first <= a.last;
}
int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Most bytes that live at one time, each padded: no packing needs less.
int64_t lowerBound(const std::vector<ArenaBuffer> &buffers) {
  int64_t most = 0;
  for (const ArenaBuffer &at : buffers) {
    int64_t sum = 0;
    for (const ArenaBuffer &b : buffers)
      if (b.first <= at.first && at.first <= b.last)
        sum += padded(b.bytes);
    most = std::max(most, sum);
  }
  return most;
}

TEST(PackArena, PlacesAreAlignedApartAndInside) {
  int tight = 0, shared = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<ArenaBuffer> buffers;
    int64_t times = draw(1, 30), largest = draw(0, 1) ? 100 : 5000;
    for (int64_t count = draw(0, 40); count > 0; --count) {
      int64_t first = draw(0, times);
      // Few sizes, so that equal ones meet; 0 is one of them: a rank may own nothing.
      buffers.push_back({draw(0, 8) * largest / 8, first, std::min(times, first + draw(0, 6))});
    }
    int64_t arena = packArena(buffers), side = 0;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const ArenaBuffer &a = buffers[i];
      side += padded(a.bytes);
      ASSERT_EQ(a.offset % 64, 0) << "round " << round;
      ASSERT_GE(a.offset, 0);
      ASSERT_LE(a.offset + a.bytes, arena);
      for (size_t j = 0; j < i; ++j) {
        const ArenaBuffer &b = buffers[j];
        if (a.bytes > 0 && b.bytes > 0 && aliveTogether(a, b))
          ASSERT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset)
              << "round " << round << ": buffers " << j << " and " << i << " overlap";
      }
    }
    int64_t least = lowerBound(buffers);
    ASSERT_GE(arena, least);
    ASSERT_LE(arena, side);
    tight += arena == least;
    shared += arena < side;
  }
  // What was drawn tells something: places are shared, and most packings cannot be improved on.
  EXPECT_GT(shared, 1500);
  EXPECT_GT(tight, 1000);
}

TEST(PackArena, IsDeterministic) {
  for (int round = 0; round < 100; ++round) {
    std::vector<ArenaBuffer> buffers;
    for (int i = 0; i < 30; ++i)
      buffers.push_back({draw(1, 4) * 64, draw(0, 5), draw(5, 9)});
    std::vector<ArenaBuffer> again = buffers;
    ASSERT_EQ(packArena(buffers), packArena(again));
    for (size_t i = 0; i < buffers.size(); ++i)
      ASSERT_EQ(buffers[i].offset, again[i].offset);
  }
}

TEST(PackArena, NothingNeedsNothing) {
  std::vector<ArenaBuffer> none;
  EXPECT_EQ(packArena(none), 0);
}

} // namespace
