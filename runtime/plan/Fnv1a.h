//===- Fnv1a.h - The hash that plans and what is made of them share -*- C++ -*-===//
#ifndef STEPC_RUNTIME_PLAN_FNV1A_H
#define STEPC_RUNTIME_PLAN_FNV1A_H

#include <cstdint>

namespace stepc::plan {

/// FNV-1a of 64 bits (Fowler, Noll, Vo), of bytes one after another.
struct Fnv1a {
  uint64_t state = 0xcbf29ce484222325;

  template <typename Bytes> void bytes(const Bytes &list) {
    for (auto one : list)
      state = (state ^ static_cast<uint8_t>(one)) * 0x100000001b3;
  }
  /// Its eight bytes, the lowest first.
  void number(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8)
      state = (state ^ ((value >> shift) & 0xff)) * 0x100000001b3;
  }
};

} // namespace stepc::plan

#endif
