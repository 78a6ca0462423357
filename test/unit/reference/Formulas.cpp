#include "Formulas.h"

#include <algorithm>
#include <cmath>

namespace formulas {

Dense multiply(const Dense &a, const Dense &b) {
  Dense c{a.rows, b.cols, Vector(a.rows * b.cols)};
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < b.cols; ++j)
      for (int64_t k = 0; k < a.cols; ++k)
        c(i, j) += a(i, k) * b(k, j);
  return c;
}

Dense transpose(const Dense &a) {
  Dense t{a.cols, a.rows, Vector(a.data.size())};
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.cols; ++j)
      t(j, i) = a(i, j);
  return t;
}

void adamw(Vector &param, const Vector &grad, Vector &m, Vector &v, int64_t step, double lr,
           double beta1, double beta2, double eps, double decay) {
  for (size_t i = 0; i < param.size(); ++i) {
    m[i] = beta1 * m[i] + (1 - beta1) * grad[i];
    v[i] = beta2 * v[i] + (1 - beta2) * grad[i] * grad[i];
    double mHat = m[i] / (1 - std::pow(beta1, step));
    double vHat = v[i] / (1 - std::pow(beta2, step));
    param[i] = param[i] - lr * decay * param[i] - lr * mHat / (std::sqrt(vHat) + eps);
  }
}

Dense newtonSchulz(Dense x, const std::vector<std::array<double, 3>> &steps, double eps) {
  if (x.rows > x.cols)
    return transpose(newtonSchulz(transpose(x), steps, eps));
  double norm = 0;
  for (double value : x.data)
    norm += value * value;
  norm = std::max(std::sqrt(norm), eps);
  for (double &value : x.data)
    value /= norm;
  for (auto [a, b, c] : steps) {
    Dense gram = multiply(x, transpose(x));
    Dense square = multiply(gram, gram);
    Dense once = multiply(gram, x), twice = multiply(square, x);
    for (size_t i = 0; i < x.data.size(); ++i)
      x.data[i] = a * x.data[i] + b * once.data[i] + c * twice.data[i];
  }
  return x;
}

void muon(Dense &param, const Dense &grad, Vector &momentum,
          const std::vector<std::array<double, 3>> &steps, double lr, double mu, double decay) {
  Dense update{param.rows, param.cols, Vector(param.data.size())};
  for (size_t i = 0; i < momentum.size(); ++i) {
    momentum[i] = mu * momentum[i] + grad.data[i];
    update.data[i] = grad.data[i] + mu * momentum[i];
  }
  Dense o = newtonSchulz(update, steps, 1e-7);
  double scale = 0.2 * std::sqrt(double(std::max(param.rows, param.cols)));
  for (size_t i = 0; i < param.data.size(); ++i)
    param.data[i] -= lr * (decay * param.data[i] + scale * o.data[i]);
}

} // namespace formulas
