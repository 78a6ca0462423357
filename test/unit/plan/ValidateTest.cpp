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
  EXPECT_EQ(message([](Plan &p) { p.chunkElements = 0; }),
            "expected 1 to 2147483648 elements in a row of a table, found 0");
  EXPECT_EQ(message([](Plan &p) { p.numerics = "quick"; }),
            "expected exact or fast numerics, found 'quick'");
  EXPECT_EQ(message([](Plan &p) { p.meshes[0].ranks.pop_back(); }),
            "mesh 0: expected as many ranks as the axes span, found 3");
  EXPECT_EQ(message([](Plan &p) { p.meshes[0].ranks[1] = 0; }),
            "mesh 0: expected distinct ranks, found rank 0 twice");
  EXPECT_EQ(message([](Plan &p) { p.meshes[0].sizes[0] = 0; }),
            "mesh 0: expected axes of size 1 or more, found 0");
  EXPECT_EQ(
      message([](Plan &p) {
        p.rules[0].states.push_back({"n", DType::BF16, ValueKind::One, 0, false, true});
      }),
      "rule 0: expected metric n to be an f32 of kind one and no master, found bf16 of kind one");
  EXPECT_EQ(message([](Plan &p) {
              p.rules[0].states.push_back({"n", DType::F32, ValueKind::Full, 0, true, true});
            }),
            "rule 0: expected metric n to be an f32 of kind one and no master, found a master");
  EXPECT_EQ(message([](Plan &p) { p.rules[0].tall = 5; }),
            "rule 0: expected a rule below 1, found 5");
  EXPECT_EQ(
      message([](Plan &p) { p.rules[0].tall = 0; }),
      "rule 0: expected a rule of tall matrices with the same hyperparameters, and the same states "
      "with rows and columns exchanged, found rule 0");
  // The matrices of the plan are tall.
  auto addTall = [](Plan &p) {
    p.rules.push_back(p.rules[0]);
    for (State &state : p.rules[1].states)
      state.kind = state.kind.ofTransposed();
    p.rules[0].tall = 1;
  };
  EXPECT_EQ(message(addTall), "parameter 0: expected a route of rule 0 for p0, as its group has, "
                              "found one of rule 1");
  EXPECT_EQ(message([&](Plan &p) {
              addTall(p);
              p.groups[0].rule = 1;
            }),
            "");
  EXPECT_EQ(message([](Plan &p) { p.routes[0].defaults.clear(); }),
            "route 0: expected a default per hyperparameter, found 0");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].mesh = 4; }),
            "group group: expected a mesh below " + std::to_string(richPlan().meshes.size()) +
                ", found 4");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].placements.pop_back(); }),
            "group group: expected a placement per axis of mesh mesh, found 1");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].placements[0].dim = 2; }),
            "group group: placement 0: expected a dimension from 0 to 1, found '_S(2, 2)'");
  EXPECT_EQ(
      message([](Plan &p) { p.groups[0].placements[0].factor = 0; }),
      "group group: placement 0: expected a split factor from 1 to 1048576, found '_S(0, 0)'");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].gradientPlacements = {S0}; }),
            "group group: expected a placement per axis of mesh mesh, found 1");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].statePlacements[0].dim = 2; }),
            "group group: states' placement 0: expected a dimension from 0 to 1, found 'S(2)'");
  EXPECT_EQ(
      message([](Plan &p) { p.groups[0].statePlacements = p.groups[0].placements; }),
      "group group: expected placements of the gradient and the states only where they differ from "
      "the parameter's, found equal ones");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].shape[0] = int64_t(1) << 60; }),
            "group group: expected parameters of at most 4398046511104 elements in 16777216 "
            "blocks, found "
            "more");
  auto huge = [&](bool computes) {
    return message([&](Plan &p) {
      p.groups[0].shape = {int64_t(1) << 20, int64_t(1) << 20};
      p.groups[0].division.parts.clear();
      p.groups[0].parts.clear();
      p.groups[0].computes = computes;
    });
  };
  EXPECT_EQ(huge(true), "group group: expected at most 68719476736 elements in a block, found "
                        "1099511627776");
  EXPECT_THAT(huge(false), HasSubstr("group group: expected at most 68719476736 elements on one "
                                     "rank, found "));
  EXPECT_EQ(message([](Plan &p) { p.groups[0].hops[0].base[1] = 4; }),
            "group group: expected a position in mesh mesh below 4, found 4");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].hops[0].base.pop_back(); }),
            "group group: expected 3 positions for the blocks of a hop, found 2");
  EXPECT_EQ(
      message([](Plan &p) { p.rules[0].states[0].kind = {ValueKind::OfRows, ValueKind::OfRows}; }),
      "group group: expected state m"
      " of [rows, rows] values to stay with blocks in group group, found that it does not");
  // A hop may own again what an earlier one replicates, all of it and nothing else.
  auto hops = [&](std::vector<Factor> replicated, std::vector<Factor> owned, bool more) {
    return message([&](Plan &p) {
      p.groups[0].hops = {{{}, replicated, {}}, {owned, {}, {0, 1, 2}}};
      if (more)
        p.groups[0].hops[1].replicated = {{0, 1, 1}};
      p.tables.clear();
      p.commands.clear();
    });
  };
  std::vector<Factor> axes = wholeAxes(richPlan().meshes[0]);
  EXPECT_EQ(hops(axes, axes, false), "");
  EXPECT_THAT(hops(axes, axes, true), HasSubstr("that do not overlap, found"));
  EXPECT_EQ(message([&](Plan &p) {
              p.groups[0].hops = {{{}, axes, {}}, {axes, {}, {0, 1, 2}}};
              Place sent{0, ValueKind::Full, Distribution(Distribution::Pieces, 0),
                         Distribution(Distribution::Blocks), End::Sent};
              Place received = sent;
              received.end = End::Received;
              p.tables = {{TableKind::Message, sent, received, 4}};
              p.commands.clear();
            }),
            "table 0: expected a move by hops that bring something together, found one by hop 1, "
            "which chooses");
  EXPECT_EQ(
      message([](Plan &p) { p.groups[0].hops.clear(); }),
      "group group: expected whole blocks on every rank after its hops, found blocks cut along "
      "a of mesh mesh");
  EXPECT_EQ(message([](Plan &p) {
              p.groups[0].shape = {2, 3, 4};
              p.groups[0].division.parts.clear();
              p.groups[0].parts.clear();
            }),
            "group group: expected a matrix and 0 batch axes of what is computed in matrix space, "
            "found 3 "
            "axes");
  EXPECT_EQ(
      message([](Plan &p) { p.parameters[2].indexInGroup = 1; }),
      "group group: expected parameter p2 at place 2 of this group, found that it says place 1 of "
      "group 0");
  EXPECT_EQ(message([](Plan &p) { p.segments[1].blocks = {1, 1}; }),
            "segment 1: expected distinct blocks, found block 1 twice");
  EXPECT_EQ(message([](Plan &p) { p.segments[1].blocks = {3}; }),
            "segment 1: expected blocks below 3, found 3");
  EXPECT_THAT(message([](Plan &p) { p.tables[0].from.segment = 9; }),
              HasSubstr("expected a segment below 2, found 9"));
  EXPECT_THAT(message([](Plan &p) { p.tables.back().from.to = Distribution::Shards; }),
              HasSubstr("expected state_shards, where the hops of the group start, found shards"));
  EXPECT_THAT(
      message([](Plan &p) { p.groups[0].statePlacements = p.groups[0].gradientPlacements; }),
      HasSubstr("expected gradient_shards, where the shards of the state stand, found "
                "state_shards"));
  EXPECT_EQ(message([](Plan &p) { p.tables[0].to = p.tables.back().from; }),
            "table 0: expected staged operands where a rank's shards lead, found full "
            "(state_shards) and rows "
            "(blocks to state_shards, sent)");
  EXPECT_THAT(message([](Plan &p) { p.tables.back().to.to = Distribution::Blocks; }),
              HasSubstr("expected two distributions of a move, and one of what is at rest"));
  EXPECT_THAT(message([](Plan &p) {
                p.tables.back().to = {0, ValueKind::Rows, Distribution::Blocks,
                                      Distribution::Blocks, End::Kept};
              }),
              HasSubstr("expected a copy of shards, found one in blocks"));
  auto valued = [&](ValueKind kind) {
    return message([&](Plan &p) { p.tables.back().from.value = kind; });
  };
  EXPECT_THAT(valued({0, 1}), HasSubstr("expected extents of a value between 1 and 2^40, or of its "
                                        "block, found 0 and 1"));
  EXPECT_THAT(valued({1, -12}), HasSubstr(", found 1 and -12"));
  EXPECT_THAT(valued({1, ValueKind::ofSize(0)}),
              HasSubstr("expected sizes of the group, which has 0, found [1, size0]"));
  EXPECT_THAT(valued({kMostExtent + 1, 1}), HasSubstr(", found 1099511627777 and 1"));
  EXPECT_THAT(valued({kMostExtent, kMostExtent}),
              HasSubstr("expected at most 68719476736 elements in a value of a block, found "
                        "1099511627776 x 1099511627776"));
  EXPECT_THAT(valued({ValueKind::OfCols, 8}),
              HasSubstr("expected values of shards to travel, and all others in blocks, found "
                        "[cols, 8] ("));
  // Values of rows would have more blocks than the group.
  EXPECT_THAT(message([](Plan &p) {
                Group &group = p.groups[0];
                p.rules[group.rule].states.clear();
                group.computes = false;
                group.hops.clear();
                group.division.parts.clear();
                group.parts.clear();
                group.statePlacements.clear();
                group.joined = 1;
                auto rows = Place::resting(0, ValueKind::Rows, Distribution::Shards);
                p.tables = {{TableKind::ShardChunks, rows, rows, 4}};
              }),
              HasSubstr("expected full values where axes are joined, found "));
  EXPECT_THAT(message([](Plan &p) { p.tables.back().to.value = ValueKind::Cols; }),
              HasSubstr("expected the two ends of one move, found "));
  EXPECT_THAT(message([](Plan &p) { p.tables.back().kind = TableKind::Copy; }),
              HasSubstr("expected places between which one rank copies a value, found "));
  EXPECT_EQ(message([](Plan &p) { p.tables.back().elementBytes = 3; }),
            "table " + std::to_string(richPlan().tables.size() - 1) +
                ": expected 1, 2, 4 or 8 bytes per element, found 3");
  EXPECT_EQ(message([](Plan &p) { std::get<Start>(p.commands[1]).tables[1] = 0; }),
            "command 1: expected tables of messages, found table 0 of another kind");
  EXPECT_EQ(message([](Plan &p) {
              p.groups[0].shape[0] = int64_t(1) << 32;
              std::vector<TableNumber> &tables = std::get<Start>(p.commands[1]).tables;
              tables.assign(1 << 24, tables[0]);
            }),
            "command 1: expected at most 4611686018427387904 bytes for all ranks, found more");
  // Of gathered columns other ranks share a copy than of rows: they stand whole on more of them.
  EXPECT_EQ(message([](Plan &p) {
              p.groups[0].hops = {{{}, wholeAxes(p.meshes[0]), {}}};
              for (ValueKind kind : {ValueKind::Rows, ValueKind::Cols}) {
                Place sent{0, kind, Distribution(Distribution::StateShards),
                           Distribution(Distribution::Blocks), End::Sent};
                Place received = sent;
                received.end = End::Received;
                p.tables.push_back({TableKind::Message, sent, received, 4});
              }
              auto last = static_cast<int64_t>(p.tables.size()) - 1;
              std::get<Start>(p.commands[1]).tables = {last - 1, last};
            }),
            "command 1: expected an all-gather of values of which the same ranks share copies, "
            "found others in table "
            "43");
}

