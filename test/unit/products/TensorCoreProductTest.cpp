//===- TensorCoreProductTest.cpp - Products on tensor cores, bit for bit ---===//

#include "test/support/Tier.h"
#include "test/unit/products/Prepared.h"

#include <gtest/gtest.h>

using namespace stepc;
using namespace stepc::test;

namespace {

/// The kernel of a GPU alone, threads in an order that is drawn.
void checkOnGpu(const Case &c, Engine &engine) {
  Prepared prepared(c, engine);
  ThreadOrder order(engine);
  SCOPED_TRACE(describe(c) + ", " + order.text());
  ASSERT_TRUE(prepared.run(compileProduct(c.product, nullptr), c.product.order, engine));
}

ReferenceProduct onTensorCores(int64_t slots, int64_t m, int64_t n, int64_t k, Storage storage) {
  ReferenceProduct p = plain(slots, m, n, k);
  p.lhs = p.rhs = storage;
  p.order = Order::TensorCore;
  return p;
}

// Blocks in pieces of any size and order, warps in any order, copies early or late, operands at any
// address: the bits are those of the shape.
TEST(TensorCoreProduct, RandomShapesTypesAndFlags) {
  uint32_t seed = testSeed();
  Engine engine(seed);
  SCOPED_TRACE("STEPC_TEST_SEED=" + std::to_string(seed));
  std::printf("STEPC_TEST_SEED=%u\n", seed);
  for (int i = 0; i < 24 && !HasFatalFailure(); ++i) {
    Case c;
    ReferenceProduct &p = c.product;
    p = onTensorCores(draw(engine, 1, 3), drawExtent(engine), drawExtent(engine),
                      drawExtent(engine), draw(engine, 0, 1) ? Storage::BF16 : Storage::F16);
    p.symmetric = draw(engine, 0, 1);
    p.n = p.symmetric ? p.m : p.n;
    p.out = drawStorage(engine), p.addend = drawStorage(engine);
    p.hasAddend = draw(engine, 0, 1);
    p.transposeLhs = draw(engine, 0, 1), p.transposeRhs = draw(engine, 0, 1);
    p.alpha = drawFactor(engine), p.beta = drawFactor(engine);
    p.shift = p.symmetric && draw(engine, 0, 1) ? 3.4375f : 0;
    c.special = draw(engine, 0, 2) == 0;
    c.isAligned = draw(engine, 0, 1);
    checkOnGpu(c, engine);
  }
}

// Every extent that a part of a tile has, and every tile, whole and ragged; more slabs than stages.
TEST(TensorCoreProduct, EdgesAndTiles) {
  Engine engine(6);
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                         {17, 9, 15},
                         {33, 65, 8},
                         {5, 4, 0},
                         {96, 64, 208},
                         {64, 136, 65},
                         {512, 512, 72},
                         {520, 513, 33}})
    for (int transposed = 0; transposed < 4 && !HasFatalFailure(); transposed += 1 + (m >= 512)) {
      ReferenceProduct p = onTensorCores(1, m, n, k, Storage::BF16);
      p.transposeLhs = transposed & 1, p.transposeRhs = transposed & 2;
      p.out = m % 2 ? Storage::F32 : Storage::BF16;
      checkOnGpu({p, false, transposed != 2}, engine);
    }
  for (int64_t m : {40, 136, 520}) {
    ReferenceProduct p = onTensorCores(2, m, m, 48, Storage::F16);
    p.out = p.addend = m == 136 ? Storage::F32 : Storage::BF16;
    p.symmetric = p.transposeRhs = p.hasAddend = true;
    checkOnGpu({p, false, true}, engine);
  }
}

// What is computed beside a block, and how many of them, changes none of its bits.
TEST(TensorCoreProduct, ABlockDoesNotDependOnItsBatch) {
  Engine engine(7);
  ReferenceProduct p = onTensorCores(3, 72, 40, 130, Storage::BF16);
  Prepared batch({p, false, true}, engine);
  ASSERT_TRUE(batch.run(compileProduct(p, nullptr), p.order, engine));
  Buffer all(p.out, p.slots * p.m * p.n), one(p.out, p.m * p.n);
  batch.p.run(batch.lhs.data(), batch.rhsData, nullptr, all.data());
  p.slots = 1;
  Prepared alone({p, false, true}, engine);
  std::memcpy(alone.lhs.data(), static_cast<char *>(batch.lhs.data()) + 2 * p.m * p.k * 2,
              p.m * p.k * 2);
  std::memcpy(alone.rhs.data(), static_cast<char *>(batch.rhs.data()) + 2 * p.k * p.n * 2,
              p.k * p.n * 2);
  ASSERT_TRUE(alone.run(compileProduct(p, nullptr), p.order, engine));
  p.run(alone.lhs.data(), alone.rhsData, nullptr, one.data());
  EXPECT_EQ(
      std::memcmp(one.data(), static_cast<char *>(all.data()) + 2 * p.m * p.n * 4, p.m * p.n * 4),
      0);
}

