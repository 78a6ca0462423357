//===- CostTest.cpp - What work, messages and blocks cost ------------------===//

#include "dialects/optim/Saturate.h"
#include "passes/cost/Cluster.h"
#include "passes/cost/OwnerQueues.h"
#include "passes/cost/Profiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace stepc::cost {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(Saturate, StaysInRange) {
  EXPECT_EQ(saturatingAdd(2, 3), 5);
  EXPECT_EQ(saturatingAdd(kMost, 1), kMost);
  EXPECT_EQ(saturatingMul(int64_t(1) << 40, int64_t(1) << 40), kMost);
  EXPECT_EQ(picoseconds(2.5e-9), 2500);
  EXPECT_EQ(picoseconds(1e30), picoseconds(1e31));
}

TEST(Device, IsBoundByArithmeticOrMemory) {
  Device device{100, 10, 1, 0, 1};
  EXPECT_DOUBLE_EQ(device.seconds(200, 1), 2);
  EXPECT_DOUBLE_EQ(device.seconds(200, 50), 5);
  EXPECT_DOUBLE_EQ(device.seconds(0, 0), 0);
}

Cluster withLevels(std::vector<Level> levels) { return {"", std::move(levels), {}}; }

TEST(Cluster, KnowsWhereRanksMeet) {
  Cluster cluster = withLevels({{"node", 2, {}}, {"rack", 6, {}}, {"network", Level::kAll, {}}});
  EXPECT_EQ(cluster.levelOf(0, 1), 0u);
  EXPECT_EQ(cluster.levelOf(1, 2), 1u); // neighbours, but not of one node
  EXPECT_EQ(cluster.levelOf(5, 0), 1u);
  EXPECT_EQ(cluster.levelOf(5, 6), 2u);
  EXPECT_EQ(cluster.levelOf(7, 7), 0u);
  cluster.levels.back().ranks = 12;
  EXPECT_EQ(cluster.levelOf(5, 6), 2u);
}

TEST(Cluster, KnowsWhichPartOfTheirPeersRanksMeetAtEachLevel) {
  using Parts = std::vector<double>;
  Cluster flat = withLevels({{"network", Level::kAll, {}}});
  EXPECT_EQ(flat.meeting({0, 1, 2, 3}), Parts{1});
  EXPECT_EQ(flat.meeting({5}), Parts{0}); // no peers
  Cluster nodes = withLevels({{"node", 2, {}}, {"network", 64, {}}});
  EXPECT_EQ(nodes.meeting({0, 1, 2, 3}), (Parts{1.0 / 3, 2.0 / 3}));
  EXPECT_EQ(nodes.meeting({0, 2, 4}), (Parts{0, 1})); // global ranks tell, not positions
  nodes.levels[0].ranks = 8;
  EXPECT_EQ(nodes.meeting({0, 1, 2, 3}), (Parts{1, 0}));
  Cluster racks = withLevels({{"node", 2, {}}, {"rack", 4, {}}, {"network", Level::kAll, {}}});
  EXPECT_EQ(racks.meeting({0, 1, 2, 3, 4, 5, 6, 7}), (Parts{1.0 / 7, 2.0 / 7, 4.0 / 7}));
}

/// The definition, pair by pair.
TEST(Cluster, MeetsAsPairsDo) {
  Cluster cluster = withLevels({{"node", 4, {}}, {"rack", 24, {}}, {"network", Level::kAll, {}}});
  std::vector<int64_t> ranks{0, 3, 4, 7, 8, 23, 24, 31, 47, 48, 100};
  std::vector<double> counts(3);
  for (int64_t a : ranks)
    for (int64_t b : ranks)
      counts[cluster.levelOf(a, b)] += a != b;
  std::vector<double> parts = cluster.meeting(ranks);
  for (size_t level = 0; level < counts.size(); ++level)
    EXPECT_DOUBLE_EQ(parts[level], counts[level] / (11 * 10));
}

TEST(Link, TakesALatencyAGapForEachFurtherMessageAndBytes) {
  Link link{5, 2, 100};
  EXPECT_DOUBLE_EQ(link.seconds(0, 200), 2);
  EXPECT_DOUBLE_EQ(link.seconds(1, 0), 5);
  EXPECT_DOUBLE_EQ(link.seconds(3, 200), 5 + 2 * 2 + 2);
  EXPECT_DOUBLE_EQ(link.seconds(0.5, 0), 2.5); // every second rank has one
}

TEST(Link, TakesAsLongMessageByMessage) {
  Link link{20, 3, 2};
  EXPECT_DOUBLE_EQ(link.busy(8), 7);
  EXPECT_DOUBLE_EQ(link.delay(), 17);
  for (int messages : {1, 2, 5})
    EXPECT_DOUBLE_EQ(messages * link.busy(8) + link.delay(), link.seconds(messages, messages * 8));
}

TEST(Cluster, ExchangesOverLinksOfAllLevelsAtATime) {
  Cluster cluster = withLevels({{"node", 2, {1, 1, 100}}, {"network", Level::kAll, {2, 1, 10}}});
  EXPECT_DOUBLE_EQ(cluster.exchange({1, 0}, 3, 200), 3 + 2);
  EXPECT_DOUBLE_EQ(cluster.exchange({0, 1}, 3, 200), 4 + 20);
  EXPECT_DOUBLE_EQ(cluster.exchange({0.5, 0.5}, 4, 200), 3 + 10);
  EXPECT_DOUBLE_EQ(cluster.exchange({0.5, 0.5}, 4, 0), 0); // nothing to say, no message
}

