//===- ProductRun.h - Runs a product's kernel and checks it ------*- C++ -*-===//
#ifndef STEPC_TEST_PTX_PRODUCTRUN_H
#define STEPC_TEST_PTX_PRODUCTRUN_H

#include "test/ptx/Kernels.h"
#include "test/ptx/Lists.h"

namespace stepc::ptx {

/// Rows of elements, each padded to a multiple of 16 bytes.
struct Matrices {
  Type type = Type::BF16;
  uint32_t batches = 0, rows = 0, columns = 0;
  std::vector<uint8_t> bytes;

  Matrices() = default;
  Matrices(Type type, uint32_t batches, uint32_t rows, uint32_t columns);
  uint32_t elementBytes() const { return bytesOf(type); }
  uint32_t rowElements() const;
  double at(uint32_t batch, uint32_t row, uint32_t column) const;
  void set(uint32_t batch, uint32_t row, uint32_t column, float value);
  uint32_t bits(uint32_t batch, uint32_t row, uint32_t column) const;
};

struct ProductShape {
  uint32_t batches, m, n, k;
};

/// One product: out = alpha lhs · rhs + beta addend + shift on the diagonal, for each matrix of a batch.
struct ProductProblem {
  ProductShape shape;
  float alpha = 1, beta = 0, shift = 0;
  bool hasAddend = false, hasShift = false;
  bool isOwnRhs = false; ///< the rhs of a symmetric kernel is another matrix than the lhs
  Matrices lhs, rhs, addend;
};

/// Elements are drawn, also those of an addend if the kernel takes one. For a symmetric kernel n is m, and the addend is
/// symmetric. If it transposes neither or both, both
/// operands are symmetric, and other matrices for odd seeds. Otherwise the rhs is the lhs.
ProductProblem drawProblem(const ProductKernel &kernel, ProductShape shape, uint64_t seed);

struct ProductOptions {
  uint64_t seed = 0;
  ListOptions lists;
  uint32_t resident = 1; ///< clusters that run beside each other
  /// The lhs of the last problem is the result of the first, a planted fault.
  bool readsResult = false;
};

struct ProductResult {
  std::vector<Matrices> outs;
  double error = 0; ///< the largest relative error of a problem against float64
  uint64_t instructions = 0;
};

/// Runs all problems in one launch. Throws an error if the kernel breaks a rule of the machine, or if a result is wrong,
/// is written not exactly once, or is not symmetric in bits where it must be.
ProductResult runProduct(const ProductKernel &kernel, const std::vector<ProductProblem> &problems,
                         const ProductOptions &options);

} // namespace stepc::ptx

#endif