/// A program with every kind of command, on the tables of richPlan().
Plan program() {
  Plan plan = richPlan();
  plan.groups[0].gradientPlacements.clear();
  plan.groups[0].statePlacements.clear();
  setShards(plan, Distribution::Shards);
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
  std::get<Start>(plan.commands[1]).tables.push_back(copy + 1);
  auto state = static_cast<int64_t>(plan.rules[0].states.size()) - 1;
  Operand place{OperandKind::Workspace, 64, 128}, shards{OperandKind::State, state};
  Operand packed{OperandKind::Workspace, 64, 128, 0, 2};
  plan.commands.insert(plan.commands.begin(),
                       {Copy{copy, shards, packed, {}}, DispatchChunks{2, {{0, {shards, place}}}}});
  plan.kernels.push_back({"stage", {}});
  return plan;
}

// The commands of program().
enum { kCopy, kChunks, kParameters, kStart, kProduct, kAwait, kAdvance };
Copy &copyOf(Plan &p) { return std::get<Copy>(p.commands[kCopy]); }
DispatchChunks &chunksOf(Plan &p) { return std::get<DispatchChunks>(p.commands[kChunks]); }
DispatchParameters &parametersOf(Plan &p) {
  return std::get<DispatchParameters>(p.commands[kParameters]);
}
Start &startOf(Plan &p) { return std::get<Start>(p.commands[kStart]); }
Product &productOf(Plan &p) { return std::get<Product>(p.commands[kProduct]); }
Await &awaitOf(Plan &p) { return std::get<Await>(p.commands[kAwait]); }

