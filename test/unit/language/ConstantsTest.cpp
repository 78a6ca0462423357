//===- ConstantsTest.cpp - Literals that their types cannot hold -----------===//
#include "Helpers.h"

using namespace stepc::lang;
using namespace stepc::lang::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

TEST(Constants, InitialValuesFitTheirType) {
  const std::string wanted = ": error: expected an initial value that ";
  expectMessages({
      {"state s : f16 = 65519\ns = s + grad", {}},
      {"state s : f16 = 6e-8\ns = s + grad", {}},
      {"state s : f16 = 65520\ns = grad",
       {"2:17" + wanted + "f16 can hold, found 65520, which rounds to infinity"}},
      {"state s : f16 = -1e-8\ns = grad",
       {"2:17" + wanted + "f16 can hold, found -1e-08, which rounds to 0"}},
      {"state s : bf16 = 3.5e38\ns = grad",
       {"2:18" + wanted + "bf16 can hold, found 3.5e+38, which rounds to infinity"}},
      {"state s : f32 = 1e39\ns = grad",
       {"2:17" + wanted + "f32 can hold, found 1e+39, which rounds to infinity"}},
  });
}

TEST(Constants, ThoseThatMeetTensors) {
  const std::string reach = "  hint: f32 holds numbers from 1.4e-45 to 3.4e+38";
  auto expected = [](const std::string &place, const std::string &found) {
    return place + ": error: expected a number that f32 can hold next to a tensor, found " + found;
  };
  const std::string toZero = "1e-50, which rounds to 0",
                    toInfinity = "1e+50, which rounds to infinity";
  expectMessages({
      {"let x = grad + 1e-60", {expected("2:16", "1e-60, which rounds to 0"), reach}},
      {"let x = grad * (1e-30 * 1e-30)", {expected("2:17", "1e-60, which rounds to 0"), reach}},
      {"let x = 1e50 * grad", {expected("2:9", toInfinity), reach}},
      {"let x = -1e39 < grad", {expected("2:9", "-1e+39, which rounds to infinity"), reach}},
      {"let x = grad * sqrt(-1)", {expected("2:16", "NaN"), reach}},
      {"let x = max(grad, -1 / 0)", {expected("2:19", "minus infinity"), reach}},
      {"let x = clamp(grad, -1, 1e50)", {expected("2:25", toInfinity), reach}},
      {"let x = lerp(grad, param, 1e-50)", {expected("2:27", toZero), reach}},
      {"let x = momentum(grad, param, 1e-50)", {expected("2:31", toZero), reach}},
      {"let x = select(grad > 0, 1e-50, 1)", {expected("2:26", toZero), reach}},
      {"let x = select(lr > 0, grad, 1e50)", {expected("2:30", toInfinity), reach}},
      {"let x = abs(grad) ^ 1e-50", {expected("2:21", toZero), reach}},
      {"let x = decay(param, 1e30, 1e30)",
       {"2:22: error: expected a factor '1 - lr * wd' that f32 can hold, found -1e+60, which "
        "rounds to infinity"}},
      {"let tiny = 1e-25 ^ 2\nlet x = norm(grad) + tiny",
       {expected("3:22", toZero), "  2:12: note: its value is given here", reach}},
      {"state s : f16[]\ns = 1e5",
       {"3:5: error: expected a number that f16 can hold next to a tensor, found 100000, which "
        "rounds to infinity",
        "  hint: f16 holds numbers from 6e-8 to 65504"}},
  });
}

TEST(Constants, ScalarsKeepTheirRange) {
  // Scalars are f64 until they meet a tensor, subnormal numbers keep what bits they have, and 0 is
  // a number.
  for (const char *body :
       {"let x = lr * 1e-60 * grad", "let x = grad * (1e-60 * 1e60)", "let x = grad + 1e-44",
        "let x = grad ^ 2", "let x = grad * (1 - 1)", "let x = step < 1e300",
        "let x = select(1e300 > lr, grad, param)", "let x = decay(param, 1e-200, 1e200)"})
    EXPECT_THAT(messagesIn(body), ElementsAre("2:5: warning: 'x' is never used")) << body;
}

