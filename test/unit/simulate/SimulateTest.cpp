//===- SimulateTest.cpp - Steps whose times are found by hand -------------===//

#include "passes/simulate/Simulate.h"
#include "passes/cost/ProductLaunches.h"
#include "test/unit/plan/RandomPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace stepc;
using namespace stepc::simulate;
using namespace stepc::plan;
using test::Drawn;
using test::simplePlan;

namespace {

constexpr Placement S0{PlacementKind::Shard, 0, 1};
constexpr double kNever = 1e30;
// A message of a row, of eight elements of four bytes and a seal: its bytes, and its seconds inside of a node and between.
constexpr int64_t kMessage = 32 + kSealBytes;
constexpr double kInside = 10 + kMessage, kBetween = 100 + 2 * kMessage;

/// Nothing takes time but messages: 10 s and 1 s per byte inside of a node, 100 s and 2 s per byte between
/// nodes.
cost::Cluster network(int64_t ranksPerNode) {
  cost::Cluster cluster;
  cluster.levels = {{"inside", ranksPerNode, {10, 10, 1}},
                    {"between", cost::Level::kAll, {100, 100, 0.5}}};
  cluster.device = {.flops = kNever, .memory = kNever, .capacity = 0, .launch = 0, .threads = 1};
  return cluster;
}

/// The values of one matrix travel to its owner, rank 0, as `there`; from it, as `back`.
struct Program {
  explicit Program(Drawn drawn) : plan(std::move(drawn.plan)), tables(drawn.values[0]) {}

  void start(int64_t table) {
    plan.tables[size_t(table)].elementBytes = 4;
    Start start;
    start.tables = {table};
    plan.commands.push_back(start);
  }
  void await(int64_t index) { plan.commands.push_back(Await{index, {}}); }
  /// A kernel over each rank's shards of the gradient: 4 bytes per element.
  void kernel() {
    plan.kernels = {{"kernel", {}}};
    plan.commands.push_back(DispatchChunks{0, {{tables.untouched, {{OperandKind::Gradients}}}}});
  }
  /// A product of every computed block with itself.
  void product(int64_t size) {
    Operand operand{OperandKind::Batch, 0, 0, -1, 0, size, size};
    Product product;
    product.table = tables.compute;
    product.lhs = product.rhs = product.out = operand;
    product.kernels = {{0, 1}};
    plan.commands.push_back(product);
  }
  Result run(const cost::Cluster &cluster, Options options = {}, int64_t kept = 0) const {
    Result result;
    EXPECT_EQ(simulate::simulate(plan, cluster, options, kept, result), "");
    return result;
  }

