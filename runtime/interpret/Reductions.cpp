//===- Reductions.cpp - Reductions of computed blocks -----------------------------------===//
//
// A chain adds numbers up in 16 partial results. This order is part of what optim.reduce means, on every
// chip (passes/kernels/products/Reducer.h).
//
//===----------------------------------------------------------------------===//
#include "runtime/interpret/Code.h"
#include "runtime/interpret/Storage.h"

#include <algorithm>
#include <cmath>
#include <limits>

#pragma STDC FP_CONTRACT OFF

namespace stepc::interpret {
namespace {

constexpr int64_t kPartials = 16;
// A sum of squares outside of these bounds is computed again, from numbers that are multiplied by 2^96 or
// 2^-96.
constexpr float kLeastSquares = 0x1p-70f, kMostSquares = 0x1p126f;
constexpr int kScale = 96;

float squareRoot(float value) {
#if __has_builtin(__builtin_elementwise_sqrt)
  return __builtin_elementwise_sqrt(value);
#else
  return std::sqrt(value);
#endif
}

class ReduceCode : public Code {
public:
  explicit ReduceCode(const ReduceKernel &kernel)
      : kernel(kernel), isMax(kernel.reduction == plan::Reduction::Max),
        squares(kernel.reduction == plan::Reduction::Rms ||
                kernel.reduction == plan::Reduction::Norm),
        neutral(isMax ? -std::numeric_limits<float>::infinity() : 0.0f) {}

  int64_t arguments() const override { return 3; } // the scratch, the source, the out

  void run(void *const *arguments, int64_t first, int64_t last) const override {
    const auto *source = static_cast<const std::byte *>(arguments[1]);
    auto *out = static_cast<std::byte *>(arguments[2]);
    int64_t items = kernel.itemsPerBlock();
    for (; first < last; ++first) {
      int64_t slot = first / items, item = first % items;
      const std::byte *block = source + slot * kernel.rows * kernel.cols * bytesOf(kernel.type);
      auto put = [&](int64_t index, float value) {
        store(out + index * int64_t(sizeof(float)), value);
      };
      switch (kernel.remains) {
      case Remains::One:
        put(slot,
            result(kernel.rows * kernel.cols, [&](float scale) { return ofBlock(block, scale); }));
        break;
      case Remains::Rows:
        put(slot * kernel.rows + item,
            result(kernel.cols, [&](float scale) { return ofRow(block, item, scale); }));
        break;
      case Remains::Columns: {
        int64_t column = item * kReducedColumns;
        int64_t end = std::min(column + kReducedColumns, kernel.cols);
        for (; column < end; ++column)
          put(slot * kernel.cols + column,
              result(kernel.rows, [&](float scale) { return ofColumn(block, column, scale); }));
      }
      }
    }
  }

private:
  /// Adds a number to a partial result or, for a maximum, takes the larger of both.
  float combine(float a, float b) const {
    if (!isMax)
      return a + b;
    if (a != a)
      return a;
    if (b != b)
      return b;
    if (a == b) // +0 is above -0
      return std::bit_cast<float>(std::bit_cast<uint32_t>(a) & std::bit_cast<uint32_t>(b));
    return a > b ? a : b;
  }
  float term(float x, float scale) const {
    if (!squares)
      return x;
    x = x * scale;
    return x * x;
  }

  struct Chain {
    float partials[kPartials];
  };
  Chain begin() const {
    Chain chain;
    std::fill_n(chain.partials, kPartials, neutral);
    return chain;
  }
  void add(Chain &chain, int64_t index, float value) const {
    float &partial = chain.partials[index % kPartials];
    partial = combine(partial, value);
  }
  /// Combines the partial results: j with j + 8, then j with j + 4, j + 2 and j + 1.
  float end(Chain &chain) const {
    for (int64_t half = kPartials / 2; half >= 1; half /= 2)
      for (int64_t j = 0; j < half; ++j)
        chain.partials[j] = combine(chain.partials[j], chain.partials[j + half]);
    return chain.partials[0];
  }

  float element(const std::byte *block, int64_t row, int64_t column) const {
    return read(kernel.type, block + (row * kernel.cols + column) * bytesOf(kernel.type));
  }
  float ofRow(const std::byte *block, int64_t row, float scale) const {
    Chain chain = begin();
    for (int64_t c = 0; c < kernel.cols; ++c)
      add(chain, c, term(element(block, row, c), scale));
    return end(chain);
  }
  float ofColumn(const std::byte *block, int64_t column, float scale) const {
    Chain chain = begin();
    for (int64_t r = 0; r < kernel.rows; ++r)
      add(chain, r, term(element(block, r, column), scale));
    return end(chain);
  }
  /// The chain of the rows' results.
  float ofBlock(const std::byte *block, float scale) const {
    Chain chain = begin();
    for (int64_t r = 0; r < kernel.rows; ++r)
      add(chain, r, ofRow(block, r, scale));
    return end(chain);
  }

  /// The result of a chain of `count` numbers. again(scale) runs the chain; if squares are added up, it
  /// multiplies each number by `scale` first.
  template <typename Again> float result(int64_t count, Again &&again) const {
    float chain = again(1.0f);
    if (!squares)
      return kernel.reduction == plan::Reduction::Mean ? chain / float(count) : chain;
    auto exponent = int(kernel.exponent);
    if (chain < kLeastSquares) {
      chain = again(power(kScale));
      exponent -= kScale;
    } else if (chain > kMostSquares) {
      chain = again(power(-kScale));
      exponent += kScale;
    }
    if (kernel.reduction == plan::Reduction::Rms)
      chain = chain / float(count);
    return squareRoot(chain) * power(exponent);
  }
  /// 2 to the power `exponent` as f32: infinity if this is too large, 0 if it is too small.
  static float power(int exponent) {
    if (exponent > 127)
      return std::numeric_limits<float>::infinity();
    if (exponent >= -126)
      return std::bit_cast<float>(uint32_t(exponent + 127) << 23);
    return exponent >= -149 ? std::bit_cast<float>(uint32_t(1) << (exponent + 149)) : 0.0f;
  }

  ReduceKernel kernel;
  bool isMax, squares;
  float neutral;
};

} // namespace

std::unique_ptr<Code> ReduceKernel::code() const { return std::make_unique<ReduceCode>(*this); }

} // namespace stepc::interpret
