//===- ValidateTest.cpp - What makes a plan safe to expand and to walk ----===//

#include "test/unit/plan/RandomPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepc::test {

using namespace plan;
using testing::HasSubstr;

namespace {

constexpr Placement R{};
constexpr Placement S0{PlacementKind::Shard, 0, 1};

TEST(Plan, ValidationNamesWhatIsWrong) {
  auto message = [](auto change) {
    Plan plan = richPlan();
    change(plan);
    return validate(plan);
  };
  EXPECT_EQ(message([](Plan &p) { p.chunkElements = 0; }), "rows of tables have up to 0 elements");
  EXPECT_EQ(message([](Plan &p) { p.meshes[0].ranks.pop_back(); }),
            "mesh 0: expected as many ranks as the axes span, found 3");
  EXPECT_EQ(message([](Plan &p) { p.meshes[0].ranks[1] = 0; }), "mesh 0: expected distinct ranks");
  EXPECT_EQ(message([](Plan &p) { p.meshes[0].sizes[0] = 0; }),
            "mesh 0: expected axes of size 1 or more, found 0");
  EXPECT_EQ(message([](Plan &p) { p.routes[0].defaults.clear(); }),
            "route 0: expected a default per hyperparameter, found 0");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].mesh = 4; }), "group 0: mesh 4 does not exist");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].placements.pop_back(); }),
            "group 0: expected a placement per axis of mesh mesh, found 1");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].placements[1].dim = 2; }),
            "group 0: placement _S(2, 3) shards an axis that does not exist");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].placements[1].factor = 0; }),
            "group 0: placement _S(0, 0) has a factor out of range");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].gradientPlacements = {S0}; }),
            "group 0: expected a placement per axis of mesh mesh, found 1");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].statePlacements[0].dim = 2; }),
            "group 0: placement S(2) shards an axis that does not exist");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].statePlacements = p.groups[0].placements; }),
            "group 0: expected no placements of the gradient or the states that are the "
            "parameter's");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].shape[0] = int64_t(1) << 60; }),
            "group 0: its parameters are too large");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].hops[0].base[1] = 4; }),
            "group 0: position 4 is outside of mesh mesh");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].hops[0].base.pop_back(); }),
            "group 0: expected 3 positions for the blocks of a hop, found 2");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].hops.clear(); }),
            "group 0: expected whole blocks on every rank after 0 hops");
  EXPECT_EQ(message([](Plan &p) {
              p.groups[0].shape = {2, 3, 4};
              p.groups[0].division.parts.clear();
              p.groups[0].part = -1;
            }),
            "group 0: expected no matrix space for axes that are neither a matrix nor declared");
  EXPECT_EQ(message([](Plan &p) { p.parameters[2].indexInGroup = 1; }),
            "group 0: parameter p2 says that it stands elsewhere");
  using Parts = std::vector<std::vector<Span>>;
  auto divided = [&](Parts parts) {
    return message([&](Plan &p) { p.groups[0].division.parts = parts; });
  };
  EXPECT_EQ(divided({}), "group 0: expected no part of matrices that are not divided");
  EXPECT_EQ(divided({{}, {{0, 4}}}), "group 0: expected columns in each part, found an empty one");
  std::string order = "group 0: expected columns of a part in their order, between ";
  EXPECT_EQ(divided({{{1, 4}, {0, 1}}}), order + "4 and 4, found 0:1");
  EXPECT_EQ(divided({{{0, 0}, {0, 4}}}), order + "0 and 4, found 0:0");
  EXPECT_EQ(divided({{{0, 5}}}), order + "0 and 4, found 0:5");
  std::string once = "group 0: expected each column in one part, found column ";
  EXPECT_EQ(divided({{{0, 3}}}), once + "3 in none");
  EXPECT_EQ(divided({{{0, 2}}, {{1, 4}}}), once + "1 in two");
  EXPECT_EQ(divided({{{0, 1}}, {{1, 4}}}), "group 0: expected groups of all 2 parts, found 1");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].part = 1; }), "group 0: part 1 does not exist");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].shape = {4}; }),
            "group 0: expected a division of the rows or the columns of matrices");
  auto second = [&](auto change) {
    return message([&](Plan &p) {
      p.groups[0].division.parts = {{{0, 1}}, {{1, 4}}};
      p.groups.push_back(p.groups[0]);
      p.groups[1].part = 1;
      change(p.groups[1]);
    });
  };
  EXPECT_EQ(second([](Group &) {}), "");
  EXPECT_EQ(second([](Group &g) { g.part = 0; }), "group 1: expected another part of p0 than 0");
  EXPECT_EQ(second([](Group &g) { g.gradientType = DType::F32; }),
            "group 1: parameter p0 says that it stands elsewhere");
  EXPECT_EQ(second([](Group &g) {
              g.parameters.pop_back();
              g.hops[0].base.pop_back();
            }),
            "group 1: expected the parameters of group group, which has another part of them");
  EXPECT_EQ(message([](Plan &p) { p.segments[1].blocks = {1, 1}; }),
            "segment 1: a block stands in it twice");
  EXPECT_EQ(message([](Plan &p) { p.segments[1].blocks = {3}; }),
            "segment 1: expected blocks below 3");
  EXPECT_THAT(message([](Plan &p) { p.tables[0].from.segment = 9; }), HasSubstr("does not exist"));
  EXPECT_EQ(message([](Plan &p) { p.tables[0].to = p.tables.back().from; }),
            "table 0: its staged operands do not stand where this rank's shards lead");
  EXPECT_THAT(message([](Plan &p) { p.tables.back().to.to = Distribution::Blocks; }),
              HasSubstr("expected two distributions of a move, and one of what is at rest"));
  EXPECT_THAT(message([](Plan &p) {
                p.tables.back().to = {0, ValueKind::Rows, Distribution::Blocks,
                                      Distribution::Blocks, End::Kept};
              }),
              HasSubstr("expected a copy of shards, found one in blocks"));
  EXPECT_THAT(message([](Plan &p) { p.tables.back().to.value = ValueKind::Cols; }),
              HasSubstr("its places are not the ends of one move"));
  EXPECT_THAT(message([](Plan &p) { p.tables.back().kind = TableKind::Copy; }),
              HasSubstr("no value is copied between its places"));
  EXPECT_EQ(message([](Plan &p) { p.tables.back().elementBytes = 3; }),
            "table " + std::to_string(richPlan().tables.size() - 1) + ": elements have 3 bytes");
  EXPECT_EQ(message([](Plan &p) { p.commands[1].tables[1] = 0; }),
            "command 1: table 0 is not a message table");
  // Of gathered columns other ranks share a copy than of rows: they stand whole on more of them.
  EXPECT_EQ(message([](Plan &p) {
              p.groups[0].hops = {{{}, wholeAxes(p.meshes[0]), {}}};
              for (ValueKind kind : {ValueKind::Rows, ValueKind::Cols}) {
                Place sent{0, kind, Distribution(Distribution::Shards),
                           Distribution(Distribution::Blocks), End::Sent};
                Place received = sent;
                received.end = End::Received;
                p.tables.push_back({TableKind::Message, sent, received, 4});
              }
              auto last = static_cast<int64_t>(p.tables.size()) - 1;
              p.commands[1].tables = {last - 1, last};
            }),
            "command 1: expected values of which the same ranks share copies");
}

