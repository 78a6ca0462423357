//===- ParallelTest.cpp - The built-in pool, and the check of the chip -------===//
#include "runtime/host/Parallel.h"
#include "runtime/core/Chip.h"

#include "gtest/gtest.h"
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

using stepc::runtime::missingFeature;
using stepc::runtime::Parallel;

namespace {

struct Marks {
  std::vector<int> counts;
  Parallel *nested = nullptr;
};

void mark(void *arguments, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; ++i)
    ++static_cast<Marks *>(arguments)->counts[i];
}

// Plain counters: a piece run twice, or before the loop and after it, shows in the sum and under
// ThreadSanitizer.
TEST(Pool, RunsEveryPieceOnce) {
  for (int32_t threads : {1, 2, 3, 5}) {
    Parallel pool;
    pool.startPool(threads);
    EXPECT_EQ(pool.threads(), threads);
    Marks marks;
    for (int64_t round = 0; round < 2000; ++round) {
      int64_t count = round % 37, grain = 1 + round % 5;
      marks.counts.assign(count, 0);
      pool.run(mark, &marks, count, grain);
      ASSERT_EQ(marks.counts, std::vector<int>(count, 1)) << "round " << round;
    }
  }
}

TEST(Pool, WakesAfterASleep) {
  Parallel pool;
  pool.startPool(4);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Marks marks;
    marks.counts.assign(16, 0);
    pool.run(mark, &marks, 16, 1);
    EXPECT_EQ(std::accumulate(marks.counts.begin(), marks.counts.end(), 0), 16);
  }
}

void outer(void *arguments, int64_t first, int64_t last) {
  auto *marks = static_cast<Marks *>(arguments);
  for (int64_t i = first; i < last; ++i) {
    Marks inner;
    inner.counts.assign(8, 0);
    marks->nested->run(mark, &inner, 8, 1);
    marks->counts[i] = std::accumulate(inner.counts.begin(), inner.counts.end(), 0);
  }
}

TEST(Pool, RunsNestedLoopsInline) {
  Parallel pool;
  pool.startPool(3);
  Marks marks;
  marks.counts.assign(50, 0);
  marks.nested = &pool;
  pool.run(outer, &marks, 50, 1);
  EXPECT_EQ(marks.counts, std::vector<int>(50, 8));
}

TEST(Pool, TakesAllCoresByDefault) {
  Parallel pool;
  pool.startPool(0);
  EXPECT_GE(pool.threads(), 1);
}

TEST(Chip, LooksAtVectorExtensionsAndOmitsTheRest) {
  EXPECT_EQ(missingFeature("generic"), "");
  EXPECT_EQ(missingFeature(""), "");
  EXPECT_EQ(missingFeature("generic;"), "");
#if defined(__x86_64__)
  EXPECT_EQ(missingFeature("x86-64;+sse2,+cx8,-avx99,+clzero,,+"), "");
  EXPECT_EQ(missingFeature("future;+sse2,+avx11,+avx12"), "avx11");
  bool avx512 = __builtin_cpu_supports("avx512f"), avx2 = __builtin_cpu_supports("avx2");
  EXPECT_EQ(missingFeature("znver5;+avx512f").empty(), avx512);
  EXPECT_EQ(missingFeature("znver3;+avx2").empty(), avx2);
  EXPECT_EQ(missingFeature("znver3;+avx2,+fma").empty(), avx2 && __builtin_cpu_supports("fma"));
#endif
}

} // namespace
