//===- RandomProgram.h - Random programs of level 4, as text ----*- C++ -*-===//
//
// Meshes, placements, strategies, owners and waves are drawn; the text follows
// docs/architecture.md. It shares nothing with the passes that schedule.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TEST_UNIT_VERIFY_RANDOMPROGRAM_H
#define STEPC_TEST_UNIT_VERIFY_RANDOMPROGRAM_H

#include <map>
#include <random>
#include <string>

namespace stepc::test {

using Random = std::mt19937_64;

inline int64_t draw(Random &random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

/// A valid program. What was drawn is counted in `histogram`.
std::string randomProgram(Random &random, std::map<std::string, int> &histogram);

} // namespace stepc::test

#endif