/// A program with every kind of command, on the tables of richPlan().
Plan program() {
  Plan plan = richPlan();
  plan.groups[0].gradientPlacements.clear();
  plan.groups[0].statePlacements.clear();
  plan.rules[0].states.push_back({"v", DType::F32, ValueKind::Full, 0, false});
  using enum Distribution::Kind;
  plan.tables.push_back({TableKind::Copy,
                         Place::resting(0, ValueKind::Full, Shards),
                         {0, ValueKind::Full, Shards, Blocks, End::Sent},
                         4});
  auto copy = static_cast<int64_t>(plan.tables.size()) - 1;
  Place sent = plan.tables.back().to, received = sent;
  received.end = End::Received;
  plan.tables.push_back({TableKind::Message, sent, received, 4});
  plan.commands[1].tables.push_back(copy + 1);
  auto state = static_cast<int64_t>(plan.rules[0].states.size()) - 1;
  Operand place{OperandKind::Workspace, 64, 128}, shards{OperandKind::State, state};
  Operand packed{OperandKind::Workspace, 64, 128, 0, 2};
  plan.commands.insert(plan.commands.begin(), {{CommandKind::Copy, -1, 0, {copy}, {shards, packed}},
                                               {CommandKind::Chunks, 1, 0, {0}, {shards, place}}});
  return plan;
}