TEST(Plan, ValidationOfTheProgramNamesWhatIsWrong) {
  ASSERT_EQ(validate(program()), "");
  ASSERT_EQ(validateProgram(program()), "");
  auto message = [](auto change) {
    Plan plan = program();
    change(plan);
    return validateProgram(plan);
  };
  EXPECT_EQ(message([](Plan &p) { copyOf(p).table = 0; }),
            "command 0 (copy): expected a table of kind copy, found one of shard_chunks");
  EXPECT_EQ(message([](Plan &p) { std::swap(copyOf(p).source, copyOf(p).target); }),
            "command 0 (copy): expected shards where its table has shards, found a part of the "
            "workspace");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].statePlacements = {S0, R}; }),
            "command 0 (copy): expected shards that stand in shards, found those of the state");
  EXPECT_EQ(
      message([](Plan &p) { copyOf(p).source.value = 1; }),
      "command 0 (copy): expected full elements of 4 bytes, as its table has, found the state's: "
      "cols of f64");
  EXPECT_EQ(message([](Plan &p) { chunksOf(p).runs[0].operands[0].value = 9; }),
            "command 1 (chunks): expected a state below 3, found 9");
  EXPECT_EQ(message([](Plan &p) { chunksOf(p).kernel = 3; }),
            "command 1 (chunks): expected a kernel below 3, found 3");
  EXPECT_EQ(message([](Plan &p) { chunksOf(p).runs.push_back({0, {}}); }),
            "command 1 (chunks): expected as many operands for each table, found 2 and 0");
  EXPECT_EQ(message([](Plan &p) {
              chunksOf(p).runs.push_back(
                  {0, {{OperandKind::Parameters}, chunksOf(p).runs[0].operands[1]}});
            }),
            "command 1 (chunks): expected the same operands for each of its tables, found others "
            "for table 0");
  EXPECT_EQ(
      message([](Plan &p) { chunksOf(p).runs[0].operands[1].value = 4160; }),
      "command 1 (chunks): expected operands inside of the workspace of 4224 bytes, found 128 "
      "bytes from byte 4160");
  EXPECT_EQ(message([](Plan &p) { chunksOf(p).runs[0].operands[1].value = 32; }),
            "command 1 (chunks): expected operands at multiples of 64 bytes, found one at byte 32");
  EXPECT_EQ(
      message([](Plan &p) { chunksOf(p).runs[0].operands[1] = {OperandKind::Scalars, 0, 2048}; }),
      "command 1 (chunks): expected scalars that fit in the workspace of 4224 bytes, found 2048 "
      "bytes for each of 3 parameters");
  EXPECT_EQ(message([](Plan &p) { parametersOf(p).runs[0].group = 9; }),
            "command 2 (parameters): expected a group below 1, found 9");
  EXPECT_EQ(
      message([](Plan &p) { parametersOf(p).runs[0].operands[0] = {OperandKind::Gradients}; }),
      "command 2 (parameters): expected scalars, and numbers of the model behind them, found "
      "gradients");
  EXPECT_EQ(message([](Plan &p) {
              parametersOf(p).runs[0].operands.push_back({OperandKind::Line, 0, 4});
            }),
            "command 2 (parameters): expected no numbers of a model, which the specification does "
            "not have, found some");
  EXPECT_EQ(message([](Plan &p) { p.commands.insert(p.commands.begin(), Collect()); }),
            "command 0 (collect): expected a plan of a specification with a model, found another");
  EXPECT_EQ(message([](Plan &p) { p.commands.insert(p.commands.begin(), Skip()); }),
            "command 0 (skip): expected a plan of a specification with a model, found another");
  EXPECT_EQ(message([](Plan &p) { parametersOf(p).runs.clear(); }),
            "command 2 (parameters): expected at least one group, found none");
  EXPECT_EQ(message([](Plan &p) { productOf(p).lhs.kind = OperandKind::Workspace; }),
            "command 4 (product): expected batches of blocks, found a part of the workspace");
  EXPECT_EQ(message([](Plan &p) { productOf(p).lhs.rows = 5; }),
            "command 4 (product): expected operands whose extents agree, found 5 x 4, 6 x 4, 4 x "
            "4, 4 x 4");
  EXPECT_EQ(message([](Plan &p) { productOf(p).rhs.rows = 5; }),
            "command 4 (product): expected operands whose extents agree, found 6 x 4, 5 x 4, 4 x "
            "4, 4 x 4");
  EXPECT_EQ(message([](Plan &p) { productOf(p).out.cols = 5; }),
            "command 4 (product): expected operands whose extents agree, found 6 x 4, 6 x 4, 4 x "
            "4, 4 x 5");
  EXPECT_EQ(
      message([](Plan &p) { productOf(p).scratchBytes = 129; }),
      "command 4 (product): expected scratch within the 128 bytes that the workspace has, found "
      "129 for each block");
  EXPECT_EQ(message([](Plan &p) { copyOf(p).kernel = 3; }),
            "command 0 (copy): expected a kernel below 3, found 3");
  EXPECT_EQ(message([](Plan &p) { productOf(p).kernels[0].kernel = 3; }),
            "command 4 (product): expected a kernel below 3, found 3");
  EXPECT_EQ(message([](Plan &p) {
              const Product product = productOf(p);
              Apply apply;
              static_cast<MatrixCommand &>(apply) = product;
              apply.sources = {product.lhs, copyOf(p).source};
              apply.out = product.out;
              p.commands[kProduct] = apply;
            }),
            "command 4 (apply): expected batches of blocks, found a state");
  auto applied = [&](auto change) {
    return message([&](Plan &p) {
      const Product product = productOf(p);
      Apply apply;
      static_cast<MatrixCommand &>(apply) = product;
      apply.sources = {product.lhs};
      apply.out = product.out;
      change(apply);
      p.commands[kProduct] = apply;
    });
  };
  EXPECT_EQ(applied([](Apply &) {}), "");
  EXPECT_EQ(applied([](Apply &apply) { apply.sources.clear(); }),
            "command 4 (apply): expected at least one source, found none");
  EXPECT_EQ(applied([](Apply &apply) { apply.flops = -1; }),
            "command 4 (apply): expected operations of 0 or more, found -1");
  EXPECT_EQ(
      message([](Plan &p) { startOf(p).communicator.factors[0].size = 3; }),
      "command 3 (start): expected factors that divide axis 1 of mesh mesh, found 3 ranks that "
      "are 1 apart");
  EXPECT_EQ(message([](Plan &p) { startOf(p).communicator.mesh = -1; }),
            "command 3 (start): expected no factors of the world, found 1");
  EXPECT_EQ(message([](Plan &p) {
              p.meshes.push_back({"other", {"e"}, {2}, {7, 8}});
              startOf(p).communicator = {int64_t(p.meshes.size()) - 1, {}};
            }),
            "command 3 (start): expected a communicator of a mesh that some group uses, found mesh "
            "other");
  EXPECT_EQ(message([](Plan &p) { copyOf(p).target.start = -1; }),
            "command 0 (copy): expected a start below 1, found -1");
  EXPECT_EQ(message([](Plan &p) { copyOf(p).target.traveller = 3; }),
            "command 0 (copy): expected a value of start 0 below 3, found 3");
  EXPECT_EQ(message([](Plan &p) { copyOf(p).target.traveller = 1; }),
            "command 0 (copy): expected value 1 of start 0 in that start's buffer, found another");
  EXPECT_EQ(message([](Plan &p) { copyOf(p).target.bytes = 64; }),
            "command 0 (copy): expected value 2 of start 0 in that start's buffer, found another");
  EXPECT_EQ(message([](Plan &p) { chunksOf(p).runs[0].operands[1].start = 0; }),
            "command 1 (chunks): expected no start of what is not packed, found start 0");
  EXPECT_EQ(
      message([](Plan &p) { productOf(p).table = 0; }),
      "command 4 (product): expected a table of kind block_chunks, found one of shard_chunks");
  // A kernel is called in one way.
  EXPECT_EQ(
      message([](Plan &p) { chunksOf(p).kernel = 0; }),
      "command 2 (parameters): expected kernel scalars to be called as by an earlier command, "
      "found other items or operands");
  EXPECT_EQ(
      message([](Plan &p) { productOf(p).kernels.push_back({1, 8}); }),
      "command 4 (product): expected kernel double to be called as by an earlier command, found "
      "other items or operands");
  EXPECT_EQ(
      message([](Plan &p) { productOf(p).kernels[0].kernel = 2; }),
      "command 4 (product): expected kernel stage to be called as by an earlier command, found "
      "other items or operands");
  EXPECT_EQ(message([](Plan &p) { p.kernels.push_back({"idle", {}}); }),
            "expected each kernel to be called by some command, found that kernel idle is by none");
  EXPECT_EQ(message([](Plan &p) { productOf(p).kernels[0].items = 0; }),
            "command 4 (product): expected 1 to 1466015503701 items per block, found 0");
  EXPECT_EQ(
      message([](Plan &p) { productOf(p).kernels[0].items = int64_t(1) << 41; }),
      "command 4 (product): expected 1 to 1466015503701 items per block, found 2199023255552");
  EXPECT_EQ(message([](Plan &p) { std::swap(p.commands[kStart], p.commands[kAwait]); }),
            "command 3 (await): expected a collective that is under way, found number 0");
  EXPECT_EQ(message([](Plan &p) { p.commands[kProduct] = p.commands[kAwait]; }),
            "command 5 (await): expected each collective to be awaited once, found number 0 again");
  EXPECT_EQ(message([](Plan &p) { p.kernels.push_back({"seals", {}}), startOf(p).kernel = 3; }),
            "command 5 (await): expected a kernel exactly where its start has one");
  EXPECT_EQ(message([](Plan &p) {
              p.kernels.push_back({"seals", {}});
              awaitOf(p).kernel = 3;
            }),
            "command 5 (await): expected a kernel exactly where its start has one");
  EXPECT_THAT(message([](Plan &p) { startOf(p).kernel = 99; }),
              testing::HasSubstr("(start): expected a kernel below "));
  EXPECT_THAT(message([](Plan &p) { awaitOf(p).kernel = 99; }),
              testing::HasSubstr("(await): expected a kernel below "));
  EXPECT_EQ(message([](Plan &p) { p.commands.erase(p.commands.begin() + kAwait); }),
            "expected each collective to be awaited, found that number 0 never is");
  EXPECT_EQ(message([](Plan &p) { p.commands.pop_back(); }),
            "expected the last command, and no other, to advance the step counts, found command 5");
  EXPECT_EQ(message([](Plan &p) { p.commands.clear(); }), "expected commands, found none");
}

