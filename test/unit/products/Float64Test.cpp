//===- Float64Test.cpp - exp, log and powers of f64 ------------------------===//
//
// Compared with long double, whose 64 bits tell a thousandth of a unit in the last place. Vectors
// and scalars, with and without fused multiply-adds, give the same bits.
//
//===----------------------------------------------------------------------===//

#include "test/unit/products/Random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

using namespace stepc;
using namespace stepc::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// out[i] = f(x[i], y[i]): one kernel on vectors of 8 and one on scalars.
std::string kernelsOf(const std::string &body) {
  std::string text = "module {\n";
  for (std::string type : {"vector<8xf64>", "f64"}) {
    std::string name = type == "f64" ? "scalar" : "vector", step = type == "f64" ? "1" : "8";
    auto pointer = [&](int index) {
      std::string i = std::to_string(index);
      return "    %a" + i + " = llvm.getelementptr %arguments[" + i +
             "] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n    %b" + i + " = llvm.load %a" + i +
             " : !llvm.ptr -> !llvm.ptr\n";
    };
    auto at = [&](int index) {
      std::string i = std::to_string(index);
      return "      %p" + i + " = llvm.getelementptr %b" + i +
             "[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64\n";
    };
    std::string operation = body;
    for (size_t p; (p = operation.find("TYPE")) != std::string::npos;)
      operation.replace(p, 4, type);
    text += "  llvm.func @" + name + "(%arguments: !llvm.ptr, %first: i64, %last: i64) {\n";
    text += pointer(0) + pointer(1) + pointer(2);
    text += "    %step = arith.constant " + step + " : i64\n";
    text += "    scf.for %i = %first to %last step %step : i64 {\n" + at(0) + at(1) + at(2);
    text += "      %x = llvm.load %p0 {alignment = 8 : i64} : !llvm.ptr -> " + type + "\n";
    text += "      %y = llvm.load %p1 {alignment = 8 : i64} : !llvm.ptr -> " + type + "\n";
    text += "      " + operation + "\n";
    text += "      llvm.store %r, %p2 {alignment = 8 : i64} : " + type + ", !llvm.ptr\n";
    text += "    }\n    llvm.return\n  }\n";
  }
  return text + "}\n";
}

/// Distance in units in the last place; 0 where both are NaN or one infinity.
double ulps(double found, long double exact) {
  if (std::isnan(found) || std::isnan(exact))
    return std::isnan(found) && std::isnan(exact) ? 0 : kInf;
  double rounded = double(exact);
  if (std::bit_cast<uint64_t>(found) == std::bit_cast<uint64_t>(rounded) && !std::isfinite(found))
    return 0;
  if (found == 0 && rounded == 0)
    return std::signbit(found) == std::signbit(rounded) ? double(std::fabs(exact) * 0x1p1074L)
                                                        : kInf;
  if (std::isinf(found) || std::isinf(rounded)) // at the border of the range
    return std::fabs(exact) >= 0x1.fffffffffffffp1023L && std::fabs(found) >= 0x1.fffffffffffffp1023
               ? 1
               : kInf;
  int exponent = std::max(std::ilogb(exact), -1022);
  return double(std::fabs(std::ldexp((long double)(found)-exact, 52 - exponent)));
}

void check(const char *name, const std::string &body, double bound, const std::vector<double> &xs,
           const std::vector<double> &ys,
           const std::function<long double(long double, long double)> &exact) {
  std::vector<double> first;
  for (const TargetShape &target : targetsOfThisMachine()) {
    Code code = compileKernels(kernelsOf(body), {"vector", "scalar"}, 3, target);
    ASSERT_EQ(code.error, "");
    for (const CompiledLaunch &launch : code.launches) {
      std::vector<double> found(xs.size());
      void *arguments[] = {const_cast<double *>(xs.data()), const_cast<double *>(ys.data()),
                           found.data()};
      launch.kernel(arguments, 0, int64_t(xs.size()));
      if (first.empty()) {
        first = found;
        double worst = 0;
        size_t where = 0;
        for (size_t i = 0; i < xs.size(); ++i)
          if (double error = ulps(found[i], exact(xs[i], ys[i])); error > worst)
            worst = error, where = i;
        std::printf("%s: at most %.4f ulp of %zu values\n", name, worst, xs.size());
        EXPECT_LE(worst, bound) << name << "(" << std::hexfloat << xs[where] << ", " << ys[where]
                                << ") = " << found[where] << ", expected "
                                << double(exact(xs[where], ys[where]));
      }
      EXPECT_EQ(std::memcmp(first.data(), found.data(), found.size() * 8), 0)
          << name << " for " << chipName(target);
    }
  }
}