TEST(Plan, ValidationOfTheProgramNamesWhatIsWrong) {
  ASSERT_EQ(validate(program()), "");
  ASSERT_EQ(validateProgram(program()), "");
  auto message = [](auto change) {
    Plan plan = program();
    change(plan);
    return validateProgram(plan);
  };
  enum { Copy, Chunks, Parameters, Start, Product, Await, Advance };
  EXPECT_EQ(message([](Plan &p) { p.commands[Copy].tables = {0}; }),
            "command 0 (copy): table 0 is of another kind");
  EXPECT_EQ(message([](Plan &p) { p.commands[Copy].operands.pop_back(); }),
            "command 0 (copy): expected where it moves from and to, found 1 operands");
  EXPECT_EQ(message([](Plan &p) {
              std::swap(p.commands[Copy].operands[0], p.commands[Copy].operands[1]);
            }),
            "command 0 (copy): expected shards where its table has shards");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].statePlacements = {S0, R}; }),
            "command 0 (copy): expected shards that stand in shards, found those of the state");
  EXPECT_EQ(message([](Plan &p) { p.commands[Copy].operands[0].value = 1; }),
            "command 0 (copy): state w has another type or shape than its table");
  EXPECT_EQ(message([](Plan &p) { p.commands[Chunks].operands[0].value = 9; }),
            "command 1 (chunks): state 9 does not exist");
  EXPECT_EQ(message([](Plan &p) { p.commands[Chunks].kernel = 2; }),
            "command 1 (chunks): kernel 2 does not exist");
  EXPECT_EQ(message([](Plan &p) { p.commands[Chunks].tables = {0, 0, 0}; }),
            "command 1 (chunks): expected as many operands for each of its tables");
  EXPECT_EQ(message([](Plan &p) { p.commands[Chunks].tables = {0, 0}; }),
            "command 1 (chunks): expected the same operands for each of its tables");
  EXPECT_EQ(
      message([](Plan &p) { p.commands[Chunks].operands[1].value = 4160; }),
      "command 1 (chunks): expected operands inside of the workspace of 4224 bytes, found 128 "
      "bytes from byte 4160");
  EXPECT_EQ(message([](Plan &p) { p.commands[Chunks].operands[1].value = 32; }),
            "command 1 (chunks): expected operands at multiples of 64 bytes, found one at byte 32");
  EXPECT_EQ(
      message([](Plan &p) { p.commands[Chunks].operands[1] = {OperandKind::Scalars, 0, 2048}; }),
      "command 1 (chunks): its scalars do not fit in the workspace");
  EXPECT_EQ(message([](Plan &p) { p.commands[Parameters].groups = {9}; }),
            "command 2 (parameters): group 9 does not exist");
  EXPECT_EQ(message([](Plan &p) { p.commands[Parameters].operands[0] = {OperandKind::Gradients}; }),
            "command 2 (parameters): expected to write scalars");
  EXPECT_EQ(message([](Plan &p) { p.commands[Parameters].groups.clear(); }),
            "command 2 (parameters): expected as many operands for each of its groups");
  EXPECT_EQ(message([](Plan &p) { p.commands[Product].operands[0].kind = OperandKind::Workspace; }),
            "command 4 (product): expected batches of blocks");
  EXPECT_EQ(message([](Plan &p) { p.commands[Product].operands[0].rows = 5; }),
            "command 4 (product): expected operands whose extents agree");
  EXPECT_EQ(message([](Plan &p) { p.commands[Product].operands[1].rows = 5; }),
            "command 4 (product): expected operands whose extents agree");
  EXPECT_EQ(message([](Plan &p) { p.commands[Product].operands[3].cols = 5; }),
            "command 4 (product): expected operands whose extents agree");
  EXPECT_EQ(
      message([](Plan &p) { p.commands[Product].batch.scratchBytes = 129; }),
      "command 4 (product): expected scratch within the 128 bytes that the workspace has, found "
      "129 for each block");
  EXPECT_EQ(message([](Plan &p) { p.commands[Product].batch.kernels[0].kernel = 2; }),
            "command 4 (product): kernel 2 does not exist");
  EXPECT_EQ(message([](Plan &p) { p.commands[Product].kind = CommandKind::Reduce; }),
            "command 4 (reduce): expected operands whose extents agree");
  EXPECT_EQ(
      message([](Plan &p) { p.commands[Start].communicator.factors[0].size = 3; }),
      "command 3 (start): expected factors that divide axis 1 of mesh mesh, found 3 ranks that "
      "are 1 apart");
  EXPECT_EQ(message([](Plan &p) { p.commands[Start].communicator.mesh = -1; }),
            "command 3 (start): expected no factors of the world");
  EXPECT_EQ(message([](Plan &p) { p.commands[Start].operands.pop_back(); }),
            "command 0 (copy): value 2 does not exist in start 0");
  EXPECT_EQ(message([](Plan &p) {
              p.commands[Start].operands.pop_back();
              p.commands.erase(p.commands.begin());
            }),
            "command 2 (start): expected where it sends from and receives to, found 1 operands");
  EXPECT_EQ(message([](Plan &p) { p.commands[Copy].operands[1].start = -1; }),
            "command 0 (copy): start -1 does not exist");
  EXPECT_EQ(message([](Plan &p) { p.commands[Copy].operands[1].traveller = 3; }),
            "command 0 (copy): value 3 does not exist in start 0");
  EXPECT_EQ(message([](Plan &p) { p.commands[Copy].operands[1].traveller = 1; }),
            "command 0 (copy): expected value 1 of start 0 in that start's buffer, found another");
  EXPECT_EQ(message([](Plan &p) { p.commands[Copy].operands[1].bytes = 64; }),
            "command 0 (copy): expected value 2 of start 0 in that start's buffer, found another");
  EXPECT_EQ(message([](Plan &p) { p.commands[Chunks].operands[1].start = 0; }),
            "command 1 (chunks): expected no start of what is not packed");
  EXPECT_EQ(message([](Plan &p) { p.commands[Product].tables = {0}; }),
            "command 4 (product): table 0 is of another kind");
  EXPECT_EQ(message([](Plan &p) { p.commands[Product].batch.kernels[0].items = 0; }),
            "command 4 (product): expected at least one item per block, found 0");
  EXPECT_EQ(message([](Plan &p) { std::swap(p.commands[Start], p.commands[Await]); }),
            "command 3 (await): collective 0 is not under way");
  EXPECT_EQ(message([](Plan &p) { p.commands[Product] = p.commands[Await]; }),
            "command 5 (await): collective 0 is awaited twice");
  EXPECT_EQ(message([](Plan &p) { p.commands.erase(p.commands.begin() + Await); }),
            "collective 0 is never awaited");
  EXPECT_EQ(message([](Plan &p) { p.commands.pop_back(); }),
            "expected the last command, and no other, to advance the step counts");
  EXPECT_EQ(message([](Plan &p) { p.commands.clear(); }), "expected commands, found none");
}

} // namespace
} // namespace stepc::test
