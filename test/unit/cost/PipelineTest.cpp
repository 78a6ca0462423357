//===- PipelineTest.cpp - What waves take, one beside the other -----------===//

#include "passes/decide/WavePipeline.h"

#include <gtest/gtest.h>

namespace stepc::decide {
namespace {

constexpr bool kGpu = true, kCpu = false; // whether messages travel while a rank computes

/// A byte takes a second, a message and a launch nothing.
cost::Cluster cluster(bool overlaps) {
  return {"", {{"network", cost::Level::kAll, {0, 0, 1}}}, {1, 1, 1, 0, 1, overlaps}};
}

struct Rank {
  double in, there, local, compute, back, out, sums = 0; // seconds
};
using Waves = std::vector<std::vector<Rank>>;

double finish(const cost::Cluster &cluster, const Waves &waves, std::vector<double> fill = {}) {
  WavePipeline pipeline(cluster, std::move(fill));
  for (const std::vector<Rank> &wave : waves) {
    WaveLoads loads(cluster, wave.size(), 3);
    for (size_t rank = 0; rank < wave.size(); ++rank) {
      const Rank &of = wave[rank];
      loads.work(rank).local = of.local;
      loads.round(rank, 0).in = of.in;
      loads.round(rank, 1) = {0, of.compute, of.sums, 0};
      loads.round(rank, 2).out = of.out;
      loads.travel(rank, 0, /*back=*/false, {1}, 1, of.there);
      loads.travel(rank, 1, /*back=*/true, {1}, 1, of.back);
    }
    pipeline.add(loads);
  }
  return pipeline.finish();
}

TEST(Pipeline, OneWaveIsDoneInTurn) {
  for (bool overlaps : {kGpu, kCpu})
    EXPECT_DOUBLE_EQ(finish(cluster(overlaps), {{{1, 10, 0, 5, 4, 2}}}), 1 + 10 + 5 + 4 + 2);
}

TEST(Pipeline, ExchangesHideBehindWavesThatAreComputed) {
  Waves waves(3, {{0, 10, 0, 10, 0, 0}});
  EXPECT_DOUBLE_EQ(finish(cluster(kGpu), waves), 10 + 3 * 10);
  EXPECT_DOUBLE_EQ(finish(cluster(kCpu), waves), 3 * (10 + 10));
  // Ways there and back share the links: the way back of wave k comes behind the way there of wave k + 1.
  Waves both(3, {{0, 10, 0, 1, 10, 0}});
  EXPECT_DOUBLE_EQ(finish(cluster(kGpu), both), 6 * 10);
}

TEST(Pipeline, WhatIsWholeHidesTheExchange) {
  EXPECT_DOUBLE_EQ(finish(cluster(kGpu), {{{0, 10, 8, 5, 0, 0}}}), 10 + 5);
  EXPECT_DOUBLE_EQ(finish(cluster(kGpu), {{{0, 10, 12, 5, 0, 0}}}), 12 + 5);
  EXPECT_DOUBLE_EQ(finish(cluster(kCpu), {{{0, 10, 8, 5, 0, 0}}}), 8 + 10 + 5);
}

TEST(Pipeline, ElementwiseWorkFillsTheFirstGap) {
  Waves waves = {{{0, 10, 0, 5, 0, 0}}};
  EXPECT_DOUBLE_EQ(finish(cluster(kGpu), waves, {7}), 10 + 5);
  EXPECT_DOUBLE_EQ(finish(cluster(kGpu), waves, {17}), 17 + 5);
  EXPECT_DOUBLE_EQ(finish(cluster(kCpu), waves, {7}), 7 + 10 + 5);
}

TEST(Pipeline, AnExchangeWaitsForTheLastRank) {
  EXPECT_DOUBLE_EQ(finish(cluster(kGpu), {{{0, 10, 0, 5, 0, 0}, {7, 10, 0, 1, 0, 0}}}), 7 + 10 + 5);
  // But not for one that sends and receives nothing.
  EXPECT_DOUBLE_EQ(finish(cluster(kGpu), {{{0, 10, 0, 5, 0, 0}, {7, 0, 0, 1, 0, 0}}}), 10 + 5);
}

TEST(Pipeline, WhoSendsWaitsForWhoTakesIn) {
  // The first rank's results of wave 0 come to the second one when that computes wave 1, and are taken in behind it.
  Waves waves = {{{0, 0, 0, 1, 1, 0}, {0, 0, 0, 0, 1, 0}},
                 {{0, 0, 0, 0, 0, 0}, {0, 0, 0, 10, 0, 0}},
                 {{0, 0, 0, 7, 0, 0}, {0, 0, 0, 0, 0, 0}}};
  EXPECT_DOUBLE_EQ(finish(cluster(kCpu), waves), 10 + 1 + 7);
  EXPECT_DOUBLE_EQ(finish(cluster(kGpu), waves), 10);
  // Before, if the second rank waits for longer than the first one computes.
  waves[1][1] = {0, 0, 2, 10, 0, 0};
  EXPECT_DOUBLE_EQ(finish(cluster(kCpu), waves), 2 + 10 + 1);
}

TEST(Pipeline, TwoWavesTakeTurnsWithTheirSums) {
  Waves waves(1, {{0, 0, 0, 5, 0, 0, 3}});
  EXPECT_DOUBLE_EQ(finish(cluster(kGpu), waves), 5 + 3);
  waves.push_back(waves[0]);
  EXPECT_DOUBLE_EQ(finish(cluster(kGpu), waves), 5 + 5);
  EXPECT_DOUBLE_EQ(finish(cluster(kCpu), waves), 2 * (5 + 3));
  waves.push_back(waves[0]);
  EXPECT_DOUBLE_EQ(finish(cluster(kGpu), waves), 5 + 5 + 5 + 3);
}

TEST(Pipeline, WavesTakeTurnsInTheirLastRound) {
  // Two groups, of which one is in matrix space a round later: each hides its own sums alone.
  for (size_t first : {1, 2}) {
    WavePipeline pipeline(cluster(kGpu), {});
    WaveLoads loads(cluster(kGpu), 1, 3);
    loads.round(0, first) = {0, 5, 3, 0};
    loads.round(0, 2) = {0, 5, 3, 0};
    pipeline.add(loads);
    pipeline.add(loads);
    EXPECT_DOUBLE_EQ(pipeline.finish(), (first == 1 ? 2 : 1) * 2 * 5);
  }
}

TEST(Pipeline, ResultsAreSentBeforeOthersAreTakenIn) {
  // In round 2 the second rank takes in what the first one has sent, and computes for the third one, which has much to do
  // with it.
  for (bool relays : {false, true}) {
    WavePipeline pipeline(cluster(kCpu), {});
    WaveLoads loads(cluster(kCpu), 3, 4);
    loads.round(0, 1).compute = 20;
    loads.round(1, 2).compute = 5;
    loads.round(2, 3).out = 30;
    for (size_t rank : {0, 1})
      loads.travel(rank, 1, /*back=*/true, {1}, 1, 4);
    for (size_t rank : {1, 2})
      loads.travel(rank, 2, /*back=*/true, {1}, 1, 2);
    if (relays) // it sends some of what it takes in
      loads.relay(2);
    pipeline.add(loads);
    EXPECT_DOUBLE_EQ(pipeline.finish(), (relays ? 20 + 4 : 5) + 2 + 30);
  }
}

/// One wave of a rank: one group is there by one exchange and another by two, and back.
double oneAndTwoHops(const cost::Cluster &cluster, size_t waves) {
  WavePipeline pipeline(cluster, {});
  WaveLoads loads(cluster, 1, 5);
  loads.round(0, 1).compute = 7;    // of the first group
  loads.round(0, 2) = {0, 5, 0, 1}; // of the second one; and the end of the first one
  loads.round(0, 4).out = 1;
  loads.travel(0, 0, /*back=*/false, {1}, 1, 10);
  loads.travel(0, 1, /*back=*/false, {1}, 1, 6);
  loads.relay(3);
  for (size_t round : {1, 2, 3})
    loads.travel(0, round, /*back=*/true, {1}, 1, 3);
  for (size_t wave = 0; wave < waves; ++wave)
    pipeline.add(loads);
  return pipeline.finish();
}

TEST(Pipeline, WhatGoesOnTravelsWhileOthersAreComputed) {
  // The second hop hides behind the first group, and its results' way behind the second one.
  EXPECT_DOUBLE_EQ(oneAndTwoHops(cluster(kGpu), 1), 10 + 7 + 5 + 1 + 2 + 3 + 1);
  EXPECT_DOUBLE_EQ(oneAndTwoHops(cluster(kCpu), 1), 10 + 6 + 7 + 3 + 5 + 1 + 3 + 3 + 1);
  // Links are never idle, but for the last wave's results.
  EXPECT_LE(oneAndTwoHops(cluster(kGpu), 4), 4 * (10 + 6 + 3 * 3) + 5);
  EXPECT_GE(oneAndTwoHops(cluster(kGpu), 4), 4 * (10 + 6 + 3 * 3));
}

TEST(Pipeline, PartsOfAWaveAreLaunchedOnce) {
  cost::Cluster launching = cluster(kGpu);
  launching.device.launch = 3;
  EXPECT_DOUBLE_EQ(finish(launching, {{{1, 10, 0, 5, 0, 0}}}), (3 + 1) + 10 + (3 + 5));
}

TEST(WaveLoads, GroupsShareMessagesAndLevelsWorkAtATime) {
  cost::Cluster two = cluster(kGpu);
  two.levels = {{"node", 2, {100, 10, 2}}, {"network", cost::Level::kAll, {1000, 50, 1}}};
  WaveLoads loads(two, 2, 2);
  // A quarter of the peers in the node: two groups send eight and four messages, which travel together.
  loads.travel(0, 0, false, {0.25, 0.75}, 8, 800);
  loads.travel(0, 0, false, {0.25, 0.75}, 4, 400);
  double inNode = two.levels[0].link.seconds(2, 300), between = two.levels[1].link.seconds(6, 900);
  ASSERT_GT(between, inNode);
  EXPECT_DOUBLE_EQ(loads.seconds(0, 0, false), between);
  EXPECT_DOUBLE_EQ(loads.seconds(0, 0, true), 0);
  EXPECT_DOUBLE_EQ(loads.seconds(1, 0, false), 0);
  // Each round has an exchange of its own.
  loads.travel(0, 1, false, {1, 0}, 1, 2000);
  EXPECT_DOUBLE_EQ(loads.seconds(0, 0, false), between);
  EXPECT_DOUBLE_EQ(loads.seconds(0, 1, false), two.levels[0].link.seconds(1, 2000));
  loads.clear();
  EXPECT_DOUBLE_EQ(loads.seconds(0, 0, false), 0);
}

} // namespace
} // namespace stepc::decide
