//===- WarpsTest.cpp - What the lanes of a warp do together ----------------===//

#include "stepc/kernel_abi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using namespace testing;
using Block = stepc_emulated_block;

constexpr int64_t kWarp = 32, kMemory = 4096;

/// A block of so many threads, in an order that a seed draws, or in that of their numbers.
void emulate(stepc_emulated_thread thread, std::vector<void *> arguments, int64_t threads = kWarp,
             const char *seed = nullptr) {
  if (seed)
    setenv("STEPC_EMULATED_SEED", seed, 1);
  stepc_rt_emulate(thread, arguments.data(), 0, 1, threads, kMemory, "test");
  unsetenv("STEPC_EMULATED_SEED");
}

/// Address of 16 bytes of the block's memory.
char *access(void *memory, int64_t number) { return static_cast<char *>(memory) + 16 * number; }

//===--- matrices ---===//

/// Matrix m has 100 m + 8 row + column; each lane stores one row, and all load as PTX's ldmatrix does.
template <int32_t count, bool transposed>
void load(Block *block, void *const *arguments, int64_t, int64_t thread, void *memory) {
  uint16_t row[8];
  for (int64_t column = 0; column < 8; ++column)
    row[column] = uint16_t(thread / 8 * 100 + thread % 8 * 8 + column);
  std::memcpy(access(memory, thread), row, sizeof(row));
  stepc_rt_emulated_barrier(block, 0);
  auto *words = static_cast<int32_t *>(arguments[0]) + thread * count;
  // Lanes without a row may bring any address.
  const void *from = thread < 8 * count ? access(memory, thread) : nullptr;
  stepc_rt_emulated_load_matrices(block, 1, from, count, transposed, words);
}

TEST(Warps, LanesGetTwoNeighboursOfEachMatrix) {
  for (const char *seed : {static_cast<const char *>(nullptr), "1"})
    for (bool transposed : {false, true}) {
      std::vector<int32_t> two(kWarp * 2), four(kWarp * 4);
      emulate(transposed ? load<2, true> : load<2, false>, {two.data()}, kWarp, seed);
      emulate(transposed ? load<4, true> : load<4, false>, {four.data()}, kWarp, seed);
      for (int32_t lane = 0; lane < kWarp; ++lane)
        for (int32_t matrix = 0; matrix < 4; ++matrix) {
          int32_t line = lane / 4, pair = lane % 4 * 2;
          int32_t first = matrix * 100 + (transposed ? pair * 8 + line : line * 8 + pair);
          int32_t word = first | (first + (transposed ? 8 : 1)) << 16;
          EXPECT_EQ(four[lane * 4 + matrix], word) << lane;
          if (matrix < 2) {
            EXPECT_EQ(two[lane * 2 + matrix], word) << lane;
          }
        }
    }
}

void loadOdd(Block *block, void *const *, int64_t, int64_t, void *memory) {
  int32_t words[1];
  stepc_rt_emulated_load_matrices(block, 1, access(memory, 0) + 2, 1, 0, words);
}
void loadByHalf(Block *block, void *const *, int64_t, int64_t thread, void *memory) {
  int32_t words[1];
  if (thread < 16)
    stepc_rt_emulated_load_matrices(block, 1, access(memory, 0), 1, 0, words);
}
void loadApart(Block *block, void *const *, int64_t, int64_t thread, void *memory) {
  int32_t words[1];
  stepc_rt_emulated_load_matrices(block, thread < 16, access(memory, 0), 1, 0, words);
}
void loadSome(Block *block, void *const *, int64_t, int64_t, void *memory) {
  int32_t words[1];
  stepc_rt_emulated_load_matrices(block, 1, access(memory, 0), 1, 0, words);
}

TEST(WarpsDeathTest, LoadsOfMatricesAreRefused) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(emulate(loadOdd, {}),
               "stepc: emulated kernel test, block 0, thread 0: expected a row of a matrix at a "
               "multiple of 16 bytes, found 0x");
  EXPECT_DEATH(emulate(loadByHalf, {}),
               "expected all threads at one barrier, or those of a warp at one shuffle, load of "
               "matrices or product; found threads 0 to 15 at load 1, threads 16 to 31 at its end");
  EXPECT_DEATH(emulate(loadApart, {}), "threads 0 to 15 at load 1, threads 16 to 31 at load 0");
  // A warp of which 8 lanes are missing.
  EXPECT_DEATH(emulate(loadSome, {}, kWarp + 24), "threads 0 to 31 .*threads 32 to 55 at load 1");
}

//===--- products ---===//

