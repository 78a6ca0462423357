//===- Matrix.cpp - Matrix operations in double ----------------------------===//

#include "passes/reference/Interpreter.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace stepc;
using namespace stepc::reference;

/// `x` reduced to rows × cols. `rows` is x.rows or 1, and `cols` is x.cols or 1.
static Matrix reduce(optim::Reduction kind, const Matrix &x, int64_t rows, int64_t cols) {
  bool squares = kind == optim::Reduction::Rms || kind == optim::Reduction::Norm;
  bool largest = kind == optim::Reduction::Max;
  // Wider than double, so that the order of additions does not matter.
  std::vector<long double> sums(static_cast<size_t>(rows * cols),
                                largest ? -std::numeric_limits<long double>::infinity() : 0.0L);
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < x.cols; ++j) {
      long double value = x.at(i, j);
      long double &sum =
          sums[static_cast<size_t>((rows == 1 ? 0 : i) * cols + (cols == 1 ? 0 : j))];
      // +0 counts as larger than -0.
      bool isGreater = value > sum || (value == 0 && sum == 0 && !std::signbit(value));
      if (largest)
        sum = std::isnan(value) || isGreater ? value : sum;
      else
        sum += squares ? value * value : value;
    }
  auto count = static_cast<long double>((x.rows / rows) * (x.cols / cols));
  Matrix result(rows, cols);
  for (size_t i = 0; i < sums.size(); ++i) {
    long double value = sums[i];
    if (kind == optim::Reduction::Mean || kind == optim::Reduction::Rms)
      value /= count;
    result.data[i] = static_cast<double>(squares ? std::sqrt(value) : value);
  }
  return result;
}

static Matrix transpose(const Matrix &x) {
  Matrix result(x.cols, x.rows);
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < x.cols; ++j)
      result.at(j, i) = x.at(i, j);
  return result;
}

static Matrix multiply(const Matrix &a, const Matrix &b) {
  Matrix result(a.rows, b.cols);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t k = 0; k < a.cols; ++k) {
      double factor = a.at(i, k);
      for (int64_t j = 0; j < b.cols; ++j)
        result.at(i, j) += factor * b.at(k, j);
    }
  return result;
}

/// The recurrence that optim.orthogonalize documents.
static Matrix orthogonalize(const Matrix &source, llvm::ArrayRef<std::array<double, 3>> steps,
                            double eps) {
  bool tall = source.rows > source.cols;
  Matrix x = tall ? transpose(source) : source;
  double norm = reduce(optim::Reduction::Norm, x, 1, 1).data[0];
  // max(norm, eps) lets a NaN through, as arith.maximumf does.
  double divisor = norm < eps ? eps : norm;
  for (double &value : x.data)
    value /= divisor;
  for (auto [a, b, c] : steps) {
    Matrix gram = multiply(x, transpose(x));
    Matrix polynomial = multiply(gram, gram);
    for (size_t i = 0; i < gram.data.size(); ++i)
      polynomial.data[i] = c * polynomial.data[i] + b * gram.data[i];
    Matrix next = multiply(polynomial, x);
    for (size_t i = 0; i < x.data.size(); ++i)
      next.data[i] += a * x.data[i];
    x = std::move(next);
  }
  return tall ? transpose(x) : x;
}

std::optional<Matrix> reference::computeMatrix(mlir::Operation *op,
                                               llvm::ArrayRef<const Matrix *> operands,
                                               int64_t rows, int64_t cols) {
  using Found = std::optional<Matrix>;
  return llvm::TypeSwitch<mlir::Operation *, Found>(op)
      .Case([&](optim::ReduceOp op) { return reduce(op.getKind(), *operands[0], rows, cols); })
      .Case([&](optim::MatmulOp op) {
        const Matrix &lhs = *operands[0], &rhs = *operands[1];
        return multiply(op.getTransposeLhs() ? transpose(lhs) : lhs,
                        op.getTransposeRhs() ? transpose(rhs) : rhs);
      })
      .Case([&](optim::TransposeOp) { return transpose(*operands[0]); })
      .Case([&](optim::OrthogonalizeOp op) {
        return orthogonalize(*operands[0], op.getSteps(), op.getEps().convertToDouble());
      })
      .Default(Found());
}