  Plan plan;
  test::ValueTables tables;
};

Program shardedRows(int64_t ranks, std::vector<int64_t> shape) {
  return Program(simplePlan({ranks}, {S0}, shape, 0, test::Strategy::Owner));
}

std::vector<double> ends(const Result &result) {
  std::vector<double> times;
  for (const RankResult &rank : result.ranks)
    times.push_back(rank.end);
  return times;
}

std::vector<double> exposed(const Result &result) {
  std::vector<double> times;
  for (const RankResult &rank : result.ranks)
    times.push_back(rank.exposed);
  return times;
}

using testing::DoubleEq;
using testing::Each;
using testing::ElementsAre;

TEST(Simulate, OneMessage) {
  Program program = shardedRows(2, {2, 8});
  program.start(program.tables.gather);
  program.await(0);
  // A row from rank 1 to the owner.
  Result result = program.run(network(2));
  EXPECT_EQ(result.latency, kInside);
  EXPECT_THAT(exposed(result), ElementsAre(kInside, kInside));
  EXPECT_EQ(result.ranks[1].sent, (std::vector<Traffic>{{1, kMessage}, {}}));
  EXPECT_EQ(result.ranks[0].received, (std::vector<Traffic>{{1, kMessage}, {}}));
  EXPECT_EQ(result.ranks[0].sent, (std::vector<Traffic>{{}, {}}));
  EXPECT_EQ(result.groupBytes, (std::vector<std::vector<int64_t>>{{32, 0}}));
  // Two matrices of f32 (parameter and gradient) and a state, a row of each.
  EXPECT_EQ(result.ranks[0].shardBytes, 3 * 32);
}

TEST(Simulate, TwoMessagesShareTheReceiversPort) {
  Program program = shardedRows(3, {3, 8});
  program.start(program.tables.gather);
  program.await(0);
  // The owner has both after twice the time of one. Rank 1's message is the first to arrive.
  EXPECT_THAT(ends(program.run(network(3))), ElementsAre(2 * kInside, kInside, 2 * kInside));
}

TEST(Simulate, TwoMessagesShareTheSendersPort) {
  Program program = shardedRows(3, {3, 8});
  program.start(program.tables.scatter);
  program.await(0);
  // The owner begins behind itself: rank 1's row, then rank 2's.
  EXPECT_THAT(ends(program.run(network(3))), ElementsAre(2 * kInside, kInside, 2 * kInside));
}

TEST(Simulate, FurtherMessagesAddAGap) {
  Program program = shardedRows(3, {3, 8});
  program.start(program.tables.gather);
  program.await(0);
  cost::Cluster cluster = network(3);
  cluster.levels[0].link.gap = 4;
  // What the choosing models say of a rank that receives both.
  constexpr double kBoth = 10 + 4 + 2 * kMessage;
  EXPECT_THAT(ends(program.run(cluster)), ElementsAre(kBoth, kInside, kBoth));
  EXPECT_EQ(cluster.levels[0].link.seconds(2, 2 * kMessage), kBoth);
  // A thread takes each in for 4 s and its bytes, the first 6 s after it was sent.
  EXPECT_THAT(ends(program.run(cluster, {Progress::Waits})), ElementsAre(kBoth, kInside, kBoth));
}

TEST(Simulate, LevelsWorkSideBySide) {
  Program program = shardedRows(4, {4, 8});
  program.start(program.tables.gather);
  program.await(0);
  // Ranks 0 and 1 share a node; the other two share the owner's port between nodes.
  Result result = program.run(network(2));
  EXPECT_THAT(ends(result), ElementsAre(2 * kBetween, kInside, kBetween, 2 * kBetween));
  EXPECT_EQ(result.groupBytes, (std::vector<std::vector<int64_t>>{{32, 64}}));
  EXPECT_THAT(result.levels, ElementsAre("inside", "between"));
}

TEST(Simulate, NoTwoRanksOfANodeTurnToOneAtATime) {
  // All bring together what all have: a message in the node, and two to and from the other one.
  Program program(simplePlan({4}, {S0}, {4, 8}, 0, test::Strategy::Gather));
  program.start(program.tables.gather);
  program.await(0);
  EXPECT_THAT(ends(program.run(network(2))), Each(2 * kBetween));
  // An all-gather is the messages that it stands for.
  std::get<Start>(program.plan.commands[0]).collective = CollectiveKind::AllGather;
  EXPECT_THAT(ends(program.run(network(2))), Each(2 * kBetween));
}

TEST(Simulate, WhatGoesToSeveralIsCopiedBesideOthers) {
  // All have a matrix of one parameter, and rank 0 owns that of another one.
  Program program(simplePlan({3}, {S0}, {3, 8}, 0, test::Strategy::Gather));
  Plan &plan = program.plan;
  Group owned = plan.groups[0];
  owned.parameters = {1};
  owned.hops = {{wholeAxes(plan.meshes[0]), {}, {0}}};
  plan.groups.push_back(owned);
  plan.parameters.push_back({"owned", 0, 1, 0});
  plan.segments.push_back({"owned", 1, {}, true});
  Table other = plan.tables[size_t(program.tables.gather)];
  other.from.segment = other.to.segment = 1;
  other.elementBytes = 4;
  program.start(program.tables.gather);
  std::get<Start>(plan.commands[0]).tables.push_back(int64_t(plan.tables.size()));
  plan.tables.push_back(other);
  program.await(0);
  cost::Cluster cluster = network(3);
  cluster.device.memory = 1;
  cluster.device.launch = 5;
  // A row of 32 bytes goes to one rank with one of the other matrix and to one without: a copy takes 5 + 64 s. Then rank 0
  // receives two rows and a seal from rank 2, and as much from rank 1, while it copies its own rows for 5 + 128 s.
  Result result = program.run(cluster);
  constexpr double kTwoRows = kInside + 32;
  EXPECT_THAT(ends(result),
              ElementsAre(69 + 2 * kTwoRows, 69 + 2 * kTwoRows, 69 + kTwoRows + kInside));
  EXPECT_EQ(result.ranks[0].compute, 69 + 133);
  EXPECT_EQ(result.ranks[1].compute, 69 + 69);
  EXPECT_EQ(result.groupKinds[0].of(MoveKind::There), 6 * 32);
  EXPECT_EQ(result.groupKinds[1].of(MoveKind::There), 2 * 32);
}

TEST(Simulate, MessagesTravelWhileRanksCompute) {
  Program program = shardedRows(2, {2, 8});
  cost::Cluster cluster = network(2);
  cluster.device.memory = 1;
  program.start(program.tables.gather);
  program.kernel();
  program.await(0);
  // Each reads 32 bytes at 1 byte per second while the message travels; the owner's own row is copied
  // first, 64 bytes read and written.
  Result result = program.run(cluster);
  EXPECT_THAT(ends(result), ElementsAre(96, kInside));
  EXPECT_THAT(exposed(result), ElementsAre(0, kInside - 32));
  EXPECT_EQ(result.ranks[0].compute, 96);
  EXPECT_EQ(result.idle(0), 0);
  EXPECT_EQ(result.idle(1), 96 - 32);

  // A thread that takes messages in itself begins with that when it waits.
  result = program.run(cluster, {Progress::Waits});
  EXPECT_THAT(ends(result), Each(96 + kInside));
  EXPECT_THAT(exposed(result), ElementsAre(kInside, 96 + kInside - 32));
}

TEST(Simulate, ExchangesFollowEachOtherOnAStream) {
  Program program = shardedRows(2, {2, 8});
  program.start(program.tables.gather);
  program.start(program.tables.scatter);
  program.await(1);
  program.await(0);
  // The second begins when the first is done, in the order of the stream.
  EXPECT_THAT(ends(program.run(network(2))), Each(2 * kInside));
}

TEST(Simulate, APeerThatComesLateHoldsOthersUp) {
  Program program = shardedRows(2, {3, 8});
  cost::Cluster cluster = network(2);
  cluster.device.memory = 1;
  program.kernel();
  program.start(program.tables.gather);
  program.await(0);
  // Rank 0 has two rows and begins after 64 s; the message needs both.
  Result result = program.run(cluster);
  EXPECT_THAT(ends(result), ElementsAre(64 + 128, 64 + kInside));
  EXPECT_THAT(exposed(result), ElementsAre(0, 64 + kInside - 32));
}

TEST(Simulate, WorkIsBoundByArithmeticOrMemory) {
  Program program = shardedRows(2, {8, 8});
  cost::Cluster cluster = network(2);
  cluster.device = {.flops = 4, .memory = 3, .capacity = 0, .launch = 5, .threads = 1};
  program.product(8);
  // Rank 0 owns the block: two launches, and 1024 operations by 4 per second above 768 bytes by 3.
  Result result = program.run(cluster);
  EXPECT_THAT(ends(result), ElementsAre(10 + 256, 0));
  EXPECT_EQ(result.ranks[0].flops, 1024);
  EXPECT_EQ(result.ranks[0].touched, 768);
  cluster.device.memory = 2;
  EXPECT_THAT(ends(program.run(cluster)), ElementsAre(10 + 384, 0));
}

TEST(Simulate, SumsReadAllContributions) {
  // Both ranks have a part of the gradient of two rows, of which each adds up one.
  Program program(simplePlan({2}, {{PlacementKind::Replicate}}, {2, 8}, 0, test::Strategy::Owner));
  Plan &plan = program.plan;
  plan.groups[0].gradientPlacements = {{PlacementKind::PartialSum}};
  plan.groups[0].reducedPlacements = {S0};
  using enum Distribution::Kind;
  Place received{0, ValueKind::Full, GradientShards, ReducedShards, End::Received};
  Place kept{0, ValueKind::Full, ReducedShards, ReducedShards, End::Kept};
  Sum sum;
  sum.table = int64_t(plan.tables.size());
  plan.commands.push_back(sum);
  plan.tables.push_back({TableKind::Sum, received, kept, 4});
  cost::Cluster cluster = network(2);
  cluster.device = {.flops = 1, .memory = 1000, .capacity = 0, .launch = 5, .threads = 1};
  // Two contributions to eight elements: 16 operations, and 24 elements of four bytes.
  Result result = program.run(cluster);
  EXPECT_THAT(ends(result), ElementsAre(5 + 16, 5 + 16));
  EXPECT_EQ(result.ranks[0].touched, 96);
  cluster.device.memory = 2;
  EXPECT_THAT(ends(program.run(cluster)), ElementsAre(5 + 48, 5 + 48));
}

TEST(Simulate, FunctionsOfBlocksLaunchEachKernel) {
  Program program = shardedRows(2, {8, 8});
  Operand block{OperandKind::Batch, 0, 0, -1, 0, 8, 8}, one{OperandKind::Batch, 0, 0, -1, 0, 1, 1};
  Apply apply;
  apply.table = program.tables.compute;
  apply.kernels = {{0, 1}, {1, 1}};
  apply.sources = {block};
  apply.out = one;
  apply.flops = 2 * 8 * 8;
  program.plan.commands.push_back(apply);
  cost::Cluster cluster = network(2);
  cluster.device = {.flops = 2, .memory = 100, .capacity = 0, .launch = 5, .threads = 1};
  // Two operations of each element, by two kernels; 65 elements of four bytes.
  Result result = program.run(cluster);
  EXPECT_THAT(ends(result), ElementsAre(2 * 5 + 64, 0));
  EXPECT_EQ(result.ranks[0].touched, 260);
  cluster.device.memory = 1;
  EXPECT_THAT(ends(program.run(cluster)), ElementsAre(2 * 5 + 260, 0));
}

TEST(Simulate, PoolsCountTheirMembersBlocks) {
  Program program = shardedRows(2, {8, 8});
  Plan &plan = program.plan;
  plan.kernels = {{"kernel", {}}};
  plan.pools = {{0, 4096, {{7, 999}, {0, 640}}}};
  Operand pooled{OperandKind::Workspace, 0, 4096};
  pooled.pool = 0;
  pooled.member = 1;
  plan.commands.push_back(DispatchChunks{0, {{program.tables.compute, {pooled}}}});
  cost::Cluster cluster = network(2);
  cluster.device.memory = 1;
  // A stage over the only block, of which its segment's member has 640 bytes.
  EXPECT_THAT(ends(program.run(cluster)), ElementsAre(640, 0));
  // A stage over shards that writes there: each rank has half of the block's elements.
  plan.commands = {DispatchChunks{0, {{program.tables.untouched, {pooled}}}}};
  EXPECT_THAT(ends(program.run(cluster)), ElementsAre(320, 320));
}

TEST(Simulate, RanksShareDevices) {
  Program program = shardedRows(3, {6, 8});
  cost::Cluster cluster = network(3);
  cluster.device.memory = 1;
  program.kernel();
  EXPECT_THAT(ends(program.run(cluster)), ElementsAre(64, 64, 64));
  // Three ranks of 64 s each on two devices.
  EXPECT_THAT(ends(program.run(cluster, {Progress::Streams, 3, 2})), ElementsAre(96, 96, 96));
  // Ranks 0 and 1 share one, and rank 2 has the next machine's.
  EXPECT_THAT(ends(program.run(cluster, {Progress::Streams, 2, 1})), ElementsAre(128, 128, 64));
}

TEST(Simulate, WhoIsDoneLeavesItsShareToOthers) {
  Program program = shardedRows(2, {3, 8});
  cost::Cluster cluster = network(2);
  cluster.device.memory = 1;
  program.kernel();
  // 64 s and 32 s of work on one device: half of it each, until the shorter one is done after 64 s.
  Result result = program.run(cluster, {Progress::Streams, 2, 1});
  EXPECT_THAT(ends(result), ElementsAre(96, 64));
  EXPECT_EQ(result.ranks[1].work, 32);
  EXPECT_EQ(result.ranks[1].compute, 64);
}

TEST(Simulate, TakingInSharesDevicesToo) {
  Program program = shardedRows(2, {2, 8});
  program.start(program.tables.gather);
  program.kernel();
  program.await(0);
  cost::Cluster cluster = network(2);
  cluster.device.memory = 1;
  // One device: 64 s of copying and 32 s of kernel at the owner, 32 s at the other; then the owner alone takes
  // the message in.
  Result result = program.run(cluster, {Progress::Waits, 2, 1});
  EXPECT_THAT(ends(result), Each(128 + kInside));
}

TEST(Simulate, TracksTellClassesApart) {
  Program program = shardedRows(4, {4, 8});
  program.kernel();
  program.start(program.tables.gather);
  program.await(0);
  cost::Cluster cluster = network(4);
  cluster.device.memory = 1;
  Result result = program.run(cluster, {}, 10);
  // The owner, and three ranks that send it a row each, of which rank 3's comes last.
  ASSERT_EQ(result.tracks.size(), 2);
  EXPECT_EQ(result.classes, 2);
  EXPECT_THAT(result.tracks[0].ranks, ElementsAre(0));
  EXPECT_THAT(result.tracks[1].ranks, ElementsAre(1, 2, 3));
  EXPECT_EQ(result.tracks[1].rank, 3);
  auto find = [&](const Track &track, Lane lane) {
    for (const Slice &slice : track.slices)
      if (slice.lane == lane)
        return std::pair(slice.begin, slice.end);
    return std::pair(-1.0, -1.0);
  };
  EXPECT_EQ(find(result.tracks[1], Lane::Compute), std::pair(0.0, 32.0));
  EXPECT_EQ(find(result.tracks[1], Lane::Wait), std::pair(32.0, 32.0 + 3 * kInside));
  EXPECT_EQ(find(result.tracks[1], Lane::Messages), std::pair(32.0, 32.0 + 3 * kInside));
  // Bytes under way, summed over time: a message counts from when it is sent until it is there.
  double sum = 0;
  for (double bytes : result.flight.bytes[0])
    sum += bytes * result.flight.part;
  EXPECT_NEAR(sum, kMessage * (1 + 2 + 3) * kInside, 1);

  EXPECT_EQ(program.run(cluster, {}, 1).tracks.size(), 1);
}

TEST(Simulate, AMessageThatNobodySendsIsAnError) {
  Program program = shardedRows(2, {2, 8});
  program.start(program.tables.gather);
  program.await(1);
  // A plan that was not validated: there is no second start.
  program.start(program.tables.scatter);
  Result result;
  EXPECT_EQ(simulate::simulate(program.plan, network(2), {}, 0, result),
            "rank 0 waits for exchange 1, whose messages never come");
}

/// Half tiles take less time than the rate of whole tiles says, so a launch of many narrow matrices takes less
/// than its work at that rate.
TEST(Simulate, ALaunchThatIsFasterThanItsRateCounts) {
  Program program(simplePlan({1}, {S0}, {128, 2048}, 0, test::Strategy::Owner, 128));
  program.product(128);
  auto &product = std::get<Product>(program.plan.commands.back());
  product.accumulation = Accumulation::TensorCore;
  product.symmetric = product.transposeRhs = true;
  product.lhs.cols = product.rhs.cols = 2048;
  product.lhs.type = product.rhs.type = product.out.type = DType::BF16;
  cost::Cluster cluster = network(1);
  cluster.device = {.flops = 780e12, .memory = kNever, .capacity = 0, .launch = 0, .threads = 132};
  cluster.device.products = cost::ProductKernel::Warpgroup;
  cost::ProductLaunches launches(cluster.device);
  ASSERT_LT(launches.overhead({{{128, 128, 2048, true}, 128}}, false), 0);
  Result result = program.run(cluster);
  EXPECT_EQ(result.ranks[0].productLaunches, 1);
  EXPECT_GT(result.ranks[0].products, 0);
}

TEST(Simulate, ProductsThatJoinHaveOneLaunch) {
  Program program = shardedRows(2, {512, 512});
  auto multiply = [&](bool joins) {
    program.product(512);
    auto &product = std::get<Product>(program.plan.commands.back());
    product.accumulation = Accumulation::TensorCore;
    product.lhs.type = product.rhs.type = product.out.type = DType::BF16;
    product.joins = joins;
  };
  multiply(false);
  multiply(false);
  cost::Cluster cluster = network(2);
  cluster.device = {.flops = 780e12, .memory = kNever, .capacity = 0, .launch = 1, .threads = 132};
  cluster.device.products = cost::ProductKernel::Warpgroup;
  // Only the owner, rank 0, has blocks.
  cost::ProductLaunches launches(cluster.device);
  cost::ProductLaunches::Products one = {{{512, 512, 512}, 1}}, two = {{{512, 512, 512}, 2}};
  auto expected = [&](const cost::ProductLaunches::Products &products, bool besideMessages) {
    return launches.work(products) + launches.overhead(products, besideMessages);
  };
  Result apart = program.run(cluster);
  EXPECT_DOUBLE_EQ(apart.latency, 2 * expected(one, false));
  EXPECT_EQ(apart.ranks[0].productLaunches, 2);
  EXPECT_DOUBLE_EQ(apart.ranks[0].products, apart.latency);
  EXPECT_EQ(apart.ranks[1].productLaunches, 0);
  program.plan.commands.pop_back();
  multiply(true);
  Result together = program.run(cluster);
  EXPECT_DOUBLE_EQ(together.latency, expected(two, false));
  EXPECT_LT(together.latency, apart.latency - 0.9);
  EXPECT_EQ(together.ranks[0].productLaunches, 1);
  EXPECT_EQ(together.ranks[0].flops, apart.ranks[0].flops);
  // While messages travel, lists leave multiprocessors to them.
  program.plan.commands.clear();
  program.start(program.tables.scatter);
  multiply(false);
  multiply(true);
  program.await(0);
  EXPECT_DOUBLE_EQ(program.run(cluster).ranks[0].products, expected(two, true));
}

} // namespace
