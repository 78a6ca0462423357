//===- ProductTest.cpp - Products, bit for bit -----------------------------===//

#include "passes/cost/ScratchBound.h"
#include "passes/kernels/products/Tiling.h"
#include "test/unit/products/Random.h"

#include <gtest/gtest.h>

using namespace stepc;
using namespace stepc::test;

namespace {

struct Case {
  ReferenceProduct product;
  bool special;
  bool isAligned = false; ///< buffers, at 16 bytes
};

std::string describe(const Case &c) {
  const ReferenceProduct &p = c.product;
  std::string text = "slots " + std::to_string(p.slots) + ", " + std::to_string(p.m) + " x " +
                     std::to_string(p.n) + " x " + std::to_string(p.k) + ", " + nameOf(p.lhs) +
                     " · " + nameOf(p.rhs) + " -> " + nameOf(p.out);
  if (p.hasAddend)
    text += std::string(" plus ") + nameOf(p.addend);
  text += p.transposeLhs ? ", lhs transposed" : "";
  text += p.transposeRhs ? ", rhs transposed" : "";
  text += p.symmetric ? ", symmetric" : "";
  return text + (c.special ? ", special values" : "") + (c.isAligned ? ", aligned" : "");
}

/// By the kernels of a GPU where no target is given, in the product's order.
Code compileProduct(const ReferenceProduct &p, const TargetShape *target,
                    Fault fault = Fault::None) {
  std::vector<std::string> types = {
      p.transposeLhs ? memref(p.lhs, p.k, p.m) : memref(p.lhs, p.m, p.k),
      p.transposeRhs ? memref(p.rhs, p.n, p.k) : memref(p.rhs, p.k, p.n), memref(p.out, p.m, p.n)};
  if (p.hasAddend)
    types.push_back(memref(p.addend, p.m, p.n));
  char flags[160];
  std::snprintf(flags, sizeof(flags), "{alpha = %.17e : f64, beta = %.17e : f64%s%s%s}", p.alpha,
                p.beta, p.transposeLhs ? ", transpose_lhs" : "",
                p.transposeRhs ? ", transpose_rhs" : "", p.symmetric ? ", symmetric" : "");
  std::string text = "optim.product %0, %1 " + std::string(p.hasAddend ? "plus %3 " : "") +
                     "outs(%2 : " + types[2] + ") " + flags + " : " + types[0] + ", " + types[1] +
                     (p.hasAddend ? ", " + types[3] : "");
  return target ? compile(text, types, *target)
                : compileEmulated(text, types, fault, p.order == Order::TensorCore);
}

bool uses(Storage storage) { return storage == Storage::F16; }

/// What a product is given and should make.
struct Prepared {
  Prepared(const Case &c, Engine &engine)
      : p(c.product), lhs(p.lhs, p.slots * p.m * p.k, c.isAligned),
        rhs(p.rhs, p.slots * p.k * p.n, c.isAligned),
        addend(p.addend, p.slots * p.m * p.n, c.isAligned), isAligned(c.isAligned) {
    lhs.fill(engine, c.special);
    rhs.fill(engine, c.special);
    addend.fill(engine, c.special);
    // The symmetric product that Newton–Schulz asks for: X · Xᵀ.
    bool same = p.symmetric && p.lhs == p.rhs && p.transposeLhs != p.transposeRhs;
    rhsData = same ? lhs.data() : rhs.data();
  }
  /// Whether its kernels make it, and write nothing else.
  testing::AssertionResult run(const Code &code, Order order, Engine &engine) {
    if (!code.error.empty())
      return testing::AssertionFailure() << code.error;
    p.order = order;
    Buffer expected(p.out, p.slots * p.m * p.n), actual(p.out, expected.elements, isAligned);
    p.run(lhs.data(), rhsData, addend.data(), expected.data());
    Buffer scratch(Storage::F32, p.slots * code.scratchBytesPerBlock / 4);
    runInPieces(code, {lhs.data(), rhsData, actual.data(), addend.data()}, scratch.data(), p.slots,
                engine);
    int64_t at = actual.firstDifference(expected);
    if (at != -1)
      return testing::AssertionFailure()
             << "expected " << readNumber(expected.data(), p.out, at) << ", found "
             << readNumber(actual.data(), p.out, at) << " in block " << at / (p.m * p.n) << " row "
             << at % (p.m * p.n) / p.n << " column " << at % p.n;
    if (!actual.guardsIntact() || !scratch.guardsIntact() || !lhs.guardsIntact())
      return testing::AssertionFailure() << "something outside of the result was written";
    return testing::AssertionSuccess();
  }

  ReferenceProduct p;
  Buffer lhs, rhs, addend;
  bool isAligned;
  void *rhsData;

  Prepared(const Prepared &) = delete;
};

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

Storage drawStorage(Engine &engine) { return Storage(draw(engine, 0, 2)); }

float drawFactor(Engine &engine) {
  return draw(engine, 0, 1) ? 1.0f : std::normal_distribution<float>()(engine);
}

int64_t drawExtent(Engine &engine) {
  switch (draw(engine, 0, 3)) {
  case 0:
    return draw(engine, 1, 8);
  case 1:
    return draw(engine, 9, 40);
  case 2:
    return draw(engine, 41, 160);
  default:
    return 16 * draw(engine, 1, 9);
  }
}

TEST(Product, RandomShapesTypesAndFlags) {
  uint32_t seed = testSeed();
  Engine engine(seed);
  SCOPED_TRACE("STEPC_TEST_SEED=" + std::to_string(seed));
  std::printf("STEPC_TEST_SEED=%u\n", seed);
  int symmetric = 0, special = 0;
  const int kCases = 40;
  for (int i = 0; i < kCases && !HasFatalFailure(); ++i) {
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
    p.order = Order::Fused;
    c.special = draw(engine, 0, 2) == 0;
    c.isAligned = draw(engine, 0, 1);
    symmetric += p.symmetric, special += c.special;
    check(c, engine);
  }
  std::printf("drew %d products: %d symmetric, %d with special values\n", kCases, symmetric,
              special);
}

ReferenceProduct plain(int64_t slots, int64_t m, int64_t n, int64_t k) {
  return {slots, m,     n,     k,     Storage::F32, Storage::F32, Storage::F32, Storage::F32,
          false, false, false, false, Order::Fused, 1.0f,         1.0f};
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

//===--- tensor cores ---===//

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
      EXPECT_LE(std::abs(error), double(p.k) / 8 * (9 * 0x1p-22 + 0x1p-23) * magnitude);
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
    for (int i = 0; i < 20; ++i) {
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
