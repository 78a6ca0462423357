//===- NumericsTest.cpp - Functions and conversions, bit by bit ------------===//
//
// One stage computes new = f(parameter, gradient) of many values, on vectors and
// in tails, for the host and for older chips whose instructions differ.
//
//===----------------------------------------------------------------------===//

#include "test/unit/codegen/Compile.h"

#include "gtest/gtest.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <regex>

namespace stepc::test {
namespace {

// A tail of 15, and more than one chunk.
constexpr int64_t kCount = 16 * 4096 + 15;

struct Function {
  std::string name, parameter = "f32", gradient = "f32", body;
};

/// The same on tensors: what the step is proven to compute.
std::string ruleOf(const Function &f) {
  auto cast = [](const char *op, const std::string &result, const std::string &source,
                 const std::string &from, const std::string &to) {
    return from == to
               ? std::string()
               : result + " = arith." + op + " " + source + " : " + from + " to " + to + "\n";
  };
  std::string body = cast("truncf", "%x", "%param", "f32", f.parameter) +
                     cast("truncf", "%y", "%grad", "f32", f.gradient) + f.body + "\n" +
                     cast("extf", "%w", "%r", f.parameter, "f32") + "optim.yield " +
                     (f.parameter == "f32" ? "%r" : "%w") + " : f32";
  if (f.parameter == "f32")
    body = std::regex_replace(body, std::regex("%x\\b"), "%param");
  if (f.gradient == "f32")
    body = std::regex_replace(body, std::regex("%y\\b"), "%grad");
  body = std::regex_replace(body, std::regex("arith.constant (\\S+) : f32"),
                            "arith.constant $1 : f64\n%t = optim.splat %c : f32");
  body = std::regex_replace(body, std::regex("(powf \\S+) %c"), "$1 %t");
  body = std::regex_replace(body, std::regex("(select [^:]*): f32"), "$1: i1, f32");
  return std::regex_replace(body, std::regex("\\b(f32|bf16|f16|i1)\\b"), "tensor<?x?x$1>");
}

/// A module whose step replaces each of two parameters by f of it and its gradient. `body` computes
/// %r from %x and %y.
std::string moduleOf(const Function &f) {
  std::string text = R"(
module @NAME attributes {stepc.level = "scheduled", stepc.numerics = "exact"} {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    RULE
  }
  optim.route @route rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @a shape [COUNT] batch 0 type PARAMETER gradient GRADIENT mesh @world placements [#optim.replicate] aliases [] route @route
  optim.parameter @b shape [COUNT] batch 0 type PARAMETER gradient GRADIENT mesh @world placements [#optim.replicate] aliases [] route @route
  optim.group @g rule @R parameters [@a, @b]
  comm.segment @s group @g all
  func.func @step() attributes {comm.arena_bytes = 64 : i64} {
    %steps = comm.steps
    %active = comm.active
    %p = comm.shards parameter @g : !comm.shards<@g, PARAMETER>
    %g = comm.shards gradient @g : !comm.shards<@g, GRADIENT>
    comm.stage @s over shards active %active ins(%p, %g : !comm.shards<@g, PARAMETER>, !comm.shards<@g, GRADIENT>)
        writes(%p : !comm.shards<@g, PARAMETER>) {
    ^bb0(%x: PARAMETER, %y: GRADIENT):
      BODY
      comm.yield %r : PARAMETER
    }
    comm.advance_steps %steps active %active
    return
  }
})";
  for (auto [from, to] : {std::pair<std::string, std::string>{"NAME", f.name},
                          {"COUNT", std::to_string(kCount)},
                          {"RULE", ruleOf(f)},
                          {"PARAMETER", f.parameter},
                          {"GRADIENT", f.gradient},
                          {"BODY", f.body}})
    text = replaced(text, from, to);
  return text;
}

/// f of each pair, computed by the compiled step. A second parameter holds the same pairs in other
/// places: every element must come out the same from both.
template <typename X, typename Y>
std::vector<X> evaluate(const Function &f, std::vector<X> x, std::vector<Y> y,
                        const std::string &target = "cpu") {
  constexpr int64_t kShift = 7;
  x.resize(kCount);
  y.resize(kCount);
  Compiled compiled = load({moduleOf(f), target});
  EXPECT_TRUE(compiled.library) << f.name << ": " << compiled.error;
  std::vector<X> result(kCount);
  if (!compiled.library)
    return result;
  runWorld(compiled.library, [&](Rank &rank, int) {
    for (int64_t i = 0; i < kCount; ++i) {
      int64_t other = (i + kShift) % kCount;
      rank.parameter<X>(0)[i] = rank.parameter<X>(1)[other] = x[i];
      rank.gradient<Y>(0)[i] = rank.gradient<Y>(1)[other] = y[i];
    }
    rank.step();
    int64_t differing = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      result[i] = rank.parameter<X>(0)[i];
      differing +=
          std::memcmp(&result[i], &rank.parameter<X>(1)[(i + kShift) % kCount], sizeof(X)) != 0;
    }
    EXPECT_EQ(differing, 0) << f.name << ": elements depend on where they are";
  });
  return result;
}

/// All kinds of floats: any bits, numbers around one, and the special ones.
std::vector<float> anyFloats(unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, 8);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0.0f,
                               -0.0f,
                               1.0f,
                               -1.0f,
                               kInf,
                               -kInf,
                               NAN,
                               1e-45f,
                               -1e-45f,
                               3.4e38f,
                               0.5f,
                               2.0f,
                               1e-38f,
                               88.7f,
                               88.8f,
                               -87.3f,
                               -87.4f,
                               -103.9f,
                               -104.1f,
                               65504.0f,
                               65520.0f,
                               65519.9f,
                               std::nextafterf(1, 2),
                               std::nextafterf(1, 0)};
  while (int64_t(values.size()) < kCount)
    values.push_back(generator() % 2 ? normal(generator)
                                     : std::bit_cast<float>(uint32_t(generator())));
  return values;
}

