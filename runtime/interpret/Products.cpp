//===- Products.cpp - Products of computed blocks -----------------------------------===//
//
// An element of the result is one chain of additions over increasing k. The chains of some rows and a strip
// of columns run together, so that each element of the right operand is read and converted once for these
// rows. Products on tensor cores are added up fragment by fragment, as a warp does.
//
//===----------------------------------------------------------------------===//
#include "runtime/emulated/TensorCore.h"
#include "runtime/interpret/Code.h"
#include "runtime/interpret/Storage.h"
#include "stepc/kernel_abi.h"

#include <algorithm>

#pragma STDC FP_CONTRACT OFF

namespace stepc::interpret {
namespace {

constexpr int64_t kColumns = 64, kMostRows = 8; // of a strip

/// sums[j] += left · right[j], rounded once.
STEPC_FUSES void addFused(float *sums, float left, const float *right, int64_t count) {
  for (int64_t j = 0; j < count; ++j)
    sums[j] = __builtin_fmaf(left, right[j], sums[j]);
}
/// sums[j] += left · right[j], rounded after the product and after the sum.
void addRounded(float *sums, float left, const float *right, int64_t count) {
  for (int64_t j = 0; j < count; ++j)
    sums[j] = sums[j] + left * right[j];
}

/// Arguments are the scratch, both operands, the addend if there is one, the out, the factors, and the shift
/// if there is one.
class ProductCode : public Code {
public:
  explicit ProductCode(const ProductKernel &kernel) : kernel(kernel) {}

  int64_t arguments() const override {
    return 5 + (kernel.addend ? 1 : 0) + (kernel.hasShift ? 1 : 0);
  }

  void run(void *const *arguments, int64_t first, int64_t last) const override {
    int64_t items = kernel.itemsPerBlock();
    for (; first < last; ++first) {
      int64_t slot = first / items, row = first % items * kernel.rowsPerItem();
      Block block = blockOf(arguments, slot);
      int64_t rows = std::min(kernel.rowsPerItem(), kernel.m - row);
      int64_t end = kernel.symmetric ? row + rows : kernel.n;
      if (kernel.isOnTensorCores())
        for (int64_t column = 0; column < end; column += runtime::kFragmentColumns)
          runFragment(block, row, column);
      else
        for (int64_t column = 0; column < end; column += kColumns)
          runStrip(block, row, rows, column, std::min(kColumns, end - column));
    }
  }

private:
  struct Block {
    const std::byte *lhs, *rhs, *addend;
    std::byte *out;
    stepc_factors factors;
    stepc_shift shift;
  };

  Block blockOf(void *const *arguments, int64_t slot) const {
    auto at = [&](int64_t index, int64_t elements, plan::DType type) {
      return static_cast<std::byte *>(arguments[index]) + slot * elements * bytesOf(type);
    };
    Block block{};
    block.lhs = at(1, kernel.m * kernel.k, kernel.lhs);
    block.rhs = at(2, kernel.n * kernel.k, kernel.rhs);
    int64_t next = 3;
    if (kernel.addend)
      block.addend = at(next++, kernel.m * kernel.n, *kernel.addend);
    block.out = at(next++, kernel.m * kernel.n, kernel.out);
    std::memcpy(&block.factors, &arguments[next], sizeof(stepc_factors));
    if (kernel.hasShift)
      std::memcpy(&block.shift, &arguments[next + 1], sizeof(stepc_shift));
    return block;
  }

  void runStrip(const Block &block, int64_t row, int64_t rows, int64_t column,
                int64_t columns) const {
    float sums[kMostRows][kColumns] = {}, right[kColumns];
    for (int64_t step = 0; step < kernel.k; ++step) {
      for (int64_t j = 0; j < columns; ++j)
        right[j] = element(block.rhs, kernel.rhs, kernel.transposeRhs, step, column + j, kernel.k,
                           kernel.n);
      for (int64_t i = 0; i < rows; ++i) {
        float left =
            element(block.lhs, kernel.lhs, kernel.transposeLhs, row + i, step, kernel.m, kernel.k);
        kernel.accumulation == plan::Accumulation::FusedChain
            ? addFused(sums[i], left, right, columns)
            : addRounded(sums[i], left, right, columns);
      }
    }
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        finish(block, row + i, column + j, sums[i][j]);
  }

  void runFragment(const Block &block, int64_t row, int64_t column) const {
    auto bits = [](const std::byte *from, int64_t at) {
      uint16_t word;
      std::memcpy(&word, from + at * sizeof(word), sizeof(word));
      return word;
    };
    runtime::multiplyFragments(
        kernel.k, kernel.lhs == plan::DType::F16,
        [&](int64_t i, int64_t step) {
          return row + i < kernel.m && step < kernel.k
                     ? bits(block.lhs,
                            placeOf(kernel.transposeLhs, row + i, step, kernel.m, kernel.k))
                     : uint16_t(0);
        },
        [&](int64_t j, int64_t step) {
          return column + j < kernel.n && step < kernel.k
                     ? bits(block.rhs,
                            placeOf(kernel.transposeRhs, step, column + j, kernel.k, kernel.n))
                     : uint16_t(0);
        },
        [&](int64_t i, int64_t j, float sum) {
          if (row + i < kernel.m && column + j < kernel.n)
            finish(block, row + i, column + j, sum);
        });
  }

  /// Number of element (row, column) of an operand of rows × columns, or of one that is stored transposed.
  static int64_t placeOf(bool transposed, int64_t row, int64_t column, int64_t rows,
                         int64_t columns) {
    return transposed ? column * rows + row : row * columns + column;
  }
  static float element(const std::byte *from, plan::DType type, bool transposed, int64_t row,
                       int64_t column, int64_t rows, int64_t columns) {
    return read(type, from + placeOf(transposed, row, column, rows, columns) * bytesOf(type));
  }

  /// Applies the factors, the addend and the shift, and stores the element. A symmetric product computes one
  /// half and mirrors it.
  void finish(const Block &block, int64_t row, int64_t column, float sum) const {
    if (kernel.symmetric && column > row)
      return;
    int64_t at = row * kernel.n + column, bytes = bytesOf(kernel.out);
    sum = sum * block.factors.alpha;
    if (block.addend) {
      float term = read(*kernel.addend, block.addend + at * bytesOf(*kernel.addend));
      term = term * block.factors.beta;
      sum = sum + term;
    }
    if (kernel.hasShift && row == column)
      sum = sum + block.shift.shift;
    write(kernel.out, sum, block.out + at * bytes);
    if (kernel.symmetric && column < row)
      write(kernel.out, sum, block.out + (column * kernel.n + row) * bytes);
  }

  ProductKernel kernel;
};

} // namespace

std::unique_ptr<Code> ProductKernel::code() const { return std::make_unique<ProductCode>(*this); }

} // namespace stepc::interpret
