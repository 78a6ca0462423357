//===- ProductRatesTest.cpp - What products cost ---------------------------===//

#include "passes/cost/ProductRates.h"
#include "passes/cost/Cluster.h"
#include "passes/cost/ProductLaunches.h"
#include "passes/cost/Profiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace stepc::cost {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

/// Counts the elements of the blocks on or below the diagonal, one block at a time.
int64_t countBlocks(int64_t m, int64_t k) {
  int64_t elements = 0;
  for (int64_t row = 0; row < m; row += 64)
    for (int64_t column = 0; column <= row; column += 64)
      elements += std::min<int64_t>(64, m - row) * std::min<int64_t>(64, m - column);
  return 2 * elements * k;
}

TEST(ProductRates, ExecutedFlopsAreThoseOfBlocksOnOrBelowTheDiagonal) {
  for (int64_t m : {1, 5, 63, 64, 65, 127, 128, 200, 768, 1000, 4096})
    for (int64_t k : {1, 7, 4096}) {
      EXPECT_EQ(executedFlops({m, m, k, true}), countBlocks(m, k)) << m;
      EXPECT_EQ(executedFlops({m, m, k, false}), 2 * m * m * k);
      EXPECT_EQ(fullFlops({m, m, k, true}), 2 * m * m * k);
    }
  EXPECT_EQ(executedFlops({3, 4, 5}), 120);
  EXPECT_EQ(executedFlops({128, 128, 1, true}), 2 * 3 * 64 * 64);
}

TEST(ProductRates, FlopsStayInRange) {
  constexpr int64_t kLarge = int64_t(1) << 30;
  for (bool isSymmetric : {false, true}) {
    EXPECT_EQ(executedFlops({kLarge, kLarge, kLarge, isSymmetric}), kMost);
    EXPECT_EQ(fullFlops({kLarge, kLarge, kLarge, isSymmetric}), kMost);
    EXPECT_EQ(fullFlops({kMost, kMost, kMost, isSymmetric}), kMost);
  }
}

TEST(ProductRates, TensorCoresTakeNarrowOperands) {
  BlockProduct narrow{128, 128, 128}, wide = narrow;
  wide.isNarrow = false;
  using enum ProductKernel;
  for (ProductKernel fastest : {Stated, Chain, TensorCore, Warpgroup}) {
    EXPECT_EQ(kernelOf(fastest, narrow), fastest);
    EXPECT_EQ(kernelOf(fastest, wide), fastest == Stated ? Stated : Chain);
  }
}

TEST(ProductRates, WarpgroupsTakeLargeProductsWithTiles) {
  using enum ProductKernel;
  EXPECT_EQ(kernelOf(Warpgroup, {65, 72, 8}), Warpgroup);
  BlockProduct other{128, 128, 128};
  other.isTiled = false;
  for (const BlockProduct &product :
       {BlockProduct{64, 512, 64}, BlockProduct{512, 64, 64}, BlockProduct{128, 128, 0}, other})
    EXPECT_EQ(kernelOf(Warpgroup, product), TensorCore);
}

TEST(ProductRates, WhatWarpgroupsDoNotTakeIsSaid) {
  EXPECT_EQ(checkExtents({65, 72, 8}), "");
  EXPECT_EQ(checkExtents({512, 64, 8}), "expected a result of more than 64 rows and columns for a "
                                        "kernel on warpgroups, found 512 x 64");
  EXPECT_EQ(checkExtents({128, 128, 0}),
            "expected sums of at least one term for a kernel on warpgroups, found none");
}

TEST(ProductRates, AStatedRateStands) {
  Device device{.flops = 5e12, .memory = 1e12, .capacity = 1, .launch = 1e-6, .threads = 4};
  BlockProduct product{4096, 4096, 4096, true};
  EXPECT_EQ(device.rate(product), 5e12);
  EXPECT_EQ(device.operations(product), double(executedFlops(product)));
}

Device h200(ProductKernel kernel) {
  Device device = findProfile("h200")->device;
  device.products = kernel;
  return device;
}

