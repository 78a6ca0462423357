//===- BlockStatesTest.cpp - States that stay with blocks -----------------===//

#include "runtime/plan/BlockStates.h"
#include "test/unit/plan/RandomPlan.h"

#include <gtest/gtest.h>

namespace stepc::test {

using namespace plan;

namespace {

constexpr Placement R{};
Placement S(int64_t dim) { return {PlacementKind::Shard, dim, 1}; }

/// Two stacks of three 2 × 4 matrices on two ranks, with a state that stays with them. Blocks have owners in turn.
Plan stacks(Strategy strategy = Strategy::Owner, std::vector<Placement> placements = {S(1)}) {
  Plan plan = simplePlan({2}, std::move(placements), {3, 2, 4}, 1, strategy, 2).plan;
  plan.rules[0].states = {{"m"}, {"v"}};
  plan.groups[0].blockStates = {1};
  Place state = Place::resting(0, ValueKind::Full, Distribution::StateBlocks),
        blocks = Place::resting(0, ValueKind::Full, Distribution::Blocks);
  plan.tables = {{TableKind::Copy, state, blocks, 4}, {TableKind::Copy, blocks, state, 4}};
  return plan;
}

using Row = std::vector<int64_t>;
std::vector<Row> rowsOf(const RankTable &table) {
  std::vector<Row> rows;
  for (const CopyRow &row : table.copies)
    rows.push_back({row.parameter, row.rows, row.cols, row.source, row.target});
  return rows;
}

TEST(BlockStates, AreCopiedToBlocksAndBack) {
  Plan plan = stacks();
  ASSERT_EQ(validate(plan), "");
  ASSERT_EQ(plan.groups[0].hops[0].base, (std::vector<int64_t>{0, 1, 0, 1, 0, 1}));
  // Rank 0 has blocks 0 and 2 of the first parameter and block 1 of the second.
  RankTables first = expand(plan, 0), second = expand(plan, 1);
  EXPECT_EQ(first.computed[0], (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(second.computed[0], (std::vector<int64_t>{1, 3, 5}));
  EXPECT_EQ(rowsOf(first.tables[0]), (std::vector<Row>{{0, 1, 16, 0, 0}, {1, 1, 8, 0, 16}}));
  EXPECT_EQ(rowsOf(first.tables[1]), (std::vector<Row>{{0, 1, 16, 0, 0}, {1, 1, 8, 16, 0}}));
  EXPECT_EQ(rowsOf(second.tables[0]), (std::vector<Row>{{0, 1, 8, 0, 0}, {1, 1, 16, 0, 8}}));
}

TEST(BlockStates, StandInTheSamePlaceWhateverTheSegment) {
  Plan plan = stacks();
  plan.segments = {{"even", 0, {4, 2}, false}, {"others", 0, {0, 1, 3, 5}, false}};
  plan.tables[1].from.segment = plan.tables[1].to.segment = 1;
  ASSERT_EQ(validate(plan), "");
  // Slot 0 has block 4, the only one of the second parameter, and slot 1 block 2, the second of the first one.
  RankTables first = expand(plan, 0);
  EXPECT_EQ(rowsOf(first.tables[0]), (std::vector<Row>{{1, 1, 8, 0, 0}, {0, 1, 8, 8, 8}}));
  EXPECT_EQ(rowsOf(first.tables[1]), (std::vector<Row>{{0, 1, 8, 0, 0}}));
}

TEST(BlockStates, AreOnEachRankThatComputesTheBlock) {
  Plan plan = stacks(Strategy::Gather);
  ASSERT_EQ(validate(plan), "");
  for (int64_t rank : {0, 1})
    EXPECT_EQ(rowsOf(expand(plan, rank).tables[0]),
              (std::vector<Row>{{0, 1, 24, 0, 0}, {1, 1, 24, 0, 24}}));
}

TEST(BlockStates, HaveTheShapeOfTheStateOrANumberOfElements) {
  Plan plan = stacks();
  const Group &group = plan.groups[0];
  std::vector<int64_t> computed = expand(plan, 0).computed[0];
  EXPECT_EQ(blocksWithin(group, computed, 0), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(blocksWithin(group, computed, 1), (std::vector<int64_t>{1}));
  EXPECT_EQ(blockStateShape(group, ValueKind::Full, {0, 2}), (std::vector<int64_t>{16}));
  EXPECT_EQ(blockStateShape(group, ValueKind::Full, {}), (std::vector<int64_t>{0}));
  EXPECT_EQ(blockStateShape(group, ValueKind::Full, {0, 1, 2}), (std::vector<int64_t>{3, 2, 4}));
  EXPECT_EQ(blockStateRects(group, ValueKind::Full, {0, 2}),
            (std::vector<geometry::Rect>{{0, 0, 0, 2, 4, 0, 4}, {2, 0, 0, 2, 4, 8, 4}}));
  EXPECT_EQ(blockStateBytes(group, plan.rules[0]), 32);
  EXPECT_EQ(shardStateBytes(group, plan.rules[0], plan.meshes[0], 0),
            48); // of `m`: half of 24 elements
}

TEST(BlockStates, ArePartOfThePlansBytes) {
  std::vector<uint8_t> bytes = serialize(stacks());
  std::string error;
  std::optional<Plan> read = deserialize(bytes.data(), bytes.size(), error);
  ASSERT_TRUE(read) << error;
  EXPECT_EQ(read->groups[0].blockStates, (std::vector<int64_t>{1}));
}

TEST(BlockStates, OfAnotherPlanAreRefused) {
  auto message = [](auto change) {
    Plan plan = stacks();
    change(plan);
    return validate(plan);
  };
  EXPECT_EQ(message([](Plan &p) { p.groups[0].blockStates = {1, 1}; }),
            "group " + stacks().groups[0].name +
                ": expected ascending numbers of the 2 states of the rule, found 1");
  EXPECT_EQ(message([](Plan &p) { p.rules[0].states[1].master = true; }),
            "group " + stacks().groups[0].name +
                ": expected a master where its parameter is, found that it stays with blocks");
  std::string expected = "expected a bound state that stays with blocks, found ";
  EXPECT_EQ(message([](Plan &p) { p.groups[0].blockStates.clear(); }),
            "table 0: " + expected + "full (state_blocks)");
  EXPECT_EQ(message([](Plan &p) { p.tables[0].from.end = End::Kept; }),
            "table 0: " + expected + "full (state_blocks, kept)");
  EXPECT_EQ(message([](Plan &p) { p.tables[0].to = p.tables[0].from; }),
            "table 0: expected places between which one rank copies a value, found full "
            "(state_blocks) and full (state_blocks)");
  EXPECT_EQ(message([](Plan &p) {
              p.tables[0].kind = TableKind::ShardChunks;
              p.tables[0].elementBytes = 0;
            }),
            "table 0: expected shards to be walked, found full (state_blocks) and full (blocks)");
}

} // namespace
} // namespace stepc::test
