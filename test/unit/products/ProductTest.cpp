//===- ProductTest.cpp - Products, bit for bit -----------------------------===//

#include "passes/cost/ScratchBound.h"
#include "passes/kernels/products/Tiling.h"
#include "test/support/Tier.h"
#include "test/unit/products/Prepared.h"

#include <gtest/gtest.h>

using namespace stepc;
using namespace stepc::test;

namespace {

/// The product on every chip that this machine can be, and by the kernels of a GPU, against the
/// reference.
void check(const Case &c, Engine &engine) {
  const ReferenceProduct &p = c.product;
  Prepared prepared(c, engine);
  for (const TargetShape &target : targetsOfThisMachine()) {
    SCOPED_TRACE(describe(c) + " for " + chipName(target));
    if (!target.half &&
        (uses(p.lhs) || uses(p.rhs) || uses(p.out) || (p.hasAddend && uses(p.addend))))
      continue;
    ASSERT_TRUE(prepared.run(compileProduct(p, &target), target.fma ? Order::Fused : Order::Rounded,
                             engine));
  }
  ThreadOrder order(engine);
  SCOPED_TRACE(describe(c) + " for a GPU, " + order.text());
  ASSERT_TRUE(prepared.run(compileProduct(p, nullptr), p.order, engine));
}

TEST(Product, RandomShapesTypesAndFlags) {
  uint32_t seed = testSeed();
  Engine engine(seed);
  SCOPED_TRACE("STEPC_TEST_SEED=" + std::to_string(seed));
  std::printf("STEPC_TEST_SEED=%u\n", seed);
  int symmetric = 0, shifted = 0, special = 0;
  const int64_t kCases = draws(10);
  for (int64_t i = 0; i < kCases && !HasFatalFailure(); ++i) {
    Case c;
    ReferenceProduct &p = c.product;
    p.slots = draw(engine, 1, 3);
    p.symmetric = draw(engine, 0, 1);
    p.m = drawExtent(engine), p.n = p.symmetric ? p.m : drawExtent(engine),
    p.k = drawExtent(engine);
    p.lhs = drawStorage(engine), p.rhs = drawStorage(engine);
    p.out = drawStorage(engine), p.addend = drawStorage(engine);
    p.hasAddend = draw(engine, 0, 1);
    p.transposeLhs = draw(engine, 0, 1), p.transposeRhs = draw(engine, 0, 1);
    p.alpha = drawFactor(engine), p.beta = drawFactor(engine);
    p.shift = p.symmetric && draw(engine, 0, 1) ? float(draw(engine, -20, 20)) / 4 : 0;
    shifted += p.shift != 0;
    p.order = Order::Fused;
    c.special = draw(engine, 0, 2) == 0;
    c.isAligned = draw(engine, 0, 1);
    symmetric += p.symmetric, special += c.special;
    check(c, engine);
  }
  std::printf("drew %lld products: %d symmetric, %d shifted, %d with special values\n",
              (long long)kCases, symmetric, shifted, special);
}

TEST(Product, SmallAndEmptyBlocks) {
  Engine engine(1);
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                         {1, 300, 7},
                         {300, 1, 7},
                         {13, 7, 5},
                         {64, 64, 64},
                         {0, 5, 3},
                         {5, 0, 3},
                         {5, 4, 0},
                         {14, 32, 16},
                         {28, 64, 17}})
    check({plain(2, m, n, k), false}, engine);
  check({plain(0, 5, 4, 3), false}, engine);
}

TEST(Product, AddendOfAnEmptySumIsKept) {
  Engine engine(2);
  ReferenceProduct p = plain(1, 20, 40, 0);
  p.hasAddend = true, p.beta = -2.5f;
  check({p, true}, engine);
}

