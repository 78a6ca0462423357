//===- ReduceTest.cpp - Reductions, bit for bit ----------------------------===//

#include "passes/cost/ScratchBound.h"
#include "test/support/Tier.h"
#include "test/unit/products/Random.h"

#include <gtest/gtest.h>

using namespace stepc;
using namespace stepc::test;

namespace {

constexpr const char *kKinds[] = {"sum", "mean", "rms", "norm", "max"};

struct Case {
  Kind kind;
  Storage source;
  int64_t slots, rows, cols;
  bool overColumns, overRows, special;
  int exponent = 0;  ///< of the result
  int magnitude = 0; ///< of the values, as a power of two
};

std::string describe(const Case &c) {
  return std::string(kKinds[int(c.kind)]) + " of " + std::to_string(c.slots) + " blocks of " +
         std::to_string(c.rows) + " x " + std::to_string(c.cols) + " x " + nameOf(c.source) +
         (c.overColumns ? " over columns" : "") + (c.overRows ? " over rows" : "") +
         (c.special ? ", special values" : "") + ", exponent " + std::to_string(c.exponent) +
         ", magnitude " + std::to_string(c.magnitude);
}

/// What a reduction is given and should make.
struct Prepared {
  Prepared(const Case &c, Engine &engine);
  std::string text() const {
    return std::string("optim.apply #optim.block_reduce<") + kKinds[int(c.kind)] +
           ", exponent = " + std::to_string(c.exponent) + "> %0 outs(%1 : " + types()[1] +
           ") : " + types()[0];
  }
  std::vector<std::string> types() const {
    return {memref(c.source, c.rows, c.cols), memref(Storage::F32, rows, cols)};
  }
  /// Whether its kernels make it, and write nothing else.
  testing::AssertionResult run(const Code &code, Engine &engine);

