//===- Numbers.h - Numbers of 16 bits ----------------------------*- C++ -*-===//
#ifndef STEPC_TEST_PTX_NUMBERS_H
#define STEPC_TEST_PTX_NUMBERS_H

#include <bit>
#include <cstdint>

namespace stepc::ptx {

/// Rounded to nearest, ties to even. An undefined number becomes 0x7fff, as NVIDIA's GPUs give it.
inline uint16_t toBf16(float value) {
  if (value != value)
    return 0x7fff;
  auto bits = std::bit_cast<uint32_t>(value);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float fromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

inline uint16_t toF16(float value) {
  return value != value ? 0x7fff : std::bit_cast<uint16_t>(static_cast<_Float16>(value));
}
inline float fromF16(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16, field = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (field == 31)
    return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  // A whole number times a power of two. Denormal numbers have the least exponent of normal ones.
  auto magnitude = float(int(fraction | (field ? 0x400 : 0)));
  float unit = std::bit_cast<float>(((field ? field : 1) + 127 - 25) << 23);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude * unit) | sign);
}

} // namespace stepc::ptx

#endif
