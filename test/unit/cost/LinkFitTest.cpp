//===- LinkFitTest.cpp - A link's figures from measured times --------------===//

#include "passes/cost/LinkFit.h"

#include <gtest/gtest.h>

namespace stepc::cost {
namespace {

/// What a link would be measured with, each time off by a part that a hash of its place decides.
std::vector<LinkSample> measured(const Link &link, std::vector<double> messages, double noise) {
  std::vector<LinkSample> samples;
  uint64_t state = 3;
  for (double count : messages)
    for (double bytes : {1e3, 16e3, 256e3, 4e6}) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      double off = 1 + noise * (static_cast<double>(state >> 40) / (1 << 23) - 1);
      samples.push_back({count, bytes, off * link.seconds(count, count * bytes)});
    }
  return samples;
}

TEST(LinkFit, FindsWhatTheTimesWereMadeWith) {
  for (Link link : {Link{20e-6, 2e-6, 12e9}, Link{3e-6, 3e-6, 4e11}, Link{1e-3, 0, 1e8}}) {
    std::optional<Link> found = fitLink(measured(link, {1, 2, 4, 8}, 0));
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->latency, link.latency, 1e-6 * link.latency);
    EXPECT_NEAR(found->gap, link.gap, 1e-6 * link.latency);
    EXPECT_NEAR(found->bandwidth, link.bandwidth, 1e-6 * link.bandwidth);
    found = fitLink(measured(link, {1, 2, 4, 8}, 0.2));
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->latency, link.latency, 0.4 * link.latency);
    EXPECT_NEAR(found->bandwidth, link.bandwidth, 0.4 * link.bandwidth);
  }
}

TEST(LinkFit, OfOneMessageAtATimeHasTheLatencyAsGap) {
  std::optional<Link> found = fitLink(measured({20e-6, 2e-6, 12e9}, {1}, 0));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->latency, 20e-6, 1e-9);
  EXPECT_DOUBLE_EQ(found->gap, found->latency);
}

TEST(LinkFit, HasNoGapAboveTheLatency) {
  // Ranks that share cores: several messages take more than as many single ones.
  std::vector<LinkSample> samples;
  for (double messages : {1.0, 2.0, 4.0, 8.0})
    for (double bytes : {1e3, 256e3})
      samples.push_back({messages, bytes, 2e-6 + (messages - 1) * 9e-6 + messages * bytes / 1e9});
  std::optional<Link> found = fitLink(samples);
  ASSERT_TRUE(found);
  EXPECT_GT(found->gap, 3e-6);
  EXPECT_DOUBLE_EQ(found->gap, found->latency);
}

TEST(LinkFit, HasNoNegativeFigures) {
  // Less than what bytes alone take: a latency below 0 would fit best.
  std::optional<Link> found = fitLink({{1, 1000, 1e-6}, {1, 2000, 3e-6}, {2, 2000, 5e-6}});
  ASSERT_TRUE(found);
  EXPECT_GE(found->latency, 0);
  EXPECT_GE(found->gap, 0);
  EXPECT_GT(found->bandwidth, 0);
}

TEST(LinkFit, OfNothingIsNothing) {
  EXPECT_FALSE(fitLink({}));
  EXPECT_FALSE(fitLink({{1, 0, 1e-6}, {2, 0, 2e-6}})); // no bytes
  // More bytes in no more time.
  std::optional<Link> flat = fitLink({{1, 1, 1e-6}, {1, 1000, 1e-6}, {1, 1000000, 0.5e-6}});
  EXPECT_TRUE(!flat || flat->bandwidth > 0);
}

} // namespace
} // namespace stepc::cost