  const Case &c;
  int64_t rows, cols;
  Buffer source, expected;
};

Prepared::Prepared(const Case &c, Engine &engine)
    : c(c), rows(c.overRows ? 1 : c.rows), cols(c.overColumns ? 1 : c.cols),
      source(c.source, c.slots * c.rows * c.cols), expected(Storage::F32, c.slots * rows * cols) {
  source.fill(engine, c.special);
  for (int64_t i = 0; i < source.elements; ++i)
    writeNumber(source.data(), c.source, i,
                std::ldexp(readNumber(source.data(), c.source, i), c.magnitude));
  for (int64_t slot = 0; slot < c.slots; ++slot) {
    auto *block =
        static_cast<const char *>(source.data()) + slot * c.rows * c.cols * bytesOf(c.source);
    std::vector<float> results = referenceReduce(c.kind, block, c.source, c.rows, c.cols,
                                                 c.overColumns, c.overRows, c.exponent);
    for (size_t i = 0; i < results.size(); ++i)
      writeNumber(expected.data(), Storage::F32, slot * rows * cols + i, results[i]);
  }
}

testing::AssertionResult Prepared::run(const Code &code, Engine &engine) {
  if (!code.error.empty())
    return testing::AssertionFailure() << code.error;
  if (code.scratchBytesPerBlock > 4 * c.rows)
    return testing::AssertionFailure() << "more scratch than the bound";
  Buffer actual(Storage::F32, expected.elements);
  Buffer scratch(Storage::F32, c.slots * code.scratchBytesPerBlock / 4);
  runInPieces(code, {source.data(), actual.data()}, scratch.data(), c.slots, engine);
  int64_t at = actual.firstDifference(expected);
  if (at != -1)
    return testing::AssertionFailure()
           << "expected " << readNumber(expected.data(), Storage::F32, at) << ", found "
           << readNumber(actual.data(), Storage::F32, at) << " at " << at;
  if (!actual.guardsIntact() || !scratch.guardsIntact())
    return testing::AssertionFailure() << "something outside of the result was written";
  return testing::AssertionSuccess();
}

/// The reduction on every chip that this machine can be, and by the kernels of a GPU.
void check(const Case &c, Engine &engine) {
  Prepared prepared(c, engine);
  for (const TargetShape &target : targetsOfThisMachine()) {
    if (!target.half && c.source == Storage::F16)
      continue;
    SCOPED_TRACE(describe(c) + " for " + chipName(target));
    ASSERT_TRUE(prepared.run(compile(prepared.text(), prepared.types(), target), engine));
  }
  ThreadOrder order(engine);
  SCOPED_TRACE(describe(c) + " for a GPU, " + order.text());
  ASSERT_TRUE(prepared.run(compileEmulated(prepared.text(), prepared.types()), engine));
}

TEST(BlockReduce, RandomShapesAndKinds) {
  uint32_t seed = testSeed();
  Engine engine(seed);
  SCOPED_TRACE("STEPC_TEST_SEED=" + std::to_string(seed));
  std::printf("STEPC_TEST_SEED=%u\n", seed);
  for (int64_t i = 0; i < draws(14) && !HasFatalFailure(); ++i) {
    Case c;
    c.kind = Kind(draw(engine, 0, 4));
    c.source = Storage(draw(engine, 0, 2));
    c.slots = draw(engine, 1, 4), c.rows = draw(engine, 1, 90), c.cols = draw(engine, 1, 200);
    int64_t axes = draw(engine, 1, 3);
    c.overColumns = axes & 1, c.overRows = axes & 2;
    if (axes == 3 && draw(engine, 0, 1)) // so large that rows are shared among threads
      c.rows = draw(engine, 300, 500), c.cols = draw(engine, 60, 200);
    c.special = draw(engine, 0, 2) == 0;
    if (c.kind == Kind::Rms || c.kind == Kind::Norm)
      c.exponent = int(draw(engine, 0, 1) * draw(engine, -30, 30));
    check(c, engine);
  }
}

// Squares that leave the range of f32 on either side, and stay just inside it.
TEST(BlockReduce, WholeRangeOfNorms) {
  Engine engine(3);
  int64_t drawn = 0;
  for (int magnitude : {-147, -126, -64, -37, -34, 0, 59, 62, 64, 125})
    for (Kind kind : {Kind::Rms, Kind::Norm})
      for (int axes = 1; axes <= 3 && !HasFatalFailure(); ++axes)
        for (int64_t rows : {21, 450}) // the larger block's rows are shared among threads
          if ((rows == 21 || axes == 3) && (tier() == "all" || drawn++ % 3 == 0))
            check({kind, magnitude % 2 ? Storage::F32 : Storage::BF16, 2, rows, 37, bool(axes & 1),
                   bool(axes & 2), false, axes == 3 ? -24 : 0, magnitude},
                  engine);
}

TEST(BlockReduce, EdgesOfShape) {
  Engine engine(1);
  for (Kind kind : {Kind::Sum, Kind::Mean, Kind::Rms, Kind::Norm, Kind::Max})
    for (auto [rows, cols] :
         {std::array<int64_t, 2>{1, 1}, {1, 40}, {40, 1}, {16, 16}, {0, 3}, {3, 0}})
      for (int axes = 1; axes <= 3; ++axes)
        check({kind, Storage::F32, 2, rows, cols, bool(axes & 1), bool(axes & 2), false}, engine);
}

// Threads that do not wait read what is not there yet, and a bound that is one too far shows in what
// stands behind.
TEST(BlockReduce, MistakesOfAGpuKernelShow) {
  Engine engine(5);
  for (Kind kind : {Kind::Sum, Kind::Norm, Kind::Max})
    for (auto [rows, overColumns, overRows] :
         {std::tuple(90, true, true), {900, true, true}, {99, false, true}, {33, true, false}}) {
      Case c{kind, Storage::F32, 2, rows, rows == 900 ? 37 : 13, overColumns, overRows, false};
      SCOPED_TRACE(describe(c));
      Prepared prepared(c, engine);
      auto runs = [&](Fault fault) {
        return prepared.run(compileEmulated(prepared.text(), prepared.types(), fault), engine);
      };
      int wrong = 0;
      for (int i = 0; i < 4; ++i) {
        ThreadOrder order(engine);
        wrong += !runs(Fault::NoBarriers);
      }
      // Rows are added by warps, which wait for nothing.
      EXPECT_EQ(wrong > 0, overRows);
      EXPECT_TRUE(runs(Fault::None));
      // The greatest of what stands behind is what stands there, too.
      if (kind != Kind::Max && (!overColumns || !overRows))
        EXPECT_FALSE(runs(Fault::OneMore));
    }
}

} // namespace