/// Seconds of `count` products without their launch.
double modelled(const Device &device, int64_t count, const BlockProduct &product) {
  return device.once(product) - device.launch +
         double(count) * double(executedFlops(product)) / device.rate(product);
}

double counted(int64_t count, const BlockProduct &product) {
  return double(count) * double(fullFlops(product));
}

/// The three products of a Newton–Schulz step.
struct Step {
  int64_t count, rows, columns;
  BlockProduct gram() const { return {rows, rows, columns, true}; }
  BlockProduct square() const { return {rows, rows, rows, true, true}; }
  BlockProduct last() const { return {rows, columns, rows, false, true}; }
};

// The figures in this test are 10¹² operations per second counted as full products, from
// docs/gpu-results.md.
TEST(ProductRates, TensorCoresAreAsFastAsMeasured) {
  Device device = h200(ProductKernel::TensorCore);
  for (auto [step, measured] : {std::pair(Step{16, 1024, 1024}, 264.5),
                                {Step{4, 2048, 2048}, 319.4},
                                {Step{1, 4096, 4096}, 397.2},
                                {Step{1, 4096, 14336}, 367.0}}) {
    double seconds = 0, operations = 0;
    for (const BlockProduct &product : {step.gram(), step.square(), step.last()}) {
      seconds += modelled(device, step.count, product);
      operations += counted(step.count, product);
    }
    EXPECT_NEAR(operations / seconds / 1e12 / measured, 1, 0.05) << step.rows;
  }
}

TEST(ProductRates, WarpgroupsAreAsFastAsThePrototypes) {
  Device device = h200(ProductKernel::Warpgroup);
  struct Row {
    Step step;
    double gram, square, last;
  };
  for (const Row &row : {Row{{1, 4096, 4096}, 1174, 1136, 765},
                         {{1, 4096, 14336}, 1224, 1130, 729},
                         {{16, 1024, 1024}, 900, 812, 577},
                         {{1, 2048, 2048}, 662, 640, 612},
                         {{4, 4096, 4096}, 1282, 1253, 710},
                         {{8, 2048, 2048}, 1173, 1084, 676},
                         {{2, 1024, 4096}, 671, 370, 566},
                         {{64, 768, 2048}, 994, 777, 598},
                         {{1, 8192, 8192}, 1397, 1360, 725}}) {
    auto ratio = [&](const BlockProduct &product, double measured) {
      ProductLaunches launches(device);
      ProductLaunches::Products products = {{product, row.step.count}};
      double seconds = launches.work(products) + launches.overhead(products, false) - device.launch;
      return counted(row.step.count, product) / seconds / 1e12 / measured;
    };
    EXPECT_NEAR(ratio(row.step.gram(), row.gram), 1, 0.13) << row.step.rows;
    EXPECT_NEAR(ratio(row.step.square(), row.square), 1, 0.13) << row.step.rows;
    EXPECT_NEAR(ratio(row.step.last(), row.last), 1, 0.13) << row.step.rows;
  }
}

TEST(ProductRates, KernelsStandInTheirOrderAndRatesGrow) {
  using enum ProductKernel;
  for (bool isSymmetric : {false, true})
    for (bool hasAddend : {false, true}) {
      double before = 0;
      for (int64_t k : {1, 64, 1024, 4096, 16384}) {
        BlockProduct product{4096, 4096, k, isSymmetric, hasAddend};
        double chain = h200(Chain).rate(product), cores = h200(TensorCore).rate(product),
               groups = h200(Warpgroup).rate(product);
        if (k >= 64)
          EXPECT_TRUE(chain < cores && cores < groups) << k;
        EXPECT_LT(groups, 989e12); // of the data sheet
        EXPECT_GT(cores, before);
        before = cores;
      }
    }
}

TEST(ProductRates, OtherChipsHaveTheSamePartOfTheirFigure) {
  BlockProduct product{2048, 2048, 2048, true};
  Device other = h200(ProductKernel::TensorCore);
  double rate = other.rate(product);
  other.flops /= 4;
  EXPECT_DOUBLE_EQ(other.rate(product), rate / 4);
}

