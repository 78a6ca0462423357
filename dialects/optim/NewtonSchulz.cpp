//===- NewtonSchulz.cpp - The forms of orthogonalize ----------------------===//

#include "dialects/optim/NewtonSchulz.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace stepc;
using namespace stepc::optim;
using llvm::ArrayRef;

bool optim::isGramForm(Form form, int64_t rows, int64_t cols) {
  if (form != Form::Auto)
    return form == Form::Gram;
  auto [shorter, longer] = std::minmax(rows, cols);
  return longer >= shorter + (shorter + 1) / 2;
}

std::string optim::whyForm(int64_t rows, int64_t cols) {
  auto [shorter, longer] = std::minmax(rows, cols);
  // Rounded down, so that no ratio below 1.5 looks like it.
  double ratio = std::floor(100.0 * double(longer) / double(shorter)) / 100;
  std::string text;
  llvm::raw_string_ostream(text) << longer << " / " << shorter << " = "
                                 << llvm::format("%.2f", ratio)
                                 << (isGramForm(Form::Auto, rows, cols) ? ", at least" : ", below")
                                 << " 1.5";
  return text;
}

size_t optim::findWrongRestart(ArrayRef<int64_t> restarts, size_t steps) {
  int64_t before = 0;
  for (auto [index, restart] : llvm::enumerate(restarts)) {
    if (restart <= before || restart >= static_cast<int64_t>(steps))
      return index;
    before = restart;
  }
  return restarts.size();
}

std::string optim::expectedInPlaceOf(size_t wrong, ArrayRef<int64_t> restarts, size_t steps) {
  if (steps < 2)
    return "no restart, because one step leaves no place for it";
  auto last = static_cast<int64_t>(steps) - 1;
  if (restarts[wrong] >= 1 && restarts[wrong] <= last) {
    int64_t before = restarts[wrong - 1];
    return before == last ? "no restart behind " + std::to_string(last) + ", the last one that " +
                                std::to_string(steps) + " steps have a place for"
                          : "ascending restarts, here one above " + std::to_string(before);
  }
  if (last == 1)
    return "restart 1, the only one that 2 steps have a place for";
  return "restarts from 1 to " + std::to_string(last) + ", whole numbers before the last of " +
         std::to_string(steps) + " steps";
}

/// The largest |f| in [low, high], where the derivative of f is zero only at zeros of f and at roots of
/// k0 + k1 r + k2 r².
static double largest(double low, double high, std::array<double, 3> k,
                      llvm::function_ref<double(double)> f) {
  double result = std::max(std::abs(f(low)), std::abs(f(high)));
  auto visit = [&](double root) {
    if (root > low && root < high)
      result = std::max(result, std::abs(f(root)));
  };
  if (k[2] == 0) {
    visit(-k[0] / k[1]);
    return result;
  }
  double root = std::sqrt(k[1] * k[1] - 4 * k[2] * k[0]);
  visit((-k[1] + root) / (2 * k[2]));
  visit((-k[1] - root) / (2 * k[2]));
  return result;
}

namespace {

/// Keeps the largest of the bounds that it is given.
struct Largest {
  Growth growth;
  size_t step = 0;
  void operator()(double bound) {
    if (std::isnan(bound))
      bound = std::numeric_limits<double>::infinity();
    if (bound > growth.bound)
      growth = {bound, step};
  }
};

} // namespace

static Growth boundOfStandard(ArrayRef<NewtonSchulzStep> steps) {
  Largest raise;
  double high = 1; // the eigenvalues of R are in [0, high]
  for (auto [a, b, c] : steps) {
    auto p = [a = a, b = b, c = c](double r) { return a + (b + c * r) * r; };
    ++raise.step;
    raise(high);
    raise(largest(0, high, {b, 2 * c, 0}, [&](double r) { return p(r) - p(0); }));
    high = largest(0, high, {a, 3 * b, 5 * c}, [&](double r) { return r * p(r) * p(r); });
    raise(std::sqrt(high));
  }
  return raise.growth;
}

static Growth boundOfGram(ArrayRef<NewtonSchulzStep> steps, ArrayRef<int64_t> restarts) {
  constexpr double kRounding = 0x1p-10, kMargin = 65.0 / 64.0;
  Largest raise;
  // The eigenvalues of R are in [low, high], where R of the run began with at most `start`, and Q is at most
  // q.
  double high = kMargin, low = 0, start = 0, q = 1;
  for (auto [index, step] : llvm::enumerate(steps)) {
    auto [a, b, c] = step;
    auto p = [a = a, b = b, c = c](double r) { return a + (b + c * r) * r; };
    auto squared = [&](double r) { return r * p(r) * p(r); };
    raise.step = index + 1;
    if (index == 0 || llvm::is_contained(restarts, static_cast<int64_t>(index))) {
      // A singular value that rounding has hidden in R was multiplied by Q.
      high = std::max(high, kMargin * kRounding * start * q * q);
      raise(std::sqrt(high));
      low = -kRounding * high;
      start = high;
      q = 1;
    }
    double factor = kMargin * largest(low, high, {b, 2 * c, 0}, p);
    double w = kMargin * largest(low, high, {a, 2 * b, 3 * c}, [&](double r) { return r * p(r); });
    q *= factor;
    raise(std::max(high, -low));
    raise(kMargin * largest(low, high, {b, 2 * c, 0}, [&](double r) { return p(r) - p(0); }));
    raise(factor);
    raise(q);
    if (index + 1 < steps.size())
      raise(w);
    double below = largest(low, 0, {a, 3 * b, 5 * c}, squared);
    high = kMargin * largest(0, high, {a, 3 * b, 5 * c}, squared);
    low = -kMargin * below - kRounding * (factor * w + high);
    raise(std::sqrt(high));
  }
  return raise.growth;
}

Growth optim::boundOf(ArrayRef<NewtonSchulzStep> steps, Form form, ArrayRef<int64_t> restarts) {
  Growth standard = boundOfStandard(steps);
  if (form == Form::Standard)
    return standard;
  Growth gram = boundOfGram(steps, restarts);
  return form == Form::Auto && standard.bound > gram.bound ? standard : gram;
}
