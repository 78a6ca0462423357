//===- Seed.h - The seed of orders on the device `emulated` ------*- C++ -*-===//
#ifndef STEPC_RUNTIME_EMULATED_SEED_H
#define STEPC_RUNTIME_EMULATED_SEED_H

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

namespace stepc::runtime {

/// Returns STEPC_EMULATED_SEED of the environment, which draws the order of streams, threads and copies.
/// Returns nothing if it is not set: they then come in order. If its text is no seed, returns nothing and
/// `problem` says so.
inline std::optional<uint64_t> emulatedSeed(std::string &problem) {
  const char *given = std::getenv("STEPC_EMULATED_SEED");
  if (!given)
    return std::nullopt;
  char *end = nullptr;
  errno = 0;
  uint64_t seed = std::strtoull(given, &end, 10);
  if (*given >= '0' && *given <= '9' && !*end && errno == 0)
    return seed;
  problem = "expected STEPC_EMULATED_SEED to be a whole number from 0 to 18446744073709551615, or "
            "not set, found '" +
            std::string(given) + "'";
  return std::nullopt;
}

/// Draws numbers for the order of threads and copies (splitmix64).
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
