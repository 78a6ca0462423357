//===- Tier.h - How much a test draws --------------------------------------===//
//
// test/run.sh runs one of three tiers, and names it in the variable STEPC_TIER: `quick` before each commit, `land` for what
// lands (the default), `all` before a release. Random tests draw as many cases as their tier has time for.
//
//===----------------------------------------------------------------------===//

#ifndef STEPC_TEST_SUPPORT_TIER_H
#define STEPC_TEST_SUPPORT_TIER_H

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace stepc::test {

inline std::string_view tier() {
  const char *given = std::getenv("STEPC_TIER");
  return given ? given : "land";
}

/// The number of cases of a random test: `landing` in the tier `land`, a quarter in `quick`, eight times as many in `all`.
/// At least one.
inline int64_t draws(int64_t landing) {
  if (tier() == "all")
    return 8 * landing;
  return tier() == "quick" ? std::max<int64_t>(1, landing / 4) : landing;
}

} // namespace stepc::test

#endif // STEPC_TEST_SUPPORT_TIER_H