/// Extents that need several items in both directions, and deep k.
TEST(Product, ManyItems) {
  Engine engine(3);
  ReferenceProduct p = plain(1, 333, 333, 300);
  p.symmetric = p.transposeRhs = p.hasAddend = true;
  p.lhs = p.rhs = p.out = p.addend = Storage::BF16;
  p.alpha = 2.0315f, p.beta = -4.775f;
  check({p, false}, engine);
  p.lhs = p.rhs = p.out = p.addend = Storage::F32;
  p.shift = 3.4375f;
  check({p, false}, engine);
  check({plain(1, 257, 391, 1100), false}, engine);
}

// Tiles of all three sizes, whole and ragged, several slabs of k and a part of one.
TEST(Product, TilesOfAGpu) {
  Engine engine(4);
  for (auto [m, n, k] : {std::array<int64_t, 3>{64, 128, 96},
                         {128, 64, 100},
                         {131, 67, 33},
                         {512, 512, 32},
                         {513, 640, 19}})
    for (int transposed = 0; transposed < 4 && !HasFatalFailure(); ++transposed) {
      ReferenceProduct p = plain(1, m, n, k);
      p.lhs = transposed & 1 ? Storage::BF16 : Storage::F32;
      p.rhs = p.out = Storage::BF16;
      p.transposeLhs = transposed & 1, p.transposeRhs = transposed & 2;
      Case c{p, true, transposed != 2};
      Prepared prepared(c, engine);
      ThreadOrder order(engine);
      SCOPED_TRACE(describe(c) + ", " + order.text());
      ASSERT_TRUE(prepared.run(compileProduct(p, nullptr), p.order, engine));
    }
  for (int64_t m : {128, 600})
    for (Storage storage : {Storage::F32, Storage::F16}) {
      ReferenceProduct p = plain(2, m, m, 40);
      p.lhs = p.rhs = p.out = p.addend = storage;
      p.symmetric = p.transposeRhs = p.hasAddend = true;
      Case c{p, false, true};
      Prepared prepared(c, engine);
      ThreadOrder order(engine);
      SCOPED_TRACE(describe(c) + ", " + order.text());
      ASSERT_TRUE(prepared.run(compileProduct(p, nullptr), p.order, engine));
    }
}

// Threads that do not wait read what is not there yet; a bound that is one too far reads or writes
// what stands behind.
TEST(Product, MistakesOfAGpuKernelShow) {
  Engine engine(5);
  for (bool symmetric : {false, true}) {
    auto prepare = [&](int64_t m, int64_t n, int64_t k) {
      ReferenceProduct p = plain(2, m, n, k);
      p.symmetric = p.transposeRhs = symmetric;
      return Prepared({p, false}, engine);
    };
    auto runs = [&](Prepared &prepared, Fault fault) {
      return prepared.run(compileProduct(prepared.p, nullptr, fault), prepared.p.order, engine);
    };
    // So small that guards see what is written beyond.
    Prepared small = prepare(9, symmetric ? 9 : 13, 7);
    EXPECT_TRUE(runs(small, Fault::None));
    EXPECT_FALSE(runs(small, Fault::OneMore));
    Prepared large = prepare(33, 33, 70);
    EXPECT_TRUE(runs(large, Fault::None));
    int wrong = 0;
    for (int i = 0; i < 4; ++i) {
      ThreadOrder order(engine);
      wrong += !runs(large, Fault::NoBarriers);
    }
    EXPECT_GT(wrong, 0);
  }
}

// Levels before the target's allow for a bound from shapes alone.
TEST(Product, ScratchIsWithinTheBoundForEveryChip) {
  for (int64_t bits : {128, 256, 512})
    for (bool fma : {false, true})
      for (int64_t m : {1, 2, 5, 6, 7, 13, 14, 15, 16, 17, 64, 333, 4096})
        for (int64_t n : {1, 3, 8, 15, 16, 17, 31, 33, 768, 4096})
          for (int64_t k : {0, 1, 2, 3, 16, 100, 4096})
            EXPECT_LE(4 * kernels::Tiling(m, n, k, fma, {bits, fma}).scratchElements(),
                      cost::productScratchBound(m, n, k))
                << m << " x " << n << " x " << k << " with " << bits << (fma ? " fma" : "");
}

} // namespace
