//===- TensorCoresTest.cpp - Products as a GPU adds them up -------------------===//

#include "runtime/emulated/TensorCore.h"
#include "runtime/emulated/TileProducts.h"
#include "runtime/interpret/Code.h"
#include "runtime/interpret/Storage.h"
#include "runtime/plan/TileLists.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstring>
#include <random>

using namespace stepc;
using namespace stepc::interpret;

namespace {

using Random = std::mt19937_64;
using plan::DType;

/// An element of any bits, or of exponents so near that sums cancel.
uint16_t anyElement(Random &random, bool half, bool isNear) {
  auto bits = uint16_t(random());
  if (!isNear)
    return bits;
  int fraction = half ? 10 : 7, exponent = (half ? 12 : 122) + int(random() % 8);
  return uint16_t((bits & (0x8000 | ((1 << fraction) - 1))) | exponent << fraction);
}

bool isFinite(uint16_t bits, bool half) {
  int field = half ? bits >> 10 & 31 : bits >> 7 & 255;
  return field != (half ? 31 : 255);
}

/// Sums of finite elements are computed in another way than those beside a NaN. A NaN in one column leaves all
/// other columns as they are.
TEST(TensorCores, AddUpFiniteElementsAsOthers) {
  Random random(1);
  int64_t compared = 0;
  for (int round = 0; round < 1000; ++round) {
    bool half = round % 2, isNear = round / 2 % 2;
    runtime::WarpProduct given{};
    auto word = [&] {
      uint32_t bits = 0;
      for (int i = 0; i < 2; ++i) {
        uint16_t one = anyElement(random, half, isNear);
        bits = bits << 16 | (isFinite(one, half) ? one : uint16_t(one & 0x8000));
      }
      return bits;
    };
    for (auto &lane : given.left)
      std::ranges::generate(lane, word);
    for (auto &lane : given.right)
      std::ranges::generate(lane, word);
    for (auto &lane : given.sums)
      for (uint32_t &sum : lane)
        sum = random() % 4 ? std::bit_cast<uint32_t>(float(int(random() % 2001) - 1000) / 64)
                           : uint32_t(random()) & 0xff7fffff;
    // Lane 4 · c has the first elements of column c.
    int64_t column = int64_t(random() % 8);
    runtime::WarpProduct other = given;
    other.right[4 * column][0] |= 0x7fff;
    multiply(given, half);
    multiply(other, half);
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t i = 0; i < 4; ++i) {
        if (lane % 4 * 2 + i % 2 == column)
          continue;
        ASSERT_EQ(given.sums[lane][i], other.sums[lane][i]) << round;
        ++compared;
      }
  }
  EXPECT_EQ(compared, 1000 * 7 * 16);
}

/// A product of stacks of matrices, with random operands.
struct Case {
  plan::TiledProduct shape;
  plan::ProductForm form;
  std::vector<uint16_t> lhs, rhs, addend;

  Case(Random &random, int64_t m, int64_t n, int64_t k, plan::ProductForm form) : form(form) {
    shape = {2, m, n, k, form.symmetric, bool(random() % 2), form.symmetric && random() % 2};
    auto fill = [&](std::vector<uint16_t> &list, int64_t elements) {
      list.resize(size_t(shape.matrices * elements));
      std::ranges::generate(
          list, [&] { return anyElement(random, form.lhs == DType::F16, random() % 4096 != 0); });
    };
    fill(lhs, m * k);
    fill(rhs, n * k);
    fill(addend, m * n);
    // A kernel of tiles computes one half of a tile on the diagonal, too.
    if (form.symmetric)
      rhs = lhs;
  }

  /// By fragments, as warps multiply.
  std::vector<uint16_t> byFragments() const {
    ProductKernel kernel;
    std::tie(kernel.m, kernel.n, kernel.k) = std::tuple(shape.m, shape.n, shape.k);
    kernel.lhs = kernel.rhs = kernel.out = form.lhs;
    if (shape.hasAddend)
      kernel.addend = form.lhs;
    kernel.transposeLhs = form.transposeLhs;
    kernel.transposeRhs = form.transposeRhs;
    kernel.symmetric = form.symmetric;
    kernel.hasShift = shape.hasShift;
    kernel.accumulation = plan::Accumulation::TensorCore;
    EXPECT_EQ(check(kernel), "");
    std::vector<uint16_t> out(addend.size());
    std::vector<void *> arguments = {nullptr, pointer(lhs), pointer(rhs)};
    if (shape.hasAddend)
      arguments.push_back(pointer(addend));
    arguments.push_back(out.data());
    stepc_factors factors = {kAlpha, kBeta};
    std::memcpy(&arguments.emplace_back(), &factors, sizeof(factors));
    stepc_shift shift = {kShift, 0};
    if (shape.hasShift)
      std::memcpy(&arguments.emplace_back(), &shift, sizeof(shift));
    auto code = makeCode(kernel);
    EXPECT_EQ(code->arguments(), int64_t(arguments.size()));
    code->run(arguments.data(), 0, shape.matrices * kernel.itemsPerBlock());
    return withOneNaN(out);
  }

