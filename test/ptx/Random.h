//===- Random.h - What a seed draws ------------------------------*- C++ -*-===//
#ifndef STEPC_TEST_PTX_RANDOM_H
#define STEPC_TEST_PTX_RANDOM_H

#include <cstdint>

namespace stepc::ptx {

/// SplitMix64: the same numbers on each machine.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15 + 0x1234567) {}

  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// A number below `count`.
  uint32_t below(uint32_t count) { return uint32_t((next() >> 32) * count >> 32); }

private:
  uint64_t state;
};

} // namespace stepc::ptx

#endif