TEST(Plan, ValidationOfKernelsOfTilesNamesWhatIsWrong) {
  auto message = [](auto change) {
    Plan plan = program();
    Product &product = productOf(plan);
    forEach<Operand>(product, [](Operand &operand) {
      operand.type = DType::BF16;
      operand.rows = operand.cols = 8;
    });
    product.accumulation = Accumulation::TensorCore;
    product.kernels = {{1, 1}};
    plan.kernels[1].launch = LaunchShape{Grid::Lists, 384, 2, 0, 230464};
    change(plan, product);
    return validateProgram(plan);
  };
  ASSERT_EQ(message([](Plan &, Product &) {}), "");
  auto expect = [&](const std::string &wrong, auto change) {
    EXPECT_EQ(message(change), "command 4 (product): " + wrong);
  };
  expect("expected operands that are all bf16 or all f16 for a kernel of tiles, found bf16 beside "
         "f16",
         [](Plan &, Product &p) { p.lhs.type = DType::F16; });
  auto widen = [](Product &p) {
    p.out.type = DType::F32;
    p.out.bytes *= 2;
  };
  expect("expected no addend of a result of f32 for a kernel of tiles, found one of bf16",
         [&](Plan &, Product &p) { widen(p); });
  EXPECT_EQ(message([&](Plan &, Product &p) {
              widen(p);
              p.addend.reset();
            }),
            "");
  expect("expected operands that are all bf16 or all f16 for a kernel of tiles, found f32 beside "
         "f32",
         [](Plan &, Product &p) {
           forEach<Operand>(p, [](Operand &operand) { operand.type = DType::F32; });
         });
  expect("expected rows of whole 16 bytes for a kernel of tiles, found 12 elements of bf16",
         [](Plan &, Product &p) {
           forEach<Operand>(p, [](Operand &operand) { operand.rows = operand.cols = 12; });
         });
  expect("expected a product on tensor cores for a kernel of tiles, found one of accumulation "
         "rounded_chain",
         [](Plan &, Product &p) { p.accumulation = Accumulation::RoundedChain; });
  expect("expected one kernel of tiles, called once, found 1 kernels and 2 items per block",
         [](Plan &, Product &p) { p.kernels[0].items = 2; });
  expect("expected a product of fewer than 2^31 tiles, found 3 matrices of 8388608 x 8388608",
         [](Plan &, Product &p) {
           p.symmetric = false;
           p.shift = 0;
           forEach<Operand>(p, [](Operand &operand) { operand.rows = operand.cols = 1 << 23; });
         });
  expect("expected operands of fewer than 2^31 rows and columns for a kernel of tiles, found "
         "2147483648 x 8",
         [](Plan &, Product &p) {
           p.symmetric = p.transposeLhs = false;
           p.shift = 0;
           p.addend.reset();
           p.lhs.rows = p.out.rows = int64_t(1) << 31;
         });
  // Products that join share the numbers of tiles. Each of these has 1,200 million at most.
  EXPECT_EQ(
      message([](Plan &p, Product &product) {
        product.symmetric = false;
        product.shift = 0;
        product.addend.reset();
        forEach<Operand>(product, [](Operand &operand) { operand.rows = operand.cols = 2560000; });
        p.arenaBytes = 4096;
        Product other = product;
        other.joins = true;
        other.out.value = 1024;
        p.commands.insert(p.commands.begin() + kProduct + 1, other);
      }),
      "command 5 (product): expected products that join of fewer than 2^31 tiles, found about "
      "2400360012");
  // A kernel of tiles takes products of one form.
  EXPECT_EQ(message([](Plan &p, Product &product) {
              Product other = product;
              other.transposeLhs = !other.transposeLhs;
              p.commands.insert(p.commands.begin() + kProduct, other);
            }),
            "command 5 (product): expected kernel double to be called as by an earlier command, "
            "found other items or operands");
  EXPECT_EQ(message([](Plan &p, Product &product) {
              Apply apply;
              static_cast<MatrixCommand &>(apply) = product;
              apply.sources = {product.lhs};
              apply.out = product.out;
              p.commands[kProduct] = apply;
            }),
            "command 4 (apply): expected kernels of blocks, found one of tiles, which is for "
            "products");
}

