//===- PlanTest.cpp - Bytes, hashes and validation of plans ---------------===//

#include "runtime/geometry/Geometry.h"
#include "test/unit/plan/RandomPlan.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

namespace stepc::test {

using namespace plan;
using testing::HasSubstr;

namespace {

constexpr Placement R{};
constexpr Placement S0{PlacementKind::Shard, 0, 1};

std::optional<Plan> reread(const std::vector<uint8_t> &bytes, std::string &error) {
  return deserialize(bytes.data(), bytes.size(), error);
}

TEST(Plan, Names) {
  EXPECT_EQ(toString(R), "R");
  EXPECT_EQ(toString(S0), "S(0)");
  EXPECT_EQ(toString({PlacementKind::StridedShard, 1, 4}), "_S(1, 4)");
  EXPECT_EQ(name(DType::BF16), "bf16");
  EXPECT_EQ(name(ValueKind::Cols), "cols");
  EXPECT_EQ(name(Distribution(Distribution::Pieces, 1)), "hop 1");
  EXPECT_EQ(byteSize(DType::F16), 2);
  EXPECT_EQ(byteSize(DType::F64), 8);
}

TEST(Plan, AMasterCopyOfF32DoesNotExist) {
  Group group;
  State master{"w", DType::F32, ValueKind::Full, 0.0, true}, plain{"m"};
  EXPECT_FALSE(stateExists(group, master));
  EXPECT_TRUE(stateExists(group, plain));
  group.parameterType = DType::BF16;
  EXPECT_TRUE(stateExists(group, master));
}

TEST(Plan, TheWorldIsTheUnionOfUsedMeshes) {
  Plan plan = simplePlan({2}, {R}, {2, 2}, 0, Strategy::Local).plan;
  plan.meshes[0].ranks = {9, 4};
  plan.meshes.push_back({"experts", {"e"}, {3}, {4, 2, 7}});
  EXPECT_EQ(plan.world(), (std::vector<int64_t>{4, 9})); // nobody uses the second mesh
  Group other = plan.groups[0];
  other.mesh = 1;
  plan.groups.push_back(other);
  EXPECT_EQ(plan.world(), (std::vector<int64_t>{2, 4, 7, 9}));
}

/// Every field differs from its default, so that a forgotten one shows.
Plan rich() {
  Plan plan =
      simplePlan({2, 2}, {R, {PlacementKind::StridedShard, 0, 3}}, {6, 4}, 0, Strategy::Owner, 3)
          .plan;
  plan.chip = "znver5";
  plan.numerics = "fast";
  plan.arenaBytes = 4096;
  plan.scratchBytes = 128;
  plan.chunkElements = 100;
  plan.programHash = 0xfedcba9876543210;
  plan.rules[0].states.push_back({"w", DType::F64, ValueKind::Cols, -1.5, true});
  plan.rules[0].definition = 0x0123456789abcdef;
  plan.routes[0].defaults = {std::numeric_limits<double>::quiet_NaN()};
  plan.routes[0].missingGrad = MissingGrad::Zero;
  plan.groups[0].parameterType = DType::BF16;
  plan.groups[0].gradientType = DType::F16;
  plan.groups[0].gradientPlacements = {R, R};
  plan.groups[0].statePlacements = {S0, R};
  plan.groups[0].division = {Division::Columns, {{{0, 1}, {1, 4}}}};
  plan.groups[0].part = 0;
  plan.segments.push_back({"first", 0, {2, 0}, false});
  using enum Distribution::Kind;
  plan.tables.push_back({TableKind::Message,
                         {1, ValueKind::Rows, Blocks, Shards, End::Sent},
                         {0, ValueKind::Rows, Blocks, Shards, End::Received},
                         2});
  auto last = static_cast<int64_t>(plan.tables.size()) - 1;
  plan.kernels = {"scalars", "double"};
  Operand place{OperandKind::Workspace, 64, 128}, scalars{OperandKind::Scalars, 64, 12};
  Operand whole{OperandKind::Batch, 64, 128, -1, 0, 6, 4, DType::BF16};
  Operand square{OperandKind::Batch, 192, 128, -1, 0, 4, 4, DType::F16};
  plan.commands = {{CommandKind::Parameters, 0, 0, {}, {scalars}, {0}},
                   {CommandKind::Start,
                    -1,
                    0,
                    {last, last},
                    {place, place},
                    {},
                    CollectiveKind::AllGather,
                    {0, {{1, 1, 2}}}},
                   {CommandKind::Product, -1, 0, {1}, {whole, whole, square, square}},
                   {CommandKind::Await, -1, 0, {}, {}},
                   {CommandKind::AdvanceSteps, -1, 0, {}, {}}};
  Batch &product = plan.commands[2].batch;
  product = {Accumulation::RoundedChain, 0.5, -2, true, false, true};
  product.kernels = {{1, 7}};
  product.scratchBytes = 64;
  return plan;
}

TEST(Plan, BytesKeepEveryField) {
  Plan plan = rich();
  ASSERT_EQ(validate(plan), "");
  ASSERT_EQ(validateProgram(plan), "");
  auto bytes = serialize(plan);
  std::string error;
  auto copy = reread(bytes, error);
  ASSERT_TRUE(copy) << error;
  EXPECT_EQ(serialize(*copy), bytes);
  EXPECT_EQ(copy->chip, "znver5");
  EXPECT_EQ(copy->programHash, plan.programHash);
  EXPECT_TRUE(std::isnan(copy->routes[0].defaults[0]));
  EXPECT_EQ(copy->rules[0].states[1].kind, ValueKind::Cols);
  EXPECT_TRUE(copy->rules[0].states[1].master);
  EXPECT_EQ(copy->rules[0].definition, plan.rules[0].definition);
  EXPECT_EQ(copy->groups[0].placements, plan.groups[0].placements);
  EXPECT_EQ(copy->groups[0].gradientPlacements, plan.groups[0].gradientPlacements);
  EXPECT_EQ(copy->groups[0].statePlacements, plan.groups[0].statePlacements);
  EXPECT_EQ(copy->groups[0].hops[0].base, plan.groups[0].hops[0].base);
  EXPECT_EQ(copy->segments[1].blocks, (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(copy->tables.back(), plan.tables.back());
  EXPECT_EQ(copy->kernels, plan.kernels);
  EXPECT_EQ(copy->commands[0].groups, plan.commands[0].groups);
  EXPECT_EQ(copy->commands[1].tables, plan.commands[1].tables);
  EXPECT_EQ(copy->commands[1].collective, CollectiveKind::AllGather);
  EXPECT_EQ(copy->commands[1].communicator.factors[0].size, 2);
  const Command &product = copy->commands[2];
  EXPECT_EQ(product.operands[0].bytes, 128);
  EXPECT_EQ(product.operands[3].type, DType::F16);
  EXPECT_EQ(product.batch.accumulation, Accumulation::RoundedChain);
  EXPECT_EQ(product.batch.beta, -2);
  EXPECT_TRUE(product.batch.transposeLhs && product.batch.symmetric);
  EXPECT_EQ(product.batch.kernels[0].items, 7);
  EXPECT_EQ(product.batch.scratchBytes, 64);
}

TEST(Plan, TheHashSeesEveryByte) {
  Plan plan = rich();
  uint64_t before = hash(plan);
  EXPECT_EQ(before, hash(rich()));
  std::string error;
  auto bytes = serialize(plan);
  // Any byte that still reads as a plan gives another hash.
  for (size_t i = 16; i < bytes.size(); ++i) {
    bytes[i] ^= 1;
    if (auto other = reread(bytes, error))
      EXPECT_NE(hash(*other), before) << "byte " << i;
    bytes[i] ^= 1;
  }
}

TEST(Plan, ForeignBytesAreRefused) {
  std::string error;
  EXPECT_FALSE(deserialize(nullptr, 0, error));
  EXPECT_EQ(error, "the bytes are not a plan");
  auto bytes = serialize(rich());
  bytes[8] = 1;
  EXPECT_FALSE(reread(bytes, error));
  EXPECT_EQ(error, "expected plan version 7, found 1");
  bytes[8] = 7;
  bytes.push_back(0);
  EXPECT_FALSE(reread(bytes, error));
  EXPECT_EQ(error, "1 bytes follow the plan's end");
  bytes.pop_back();
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A copy of the exact size, so that a sanitizer sees a read behind it.
    std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<int64_t>(size));
    EXPECT_FALSE(reread(cut, error)) << size;
  }
}

TEST(Plan, DamagedBytesNeverCrash) {
  std::mt19937_64 random(11);
  auto below = [&](uint64_t limit) { return random() % limit; };
  Histogram histogram;
  int read = 0, valid = 0, expanded = 0;
  for (int round = 0; round < 30000; ++round) {
    auto bytes =
        serialize(round % 2 ? rich() : drawPlan(static_cast<uint64_t>(round % 64), histogram).plan);
    for (uint64_t i = 0, edits = 1 + below(4); i < edits; ++i) {
      size_t at = below(bytes.size());
      switch (below(8)) {
      case 0:
        bytes[at] = static_cast<uint8_t>(random());
        break;
      case 1:
        bytes[at] ^= static_cast<uint8_t>(1 << below(8));
        break;
      case 2: // a number becomes negative or huge
        if (at + 8 <= bytes.size())
          bytes[at + 7 - below(4)] = static_cast<uint8_t>(random());
        break;
      case 3:
        bytes.resize(at + 1);
        break;
      default: // a small number becomes another one: what most often still
               // reads
        for (size_t tries = 0; tries < 200; ++tries, at = below(bytes.size())) {
          auto number = bytes.begin() + static_cast<int64_t>(at);
          if (at + 8 > bytes.size() || *number > 8 ||
              std::any_of(number + 1, number + 8, [](uint8_t byte) { return byte != 0; }))
            continue;
          *number = static_cast<uint8_t>(below(9));
          break;
        }
        break;
      }
    }
    std::string error;
    auto plan = reread(bytes, error);
    if (!plan) {
      EXPECT_NE(error, "");
      continue;
    }
    ++read;
    if (validate(*plan) != "")
      continue;
    validateProgram(*plan);
    ++valid;
    // What passes may be large, as a model may; here time is short.
    int64_t work = 0;
    for (const Group &group : plan->groups)
      work += geometry::elements(group.shape) / 1000 + group.blockCount() * 100;
    if (work * static_cast<int64_t>(plan->tables.size()) > 1000000)
      continue;
    ++expanded;
    Expander expander(*plan);
    auto ranks = static_cast<int64_t>(plan->world().size());
    for (int64_t rank = -1; rank <= std::min<int64_t>(ranks, 3); ++rank)
      EXPECT_EQ(expander.tables(rank).tables.size(), plan->tables.size());
  }
  printf("%d read, %d valid, %d expanded\n", read, valid, expanded);
  EXPECT_GT(expanded, 300);
}

TEST(Plan, ValidationNamesWhatIsWrong) {
  auto message = [](auto change) {
    Plan plan = rich();
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
            "table " + std::to_string(rich().tables.size() - 1) + ": elements have 3 bytes");
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

/// A program with every kind of command, on the tables of rich().
Plan program() {
  Plan plan = rich();
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