  std::vector<uint16_t> byTiles(int64_t count, int64_t cluster) const {
    std::vector<uint16_t> out(addend.size());
    stepc_product_problem problem{};
    auto map = [&](stepc_tensor_map &to, const std::vector<uint16_t> &list, int64_t rows,
                   int64_t columns, bool transposed) {
      if (transposed)
        std::swap(rows, columns);
      runtime::writeMap(list.data(), {columns, rows, shape.matrices}, to);
    };
    map(problem.lhs, lhs, shape.m, shape.k, form.transposeLhs);
    map(problem.rhs, rhs, shape.k, shape.n, form.transposeRhs);
    map(problem.addend, addend, shape.m, shape.n, false);
    map(problem.out, out, shape.m, shape.n, false);
    std::tie(problem.alpha, problem.beta, problem.shift) = std::tuple(kAlpha, kBeta, kShift);
    plan::TileLists lists = plan::tileLists(std::span(&shape, 1), count, cluster);
    void *arguments[] = {&problem, lists.tiles.data(), lists.lists.data()};
    auto code = makeCode(TilesKernel{form});
    EXPECT_EQ(code->arguments(), 3);
    for (int64_t list = count; list-- > 0;)
      code->run(arguments, list, list + 1);
    return withOneNaN(out);
  }

private:
  /// A sum of two NaNs is either of them.
  std::vector<uint16_t> withOneNaN(std::vector<uint16_t> list) const {
    auto isNaN = [&](uint16_t bits) {
      return (bits & 0x7fff) > (form.lhs == DType::F16 ? 0x7c00 : 0x7f80);
    };
    std::ranges::replace_if(list, isNaN, uint16_t(0x7fff));
    return list;
  }
  static constexpr float kAlpha = 0.75f, kBeta = -1.5f, kShift = 3.25f;
  static void *pointer(const std::vector<uint16_t> &list) {
    return const_cast<uint16_t *>(list.data());
  }
};

TEST(TensorCores, ListsOfTilesHaveTheBitsOfFragments) {
  Random random(2);
  for (int round = 0; round < 12; ++round) {
    bool symmetric = random() % 2, transposeLhs = random() % 2;
    DType type = random() % 2 ? DType::BF16 : DType::F16;
    bool transposeRhs = symmetric ? !transposeLhs : bool(random() % 2);
    plan::ProductForm form{type, type, type, transposeLhs, transposeRhs, symmetric};
    ASSERT_EQ(check(TilesKernel{form}), "");
    auto side = [&] { return 8 * int64_t(9 + random() % 12); };
    int64_t m = side(), n = symmetric ? m : side(), k = 8 * int64_t(1 + random() % 6);
    Case one(random, m, n, k, form);
    std::vector<uint16_t> expected = one.byFragments();
    for (int64_t lists : {1, 3, 8})
      ASSERT_EQ(one.byTiles(lists, round % 4 ? 2 : 1), expected)
          << round << ": " << m << " x " << n << " x " << k << " in " << lists << " lists";
  }
}

TEST(TensorCores, AreShapedByTheirOperands) {
  ProductKernel kernel{.m = 33, .n = 1, .k = 1};
  EXPECT_EQ(kernel.itemsPerBlock(), 5);
  kernel.accumulation = plan::Accumulation::TensorCore;
  EXPECT_EQ(kernel.itemsPerBlock(), 3);
  EXPECT_EQ(check(kernel),
            "expected operands that are both bf16 or both f16 on tensor cores, found f32 and f32");
  kernel.lhs = DType::BF16;
  kernel.rhs = DType::F16;
  EXPECT_EQ(check(kernel), "expected operands that are both bf16 or both f16 on tensor cores, "
                           "found bf16 and f16");
  EXPECT_EQ(
      check(TilesKernel{{DType::F32, DType::F32, DType::F32}}),
      "expected operands that are all bf16 or all f16 for a kernel of tiles, found f32 beside f32");
}

TEST(TensorCores, ASeedDrawsHowManyClustersShareTiles) {
  EXPECT_EQ(runtime::drawnClusters(std::nullopt), 3);
  std::vector<int64_t> drawn(9);
  for (uint64_t seed = 0; seed < 200; ++seed)
    ++drawn.at(size_t(runtime::drawnClusters(seed)));
  EXPECT_EQ(drawn[0], 0);
  for (int64_t clusters = 1; clusters <= 8; ++clusters)
    EXPECT_GT(drawn[size_t(clusters)], 0) << clusters;
}

} // namespace