TEST(ProductRates, AGpuLaunchesAProductOnceAndWaitsForHalfATile) {
  Device device = h200(ProductKernel::TensorCore);
  BlockProduct product{4096, 4096, 2048};
  double tile = 2.0 * 128 * 128 * 2048;
  EXPECT_DOUBLE_EQ(device.once(product), device.launch + tile / 2 * 131 / device.rate(product));
  device.products =
      ProductKernel::Warpgroup; // two multiprocessors share a tile, and lists end in halves
  tile = 2.0 * 256 * 256 * 2048;
  EXPECT_DOUBLE_EQ(device.once(product), device.launch + tile / 4 * 65 / device.rate(product));
  device.threads = 1;
  EXPECT_DOUBLE_EQ(device.once(product), device.launch);
}

TEST(ProductLaunches, OneLaunchWaitsLessThanSeveral) {
  ProductLaunches launches(h200(ProductKernel::Warpgroup));
  // The Gram matrices of a layer of Llama-3-8B.
  ProductLaunches::Products layer = {
      {{4096, 4096, 4096, true}, 2}, {{1024, 1024, 4096, true}, 2}, {{4096, 4096, 14336, true}, 3}};
  double apart = 0;
  for (const LaunchedProduct &each : layer)
    apart += launches.overhead({each}, false);
  double together = launches.overhead(layer, false);
  EXPECT_LT(together, apart / 3);
  EXPECT_GE(together, h200(ProductKernel::Warpgroup).launch);
  // The order makes no difference, nor whether equal products are one entry.
  std::swap(layer[0], layer[2]);
  layer[1].blocks = 1;
  layer.push_back(layer[1]);
  EXPECT_DOUBLE_EQ(launches.overhead(layer, false), together);
  EXPECT_EQ(launches.overhead({{{4096, 4096, 4096, true}, 0}}, false), 0);
}

TEST(ProductLaunches, LeaveMultiprocessorsToMessages) {
  ProductLaunches launches(h200(ProductKernel::Warpgroup));
  EXPECT_EQ(launches.lists(false), 66);
  EXPECT_EQ(launches.lists(true), 58);
  ProductLaunches::Products many = {{{4096, 4096, 4096}, 1000}};
  double work = launches.work(many);
  EXPECT_NEAR((work + launches.overhead(many, true)) / (work + launches.overhead(many, false)),
              66.0 / 58, 0.01);
}

TEST(ProductLaunches, ThinProductsWaitForMemory) {
  Device device = h200(ProductKernel::Warpgroup);
  ProductLaunches launches(device);
  constexpr int64_t kMiB = 1 << 20;
  LaunchedProduct large{{4096, 4096, 4096}, 3, 96 * kMiB},
      thin{{128, 128, 16384, true}, 3, 8 * kMiB};
  EXPECT_DOUBLE_EQ(launches.seconds(large), launches.work({large}));
  EXPECT_DOUBLE_EQ(launches.seconds(thin), 24.0 * kMiB / device.memory);
  EXPECT_GT(launches.seconds(thin), 2 * launches.work({thin}));
  EXPECT_DOUBLE_EQ(launches.seconds({large, thin}, false),
                   launches.seconds(large) + launches.seconds(thin) +
                       launches.overhead({large, thin}, false));
  // The wait for the longest list is one of arithmetic.
  EXPECT_EQ(launches.times({thin}, false).tiles, launches.times({{thin.shape, 3}}, false).tiles);
}

TEST(ProductLaunches, ProductsOfOtherKernelsAreAlone) {
  ProductLaunches launches(h200(ProductKernel::TensorCore));
  BlockProduct product{4096, 4096, 4096};
  EXPECT_FALSE(launches.canJoin(product));
  EXPECT_EQ(launches.overhead({{product, 3}}, false),
            h200(ProductKernel::TensorCore).once(product));
  product.isTiled = false;
  EXPECT_FALSE(ProductLaunches(h200(ProductKernel::Warpgroup)).canJoin(product));
}

} // namespace
} // namespace stepc::cost
