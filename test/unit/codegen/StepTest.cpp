//===- StepTest.cpp - Compiled steps against loops in C++ ------------------===//

#include "test/unit/codegen/Compile.h"

#include "gtest/gtest.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>

namespace stepc::test {
namespace {

/// AdamW as the text says it: scalars in double and rounded once, elements in float.
struct AdamW {
  std::vector<float> param, m, v;
  void step(const std::vector<float> &grad, double t) {
    double lr = 3e-4, beta1 = 0.9, beta2 = 0.95, decay = 0.1;
    float c1 = float(1 - beta1), c2 = float(1 - beta2), d1 = float(1 - std::pow(beta1, t)),
          d2 = float(1 - std::pow(beta2, t)), eps = float(1e-8), k = float(1 - lr * decay),
          l = float(lr);
    for (size_t i = 0; i < param.size(); ++i) {
      m[i] = m[i] + c1 * (grad[i] - m[i]);
      v[i] = v[i] + c2 * (grad[i] * grad[i] - v[i]);
      float update = (m[i] / d1) / (std::sqrt(v[i] / d2) + eps);
      param[i] = k * param[i] - l * update;
    }
  }
};

/// Two vectors of 37 (two whole vectors of 16 and a tail), three steps, equal in every bit.
TEST(CompiledStep, AdamWEqualsALoop) {
  for (int threads : {1, 3}) {
    Compiled compiled = load({input("adamw.mlir")});
    ASSERT_TRUE(compiled.library) << compiled.error;
    runWorld(
        compiled.library,
        [&](Rank &rank, int) {
          for (int64_t p = 0; p < 2; ++p) {
            std::vector<float> first = randomFloats(37, unsigned(p));
            std::memcpy(rank.parameter<float>(p), first.data(), first.size() * 4);
          }
          AdamW loops[2];
          for (int64_t p = 0; p < 2; ++p)
            loops[p] = {randomFloats(37, unsigned(p)), std::vector<float>(37),
                        std::vector<float>(37)};
          for (int t = 1; t <= 3; ++t) {
            for (int64_t p = 0; p < 2; ++p) {
              std::vector<float> grad = randomFloats(37, unsigned(10 * t + p));
              std::memcpy(rank.gradient<float>(p), grad.data(), grad.size() * 4);
              loops[p].step(grad, t);
            }
            rank.step();
          }
          for (int64_t p = 0; p < 2; ++p) {
            EXPECT_EQ(std::memcmp(rank.parameter<float>(p), loops[p].param.data(), 37 * 4), 0) << p;
            EXPECT_EQ(std::memcmp(rank.state<float>(p, 0), loops[p].m.data(), 37 * 4), 0) << p;
            EXPECT_EQ(std::memcmp(rank.state<float>(p, 1), loops[p].v.data(), 37 * 4), 0) << p;
            EXPECT_EQ(rank.steps[p], 3);
          }
        },
        threads);
  }
}

constexpr int64_t kRows = 70, kCols = 40;

/// Rounds to bf16 and back.
float bf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u);
}

using Matrix = std::vector<double>; // row-major, kRows × kCols

/// Newton–Schulz in double, without any rounding in between.
Matrix orthogonalize(Matrix x, int steps) {
  double norm = 0;
  for (double value : x)
    norm += value * value;
  for (double &value : x)
    value /= std::sqrt(norm);
  for (int step = 0; step < steps; ++step) {
    // In the short side: A = Xᵀ X, X ← a X + X (b A + c A A).
    std::vector<double> a(kCols * kCols), b(kCols * kCols);
    for (int64_t i = 0; i < kCols; ++i)
      for (int64_t j = 0; j < kCols; ++j)
        for (int64_t k = 0; k < kRows; ++k)
          a[i * kCols + j] += x[k * kCols + i] * x[k * kCols + j];
    for (int64_t i = 0; i < kCols; ++i)
      for (int64_t j = 0; j < kCols; ++j) {
        double product = 0;
        for (int64_t k = 0; k < kCols; ++k)
          product += a[i * kCols + k] * a[k * kCols + j];
        b[i * kCols + j] = -4.775 * a[i * kCols + j] + 2.0315 * product;
      }
    Matrix next(x.size());
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < kCols; ++j) {
        double product = 0;
        for (int64_t k = 0; k < kCols; ++k)
          product += x[i * kCols + k] * b[k * kCols + j];
        next[i * kCols + j] = 3.4445 * x[i * kCols + j] + product;
      }
    x = next;
  }
  return x;
}