TEST(Constants, OptionsOfOrthogonalize) {
  expectMessages({
      {"let x = orthogonalize(grad, eps = 1e-60)",
       {"2:35: error: expected a constant of at least 2^-100 (7.9e-31), found 1e-60"}},
      {"let x = orthogonalize(grad, eps = 7e-31)",
       {"2:35: error: expected a constant of at least 2^-100 (7.9e-31), found 7e-31"}},
      {"let x = orthogonalize(grad, eps = 1e60)",
       {"2:35: error: expected a constant that f32 can hold, found 1e+60, which rounds to "
        "infinity"}},
      {"let x = orthogonalize(grad, coefficients = [(1, -1e300, 1e-300)])",
       {"2:49: error: expected a coefficient that f32 can hold, found -1e+300, which rounds to "
        "infinity",
        "2:57: error: expected a coefficient that f32 can hold, found 1e-300, which rounds to 0"}},
      {"let x = orthogonalize(grad, coefficients = polar_express, safety = 1e20)",
       {"2:68: error: expected a factor that leaves coefficients f32 can hold, found 1e+20"}},
      {"let x = orthogonalize(grad, coefficients = polar_express, safety = 1e300)",
       {"2:68: error: expected a factor that leaves coefficients f32 can hold, found 1e+300"}},
  });
}

TEST(Constants, NotFiniteOnesAreWarnedOf) {
  auto warned = [](const std::string &value) {
    return messagesIn("state s : f32[]\ns = s + lr * " + value);
  };
  EXPECT_THAT(warned("sqrt(-1)"), ElementsAre("3:14: warning: this constant is NaN"));
  EXPECT_THAT(warned("log(0)"), ElementsAre("3:14: warning: this constant is minus infinity"));
  EXPECT_THAT(warned("(1 / 0)"), ElementsAre("3:15: warning: this constant is infinity"));
  EXPECT_THAT(warned("(1e200 * 1e200)"), ElementsAre("3:15: warning: this constant is infinity"));
  EXPECT_THAT(warned("(step / (1 - 1))"), ElementsAre("3:15: warning: this divides by 0"));
  EXPECT_THAT(warned("(-2) ^ 0.3"), ElementsAre("3:15: warning: this constant is NaN"));
  for (const char *finite :
       {"(-2) ^ 3", "(-2) ^ 17", "select(1 < 2 and not (2 == 3), 3, 4)", "4 ^ 0.5", "rsqrt(4)",
        "abs(sign(-3))", "min(clamp(4, 1, 2), lerp(1, 2, 3))", "exp(log(2))"})
    EXPECT_THAT(warned(finite), IsEmpty()) << finite;
  // Only where it begins, through names too.
  EXPECT_THAT(messagesIn("let big = exp(1000)\nstate s : f32[]\ns = s + lr * (big - big) * 2"),
              ElementsAre("2:11: warning: this constant is infinity"));
}

TEST(Constants, ValuesOfHyperparametersAreWarnedOf) {
  // They may change, so a value that is lost is no error; and it is certain only where nothing is
  // computed from it first.
  EXPECT_THAT(check("optimizer A(lr, eps = 1e-60, tiny = 1e-60) {\n"
                    "  let e = eps\n"
                    "  param = param - lr * (1 + tiny) * grad / (abs(grad) + e)\n}\n"
                    "route {\n  A(lr = 1e300) for matrix\n"
                    "  A(lr = 1, eps = 1e-50) for rest\n}\n")
                  .messages(),
              ElementsAre("1:23: warning: 'eps' is 1e-60, which rounds to 0 in f32",
                          "  3:57: note: it meets a tensor here",
                          "7:19: warning: 'eps' is 1e-50, which rounds to 0 in f32",
                          "  3:57: note: it meets a tensor here"));
}

} // namespace