const std::vector<double> kSpecial = {0.0,
                                      -0.0,
                                      1.0,
                                      -1.0,
                                      kInf,
                                      -kInf,
                                      NAN,
                                      5e-324,
                                      -5e-324,
                                      0x1p-1022,
                                      1.7e308,
                                      -1.7e308,
                                      0.5,
                                      -0.5,
                                      2.0,
                                      -2.0,
                                      3.0,
                                      -3.0,
                                      1e-300,
                                      -1e-300,
                                      709.78,
                                      709.79,
                                      -708.4,
                                      -745.13,
                                      -745.14,
                                      1023.0,
                                      -1074.0,
                                      -1075.0,
                                      0x1p52,
                                      0x1p53,
                                      0x1p53 - 1,
                                      -0x1p53 + 1,
                                      0x1p52 + 1,
                                      0x1p51 + 0.5,
                                      1e300,
                                      -1e300,
                                      std::nextafter(1.0, 2.0),
                                      std::nextafter(1.0, 0.0),
                                      0.999,
                                      0.95,
                                      1e5,
                                      1e-8};

std::vector<double> padded(std::vector<double> values) {
  while (values.size() % 8)
    values.push_back(1.0);
  return values;
}

double anyNumber(Engine &engine) {
  return std::bit_cast<double>(engine() | uint64_t(engine()) << 32);
}

constexpr int kCount = 1 << 17;

TEST(Float64, Exponential) {
  Engine engine(testSeed());
  std::vector<double> xs = kSpecial;
  for (int i = 0; i < kCount; ++i)
    xs.push_back(i % 4 == 0 ? anyNumber(engine)
                            : std::uniform_real_distribution<>(i % 4 == 1 ? -1 : -750,
                                                               i % 4 == 1 ? 1 : 720)(engine));
  xs = padded(xs);
  check("exp", "%r = math.exp %x : TYPE", 1.0, xs, xs,
        [](long double x, long double) { return std::exp(x); });
}

TEST(Float64, Logarithm) {
  Engine engine(testSeed());
  std::vector<double> xs = kSpecial;
  for (int i = 0; i < kCount; ++i)
    xs.push_back(i % 4 == 0   ? anyNumber(engine)
                 : i % 4 == 1 ? std::uniform_real_distribution<>(0, 2)(engine)
                 : i % 4 == 2 ? 1 + std::ldexp(std::normal_distribution<>()(engine), -i % 53)
                              : std::fabs(anyNumber(engine)));
  xs = padded(xs);
  check("log", "%r = math.log %x : TYPE", 1.0, xs, xs,
        [](long double x, long double) { return std::log(x); });
}

TEST(Float64, Power) {
  Engine engine(testSeed());
  std::vector<double> xs, ys;
  for (double x : kSpecial)
    for (double y : kSpecial)
      xs.push_back(x), ys.push_back(y);
  for (int i = 0; i < kCount; ++i) {
    double x = std::fabs(anyNumber(engine)), y;
    switch (i % 4) {
    case 0: // bias correction
      x = std::uniform_real_distribution<>(0.5, 1)(engine);
      y = double(draw(engine, 1, 1000000));
      break;
    case 1: // results in all of the range
      y = std::uniform_real_distribution<>(-745, 710)(engine) / std::log(x);
      break;
    case 2: // near one
      x = 1 + std::ldexp(std::normal_distribution<>()(engine), -i % 50);
      y = std::uniform_real_distribution<>(-745, 710)(engine) / std::log(x);
      break;
    default:
      x = std::normal_distribution<>()(engine);
      y = double(draw(engine, -40, 40));
    }
    xs.push_back(x), ys.push_back(y);
  }
  xs = padded(xs), ys = padded(ys);
  check("pow", "%r = math.powf %x, %y : TYPE", 1.0, xs, ys,
        [](long double x, long double y) { return std::pow(x, y); });
}

} // namespace