/// Three matrices after some steps of a Muon library, put together from its ranks.
/// Rows are in `shards` pieces; further ranks hold replicas.
std::vector<std::vector<float>> stepMuon(const Compiled &compiled, int shards, int steps,
                                         int threads) {
  std::vector<std::vector<float>> whole(3, std::vector<float>(kRows * kCols));
  for (int64_t p = 0; p < 3; ++p)
    whole[p] = randomFloats(kRows * kCols, unsigned(p));
  auto start = whole;
  std::mutex mutex;
  runWorld(
      compiled.library,
      [&](Rank &rank, int index) {
        // torch.chunk: rows divided evenly here.
        int64_t rows = kRows / shards, first = index % shards * rows * kCols, count = rows * kCols;
        for (int64_t p = 0; p < 3; ++p)
          std::memcpy(rank.parameter<float>(p), start[p].data() + first, count * 4);
        for (int t = 1; t <= steps; ++t) {
          for (int64_t p = 0; p < 3; ++p) {
            std::vector<float> grad = randomFloats(kRows * kCols, unsigned(100 * t + p));
            std::memcpy(rank.gradient<float>(p), grad.data() + first, count * 4);
          }
          rank.step();
        }
        std::lock_guard lock(mutex);
        for (int64_t p = 0; p < 3; ++p) {
          float *to = whole[p].data() + first, *from = rank.parameter<float>(p);
          bool written = std::memcmp(to, start[p].data() + first, count * 4) != 0;
          if (written) // by another replica
            EXPECT_EQ(std::memcmp(to, from, count * 4), 0) << "replicas differ, rank " << index;
          std::memcpy(to, from, count * 4);
        }
      },
      threads);
  return whole;
}

/// Row shards on two and four ranks, owners 0, 1, 0: the bits of a single rank, and the true values
/// nearly.
TEST(CompiledStep, MuonOnManyRanksEqualsOneRank) {
  Compiled one = load({input("muon_one_rank.mlir")}), two = load({input("muon_two_ranks.mlir")});
  ASSERT_TRUE(one.library) << one.error;
  ASSERT_TRUE(two.library) << two.error;
  auto single = stepMuon(one, 1, 3, 1);
  EXPECT_EQ(stepMuon(two, 2, 3, 1), single);
  EXPECT_EQ(stepMuon(two, 2, 3, 3), single);

  // Two replicas of two shards: only one of the replicas sends.
  Compiled four = load({input("muon_replicas.mlir")});
  ASSERT_TRUE(four.library) << four.error;
  EXPECT_EQ(stepMuon(four, 2, 3, 1), single);

  auto after = stepMuon(two, 2, 1, 2);
  for (int64_t p = 0; p < 3; ++p) {
    std::vector<float> param = randomFloats(kRows * kCols, unsigned(p)),
                       grad = randomFloats(kRows * kCols, 100 + unsigned(p));
    Matrix u(param.size());
    for (size_t i = 0; i < u.size(); ++i)
      u[i] = bf16(float(0.95) * grad[i] + grad[i]);
    Matrix o = orthogonalize(u, 2);
    for (size_t i = 0; i < u.size(); ++i) // bf16 has 8 bits: entries of o are below one
      ASSERT_NEAR(after[p][i], (1 - 0.02 * 0.1) * param[i] - 0.02 * o[i], 0.02 * 0.02)
          << p << ", " << i;
  }
}

/// Going on from printed text of level 5 or 6 gives the same bytes.
TEST(CompiledStep, EveryLevelGoesOnFromText) {
  for (const char *name : {"adamw.mlir", "muon_two_ranks.mlir"}) {
    CompileRequest request{input(name)};
    Compiled whole = compile(request);
    ASSERT_EQ(whole.error, "");
    for (Restart restart : {Restart::Kernels, Restart::Llvm}) {
      request.restart = restart;
      Compiled again = compile(request);
      EXPECT_EQ(again.error, "");
      EXPECT_EQ(again.programs[0].object, whole.programs[0].object)
          << name << " from level " << 5 + (restart == Restart::Llvm);
    }
  }
}

} // namespace
} // namespace stepc::test