bool sameBits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

/// Distance in units in the last place of the true value, as float.
double ulps(float value, double exact) {
  float rounded = float(exact);
  if (sameBits(value, rounded))
    return 0;
  if (!std::isfinite(value) || !std::isfinite(rounded))
    return std::isnan(value) || std::isnan(rounded) ? INFINITY
           : std::abs(double(value) - exact) < 1e32 ? 1
                                                    : INFINITY;
  double unit = std::max(std::ldexp(1.0, -149),
                         std::ldexp(1.0, std::ilogb(std::max(std::abs(exact), 1e-300)) - 23));
  return std::abs(double(value) - exact) / unit;
}

const char *const kTargets[] = {"cpu", "cpu:x86-64-v3", "cpu:nehalem"};

TEST(Numerics, ExactFunctions) {
  struct Case {
    const char *name, *body;
    float (*expected)(float, float);
  } cases[] = {
      {"sqrt", "%r = math.sqrt %x : f32", [](float x, float) { return std::sqrt(x); }},
      {"rsqrt", "%r = math.rsqrt %x : f32", [](float x, float) { return 1.0f / std::sqrt(x); }},
      {"absolute", "%r = math.absf %x : f32", [](float x, float) { return std::fabs(x); }},
      {"sign", "%r = math.copysign %x, %y : f32",
       [](float x, float y) { return std::copysign(x, y); }},
      {"ratio", "%r = arith.divf %x, %y : f32", [](float x, float y) { return x / y; }},
      {"negative", "%r = arith.negf %x : f32", [](float x, float) { return -x; }},
      {"most", "%r = arith.maximumf %x, %y : f32",
       [](float x, float y) {
         if (std::isnan(x) || std::isnan(y))
           return NAN;
         return x == y ? (std::signbit(x) ? y : x) : x > y ? x : y;
       }},
      {"least", "%r = arith.minimumf %x, %y : f32",
       [](float x, float y) {
         if (std::isnan(x) || std::isnan(y))
           return NAN;
         return x == y ? (std::signbit(x) ? x : y) : x < y ? x : y;
       }},
      {"chosen",
       "%c = arith.cmpf ole, %x, %y : f32\n %s = arith.addf %x, %y : f32\n %r = arith.select %c, "
       "%s, %y : f32",
       [](float x, float y) { return x <= y ? x + y : y; }},
      {"unfused", "%m = arith.mulf %x, %y : f32\n %r = arith.addf %m, %x : f32",
       [](float x, float y) {
         float m = x * y;
         return m + x;
       }},
      {"square", "%c = arith.constant 2.0 : f32\n %r = math.powf %x, %c : f32",
       [](float x, float) { return x * x; }},
      {"cube", "%c = arith.constant 3.0 : f32\n %r = math.powf %x, %c : f32",
       [](float x, float) { return x * x * x; }},
      {"fourth", "%c = arith.constant 4.0 : f32\n %r = math.powf %x, %c : f32",
       [](float x, float) {
         float s = x * x;
         return s * s;
       }},
      {"inverse", "%c = arith.constant -1.0 : f32\n %r = math.powf %x, %c : f32",
       [](float x, float) { return 1.0f / x; }},
      {"unit", "%c = arith.constant 0.0 : f32\n %r = math.powf %x, %c : f32",
       [](float, float) { return 1.0f; }},
      {"power", "%r = math.powf %x, %y : f32",
       [](float x, float y) { return float(std::pow(double(x), double(y))); }},
  };
  std::vector<float> x = anyFloats(1), y = anyFloats(2);
  for (size_t i = 0; i < 24; ++i) // special pairs
    y[i] = x[(i * 5) % 24];
  for (const Case &test : cases)
    for (const char *target : {kTargets[0], kTargets[2]}) {
      std::vector<float> result =
          evaluate(Function{test.name, "f32", "f32", test.body}, x, y, target);
      int64_t wrong = 0;
      for (int64_t i = 0; i < kCount; ++i)
        if (!sameBits(result[i], test.expected(x[i], y[i])) && wrong++ == 0)
          ADD_FAILURE() << test.name << "(" << x[i] << ", " << y[i] << ") = " << result[i]
                        << ", expected " << test.expected(x[i], y[i]) << " for " << target;
    }
}

