//===- BlocksTest.cpp - Stages over blocks of all shapes -------------------===//
//
// Two blocks go into matrix space and come back as x · rowmax + colmax − max²: operands of
// all kinds, and stages over rows and over one value. Maxima are exact in any order,
// so a loop gives the same bits.
//
//===----------------------------------------------------------------------===//

#include "test/unit/codegen/Compile.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace stepc::test {
namespace {

std::string moduleOf(int64_t rows, int64_t cols) {
  std::string text = R"(
module @blocks attributes {stepc.level = "scheduled", stepc.numerics = "exact"} {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %x = arith.truncf %grad : tensor<?x?xf32> to tensor<?x?xbf16>
    %e = arith.extf %x : tensor<?x?xbf16> to tensor<?x?xf32>
    %r = optim.reduce max %e : tensor<?x?xf32> to tensor<?x1xf32>
    %c = optim.reduce max %e : tensor<?x?xf32> to tensor<1x?xf32>
    %o = optim.reduce max %r : tensor<?x1xf32> to tensor<1x1xf32>
    %or = optim.broadcast %o : tensor<1x1xf32> to tensor<?x1xf32>
    %r2 = arith.subf %r, %or : tensor<?x1xf32>
    %oo = arith.mulf %o, %o : tensor<1x1xf32>
    %fr = optim.broadcast %r2 : tensor<?x1xf32> to tensor<?x?xf32>
    %fc = optim.broadcast %c : tensor<1x?xf32> to tensor<?x?xf32>
    %fo = optim.broadcast %oo : tensor<1x1xf32> to tensor<?x?xf32>
    %m = arith.mulf %e, %fr : tensor<?x?xf32>
    %s = arith.addf %m, %fc : tensor<?x?xf32>
    %t = arith.subf %s, %fo : tensor<?x?xf32>
    optim.yield %t : tensor<?x?xf32>
  }
  optim.route @route rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @a shape [R0, C0] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @route
  optim.parameter @b shape [R0, C0] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @route
  optim.group @g rule @R parameters [@a, @b] strategy #optim.local hops []
  comm.segment @s group @g all
  func.func @step() attributes {comm.arena_bytes = 262144 : i64} {
    %steps = comm.steps
    %active = comm.active
    %p = comm.shards parameter @g : !comm.shards<@g, f32>
    %g = comm.shards gradient @g : !comm.shards<@g, f32>
    %n = comm.extent <@s, full, blocks>
    %x = comm.buffer offset 0 bytes 32768 (%n) : memref<?xR0xC0xbf16, #comm.place<@s, full, blocks>>
    comm.stage @s over shards active %active ins(%g : !comm.shards<@g, f32>) outs(%x : memref<?xR0xC0xbf16, #comm.place<@s, full, blocks>>) {
    ^bb0(%a: f32):
      %t = arith.truncf %a : f32 to bf16
      comm.yield %t : bf16
    }
    %rows = comm.buffer offset 32768 bytes 32768 (%n) : memref<?xR0x1xf32, #comm.place<@s, rows, blocks>>
    %cols = comm.buffer offset 65536 bytes 32768 (%n) : memref<?x1xC0xf32, #comm.place<@s, cols, blocks>>
    %one = comm.buffer offset 98304 bytes 32768 (%n) : memref<?x1x1xf32, #comm.place<@s, one, blocks>>
    optim.apply #optim.block_reduce<max> %x outs(%rows : memref<?xR0x1xf32, #comm.place<@s, rows, blocks>>) : memref<?xR0xC0xbf16, #comm.place<@s, full, blocks>>
    optim.apply #optim.block_reduce<max> %x outs(%cols : memref<?x1xC0xf32, #comm.place<@s, cols, blocks>>) : memref<?xR0xC0xbf16, #comm.place<@s, full, blocks>>
    optim.apply #optim.block_reduce<max> %rows outs(%one : memref<?x1x1xf32, #comm.place<@s, one, blocks>>) : memref<?xR0x1xf32, #comm.place<@s, rows, blocks>>
    // Over rows, with one value per block.
    %rows2 = comm.buffer offset 131072 bytes 32768 (%n) : memref<?xR0x1xf32, #comm.place<@s, rows, blocks>>
    comm.stage @s over blocks ins(%rows, %one : memref<?xR0x1xf32, #comm.place<@s, rows, blocks>>, memref<?x1x1xf32, #comm.place<@s, one, blocks>>) outs(%rows2 : memref<?xR0x1xf32, #comm.place<@s, rows, blocks>>) {
    ^bb0(%r: f32, %o: f32):
      %t = arith.subf %r, %o : f32
      comm.yield %t : f32
    }
    // Over one value, in place.
    comm.stage @s over blocks ins(%one : memref<?x1x1xf32, #comm.place<@s, one, blocks>>) outs(%one : memref<?x1x1xf32, #comm.place<@s, one, blocks>>) {
    ^bb0(%o: f32):
      %t = arith.mulf %o, %o : f32
      comm.yield %t : f32
    }
    // Everything broadcast.
    %y = comm.buffer offset 163840 bytes 65536 (%n) : memref<?xR0xC0xf32, #comm.place<@s, full, blocks>>
    comm.stage @s over blocks
        ins(%x, %rows2, %cols, %one : memref<?xR0xC0xbf16, #comm.place<@s, full, blocks>>, memref<?xR0x1xf32, #comm.place<@s, rows, blocks>>, memref<?x1xC0xf32, #comm.place<@s, cols, blocks>>, memref<?x1x1xf32, #comm.place<@s, one, blocks>>)
        outs(%y : memref<?xR0xC0xf32, #comm.place<@s, full, blocks>>) {
    ^bb0(%b: bf16, %r: f32, %c: f32, %o: f32):
      %e = arith.extf %b : bf16 to f32
      %m = arith.mulf %e, %r : f32
      %s = arith.addf %m, %c : f32
      %t = arith.subf %s, %o : f32
      comm.yield %t : f32
    }
    comm.stage @s over shards active %active ins(%y : memref<?xR0xC0xf32, #comm.place<@s, full, blocks>>) writes(%p : !comm.shards<@g, f32>) {
    ^bb0(%v: f32):
      comm.yield %v : f32
    }
    comm.advance_steps %steps active %active
    return
  }
})";
  return replaced(replaced(text, "R0", std::to_string(rows)), "C0", std::to_string(cols));
}

float bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
  std::memcpy(&value, &bits, 4);
  return value;
}

class Blocks : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(Blocks, EqualALoop) {
  auto [rows, cols] = GetParam();
  Compiled compiled = load({moduleOf(rows, cols)});
  ASSERT_TRUE(compiled.library) << compiled.error;
  runWorld(
      compiled.library,
      [&, rows = rows, cols = cols](Rank &rank, int) {
        std::mt19937 generator(1);
        std::normal_distribution<float> normal;
        std::vector<float> x[2];
        for (int64_t p = 0; p < 2; ++p) {
          for (int64_t i = 0; i < rows * cols; ++i)
            x[p].push_back(bf16(rank.gradient<float>(p)[i] = normal(generator)));
        }
        rank.step();
        for (int64_t p = 0; p < 2; ++p) {
          std::vector<float> rowMost(rows, -INFINITY), colMost(cols, -INFINITY);
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < cols; ++c) {
              rowMost[r] = std::max(rowMost[r], x[p][r * cols + c]);
              colMost[c] = std::max(colMost[c], x[p][r * cols + c]);
            }
          float most = *std::max_element(rowMost.begin(), rowMost.end());
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < cols; ++c) {
              float product = x[p][r * cols + c] * (rowMost[r] - most);
              float expected = (product + colMost[c]) - most * most;
              ASSERT_EQ(rank.parameter<float>(p)[r * cols + c], expected)
                  << p << " (" << r << ", " << c << ")";
            }
        }
      },
      2);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Blocks,
                         testing::Values(std::pair<int64_t, int64_t>{5, 33},
                                         std::pair<int64_t, int64_t>{1, 37},
                                         std::pair<int64_t, int64_t>{19, 1},
                                         std::pair<int64_t, int64_t>{1, 1},
                                         std::pair<int64_t, int64_t>{40, 48}));

TEST(BlocksErrors, OutsMustHaveOneShape) {
  std::string one = "memref<?x1x1xf32, #comm.place<@s, one, blocks>>)";
  std::string text = replaced(
      moduleOf(4, 6), "ins(%rows, %one : memref<?x4x1xf32, #comm.place<@s, rows, blocks>>, " + one,
      "ins(%cols, %one : memref<?x1x6xf32, #comm.place<@s, cols, blocks>>, " + one);
  Compiled compiled = compile({text});
  EXPECT_NE(
      compiled.error.find("expected outs of 6 along axis 2, because that is what the stage runs "
                          "over, found 'memref<?x4x1xf32, #comm.place<@s, rows, blocks>>'"),
      std::string::npos)
      << compiled.error;
}

} // namespace
} // namespace stepc::test
