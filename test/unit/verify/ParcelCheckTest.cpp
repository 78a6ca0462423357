//===- ParcelCheckTest.cpp - Starts that do not send what they should ------===//

#include "passes/verify/ParcelCheck.h"

#include <gtest/gtest.h>

using namespace stepc;

namespace {

/// Rank 0 of two sends four elements of 4 bytes to `peer`, as the value's table says, in a message to rank 1.
std::string check(int64_t peer) {
  std::vector<plan::Message> value{{peer, 0, 4, 0, 0}};
  plan::RankStart start;
  start.messages = {{1, 0, 16, 0, 0}};
  start.sent = {{{{0, 4, 0}}}, {}, 16};
  start.received = {{{}}, {}, 0};
  auto fault = verify::ParcelCheck({{&value, 4}}, /*rank=*/0, /*ranks=*/2).run(start);
  return fault ? fault->second : "";
}

TEST(ParcelCheck, AcceptsAMessage) { EXPECT_EQ(check(1), ""); }

TEST(ParcelCheck, RefusesRanksThatThereAreNot) {
  for (int64_t peer : {int64_t(-1), int64_t(2), int64_t(1) << 40})
    EXPECT_EQ(check(peer), "expected parts of ranks below 2 in what rank 0 sends, found one of rank " +
                               std::to_string(peer));
}

} // namespace
