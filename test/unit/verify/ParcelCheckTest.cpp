//===- ParcelCheckTest.cpp - Starts that do not send what they should ------===//

#include "passes/verify/ParcelCheck.h"

#include <gtest/gtest.h>

using namespace stepc;

namespace {

/// Rank 0 of two sends four elements of 4 bytes to `peer`, as the value's table says, in a message to rank 1, with a
/// seal behind them.
std::string check(int64_t peer, int64_t seal = plan::kSealBytes) {
  std::vector<plan::Message> value{{peer, 0, 4, 0, 0}};
  plan::RankStart start;
  start.messages = {{1, 0, 16 + seal, 0, 0}};
  start.sent = {{{{0, 4, 0}}}, {}, 16 + seal};
  start.received = {{{}}, {}, 0};
  auto fault = verify::ParcelCheck({{&value, 4}}, /*rank=*/0, /*ranks=*/2).run(start);
  return fault ? fault->second : "";
}

TEST(ParcelCheck, AcceptsAMessage) { EXPECT_EQ(check(1), ""); }

// A message has room for one seal, where nothing else stands.
TEST(ParcelCheck, RefusesAnotherSeal) {
  for (int64_t seal : {int64_t(0), plan::kSealBytes - 1, 2 * plan::kSealBytes})
    EXPECT_EQ(check(1, seal),
              "expected 48 bytes in the message that rank 0 sends, with rank 1, found " +
                  std::to_string(16 + seal));
}

/// Rank 0 sends the same element to rank 1, and two others to rank 2, from this byte on.
std::string checkBehind(int64_t byte) {
  std::vector<plan::Message> value{{1, 0, 1, 0, 0}, {2, 1, 2, 0, 0}};
  plan::RankStart start;
  start.messages = {{1, 0, 4 + plan::kSealBytes, 0, 0}, {2, byte, 8 + plan::kSealBytes, 0, 0}};
  start.sent = {{{{0, 1, 0}, {1, 2, byte}}}, {}, byte + 8 + plan::kSealBytes};
  start.received = {{{}}, {}, 0};
  auto fault = verify::ParcelCheck({{&value, 4}}, /*rank=*/0, /*ranks=*/3).run(start);
  return fault ? fault->second : "";
}

TEST(ParcelCheck, RefusesValuesInASeal) {
  EXPECT_EQ(checkBehind(64), "");
  EXPECT_EQ(checkBehind(4 + plan::kSealBytes), "");
  EXPECT_NE(checkBehind(plan::kSealBytes).find("expected parts that share no byte"),
            std::string::npos);
  EXPECT_NE(checkBehind(4).find("expected parts that share no byte"), std::string::npos);
}

/// Rank 0 sends one element of 172 bytes and one of 40 to rank 1, the latter at this byte of its message.
std::string checkWide(int64_t byte) {
  std::vector<plan::Message> one{{1, 0, 1, 0, 0}};
  plan::RankStart start;
  start.messages = {{1, 0, 212 + plan::kSealBytes, 0, 0}};
  start.sent = {{{{0, 1, byte == 0 ? 40 : 0}}, {{0, 1, byte}}}, {}, 212 + plan::kSealBytes};
  start.received = {{{}, {}}, {}, 0};
  auto fault = verify::ParcelCheck({{&one, 172}, {&one, 40}}, /*rank=*/0, /*ranks=*/2).run(start);
  return fault ? fault->second : "";
}

TEST(ParcelCheck, WideElementsStandByTheSizeOfTheirWords) {
  EXPECT_EQ(checkWide(0), "");
  EXPECT_EQ(checkWide(172), "expected the part of rank 1 at byte 0 of what rank 0 sends, aligned for elements of 40 "
                            "bytes, found byte 172");
}

TEST(ParcelCheck, RefusesRanksThatThereAreNot) {
  for (int64_t peer : {int64_t(-1), int64_t(2), int64_t(1) << 40})
    EXPECT_EQ(check(peer),
              "expected parts of ranks below 2 in what rank 0 sends, found one of rank " +
                  std::to_string(peer));
}

} // namespace
