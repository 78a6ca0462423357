//===- CostTest.cpp - What work, messages and blocks cost ------------------===//

#include "passes/cost/Cluster.h"
#include "passes/cost/OwnerQueues.h"
#include "passes/cost/Saturate.h"

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
  EXPECT_EQ(productFlops(3, 4, 5, false), 120);
  EXPECT_EQ(productFlops(4, 4, 5, true), 100); // one half with its diagonal
  EXPECT_EQ(productFlops(int64_t(1) << 30, int64_t(1) << 30, int64_t(1) << 30, false), kMost);
  EXPECT_EQ(picoseconds(2.5e-9), 2500);
  EXPECT_EQ(picoseconds(1e30), picoseconds(1e31));
}

TEST(Device, IsBoundByArithmeticOrMemory) {
  Device device{100, 10, 0, 1};
  EXPECT_DOUBLE_EQ(device.seconds(200, 1), 2);
  EXPECT_DOUBLE_EQ(device.seconds(200, 50), 5);
  EXPECT_DOUBLE_EQ(device.seconds(0, 0), 0);
}

TEST(Cluster, KnowsWhichPeersAreNear) {
  Cluster cluster = Cluster::builtIn();
  EXPECT_DOUBLE_EQ(cluster.nearby({0, 1, 2, 3}), 0); // a node of its own for each rank
  cluster.ranksPerNode = 2;
  EXPECT_DOUBLE_EQ(cluster.nearby({0, 1, 2, 3}), 1.0 / 3);
  EXPECT_DOUBLE_EQ(cluster.nearby({0, 2, 4}), 0); // global ranks tell, not positions
  EXPECT_DOUBLE_EQ(cluster.nearby({5}), 0);
  cluster.ranksPerNode = 8;
  EXPECT_DOUBLE_EQ(cluster.nearby({0, 1, 2, 3}), 1);
}

TEST(Cluster, ExchangesOverBothLinksAtATime) {
  Cluster cluster = Cluster::builtIn();
  cluster.inside = {1, 100};
  cluster.between = {2, 10};
  EXPECT_DOUBLE_EQ(cluster.exchange(1, 3, 200), 3 + 2);
  EXPECT_DOUBLE_EQ(cluster.exchange(0, 3, 200), 6 + 20);
  EXPECT_DOUBLE_EQ(cluster.exchange(0.5, 4, 200), 4 + 10);
  EXPECT_DOUBLE_EQ(cluster.exchange(0.5, 4, 0), 0); // nothing to say, no message
}

TEST(Cluster, CostsGrowWithWorkAndFallWithSpeed) {
  for (double nearby : {0.0, 0.25, 1.0}) {
    Cluster cluster = Cluster::builtIn();
    cluster.inside = {1e-6, 4e11};
    double last = 0;
    for (double bytes = 1; bytes < 1e12; bytes *= 3) {
      double now = cluster.exchange(nearby, 7, bytes);
      EXPECT_GE(now, last);
      EXPECT_GE(cluster.exchange(nearby, 8, bytes), now);
      Cluster faster = cluster;
      faster.inside.bandwidth *= 2;
      faster.between.bandwidth *= 2;
      faster.between.latency /= 2;
      EXPECT_LE(faster.exchange(nearby, 7, bytes), now);
      last = now;
    }
  }
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