TEST(Plan, ValidationOfProductsThatJoinNamesWhatIsWrong) {
  // Two products, of which the second writes other bytes.
  auto message = [](auto change) {
    Plan plan = program();
    plan.arenaBytes = 4096;
    Product second = productOf(plan);
    second.out.value = 1024;
    second.addend.reset();
    productOf(plan).addend.reset();
    second.joins = true;
    plan.commands.insert(plan.commands.begin() + kProduct + 1, second);
    change(plan, std::get<Product>(plan.commands[kProduct + 1]));
    return validateProgram(plan);
  };
  ASSERT_EQ(message([](Plan &, Product &) {}), "");
  auto expect = [&](const std::string &wrong, auto change) {
    EXPECT_EQ(message(change), "command 5 (product): " + wrong);
  };
  expect("expected a product before one that joins it, found a command of kind start",
         [](Plan &p, Product &) {
           std::swap(p.commands[kStart], p.commands[kProduct]);
           std::get<Product>(p.commands[kStart]).joins = false;
         });
  expect("expected products of one form that join, found other types, transposes, symmetry or "
         "accumulation in command 4",
         [](Plan &, Product &second) { second.accumulation = Accumulation::FusedChain; });
  std::string shared = "expected products that join, none of which writes what another reads or "
                       "writes, found that commands 4 and 5 share bytes from byte ";
  expect(shared + "192", [](Plan &p, Product &second) { second.out = productOf(p).out; });
  expect(shared + "192", [](Plan &p, Product &second) { second.addend = productOf(p).out; });
  expect(shared + "64",
         [](Plan &p, Product &second) { second.out.value = productOf(p).lhs.value; });
  expect("expected no algorithms of products that join, found some in command 5",
         [](Plan &, Product &second) { second.pinned = {{130002, 90, 132, 64, 66}}; });
  expect(
      "expected products that join to call one kernel of tiles, found another kernel in command 4",
      [](Plan &p, Product &second) {
        p.kernels.push_back({"tiles", LaunchShape{Grid::Lists, 384, 2, 0, 230464}});
        second.kernels[0].kernel = static_cast<int64_t>(p.kernels.size()) - 1;
      });
  // A third product that joins is compared with the first, too.
  EXPECT_EQ(message([](Plan &p, Product &second) {
              Product third = second;
              third.out.value = productOf(p).out.value;
              p.commands.insert(p.commands.begin() + kProduct + 2, third);
            }),
            "command 6 (product): expected products that join, none of which writes what another "
            "reads or writes, found that commands 4 and 6 share bytes from byte 192");
}

