//===- ParallelTest.cpp - The built-in pool, and the check of the chip -------===//
#include "runtime/host/Parallel.h"
#include "runtime/core/Chip.h"

#include "gtest/gtest.h"
#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
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
      ASSERT_EQ(pool.run(mark, &marks, count, grain), count);
      ASSERT_EQ(pool.takeProblem(), "");
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

// --- loops of the trainer's ---

using Pieces = std::vector<std::pair<int64_t, int64_t>>;

/// A loop that runs these pieces, whatever it is asked for.
struct Given {
  Pieces pieces;
  static void run(void *context, stepc_task task, void *arguments, int64_t, int64_t) {
    for (auto [first, last] : static_cast<Given *>(context)->pieces)
      task(arguments, first, last);
  }
};

void skip(void *, int64_t, int64_t) {}

TEST(TrainersLoop, IsHeldToEachItemOnce) {
  struct Case {
    Pieces pieces;
    int64_t ran;
    const char *problem; // "" where all is well
  };
  for (const Case &each :
       std::vector<Case>{{{{0, 10}}, 10, ""},
                         {{{5, 10}, {0, 5}}, 10, ""},
                         {{{9, 10}, {0, 1}, {1, 9}, {4, 4}}, 10, ""},
                         {{}, 0, "found 0 run: pieces that were dropped"},
                         {{{0, 5}}, 5, "found 5 run: pieces that were dropped"},
                         {{{0, 5}, {6, 10}}, 9, "found 9 run: pieces that were dropped"},
                         {{{0, 5}, {5, 10}, {5, 10}}, 15, "found 15 run: pieces that ran again"},
                         {{{0, 10}, {0, 10}}, 20, "found 20 run: pieces that ran again"},
                         {{{0, 5}, {0, 5}},
                          10,
                          "found 10 run: pieces that ran again and others that were dropped"},
                         {{{0, 6}, {4, 8}},
                          10,
                          "found 10 run: pieces that ran again and others that were dropped"},
                         {{{0, 10}, {10, 11}}, 10, "found items 10 to 11 of a loop of 10"},
                         {{{0, 10}, {-1, 0}}, 10, "found items -1 to 0 of a loop of 10"},
                         {{{0, 10}, {7, 3}}, 10, "found items 7 to 3 of a loop of 10"},
                         {{{0, 11}}, 0, "found 0 run: pieces that were dropped"}}) {
    Given given{each.pieces};
    Parallel loop;
    loop.use(Given::run, &given);
    EXPECT_EQ(loop.run(skip, nullptr, 10, 1), each.ran);
    EXPECT_EQ(loop.hasProblem(), *each.problem != 0) << each.problem;
    std::string problem = loop.takeProblem();
    EXPECT_NE(problem.find(each.problem), std::string::npos) << problem;
    EXPECT_EQ(problem.empty(), *each.problem == 0) << problem;
    EXPECT_FALSE(loop.hasProblem());
    EXPECT_EQ(loop.takeProblem(), "");
  }
}

// Any pieces at all, beside a list of how often each item ran.
TEST(TrainersLoop, IsHeldToEachItemOnceWhateverItsPieces) {
  std::mt19937 random(3);
  int64_t good = 0;
  for (int round = 0; round < 20000; ++round) {
    int64_t count = 2 + int64_t(random() % 12);
    Given given;
    for (int64_t first = 0; first < count;) {
      int64_t last = std::min<int64_t>(count, first + 1 + int64_t(random() % 5));
      given.pieces.emplace_back(first, last);
      first = last;
    }
    for (auto changes = random() % 3; changes > 0; --changes) {
      auto &piece = given.pieces[random() % given.pieces.size()];
      if (random() % 2)
        piece = given.pieces[random() % given.pieces.size()];
      else
        piece.first = int64_t(random()) % (piece.second + 1);
    }
    std::shuffle(given.pieces.begin(), given.pieces.end(), random);
    Marks marks;
    marks.counts.assign(count, 0);
    Parallel loop;
    loop.use(Given::run, &given);
    loop.run(mark, &marks, count, 1);
    bool isOnce = marks.counts == std::vector<int>(count, 1);
    ASSERT_EQ(loop.hasProblem(), !isOnce) << round;
    good += isOnce;
  }
  EXPECT_GT(good, 4000);
  EXPECT_LT(good, 16000);
}

// What comes when the loop is over is not run: its arguments are gone.
TEST(TrainersLoop, RunsNothingAfterItsEnd) {
  struct Kept {
    stepc_task task;
    void *arguments;
  } kept{};
  Parallel loop;
  loop.use(
      [](void *context, stepc_task task, void *arguments, int64_t count, int64_t) {
        *static_cast<Kept *>(context) = {task, arguments};
        task(arguments, 0, count);
      },
      &kept);
  Marks marks;
  marks.counts.assign(8, 0);
  EXPECT_EQ(loop.run(mark, &marks, 8, 1), 8);
  EXPECT_FALSE(loop.hasProblem());
  kept.task(kept.arguments, 0, 8);
  EXPECT_EQ(marks.counts, std::vector<int>(8, 1));
  EXPECT_NE(loop.takeProblem().find("of a loop of 8 that has ended"), std::string::npos);
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
