//===- Storage.h - Elements in memory ------------------------------*- C++ -*-===//
//
// Conversions between f32 and elements in memory. They use integers, as the compiler's expansions do
// (ExpandHalf, and MLIR's for bf16), because some chips' own conversions flush denormals.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_INTERPRET_STORAGE_H
#define STEPC_RUNTIME_INTERPRET_STORAGE_H

#include "runtime/model/Model.h"

#include <bit>
#include <cstddef>
#include <cstring>

// Marks functions with fused multiply-adds. The compiler writes these only for chips that have them, and
// `create` refuses any other chip.
#if defined(__x86_64__)
#define STEPC_FUSES __attribute__((target("fma")))
#else
#define STEPC_FUSES
#endif

namespace stepc::interpret {

/// `load` and `store` accept any address, because a shard may begin anywhere.
template <typename T> T load(const void *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <typename T> void store(void *to, T value) { std::memcpy(to, &value, sizeof(T)); }

inline float fromHalf(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16, magnitude = uint32_t(half & 0x7fff) << 13;
  // Read as a float, the magnitude is too small by a factor of 2^112, even if it is denormal. So the
  // product is exact.
  float scaled = std::bit_cast<float>(magnitude) * std::bit_cast<float>(0x77800000u);
  uint32_t special = magnitude | 0x7f800000;
  if (magnitude > 0x7c00 << 13)
    special |= 0x00400000;
  uint32_t bits = magnitude < 0x7c00 << 13 ? std::bit_cast<uint32_t>(scaled) : special;
  return std::bit_cast<float>(bits | sign);
}

inline uint16_t toHalf(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  uint32_t result;
  if (magnitude > 0x7f800000)
    result = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  else if (magnitude >= 0x47800000)
    result = 0x7c00;
  else if (magnitude < 0x38800000)
    // The addition of 0.5 lines the last bit up with the float's, and rounds.
    result = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  else
    result = (magnitude + 0xc8000fff + ((magnitude >> 13) & 1)) >> 13;
  return uint16_t(result | sign);
}

inline float fromBrain(uint16_t brain) { return std::bit_cast<float>(uint32_t(brain) << 16); }

inline uint16_t toBrain(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  if (value != value)
    return 0x7fc0;
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// `read` converts an element in memory to f32. `write` converts f32 to an element, rounded to nearest
/// even.
inline float read(plan::DType type, const std::byte *from) {
  switch (type) {
  case plan::DType::BF16:
    return fromBrain(load<uint16_t>(from));
  case plan::DType::F16:
    return fromHalf(load<uint16_t>(from));
  default:
    return load<float>(from);
  }
}
inline void write(plan::DType type, float value, std::byte *to) {
  switch (type) {
  case plan::DType::BF16:
    return store(to, toBrain(value));
  case plan::DType::F16:
    return store(to, toHalf(value));
  default:
    return store(to, value);
  }
}

inline int64_t bytesOf(plan::DType type) { return type == plan::DType::F32 ? 4 : 2; }

} // namespace stepc::interpret

#endif