TEST(Plan, ValidationOfAlgorithmsNamesWhatIsWrong) {
  auto message = [](auto change) {
    Plan plan = program();
    plan.scratchBytes = 1024;
    Product &product = productOf(plan);
    product.symmetric = false;
    product.shift = 0;
    forEach<Operand>(product, [](Operand &operand) { operand.type = DType::BF16; });
    product.pinned = {{130002, 90, 132, 64, 66, 20, 35, 1, 0, 0, 2, 1024},
                      {130002, 90, 114, 16, 66}};
    change(plan, product, product.pinned[0]);
    return validateProgram(plan);
  };
  ASSERT_EQ(message([](Plan &, Product &, PinnedAlgorithm &) {}), "");
  EXPECT_EQ(message([](Plan &, Product &product, PinnedAlgorithm &) { product.shift = 1.5; }),
            "command 4 (product): expected a shift of 0 of a product that is not symmetric, found "
            "1.500000");
  auto expect = [&](const std::string &wrong, auto change) {
    EXPECT_EQ(message(change), "command 4 (product): " + wrong);
  };
  auto expectOf = [&](const std::string &wrong, int64_t PinnedAlgorithm::*field, int64_t value) {
    expect(wrong, [&](Plan &, Product &, PinnedAlgorithm &one) { one.*field = value; });
  };
  expectOf("expected a version of cuBLASLt from 1 to 2147483647, found 0",
           &PinnedAlgorithm::cublasLt, 0);
  expectOf("expected a chip from 80 to 999, found 75", &PinnedAlgorithm::chip, 75);
  expectOf("expected a number of multiprocessors from 1 to 65535, found 0",
           &PinnedAlgorithm::multiprocessors, 0);
  expectOf("expected an alignment that is a power of two, found 48", &PinnedAlgorithm::alignment,
           48);
  expectOf("expected an algorithm for operands at multiples of 64 bytes, found one for multiples "
           "of 128",
           &PinnedAlgorithm::alignment, 128);
  expectOf("expected an algorithm from 0 to 2147483647, found -1", &PinnedAlgorithm::algorithm, -1);
  expectOf("expected a tile from 0 to 4294967295, found 4294967296", &PinnedAlgorithm::tile,
           int64_t(1) << 32);
  expectOf("expected stages from 0 to 4294967295, found -1", &PinnedAlgorithm::stages, -1);
  expectOf("expected a swizzling from 0 to 4294967295, found -1", &PinnedAlgorithm::swizzling, -1);
  expectOf("expected a custom option from 0 to 4294967295, found -1",
           &PinnedAlgorithm::customOption, -1);
  expectOf("expected an inner shape from 0 to 65535, found 65536", &PinnedAlgorithm::innerShape,
           65536);
  expectOf("expected a cluster shape from 0 to 65535, found -1", &PinnedAlgorithm::clusterShape,
           -1);
  expectOf("expected an algorithm that needs at most the 1024 bytes of scratch that the workspace "
           "has, found 1025",
           &PinnedAlgorithm::workspaceBytes, 1025);
  expectOf("expected one algorithm for each library and GPU, found two for cuBLASLt 13.0.2 on "
           "sm_90 with 114 multiprocessors",
           &PinnedAlgorithm::multiprocessors, 114);
  expect("expected no algorithm of cuBLASLt, found one of a symmetric product, whose halves "
         "cuBLASLt does not promise to be equal",
         [](Plan &, Product &product, PinnedAlgorithm &) { product.symmetric = true; });
  expect("expected no algorithm of cuBLASLt, found one of types that cuBLASLt does not multiply: "
         "f32 by bf16 plus bf16 to bf16",
         [](Plan &, Product &product, PinnedAlgorithm &) {
           product.lhs.type = DType::F32;
           product.lhs.bytes = 256;
         });
}

} // namespace
} // namespace stepc::test