TEST(Cluster, CostsGrowWithWorkAndFallWithSpeed) {
  for (double near : {0.0, 0.25, 1.0}) {
    std::vector<double> meeting{near, 1 - near};
    Cluster cluster = withLevels(
        {{"node", 8, {1e-6, 1e-6, 4e11}}, {"network", Level::kAll, {20e-6, 2e-6, 12e9}}});
    double last = 0;
    for (double bytes = 1; bytes < 1e12; bytes *= 3) {
      double now = cluster.exchange(meeting, 7, bytes);
      EXPECT_GE(now, last);
      EXPECT_GE(cluster.exchange(meeting, 8, bytes), now);
      Cluster faster = cluster;
      for (Level &level : faster.levels) {
        level.link.bandwidth *= 2;
        level.link.latency /= 2;
      }
      EXPECT_LE(faster.exchange(meeting, 7, bytes), now);
      last = now;
    }
  }
}

/// What users and other profiles rely on: figures in order, domains in domains, one name each.
TEST(Profiles, AreClusters) {
  for (const Cluster &profile : profiles()) {
    SCOPED_TRACE(profile.profile);
    EXPECT_EQ(findProfile(profile.profile), &profile);
    ASSERT_FALSE(profile.levels.empty());
    EXPECT_EQ(profile.levels.back().ranks, Level::kAll);
    for (size_t i = 0; i < profile.levels.size(); ++i) {
      const Link &link = profile.levels[i].link;
      EXPECT_GT(link.latency, 0);
      EXPECT_GT(link.gap, 0);
      EXPECT_LE(link.gap, link.latency);
      if (i == 0)
        continue;
      const Level &inner = profile.levels[i - 1];
      EXPECT_GT(profile.levels[i].ranks, inner.ranks);
      EXPECT_LT(link.bandwidth, inner.link.bandwidth);
      EXPECT_GE(link.latency, inner.link.latency);
    }
    EXPECT_GT(profile.device.flops, profile.device.memory);
    EXPECT_GT(profile.device.capacity, 1e9);
  }
  EXPECT_EQ(findProfile("none"), nullptr);
}

TEST(OwnerQueues, GiveToTheLeastLoadedThenToWhoHoldsMost) {
  std::vector<int64_t> ranks{10, 11, 12};
  std::vector<std::vector<int64_t>> held{{1, 0}, {0, 5}, {0, 5}};
  Loads loads{{10, 7}};
  OwnerQueues queues(ranks, held, loads);
  EXPECT_EQ(queues.give(0, 3), 1); // the first of the two without load: none holds block 0
  EXPECT_EQ(queues.give(1, 1), 2);
  EXPECT_EQ(queues.give(1, 1), 2);
  EXPECT_EQ(queues.give(1, 9), 2); // 2 against 3 and 7
  EXPECT_EQ(queues.give(0, 4), 1);
  EXPECT_EQ(queues.give(0, 1), 0); // 7 on both: position 0 holds block 0
  EXPECT_EQ(loads, (Loads{{10, 8}, {11, 7}, {12, 11}}));
}

/// The definition, rank by rank, against the queues by class.
TEST(OwnerQueues, EqualASearchOverAllRanks) {
  uint64_t seed = 20261122;
  auto next = [&](uint64_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((seed >> 33) % below);
  };
  for (int round = 0; round < 200; ++round) {
    auto count = static_cast<size_t>(1 + next(12));
    auto blocks = static_cast<size_t>(1 + next(4));
    std::vector<int64_t> ranks;
    std::vector<std::vector<int64_t>> held(count, std::vector<int64_t>(blocks));
    Loads loads;
    for (size_t i = 0; i < count; ++i) {
      ranks.push_back(static_cast<int64_t>(100 - i));
      loads[ranks.back()] = next(3);
      for (int64_t &each : held[i])
        each = next(3);
    }
    Loads expected = loads;
    OwnerQueues queues(ranks, held, loads);
    for (int give = 0; give < 40; ++give) {
      auto block = next(blocks);
      int64_t cost = 1 + next(3);
      size_t best = 0;
      for (size_t i = 1; i < count; ++i) {
        int64_t a = expected[ranks[i]], b = expected[ranks[best]];
        auto of = static_cast<size_t>(block);
        if (a < b || (a == b && held[i][of] > held[best][of]))
          best = i;
      }
      expected[ranks[best]] += cost;
      EXPECT_EQ(queues.give(block, cost), static_cast<int64_t>(best));
    }
    EXPECT_EQ(loads, expected);
  }
}

TEST(OwnerQueues, KeepLoadsEven) {
  std::vector<int64_t> ranks(64);
  for (size_t i = 0; i < ranks.size(); ++i)
    ranks[i] = static_cast<int64_t>(i);
  std::vector<std::vector<int64_t>> held(ranks.size(), {1});
  Loads loads;
  OwnerQueues queues(ranks, held, loads);
  for (int64_t cost : {900, 500, 130, 7})
    for (int i = 0; i < 1000; ++i)
      queues.give(0, cost);
  auto [least, most] = std::minmax_element(loads.begin(), loads.end(),
                                           [](auto &a, auto &b) { return a.second < b.second; });
  EXPECT_LE(most->second - least->second, 130);
}

} // namespace
} // namespace stepc::cost