/// Row i of the left operand is i + 1, column j of the right one 2^j, in bf16: sums 16 (i + 1) 2^j on
/// what stood there.
void multiply(Block *block, void *const *arguments, int64_t, int64_t thread, void *) {
  auto twice = [](float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return int32_t(bits >> 16 | (bits & 0xffff0000));
  };
  int32_t words[10];
  for (int i = 0; i < 4; ++i)
    words[i] = twice(float(thread / 4 + i % 2 * 8 + 1));
  words[4] = words[5] = twice(float(1 << thread / 4));
  float sums[4] = {1, 2, 3, 4};
  std::memcpy(words + 6, sums, sizeof(sums));
  stepc_rt_emulated_multiply_matrices(block, 2, 0, words);
  std::memcpy(static_cast<float *>(arguments[0]) + thread * 4, words + 6, sizeof(sums));
}

TEST(Warps, AProductIsOfAllLanes) {
  for (const char *seed : {static_cast<const char *>(nullptr), "2"}) {
    std::vector<float> sums(2 * kWarp * 4);
    emulate(multiply, {sums.data()}, 2 * kWarp, seed);
    for (int thread = 0; thread < 2 * kWarp; ++thread)
      for (int i = 0; i < 4; ++i) {
        // In the second warp operands are of threads 32 on: rows and columns from 8 on.
        int base = thread / kWarp * 8, lane = thread % kWarp;
        int row = base + lane / 4 + i / 2 * 8, column = base + lane % 4 * 2 + i % 2;
        EXPECT_EQ(sums[thread * 4 + i], float(i + 1) + 16.0f * float(row + 1) * float(1 << column));
      }
  }
}

void multiplyOrLoad(Block *block, void *const *, int64_t, int64_t thread, void *memory) {
  int32_t words[10] = {};
  if (thread == 5)
    stepc_rt_emulated_load_matrices(block, 2, access(memory, 0), 1, 0, words);
  else
    stepc_rt_emulated_multiply_matrices(block, 2, 0, words);
}
void multiplySome(Block *block, void *const *, int64_t, int64_t, void *) {
  int32_t words[10] = {};
  stepc_rt_emulated_multiply_matrices(block, 2, 0, words);
}

TEST(WarpsDeathTest, ProductsAreRefused) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(emulate(multiplyOrLoad, {}),
               "found threads 0 to 4 at product 2, threads 5 to 5 at load 2, threads 6 to 31 at "
               "product 2");
  EXPECT_DEATH(emulate(multiplySome, {}, 31), "threads 0 to 30 at product 2");
}

//===--- copies ---===//

/// Two groups of a copy each, the second of zeros: what stands in the block's memory when one may still be
/// under way, and when none may.
void copy(Block *block, void *const *arguments, int64_t, int64_t thread, void *memory) {
  auto *out = static_cast<int32_t *>(arguments[0]) + thread * 4;
  auto *shared = reinterpret_cast<int32_t *>(access(memory, thread * 2));
  alignas(16) int32_t from[4] = {1, 2, 3, 4};
  stepc_rt_emulated_copy_async(block, shared, from, 16);
  stepc_rt_emulated_commit_group(block);
  stepc_rt_emulated_copy_async(block, shared + 4, from, 0);
  stepc_rt_emulated_commit_group(block);
  stepc_rt_emulated_wait_group(block, 1);
  out[0] = shared[3], out[1] = shared[4];
  stepc_rt_emulated_wait_group(block, 0);
  out[2] = shared[3], out[3] = shared[4];
}

TEST(Warps, CopiesAreThereWhenTheirGroupWasWaitedFor) {
  for (const char *seed : {static_cast<const char *>(nullptr), "1", "2", "3"}) {
    std::vector<int32_t> found(kWarp * 4);
    emulate(copy, {found.data()}, kWarp, seed);
    int early = 0;
    for (int64_t thread = 0; thread < kWarp; ++thread) {
      const int32_t *out = found.data() + thread * 4;
      EXPECT_EQ(out[0], 4);
      EXPECT_THAT(out[1], AnyOf(-1, 0)); // NaN of the block's memory, or zeros that came at once
      EXPECT_EQ(out[2], 4);
      EXPECT_EQ(out[3], 0);
      early += out[1] == 0;
    }
    // As late as they may, unless that is drawn.
    EXPECT_TRUE(seed ? early > 0 && early < kWarp : early == 0) << early;
  }
}

void copyToOdd(Block *block, void *const *, int64_t, int64_t, void *memory) {
  alignas(16) char from[16] = {};
  stepc_rt_emulated_copy_async(block, access(memory, 1) + 8, from, 16);
}
void copyFromOdd(Block *block, void *const *, int64_t, int64_t thread, void *memory) {
  alignas(16) char from[32] = {};
  // A copy of no bytes does not look at its source; it still writes, so each thread has a place.
  stepc_rt_emulated_copy_async(block, access(memory, thread), from + 2, thread == 3 ? 16 : 0);
}

TEST(WarpsDeathTest, CopiesAtOddAddressesAreRefused) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(emulate(copyToOdd, {}),
               "thread 0: expected a copy's target at a multiple of 16 bytes, found 0x");
  EXPECT_DEATH(emulate(copyFromOdd, {}),
               "thread 3: expected a copy's source at a multiple of 16 bytes, found 0x");
}

} // namespace
