//===- StepTest.cpp - Compiled steps against loops in C++ ------------------===//

#include "test/unit/codegen/Compile.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <random>

namespace stepc::test {
namespace {

std::vector<float> randomFloats(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(generator);
  return values;
}

/// AdamW as the text says it: scalars in double and rounded once, elements in float.
struct AdamW {
  std::vector<float> param, m, v;
  void step(const std::vector<float> &grad, double t) {
    double lr = 3e-4, beta1 = 0.9, beta2 = 0.95, decay = 0.1;
    float c1 = float(1 - beta1), c2 = float(1 - beta2), d1 = float(1 - std::pow(beta1, t)),
          d2 = float(1 - std::pow(beta2, t)), eps = float(1e-8), k = float(1 - lr * decay), l = float(lr);
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
    runWorld(compiled.library, [&](Rank &rank, int) {
      for (int64_t p = 0; p < 2; ++p) {
        std::vector<float> first = randomFloats(37, unsigned(p));
        std::memcpy(rank.parameter<float>(p), first.data(), first.size() * 4);
      }
      AdamW loops[2];
      for (int64_t p = 0; p < 2; ++p)
        loops[p] = {randomFloats(37, unsigned(p)), std::vector<float>(37), std::vector<float>(37)};
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
    }, threads);
  }
}

/// Going on from printed text of level 5 or 6 gives the same bytes.
TEST(CompiledStep, EveryLevelGoesOnFromText) {
  for (const char *name : {"adamw.mlir"}) {
    CompileRequest request{input(name)};
    Compiled whole = compile(request);
    ASSERT_EQ(whole.error, "");
    for (Restart restart : {Restart::Kernels, Restart::Llvm}) {
      request.restart = restart;
      Compiled again = compile(request);
      EXPECT_EQ(again.error, "");
      EXPECT_EQ(again.object, whole.object) << name << " from level " << 5 + (restart == Restart::Llvm);
    }
  }
}

} // namespace
} // namespace stepc::test
