//===- NewtonSchulz.cpp - The forms of orthogonalize ----------------------===//

#include "dialects/optim/NewtonSchulz.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"

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

size_t optim::findWrongRestart(ArrayRef<int64_t> restarts, size_t steps) {
  int64_t before = 0;
  for (auto [index, restart] : llvm::enumerate(restarts)) {
    if (restart <= before || restart >= static_cast<int64_t>(steps))
      return index;
    before = restart;
  }
  return restarts.size();
}

/// The largest |f| in [0, end], where the derivative of f is zero only at zeros of f and at roots of
/// k0 + k1 r + k2 r².
static double largest(double end, std::array<double, 3> k, llvm::function_ref<double(double)> f) {
  double result = std::max(std::abs(f(0)), std::abs(f(end)));
  auto visit = [&](double root) {
    if (root > 0 && root < end)
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

Growth optim::boundOf(ArrayRef<NewtonSchulzStep> steps, Form form, ArrayRef<int64_t> restarts) {
  const double rounding = form == Form::Standard ? 1.0 : 65.0 / 64.0;
  double r = rounding; // the eigenvalues of R are in [0, r]
  double q = 1;        // Q is at most q
  Growth growth;
  for (auto [index, step] : llvm::enumerate(steps)) {
    auto [a, b, c] = step;
    auto raise = [&, number = index + 1](double bound) {
      if (std::isnan(bound))
        bound = std::numeric_limits<double>::infinity();
      if (bound > growth.bound)
        growth = {bound, number};
    };
    auto p = [a = a, b = b, c = c](double r) { return a + (b + c * r) * r; };
    raise(r);
    raise(rounding * largest(r, {b, 2 * c, 0}, [&](double r) { return p(r) - a; }));
    if (form != Form::Standard) {
      if (llvm::is_contained(restarts, static_cast<int64_t>(index)))
        q = 1;
      double factor = rounding * largest(r, {b, 2 * c, 0}, p);
      q *= factor;
      raise(factor);
      raise(q);
      raise(rounding * largest(r, {a, 2 * b, 3 * c}, [&](double r) { return r * p(r); }));
    }
    r = rounding * largest(r, {a, 3 * b, 5 * c}, [&](double r) { return r * p(r) * p(r); });
    raise(std::sqrt(r));
  }
  return growth;
}
