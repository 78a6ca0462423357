//===- Fnv1a.h - The hash that plans and what is made of them share -*- C++ -*-===//
#ifndef STEPC_RUNTIME_PLAN_FNV1A_H
#define STEPC_RUNTIME_PLAN_FNV1A_H

#include <cstdint>
#include <initializer_list>

namespace stepc::plan {

/// FNV-1a of 64 bits (Fowler, Noll, Vo), of bytes one after another. Each step maps states one to one, so
/// that two lists which differ in one byte never have the same hash.
struct Fnv1a {
  uint64_t state = 0xcbf29ce484222325;

  template <typename Bytes> void bytes(const Bytes &list) {
    for (auto one : list)
      byte(static_cast<uint8_t>(one));
  }
  void bytes(const void *data, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      byte(static_cast<const uint8_t *>(data)[i]);
  }
  /// Hashes the eight bytes of a number, the lowest first.
  void number(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8)
      byte(static_cast<uint8_t>(value >> shift));
  }

private:
  void byte(uint8_t value) { state = (state ^ value) * 0x100000001b3; }
};

/// The hash of `numbers`, and then of `count` bytes at `data`.
inline uint64_t fnv1a(std::initializer_list<uint64_t> numbers, const void *data = nullptr,
                      int64_t count = 0) {
  Fnv1a hash;
  for (uint64_t number : numbers)
    hash.number(number);
  hash.bytes(data, count);
  return hash.state;
}

} // namespace stepc::plan

#endif