// X · Xᵀ made as a symmetric product is what the plain product makes, whose halves mirror each other: of
// both orders of the factors the model makes the same sum.
TEST(TensorCoreProduct, ASymmetricResultHasTheBitsOfBothHalves) {
  Engine engine(10);
  for (auto [m, k] : {std::pair<int64_t, int64_t>{1, 9}, {33, 70}, {72, 100}, {130, 40}, {520, 24}})
    for (Storage out : {Storage::F32, Storage::BF16}) {
      ReferenceProduct p = onTensorCores(2, m, m, k, Storage::BF16);
      p.symmetric = p.transposeRhs = true;
      p.out = out;
      Prepared prepared({p, false, k % 8 == 0}, engine);
      Code symmetric = compileProduct(p, nullptr);
      p.symmetric = false;
      Code plain = compileProduct(p, nullptr);
      ASSERT_TRUE(symmetric.error.empty() && plain.error.empty());
      Buffer made(out, p.slots * m * m), whole(out, p.slots * m * m);
      for (auto [code, result] : {std::pair(&symmetric, &made), {&plain, &whole}}) {
        ThreadOrder order(engine);
        runInPieces(*code, {prepared.lhs.data(), prepared.lhs.data(), result->data(), nullptr},
                    nullptr, p.slots, engine);
      }
      EXPECT_EQ(made.firstDifference(whole), -1) << m << " x " << k;
      for (int64_t slot = 0; slot < p.slots; ++slot)
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < i; ++j)
            ASSERT_EQ(readNumber(made.data(), out, (slot * m + i) * m + j),
                      readNumber(made.data(), out, (slot * m + j) * m + i))
                << m << " x " << k << ", row " << i << " column " << j;
    }
}

// The model cuts off: of nine terms each less than 2^-24 of the largest, and once 2^-23 of the sum.
TEST(TensorCoreProduct, ErrorIsWithinItsBound) {
  Engine engine(8);
  ReferenceProduct p = onTensorCores(1, 48, 40, 1000, Storage::BF16);
  Prepared prepared({p, false, true}, engine);
  ASSERT_TRUE(prepared.run(compileProduct(p, nullptr), p.order, engine));
  double squares = 0, exactSquares = 0;
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      double exact = 0, magnitude = 0;
      for (int64_t s = 0; s < p.k; ++s) {
        double term = double(p.left(prepared.lhs.data(), 0, i, s)) *
                      double(p.right(prepared.rhsData, 0, s, j));
        exact += term, magnitude += std::abs(term);
      }
      double error = p.sum(prepared.lhs.data(), prepared.rhsData, 0, i, j) - exact;
      EXPECT_LE(std::abs(error), double(p.k) / 8 * (9 * 0x1p-24 + 0x1p-23) * magnitude);
      squares += error * error, exactSquares += exact * exact;
    }
  EXPECT_LE(std::sqrt(squares / exactSquares), 1e-5);
}

// A barrier or a wait that is missing, a wait that lets one group more be under way, a bound that is one
// too far.
TEST(TensorCoreProduct, MistakesShow) {
  Engine engine(9);
  ReferenceProduct p = onTensorCores(1, 72, 72, 640, Storage::BF16);
  Prepared prepared({p, false, true}, engine);
  auto wrongOf = [&](Prepared &given, Fault fault) {
    Code code = compileProduct(given.p, nullptr, fault);
    int wrong = 0;
    for (int64_t i = 0; i < draws(5); ++i) {
      ThreadOrder order(engine);
      wrong += !given.run(code, given.p.order, engine);
    }
    return wrong;
  };
  prepared.p.order = Order::TensorCore;
  EXPECT_EQ(wrongOf(prepared, Fault::None), 0);
  for (Fault fault : {Fault::NoBarriers, Fault::NoWaits, Fault::EarlyWaits})
    EXPECT_GT(wrongOf(prepared, fault), 0);
  Prepared small({onTensorCores(2, 9, 13, 7, Storage::F16), false}, engine);
  EXPECT_EQ(wrongOf(small, Fault::None), 0);
  EXPECT_GT(wrongOf(small, Fault::OneMore), 0);
}

} // namespace
