//===- ModelTest.cpp - What exchanges of groups are modelled to take -------===//

#include "passes/decide/WaveModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace stepc::decide {
namespace {

/// One group of one parameter of 8 x 8 on eight ranks, with the given placements and hops.
class Model : public testing::Test {
protected:
  /// The last group: that one, or what `more` says.
  optim::GroupOp parse(const std::string &placements, const std::string &strategy,
                       const std::string &more = "") {
    context.loadDialect<optim::OptimDialect, arith::ArithDialect>();
    module = parseSourceString<ModuleOp>(
        R"(
      optim.rule @R hyperparameters [] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
      ^bb0(%p: tensor<?x?xf32>, %g: tensor<?x?xf32>, %m: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
        %o = optim.orthogonalize %g coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
        %n = arith.subf %p, %o {optim.space = #optim.space<out>} : tensor<?x?xf32>
        optim.yield %n, %m : tensor<?x?xf32>, tensor<?x?xf32> {optim.writes = [#optim.space<out>, unit]}
      }
      optim.mesh @dp axes ["dp"] sizes [8] ranks [0, 1, 2, 3, 4, 5, 6, 7]
      optim.parameter @a shape [8, 8] batch 0 type f32 gradient f32 mesh @dp )" +
            placements + " aliases []\noptim.group @g rule @R parameters [@a] " + strategy + "\n" +
            more,
        &context);
    optim::GroupOp last;
    for (optim::GroupOp group : module->getOps<optim::GroupOp>())
      last = group;
    return last;
  }

  /// Messages take a second each; nothing else takes time.
  double secondsOfOneWave(optim::GroupOp group) {
    cost::Cluster cluster{
        "", {{"network", cost::Level::kAll, {1, 1, 1e30}}}, {1e30, 1e30, 1e30, 0, 1}};
    WaveModel model(cluster);
    model.add(group);
    return model.cost({0}).inTurn.seconds;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(Model, EachHopTakesTime) {
  const char *shards = "placements [#optim.shard<0>]";
  // From seven peers to the owner, and back.
  EXPECT_NEAR(secondsOfOneWave(parse(shards, "strategy #optim.owner hops "
                                             "[#optim.hop<owned [<0, 1, 8>] base [5]>]")),
              7 + 7, 1e-6);
  // From three peers, then from the other half's, and back in the same way.
  EXPECT_NEAR(secondsOfOneWave(parse(shards, "strategy #optim.owner hops [#optim.hop<owned "
                                             "[<0, 1, 4>] base [5]>, #optim.hop<owned [<0, 4, 2>] "
                                             "base [5]>]")),
              3 + 1 + 3 + 1, 1e-6);
  // What is replicated is there already.
  EXPECT_NEAR(secondsOfOneWave(parse(shards, "strategy #optim.gather hops [#optim.hop<replicated "
                                             "[<0, 1, 4>]>, #optim.hop<replicated [<0, 4, 2>]>]")),
              3 + 1, 1e-6);
}

// To the owner at 5 in halves of four: over 1 and 5, and from 1 to 5.
TEST_F(Model, FollowsWhatRanksPassOn) {
  const char *hops = "strategy #optim.hierarchical hops [#optim.hop<owned [<0, 1, 4>] base [5]>, "
                     "#optim.hop<owned [<0, 4, 2>] base [5]>]";
  auto loadsOf = [&](const char *placements) {
    GroupGeometry geometry(parse(placements, hops));
    HopRoutes routes(geometry);
    EXPECT_TRUE(routes.areFollowed());
    HopRoutes::Loads loads = routes.none();
    routes.add(/*place=*/0, /*base=*/5, /*count=*/2, loads);
    return loads;
  };
  // A row of eight elements from each, of two blocks.
  HopRoutes::Loads loads = loadsOf("placements [#optim.shard<0>]");
  for (int64_t half : {1, 5}) {
    EXPECT_EQ(loads[0][half].receivedThere, 3 * 16);
    EXPECT_EQ(loads[0][half].sentBack, 3 * 16);
    EXPECT_EQ(loads[0][half + 1].there(), 16);
    EXPECT_EQ(loads[0][half + 1].back(), 16);
  }
  EXPECT_EQ(loads[1][1].sentThere, 4 * 16);
  EXPECT_EQ(loads[1][5].receivedThere, 4 * 16);
  EXPECT_EQ(loads[1][1].receivedBack, 4 * 16);
  EXPECT_EQ(loads[1][0].there() + loads[1][0].back(), 0);
  // What all have is there, and goes back to all, to the other half once.
  loads = loadsOf("placements [#optim.replicate]");
  for (int64_t half : {1, 5}) {
    EXPECT_EQ(loads[0][half].there(), 0);
    EXPECT_EQ(loads[0][half].sentBack, 3 * 128);
    EXPECT_EQ(loads[0][half + 1].receivedBack, 128);
  }
  EXPECT_EQ(loads[1][5].sentBack, 128);
  EXPECT_EQ(loads[1][1].receivedBack, 128);
  EXPECT_EQ(loads[1][1].there(), 0);
}

// Of two experts whose shards lie on four ranks each, those four ranks compute one; where all eight come
// together, all compute both.
TEST_F(Model, RanksComputeWhatTheyBringTogether) {
  auto costOf = [&](const std::string &factors) {
    optim::GroupOp group = parse("placements [#optim.replicate]", "",
                                 R"(
      optim.mesh @experts axes ["ep", "tp"] sizes [2, 4] ranks [0, 1, 2, 3, 4, 5, 6, 7]
      optim.parameter @e shape [2, 8, 8] batch 1 type f32 gradient f32 mesh @experts placements [#optim.shard<0>, #optim.shard<1>] aliases []
      optim.group @x rule @R parameters [@e] strategy #optim.gather hops [#optim.hop<replicated [)" +
                                     factors + "]>]");
    cost::Cluster cluster{
        "", {{"network", cost::Level::kAll, {1e-9, 1e-9, 1e30}}}, {1, 1e30, 1e30, 0, 1}};
    WaveModel model(cluster);
    model.add(group);
    return model.cost({0, 0}).inTurn;
  };
  WaveCost subgroup = costOf("<1, 1, 4>"), all = costOf("<0, 1, 2>, <1, 1, 4>");
  EXPECT_NEAR(all.seconds / subgroup.seconds, 2, 1e-3);
  EXPECT_LT(subgroup.bytes, all.bytes);
}

TEST_F(Model, MovesBetweenListsTakeTime) {
  std::string local = "strategy #optim.local hops []", replicated = "placements [#optim.replicate]";
  optim::GroupOp group = parse(replicated, local);
  optim::RuleOp rule = *module->getOps<optim::RuleOp>().begin();
  EXPECT_TRUE(listMoves(GroupGeometry(group), rule).empty());
  EXPECT_NEAR(secondsOfOneWave(group), 0, 1e-6);

  // All ranks have the gradient and the parameter: their shards of the new one go to the others.
  group = parse(replicated + " state_placements [#optim.shard<0>]",
                "strategy #optim.owner hops "
                "[#optim.hop<owned [<0, 1, 8>] base [5]>]");
  rule = *module->getOps<optim::RuleOp>().begin();
  std::vector<ListMove> moves = listMoves(GroupGeometry(group), rule);
  ASSERT_EQ(moves.size(), 3u);
  for (const ListMove &kept : {moves[0], moves[1]}) {
    EXPECT_EQ(kept.peers + kept.bytes, 0);
    EXPECT_EQ(kept.room, 4 * 8); // a copy of what stands at home
  }
  // The parameter is read behind matrix space alone.
  EXPECT_FALSE(moves[0].behind);
  EXPECT_TRUE(moves[1].behind);
  EXPECT_TRUE(moves[2].behind);
  EXPECT_EQ(moves[2].peers, 7);
  EXPECT_EQ(moves[2].bytes, 4 * 7 * 8);
  EXPECT_EQ(moves[2].room, 4 * (8 + 8 + 64)); // the copy, what is sent and what is received
  EXPECT_NEAR(secondsOfOneWave(group), 7 + 7 + 7, 1e-6);

  // Gradients that are cut along the other axis: an eighth of each piece is there.
  group = parse("placements [#optim.shard<0>] gradient_placements [#optim.shard<1>]", local);
  rule = *module->getOps<optim::RuleOp>().begin();
  moves = listMoves(GroupGeometry(group), rule);
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_FALSE(moves[0].behind);
  EXPECT_EQ(moves[0].peers, 7);
  EXPECT_EQ(moves[0].bytes, 4 * 7);
  EXPECT_EQ(moves[0].room, 4 * (8 + 8 + 8));
}

TEST_F(Model, StrategiesAreJudgedWithTheirLists) {
  auto secondsOf = [&](const std::string &placements) {
    optim::GroupOp group = parse(placements, "");
    std::vector<Judgement> judgements = StrategyModel(*module).judge(group, GroupGeometry(group));
    return StrategyModel::choose(judgements)->seconds;
  };
  EXPECT_GT(secondsOf("placements [#optim.shard<0>] gradient_placements [#optim.shard<1>]"),
            secondsOf("placements [#optim.shard<0>]"));
}

} // namespace
} // namespace stepc::decide
