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
inline float fromF16(uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }

} // namespace stepc::ptx

#endif
