//===- Reference.h - Products and reductions, one number at a time *- C++ -*-===//
//
// The meaning of optim.product and optim.block_reduce in plain loops with the same order of
// operations, so that results can be compared bit for bit.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TEST_UNIT_PRODUCTS_REFERENCE_H
#define STEPC_TEST_UNIT_PRODUCTS_REFERENCE_H

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

struct ReferenceProduct {
  int64_t slots, m, n, k;
  Storage lhs, rhs, out, addend;
  bool hasAddend, transposeLhs, transposeRhs, symmetric, fused;
  float alpha, beta;

  void run(const void *lhsData, const void *rhsData, const void *addendData, void *outData) const {
    for (int64_t slot = 0; slot < slots; ++slot)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < (symmetric ? i + 1 : n); ++j) {
          float sum = 0;
          for (int64_t p = 0; p < k; ++p) {
            float a =
                readNumber(lhsData, lhs, slot * m * k + (transposeLhs ? p * m + i : i * k + p));
            float b =
                readNumber(rhsData, rhs, slot * k * n + (transposeRhs ? j * k + p : p * n + j));
            if (fused) {
              sum = std::fma(a, b, sum);
            } else {
              float product = a * b;
              sum = product + sum;
            }
          }
          int64_t at = slot * m * n + i * n + j;
          if (alpha != 1.0f)
            sum = alpha * sum;
          if (hasAddend) {
            float term = readNumber(addendData, addend, at);
            if (beta != 1.0f)
              term = beta * term;
            sum = sum + term;
          }
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

/// 16 interleaved chains, then j + (j + 8), 4, 2, 1.
class Chain {
public:
  explicit Chain(Kind kind) : kind(kind) {
    partials.fill(kind == Kind::Max ? -std::numeric_limits<float>::infinity() : 0.0f);
  }
  void add(float x) {
    float &partial = partials[count++ % 16];
    partial = combine(partial, x);
  }
  float result() const {
    std::array<float, 16> p = partials;
    for (int half = 8; half; half /= 2)
      for (int j = 0; j < half; ++j)
        p[j] = combine(p[j], p[j + half]);
    return p[0];
  }

private:
  float combine(float a, float b) const { return kind == Kind::Max ? maximum(a, b) : a + b; }
  Kind kind;
  std::array<float, 16> partials;
  int64_t count = 0;
};

/// A chain of lines' chains; `scale` multiplies every value before it is squared.
inline float chainOf(Kind kind, const std::vector<std::vector<float>> &lines, float scale) {
  auto one = [&](const std::vector<float> &line) {
    Chain chain(kind);
    for (float x : line) {
      float scaled = x * scale, square = scaled * scaled;
      chain.add(kind == Kind::Rms || kind == Kind::Norm ? square : x);
    }
    return chain.result();
  };
  if (lines.size() == 1)
    return one(lines[0]);
  Chain all(kind);
  for (const std::vector<float> &line : lines)
    all.add(one(line));
  return all.result();
}

inline float reduceLines(Kind kind, const std::vector<std::vector<float>> &lines, int64_t count,
                         int exponent) {
  float x = chainOf(kind, lines, 1);
  if (kind != Kind::Rms && kind != Kind::Norm)
    return kind == Kind::Mean ? x / float(count) : x;
  int scale = x < 0x1p-70f ? 96 : x > 0x1p126f ? -96 : 0;
  if (scale)
    x = chainOf(kind, lines, std::ldexp(1.0f, scale));
  if (kind == Kind::Rms)
    x = x / float(count);
  return std::sqrt(x) * std::ldexp(1.0f, exponent - scale);
}

/// One block, to rows × 1, 1 × cols or 1 × 1 results.
inline std::vector<float> referenceReduce(Kind kind, const void *data, Storage storage,
                                          int64_t rows, int64_t cols, bool overColumns,
                                          bool overRows, int exponent) {
  std::vector<std::vector<float>> block(rows), columns(cols);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) {
      float x = readNumber(data, storage, r * cols + c);
      block[r].push_back(x);
      columns[c].push_back(x);
    }
  std::vector<float> results;
  if (overColumns && overRows)
    results.push_back(reduceLines(kind, block, rows * cols, exponent));
  else
    for (const std::vector<float> &line : overColumns ? block : columns)
      results.push_back(reduceLines(kind, {line}, overColumns ? cols : rows, exponent));
  return results;
}

} // namespace stepc::test

#endif