TEST(Numerics, ExponentialAndLogarithm) {
  struct Case {
    const char *name, *body;
    double (*expected)(double);
  } cases[] = {
      {"exponential", "%r = math.exp %x : f32", [](double x) { return std::exp(x); }},
      {"logarithm", "%r = math.log %x : f32", [](double x) { return std::log(x); }},
  };
  std::vector<float> x = anyFloats(3), y(kCount);
  for (const Case &test : cases) {
    std::vector<float> first;
    for (const char *target : kTargets) {
      std::vector<float> result =
          evaluate(Function{test.name, "f32", "f32", test.body}, x, y, target);
      double worst = 0;
      float at = 0, got = 0;
      for (int64_t i = 0; i < kCount; ++i)
        if (double error = ulps(result[i], test.expected(x[i])); error > worst)
          worst = error, at = x[i], got = result[i];
      EXPECT_LE(worst, 2) << test.name << "(" << at << ") = " << got << ", exact "
                          << test.expected(at);
      if (first.empty())
        first = result;
      // One sequence of IEEE operations: other instructions, the same bits.
      EXPECT_EQ(std::memcmp(first.data(), result.data(), kCount * 4), 0)
          << test.name << " for " << target;
    }
  }
}

float fromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

TEST(Numerics, Bf16) {
  std::vector<uint16_t> all(kCount);
  for (int64_t i = 0; i < kCount; ++i)
    all[i] = uint16_t(i);
  std::vector<float> x = anyFloats(4);
  for (const char *target : kTargets) {
    // f32 → bf16: nearest, ties to even; NaN stays one.
    Function narrow{"narrow", "bf16", "f32", "%r = arith.truncf %y : f32 to bf16"};
    std::vector<uint16_t> narrowed = evaluate(narrow, all, x, target);
    int64_t wrong = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      uint32_t bits = std::bit_cast<uint32_t>(x[i]);
      uint16_t expected = uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
      bool nan = std::isnan(x[i]);
      wrong += nan ? !std::isnan(fromBf16(narrowed[i])) || !(narrowed[i] & 0x40)
                   : narrowed[i] != expected;
    }
    EXPECT_EQ(wrong, 0) << target;
    // bf16 → f32: all of them, exactly.
    Function wide{"wide", "f32", "bf16", "%r = arith.extf %y : bf16 to f32"};
    std::vector<float> widened = evaluate(wide, x, all, target);
    for (int64_t i = 0; i < kCount; ++i)
      wrong += !sameBits(widened[i], fromBf16(all[i]));
    EXPECT_EQ(wrong, 0) << target;
  }
}

