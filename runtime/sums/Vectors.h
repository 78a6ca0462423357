//===- Vectors.h - Loops over terms, for each width of vectors --*- C++ -*-===//
#ifndef STEPC_RUNTIME_SUMS_VECTORS_H
#define STEPC_RUNTIME_SUMS_VECTORS_H

#include "runtime/sums/Lines.h"

#include <atomic>
#include <bit>

namespace stepc::sums {

enum class BFloat16 : uint16_t {};

[[gnu::always_inline]] inline float valueOf(float number) { return number; }
[[gnu::always_inline]] inline float valueOf(BFloat16 number) {
  return std::bit_cast<float>(uint32_t(number) << 16);
}
[[gnu::always_inline]] inline float valueOf(_Float16 number) { return float(number); }

/// The number as f32 bits without its sign.
template <typename Source> [[gnu::always_inline]] inline uint32_t magnitudeOf(Source number) {
  return std::bit_cast<uint32_t>(valueOf(number)) & 0x7fffffff;
}
[[gnu::always_inline]] inline int64_t magnitudeOf(double number) {
  return std::bit_cast<int64_t>(number) & INT64_MAX;
}
inline constexpr uint32_t kInfinityBits = 0x7f800000;

/// The term of a number. It is exact: a square of f32 has 48 bits.
template <Terms terms, typename Source> [[gnu::always_inline]] inline double termOf(Source number) {
  double value = valueOf(number);
  return terms == Terms::Squares ? value * value : value;
}

/// An exponent that the terms of all finite numbers of at most this magnitude are below.
[[gnu::always_inline]] inline int topOf(uint32_t magnitude, Terms terms) {
  int top = int(magnitude >> 23) - 126;
  top = magnitude >> 23 ? top : -125;
  return terms == Terms::Squares ? 2 * top : top;
}

/// Calls body(first) with the first number of a line or strip.
template <typename Run, typename Body> auto withSource(const Run &line, Body &&body) {
  switch (line.type) {
  case plan::DType::BF16:
    return body(static_cast<const BFloat16 *>(line.first));
  case plan::DType::F16:
    return body(static_cast<const _Float16 *>(line.first));
  default:
    return body(static_cast<const float *>(line.first));
  }
}

#if defined(__x86_64__)
inline int vectorsOfMachine() {
  // Threads may meet here. The guard of a local static is inside of the library, where a thread sanitizer
  // does not see it.
  static std::atomic<int> known{-1};
  if (int found = known.load(std::memory_order_relaxed); found >= 0)
    return found;
  int found = __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl")
                  ? 2
              : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") &&
                      __builtin_cpu_supports("fma")
                  ? 1
                  : 0;
  known.store(found, std::memory_order_relaxed);
  return found;
}

/// Defines `NAMEOf<Source, terms>(arguments…)`, which calls an always_inline function `NAME` that is compiled
/// for the widest vectors of this machine. All give the same bits.
#define STEPC_WITH_VECTORS(Result, name)                                                           \
  template <typename Source, Terms terms, typename... Arguments>                                   \
  [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c")]] Result name##Of512(          \
      Arguments... a) {                                                                            \
    return name<Source, terms>(a...);                                                              \
  }                                                                                                \
  template <typename Source, Terms terms, typename... Arguments>                                   \
  [[gnu::target("avx2,fma,f16c")]] Result name##Of256(Arguments... a) {                            \
    return name<Source, terms>(a...);                                                              \
  }                                                                                                \
  template <typename Source, Terms terms, typename... Arguments> Result name##Of(Arguments... a) { \
    int width = vectorsOfMachine();                                                                \
    return width == 2   ? name##Of512<Source, terms>(a...)                                         \
           : width == 1 ? name##Of256<Source, terms>(a...)                                         \
                        : name<Source, terms>(a...);                                               \
  }
#else
#define STEPC_WITH_VECTORS(Result, name)                                                           \
  template <typename Source, Terms terms, typename... Arguments> Result name##Of(Arguments... a) { \
    return name<Source, terms>(a...);                                                              \
  }
#endif

} // namespace stepc::sums

#endif
