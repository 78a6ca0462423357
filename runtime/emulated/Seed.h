//===- Seed.h - Of what is drawn on the device `emulated` --------*- C++ -*-===//
#ifndef STEPC_RUNTIME_EMULATED_SEED_H
#define STEPC_RUNTIME_EMULATED_SEED_H

#include <cstdint>
#include <cstdlib>
#include <optional>

namespace stepc::runtime {

/// STEPC_EMULATED_SEED of the environment: of the order of streams, of threads and of copies. None where it is
/// not set or empty; then they come in order.
inline std::optional<uint64_t> emulatedSeed() {
  const char *given = std::getenv("STEPC_EMULATED_SEED");
  if (!given || !*given)
    return std::nullopt;
  return std::strtoull(given, nullptr, 10);
}

/// Numbers for the order of threads (splitmix64).
struct Draws {
  uint64_t state;
  uint64_t next(uint64_t below) {
    uint64_t x = state += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return (x ^ (x >> 31)) % below;
  }
};

} // namespace stepc::runtime

#endif