TEST(Numerics, F16) {
  std::vector<uint16_t> all(kCount);
  for (int64_t i = 0; i < kCount; ++i)
    all[i] = uint16_t(i);
  std::vector<float> x = anyFloats(5);
  // Around every half: it, its neighbours' middle, and a bit beside that.
  for (int64_t i = 100; i < kCount / 2; ++i) {
    float half = float(std::bit_cast<_Float16>(uint16_t(i * 2)));
    float next = float(std::bit_cast<_Float16>(uint16_t(i * 2 + 1)));
    float middle = half + (next - half) / 2;
    x[i] = i % 3 == 0   ? middle
           : i % 3 == 1 ? std::nextafterf(middle, next)
                        : std::nextafterf(middle, half);
  }
  for (const char *target : kTargets) {
    Function narrow{"narrow16", "f16", "f32", "%r = arith.truncf %y : f32 to f16"};
    std::vector<uint16_t> narrowed = evaluate(narrow, all, x, target);
    int64_t wrong = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      uint16_t expected = std::bit_cast<uint16_t>(_Float16(x[i]));
      bool nan = std::isnan(x[i]);
      if ((nan ? (narrowed[i] & 0x7e00) != 0x7e00 : narrowed[i] != expected) && wrong++ == 0)
        ADD_FAILURE() << x[i] << " became " << narrowed[i] << ", expected " << expected << " for "
                      << target;
    }
    Function wide{"wide16", "f32", "f16", "%r = arith.extf %y : f16 to f32"};
    std::vector<float> widened = evaluate(wide, x, all, target);
    for (int64_t i = 0; i < kCount; ++i)
      wrong += !sameBits(widened[i], float(std::bit_cast<_Float16>(all[i])));
    EXPECT_EQ(wrong, 0) << target;
  }
}

TEST(Numerics, ARoundTripIsNotFoldedAway) {
  std::vector<float> x = anyFloats(6), y(kCount);
  for (const char *type : {"bf16", "f16"}) {
    std::string body =
        replaced("%n = arith.truncf %x : f32 to T\n %r = arith.extf %n : T to f32", "T", type);
    std::vector<float> result = evaluate(Function{"roundtrip", "f32", "f32", body}, x, y);
    int64_t same = 0;
    for (int64_t i = 0; i < kCount; ++i)
      same += sameBits(result[i], x[i]) && !std::isnan(x[i]) && std::fabs(x[i]) < 6e4 &&
              std::fabs(x[i]) > 1e-4;
    EXPECT_LT(same, kCount / 10) << type;
  }
}

TEST(Numerics, FunctionsWithoutASequenceAreRefused) {
  Compiled compiled = compile({moduleOf({"wave", "f32", "f32", "%r = math.sin %x : f32"})});
  EXPECT_NE(compiled.error.find("expected a function with one sequence"), std::string::npos)
      << compiled.error;
}

} // namespace
} // namespace stepc::test
