//===- PoolsTest.cpp - Where batches stand that share memory --------------===//

#include "test/unit/plan/RandomPlan.h"

#include <gtest/gtest.h>

namespace stepc::test {

using namespace plan;

namespace {

constexpr Placement S0{PlacementKind::Shard, 0, 1};

/// Five blocks of 6 x 4 on two ranks: rank 0 computes blocks 0, 2 and 4, rank 1 the others. Segments
/// of the even blocks, the odd ones, and all.
Plan plan() {
  Plan plan = simplePlan({2}, {S0}, {6, 4}, 0, Strategy::Owner, 5).plan;
  plan.segments = {{"all", 0, {}, true}, {"even", 0, {0, 2, 4}, false}, {"odd", 0, {1, 3}, false}};
  return plan;
}

TEST(Pools, MembersBeginWhereThoseBeforeThemEndOnARank) {
  Plan p = plan();
  Pool pool{0, 256, {{1, 20}, {2, 100}, {0, 4}}};
  Expander expander(p);
  RankPool first = expander.pool(pool, 0), second = expander.pool(pool, 1);
  EXPECT_EQ(first.begins, (std::vector<int64_t>{0, 64, 64}));
  EXPECT_EQ(first.bytes, 76);
  EXPECT_EQ(second.begins, (std::vector<int64_t>{0, 0, 256}));
  EXPECT_EQ(second.bytes, 264);
  EXPECT_EQ(first.room(pool, 0), 64);
  EXPECT_EQ(first.room(pool, 1), 0);
  EXPECT_EQ(first.room(pool, 2), 192);
  EXPECT_EQ(second.room(pool, 1), 256);
  EXPECT_EQ(second.room(pool, 2), 0);
  p.pools = {pool};
  EXPECT_EQ(expand(p, 1).pools[0].begins, second.begins);
}

/// No sum wraps around, whatever a plan says that passes validation.
TEST(Pools, SizesStayNumbers) {
  Plan p = plan();
  p.pools.push_back({0, 64, {}});
  for (int i = 0; i < 100; ++i)
    p.pools[0].members.push_back({0, kMostArenaBytes});
  ASSERT_EQ(validate(p), "");
  EXPECT_GT(expand(p, 0).pools[0].bytes, kMostArenaBytes);
}

/// A reduction of the even blocks within a pool, and a stage over them.
Plan program() {
  Plan p = plan();
  p.arenaBytes = 1024;
  p.kernels = {{"double", {}}};
  p.pools = {{64, 384, {{2, 96}, {1, 96}}}, {512, 64, {{1, 4}, {2, 4}}}};
  auto walked = Place::resting(1, ValueKind::Full, Distribution::Blocks);
  p.tables.push_back({TableKind::BlockChunks, walked, walked, 0});
  auto table = static_cast<int64_t>(p.tables.size()) - 1;
  Apply apply;
  apply.table = table;
  apply.sources = {{OperandKind::Batch, 64, 384, -1, 0, 6, 4, DType::F32, 0, 1}};
  apply.out = {OperandKind::Batch, 512, 64, -1, 0, 1, 1, DType::F32, 1, 0};
  Operand staged{OperandKind::Workspace, 64, 384};
  staged.pool = 0;
  staged.member = 1;
  p.commands = {apply, DispatchChunks{0, {{table, {staged}}}}, AdvanceSteps{}};
  return p;
}

Operand &source(Plan &p) { return std::get<Apply>(p.commands[0]).sources[0]; }
Operand &staged(Plan &p) { return std::get<DispatchChunks>(p.commands[1]).runs[0].operands[0]; }

TEST(Pools, ValidationNamesWhatIsWrong) {
  ASSERT_EQ(validate(program()), "");
  ASSERT_EQ(validateProgram(program()), "");
  auto message = [](auto change) {
    Plan p = program();
    change(p);
    std::string wrong = validate(p);
    return wrong.empty() ? validateProgram(p) : wrong;
  };
  EXPECT_EQ(message([](Plan &p) { p.pools[0].members[0].segment = 3; }),
            "pool 0: expected a segment below 3, found 3");
  EXPECT_EQ(message([](Plan &p) { p.pools[1].members[0].blockBytes = -1; }),
            "pool 1: expected blocks of no more bytes than a workspace, found -1");
  EXPECT_EQ(message([](Plan &p) { p.pools[1].offset = 32; }),
            "pool 1: expected a pool at a multiple of 64 bytes, found 64 bytes from byte 32");
  EXPECT_EQ(message([](Plan &p) { source(p).pool = 2; }),
            "command 0 (apply): expected a pool below 2, found 2");
  EXPECT_EQ(message([](Plan &p) { source(p).member = 2; }),
            "command 0 (apply): expected a member of pool 0 below 2, found 2");
  const char *another =
      "command 0 (apply): expected member 0 of pool 0 in that pool, found another";
  // A member of another segment, other places on one side alone, and other blocks.
  EXPECT_EQ(message([](Plan &p) { source(p).member = 0; }), another);
  EXPECT_EQ(message([](Plan &p) { std::swap(p.pools[0].members[0], p.pools[0].members[1]); }),
            "command 0 (apply): expected member 1 of pool 0 in that pool, found another");
  EXPECT_EQ(message([](Plan &p) { source(p).value = 128; }),
            "command 0 (apply): expected member 1 of pool 0 in that pool, found another");
  EXPECT_EQ(message([](Plan &p) { p.pools[0].members[1].blockBytes = 48; }),
            "command 0 (apply): expected member 1 of pool 0 in that pool, found another");
  EXPECT_EQ(message([](Plan &p) { staged(p).member = 0; }),
            "command 1 (chunks): expected member 0 of pool 0 in that pool, found another");
  EXPECT_EQ(message([](Plan &p) {
              staged(p) = {OperandKind::Line, 0, 0, -1, 0, 0, 0, DType::F32, 0, 1};
            }),
            "command 1 (chunks): expected no pool of what is no batch, found pool 0");
}

TEST(Pools, BytesKeepThem) {
  Plan p = program();
  std::vector<uint8_t> bytes = serialize(p);
  std::string error;
  std::optional<Plan> copy = deserialize(bytes.data(), bytes.size(), error);
  ASSERT_TRUE(copy) << error;
  EXPECT_EQ(copy->pools[1].members[0].blockBytes, 4);
  EXPECT_EQ(staged(*copy).member, 1);
  EXPECT_EQ(serialize(*copy), bytes);
}

} // namespace
} // namespace stepc::test
