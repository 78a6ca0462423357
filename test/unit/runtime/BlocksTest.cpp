//===- BlocksTest.cpp - Threads of a block that wait for each other --------===//

#include "stepc/kernel_abi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace {

using namespace testing;
using Block = stepc_emulated_block;

constexpr int64_t kThreads = 96;

void emulate(stepc_emulated_thread thread, std::vector<void *> arguments, int64_t first = 0,
             int64_t last = 1) {
  stepc_rt_emulate(thread, arguments.data(), first, last, kThreads, kThreads * 4, "test");
}

/// The order of threads, from the environment.
struct Seed {
  explicit Seed(const char *text) { setenv("STEPC_EMULATED_SEED", text, 1); }
  ~Seed() { unsetenv("STEPC_EMULATED_SEED"); }
};

template <bool barrier>
void rotate(Block *block, void *const *arguments, int64_t number, int64_t thread, void *memory) {
  auto *shared = static_cast<int32_t *>(memory);
  auto *out = static_cast<int32_t *>(arguments[0]) + number * kThreads;
  shared[thread] = int32_t(number * 1000 + thread);
  if constexpr (barrier)
    stepc_rt_emulated_barrier(block, 0);
  out[thread] = shared[(thread + 1) % kThreads];
}

TEST(Blocks, AllThreadsOfAllBlocksMeetAtABarrier) {
  for (const char *seed : {"1", "2", "3"}) {
    Seed order(seed);
    std::vector<int32_t> found(5 * kThreads, -1);
    emulate(rotate<true>, {found.data()}, 1, 5);
    for (int64_t i = 0; i < 5 * kThreads; ++i)
      EXPECT_EQ(found[i], i < kThreads ? -1 : i / kThreads * 1000 + (i % kThreads + 1) % kThreads);
  }
}

#if !defined(STEPC_SANITIZED) // notes are a race on purpose
// Each thread of an order that is drawn says when it came, before and after a barrier.
void note(Block *block, void *const *arguments, int64_t, int64_t thread, void *) {
  auto &notes = *static_cast<std::vector<int64_t> *>(arguments[0]);
  notes.push_back(thread);
  stepc_rt_emulated_barrier(block, 7);
  notes.push_back(thread);
}

TEST(Blocks, OrderIsThatOfNumbersOrDrawn) {
  auto notesOf = [](const char *seed) {
    std::vector<int64_t> notes;
    if (seed)
      setenv("STEPC_EMULATED_SEED", seed, 1);
    emulate(note, {&notes});
    unsetenv("STEPC_EMULATED_SEED");
    return notes;
  };
  std::vector<int64_t> numbers(kThreads);
  std::iota(numbers.begin(), numbers.end(), 0);
  auto half = [](const std::vector<int64_t> &all, bool second) {
    return std::vector(all.begin() + second * kThreads, all.end() - !second * kThreads);
  };
  std::vector<int64_t> plain = notesOf(nullptr), one = notesOf("1"), two = notesOf("2");
  for (bool second : {false, true}) {
    EXPECT_EQ(half(plain, second), numbers);
    EXPECT_NE(half(one, second), numbers);
    EXPECT_NE(half(one, second), half(two, second));
    EXPECT_THAT(half(one, second), UnorderedElementsAreArray(numbers));
  }
  EXPECT_NE(half(one, false), half(one, true));
  EXPECT_EQ(one, notesOf("1"));
}

// Without the barrier somebody reads what was not written yet.
TEST(Blocks, AMissingBarrierShows) {
  Seed order("1");
  std::vector<int32_t> found(kThreads);
  emulate(rotate<false>, {found.data()});
  EXPECT_THAT(found, Contains(-1)); // NaN of the block's memory
}
#endif

void exchange(Block *block, void *const *arguments, int64_t, int64_t thread, void *) {
  auto *out = static_cast<int32_t *>(arguments[0]);
  int32_t value = int32_t(thread);
  for (int32_t lanes : {16, 5})
    value = 3 * stepc_rt_emulated_shuffle(block, lanes, value, lanes);
  out[thread] = value;
}

TEST(Blocks, LanesOfAWarpExchange) {
  Seed order("4");
  std::vector<int32_t> found(kThreads);
  emulate(exchange, {found.data()});
  for (int64_t i = 0; i < kThreads; ++i)
    EXPECT_EQ(found[i], 9 * (i ^ 16 ^ 5));
}

// Memory of a block is NaN at first, also that of the second.
void begin(Block *block, void *const *arguments, int64_t number, int64_t thread, void *memory) {
  auto *shared = static_cast<float *>(memory);
  static_cast<float *>(arguments[0])[number * kThreads + thread] = shared[thread];
  stepc_rt_emulated_barrier(block, 0);
  shared[thread] = 1;
}

TEST(Blocks, MemoryBeginsAsNaN) {
  std::vector<float> found(2 * kThreads);
  emulate(begin, {found.data()}, 0, 2);
  EXPECT_THAT(found, Each(IsNan()));
}

void leave(Block *block, void *const *, int64_t, int64_t thread, void *) {
  if (thread < 40)
    stepc_rt_emulated_barrier(block, 2);
}
void part(Block *block, void *const *, int64_t, int64_t thread, void *) {
  stepc_rt_emulated_barrier(block, thread < 40);
}
void half(Block *block, void *const *, int64_t, int64_t thread, void *) {
  if (thread % 32 < 16)
    stepc_rt_emulated_shuffle(block, 3, 0, 8);
  stepc_rt_emulated_barrier(block, 0);
}
void far(Block *block, void *const *, int64_t, int64_t, void *) {
  stepc_rt_emulated_shuffle(block, 3, 0, 32);
}

TEST(BlocksDeathTest, ThreadsThatDoNotMeetAreRefused) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      emulate(leave, {}, 6, 7),
      "stepc: emulated kernel test, block 6: expected all threads at one barrier, or those of "
      "a warp at one shuffle, load of matrices or product; found threads 0 to 39 at barrier 2, "
      "threads 40 to 95 at its end");
  EXPECT_DEATH(emulate(part, {}), "threads 0 to 39 at barrier 1, threads 40 to 95 at barrier 0");
  EXPECT_DEATH(emulate(half, {}), "threads 0 to 15 at shuffle 3, threads 16 to 31 at barrier 0");
  EXPECT_DEATH(emulate(far, {}), "at shuffle 3");
}

#if defined(STEPC_SANITIZED)
void overrun(Block *block, void *const *, int64_t, int64_t thread, void *memory) {
  static_cast<volatile int32_t *>(memory)[thread + 1] = 1;
}

// Nothing but barriers orders the threads of a block, and its memory ends where it ends: here
// without a seed, so that results would be right.
TEST(BlocksDeathTest, SanitizersSeeTheThreads) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  std::vector<int32_t> found(kThreads);
  if (std::string(STEPC_SANITIZED) == "race")
    EXPECT_DEATH(emulate(rotate<false>, {found.data()}), "ThreadSanitizer: data race");
  else
    EXPECT_DEATH(emulate(overrun, {}), "AddressSanitizer: heap-buffer-overflow");
}
#endif

} // namespace
