//===- ReduceTest.cpp - Reductions, bit for bit ----------------------------===//

#include "passes/cost/ScratchBound.h"
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

void check(const Case &c, Engine &engine) {
  Buffer source(c.source, c.slots * c.rows * c.cols);
  source.fill(engine, c.special);
  for (int64_t i = 0; i < source.elements; ++i)
    writeNumber(source.data(), c.source, i,
                std::ldexp(readNumber(source.data(), c.source, i), c.magnitude));
  int64_t rows = c.overRows ? 1 : c.rows, cols = c.overColumns ? 1 : c.cols;
  Buffer expected(Storage::F32, c.slots * rows * cols);
  for (int64_t slot = 0; slot < c.slots; ++slot) {
    auto *block =
        static_cast<const char *>(source.data()) + slot * c.rows * c.cols * bytesOf(c.source);
    std::vector<float> results = referenceReduce(c.kind, block, c.source, c.rows, c.cols,
                                                 c.overColumns, c.overRows, c.exponent);
    for (size_t i = 0; i < results.size(); ++i)
      writeNumber(expected.data(), Storage::F32, slot * rows * cols + i, results[i]);
  }
  for (const TargetShape &target : targetsOfThisMachine()) {
    if (!target.half && c.source == Storage::F16)
      continue;
    SCOPED_TRACE(describe(c) + " for " + chipName(target));
    std::string from = memref(c.source, c.rows, c.cols), to = memref(Storage::F32, rows, cols);
    Code code = compile(std::string("optim.block_reduce ") + kKinds[int(c.kind)] +
                            " @g %0 outs(%1" + " : " + to +
                            ") {exponent = " + std::to_string(c.exponent) + " : i64} : " + from,
                        {from, to}, target);
    ASSERT_EQ(code.error, "");
    Buffer actual(Storage::F32, expected.elements);
    Buffer scratch(Storage::F32, c.slots * code.scratchBytesPerBlock / 4);
    ASSERT_LE(code.scratchBytesPerBlock, cost::reduceScratchBound(c.rows));
    runInPieces(code, {source.data(), actual.data()}, scratch.data(), c.slots, engine);
    int64_t at = actual.firstDifference(expected);
    ASSERT_EQ(at, -1) << "expected " << readNumber(expected.data(), Storage::F32, at) << ", found "
                      << readNumber(actual.data(), Storage::F32, at);
    ASSERT_TRUE(actual.guardsIntact() && scratch.guardsIntact());
  }
}

TEST(BlockReduce, RandomShapesAndKinds) {
  uint32_t seed = testSeed();
  Engine engine(seed);
  SCOPED_TRACE("STEPC_TEST_SEED=" + std::to_string(seed));
  std::printf("STEPC_TEST_SEED=%u\n", seed);
  for (int i = 0; i < 60 && !HasFatalFailure(); ++i) {
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
  for (int magnitude : {-147, -126, -64, -37, -34, 0, 59, 62, 64, 125})
    for (Kind kind : {Kind::Rms, Kind::Norm})
      for (int axes = 1; axes <= 3 && !HasFatalFailure(); ++axes)
        for (int64_t rows : {21, 450}) // the larger block's rows are shared among threads
          if (rows == 21 || axes == 3)
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

} // namespace
