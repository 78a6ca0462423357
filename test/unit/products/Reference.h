//===- Reference.h - Products and reductions, one number at a time *- C++ -*-===//
//
// The meaning of optim.product and #optim.block_reduce in plain loops with the same order of
// operations, so that results can be compared bit for bit.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TEST_UNIT_PRODUCTS_REFERENCE_H
#define STEPC_TEST_UNIT_PRODUCTS_REFERENCE_H

#include "test/support/ExactSum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace stepc::test {

enum class Storage { F32, BF16, F16 };

inline int64_t bytesOf(Storage storage) { return storage == Storage::F32 ? 4 : 2; }
inline const char *nameOf(Storage storage) {
  return storage == Storage::F32 ? "f32" : storage == Storage::BF16 ? "bf16" : "f16";
}

inline float readNumber(const void *memory, Storage storage, int64_t index) {
  if (storage == Storage::F32)
    return static_cast<const float *>(memory)[index];
  if (storage == Storage::F16)
    return float(static_cast<const _Float16 *>(memory)[index]);
  return std::bit_cast<float>(uint32_t(static_cast<const uint16_t *>(memory)[index]) << 16);
}

inline void writeNumber(void *memory, Storage storage, int64_t index, float value) {
  if (storage == Storage::F32) {
    static_cast<float *>(memory)[index] = value;
  } else if (storage == Storage::F16) {
    static_cast<_Float16 *>(memory)[index] = _Float16(value);
  } else {
    uint32_t bits = std::bit_cast<uint32_t>(value);
    bits += 0x7fff + ((bits >> 16) & 1);
    static_cast<uint16_t *>(memory)[index] = std::isnan(value) ? 0x7fc0 : bits >> 16;
  }
}

/// In which order a product adds up.
enum class Order { Fused, Rounded, TensorCore };

/// sum + Σ a[i] · b[i] of eight steps, as runtime/emulated/README.md says of tensor cores; in another way
/// than there, by doubles.
inline float tensorCoreSum(const float *a, const float *b, Storage storage, float sum) {
  auto exponent = [](float x, int least) { return std::max(std::ilogb(x), least); };
  int least = storage == Storage::F16 ? -14 : -126, most = -10000;
  double plain = sum;
  bool isFinite = std::isfinite(sum);
  if (sum != 0)
    most = exponent(sum, -126);
  for (int i = 0; i < 8; ++i) {
    plain += double(a[i]) * double(b[i]);
    isFinite &= std::isfinite(a[i]) && std::isfinite(b[i]);
    if (isFinite && a[i] != 0 && b[i] != 0)
      most = std::max(most, exponent(a[i], least) + exponent(b[i], least));
  }
  if (!isFinite)
    return float(plain);
  auto units = [&](double x) { return std::trunc(std::ldexp(x, 24 - most)); };
  double total = units(sum);
  for (int i = 0; i < 8; ++i)
    total += units(double(a[i]) * double(b[i]));
  double x = std::ldexp(total, most - 24);
  if (x == 0)
    return 0;
  auto result = float(x);
  return std::abs(x) < 0x1p128 && std::abs(double(result)) > std::abs(x)
             ? std::nextafter(result, 0.0f)
             : result;
}

struct ReferenceProduct {
  int64_t slots, m, n, k;
  Storage lhs, rhs, out, addend;
  bool hasAddend, transposeLhs, transposeRhs, symmetric;
  Order order;
  float alpha, beta, shift = 0;

  float left(const void *data, int64_t slot, int64_t i, int64_t p) const {
    return readNumber(data, lhs, slot * m * k + (transposeLhs ? p * m + i : i * k + p));
  }
  float right(const void *data, int64_t slot, int64_t p, int64_t j) const {
    return readNumber(data, rhs, slot * k * n + (transposeRhs ? j * k + p : p * n + j));
  }
  float sum(const void *lhsData, const void *rhsData, int64_t slot, int64_t i, int64_t j) const {
    float sum = 0;
    if (order == Order::TensorCore) {
      for (int64_t first = 0; first < k; first += 8) {
        float a[8] = {}, b[8] = {};
        for (int64_t p = first; p < std::min(first + 8, k); ++p) {
          a[p - first] = left(lhsData, slot, i, p);
          b[p - first] = right(rhsData, slot, p, j);
        }
        sum = tensorCoreSum(a, b, lhs, sum);
      }
      return sum;
    }
    for (int64_t p = 0; p < k; ++p) {
      float a = left(lhsData, slot, i, p), b = right(rhsData, slot, p, j);
      if (order == Order::Fused) {
        sum = std::fma(a, b, sum);
      } else {
        float product = a * b;
        sum = product + sum;
      }
    }
    return sum;
  }

  void run(const void *lhsData, const void *rhsData, const void *addendData, void *outData) const {
    for (int64_t slot = 0; slot < slots; ++slot)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < (symmetric ? i + 1 : n); ++j) {
          float sum = this->sum(lhsData, rhsData, slot, i, j);
          int64_t at = slot * m * n + i * n + j;
          if (alpha != 1.0f)
            sum = alpha * sum;
          if (hasAddend) {
            float term = readNumber(addendData, addend, at);
            if (beta != 1.0f)
              term = beta * term;
            sum = sum + term;
          }
          if (shift != 0 && i == j)
            sum = sum + shift;
          writeNumber(outData, out, at, sum);
          if (symmetric)
            writeNumber(outData, out, slot * m * n + j * n + i, sum);
        }
  }
};

enum class Kind { Sum, Mean, Rms, Norm, Max };

inline float maximum(float a, float b) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<float>::quiet_NaN();
  if (a == b)
    return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

/// The result of one line of numbers.
inline float reduceLine(Kind kind, const std::vector<float> &line, int exponent) {
  constexpr float kNaN = std::bit_cast<float>(0x7fc00000);
  if (kind == Kind::Max) {
    float largest = -std::numeric_limits<float>::infinity();
    for (float x : line)
      largest = maximum(largest, x);
    return std::isnan(largest) ? kNaN : largest;
  }
  bool squares = kind == Kind::Rms || kind == Kind::Norm;
  ExactSum sum;
  double infinite = 0; // the sum of what is not finite
  for (float x : line) {
    double term = squares ? double(x) * x : x;
    if (std::isfinite(term))
      sum.add(term);
    else
      infinite += term;
  }
  double result = infinite != 0 ? infinite : sum.rounded();
  if (kind == Kind::Mean || kind == Kind::Rms)
    result /= double(line.size());
  if (squares)
    result = std::ldexp(std::sqrt(result), exponent);
  return std::isnan(result) ? kNaN : float(result);
}

/// One block, to rows × 1, 1 × cols or 1 × 1 results.
inline std::vector<float> referenceReduce(Kind kind, const void *data, Storage storage,
                                          int64_t rows, int64_t cols, bool overColumns,
                                          bool overRows, int exponent) {
  std::vector<std::vector<float>> block(rows), columns(cols);
  std::vector<float> all;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) {
      float x = readNumber(data, storage, r * cols + c);
      block[r].push_back(x);
      columns[c].push_back(x);
      all.push_back(x);
    }
  if (overColumns && overRows)
    return {reduceLine(kind, all, exponent)};
  std::vector<float> results;
  for (const std::vector<float> &line : overColumns ? block : columns)
    results.push_back(reduceLine(kind, line, exponent));
  return results;
}

} // namespace stepc::test

#endif
