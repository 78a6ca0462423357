// Update rules written from the papers in plain C++, apart from everything of stepc.

#ifndef STEPC_TEST_UNIT_REFERENCE_FORMULAS_H
#define STEPC_TEST_UNIT_REFERENCE_FORMULAS_H

#include <array>
#include <cstdint>
#include <vector>

namespace formulas {

using Vector = std::vector<double>;

/// Row-major.
struct Dense {
  int64_t rows, cols;
  Vector data;
  double &operator()(int64_t i, int64_t j) { return data[i * cols + j]; }
  double operator()(int64_t i, int64_t j) const { return data[i * cols + j]; }
};

Dense multiply(const Dense &a, const Dense &b);
Dense transpose(const Dense &a);

/// Kingma & Ba (2015) with decoupled decay, Loshchilov & Hutter (2019). `m` and `v` are updated.
void adamw(Vector &param, const Vector &grad, Vector &m, Vector &v, int64_t step, double lr,
           double beta1, double beta2, double eps, double decay);

/// Jordan et al. (2024): X ← aX + (bA + cA²)X with A = XXᵀ, on X / max(‖X‖, eps).
Dense newtonSchulz(Dense x, const std::vector<std::array<double, 3>> &steps, double eps);

/// Muon with Nesterov momentum, decoupled decay and the 0.2 √max(rows, cols) scale.
void muon(Dense &param, const Dense &grad, Vector &momentum,
          const std::vector<std::array<double, 3>> &steps, double lr, double mu, double decay);

} // namespace formulas

#endif
