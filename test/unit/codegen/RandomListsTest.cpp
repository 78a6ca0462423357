//===- RandomListsTest.cpp - Lists that stand apart, and tables that lie ---===//
//
// Steps of matrices whose parameter, gradient and states stand by lists of their own, made by the passes with each
// strategy that is legal: hops in one and in two turns, along parts of axes, with choices. They are proven; one change in one
// row of one rank's tables, and they are refused. (test/unit/verify has programs that no pass has made.)
//
//===----------------------------------------------------------------------===//

#include "test/support/Proof.h"
#include "test/unit/codegen/Compile.h"
#include "test/unit/codegen/Stepping.h"
#include "test/unit/verify/RandomGroups.h"
#include "test/unit/verify/TableMutator.h"

#include "gtest/gtest.h"

#include <iostream>
#include <numeric>

using namespace mlir;

namespace stepc::test {
namespace {

using Histogram = std::map<std::string, int>;

template <typename T> std::string join(const std::vector<T> &list) {
  std::string text;
  for (const T &item : list)
    text += (text.empty() ? "" : ", ") + std::to_string(item);
  return text;
}

class RandomLists : public ::testing::Test {
protected:
  RandomLists() : random(seed()) {}
  static uint64_t seed() {
    const char *given = std::getenv("STEPC_SEED");
    uint64_t seed = given ? std::stoull(given) : 20251125;
    std::cout << "STEPC_SEED=" << seed << "\n";
    return seed;
  }
  bool chance(int64_t percent) { return draw(random, 1, 100) <= percent; }

  plan::Mesh drawMesh() {
    const std::vector<std::vector<int64_t>> sizes = {{4},    {2, 2},    {2, 4},
                                                     {3, 2}, {2, 1, 2}, {2, 2, 2}};
    plan::Mesh mesh;
    mesh.name = "mesh";
    mesh.sizes = sizes[size_t(draw(random, 0, int64_t(sizes.size()) - 1))];
    int64_t ranks = 1;
    for (size_t axis = 0; axis < mesh.sizes.size(); ++axis) {
      mesh.axes.push_back("x" + std::to_string(axis));
      ranks *= mesh.sizes[axis];
    }
    mesh.ranks.resize(size_t(ranks));
    std::iota(mesh.ranks.begin(), mesh.ranks.end(), 0);
    std::shuffle(mesh.ranks.begin(), mesh.ranks.end(), random);
    return mesh;
  }

  /// A list of a parameter's gradient or states, where it is another one.
  std::string list(const char *name, const std::vector<plan::Placement> &placements,
                   const std::vector<plan::Placement> &parameters) {
    if (placements.empty() || placements == parameters)
      return "";
    ++histogram[name];
    return " " + std::string(name) + " " + attributeText(placements);
  }

  /// A module at level 1 with the rule of inputs/turns.mlir, or of inputs/between.mlir, which has a state that stays
  /// with blocks. All parameters are alike.
  std::string drawModule() {
    bool turns = chance(70);
    std::string text = input(turns ? "turns.mlir" : "between.mlir");
    text = text.substr(0, text.find("  optim.parameter"));
    if (turns && chance(60)) // of the gradient, which may be reduced on shards
      text = replaced(text, "%11 = optim.reduce mean %10 :",
                      "%squares = arith.mulf %arg1, %arg1 : tensor<?x?xf32>\n"
                      "    %11 = optim.reduce mean %squares :");
    if (turns && chance(60)) { // a value per column or block in place of one per row
      bool ofColumns = chance(50);
      text = replaced(
          replaced(text, "tensor<?x1xf32>", ofColumns ? "tensor<1x?xf32>" : "tensor<1x1xf32>"),
          "f32, rows,", ofColumns ? "f32, cols," : "f32, one,");
    }
    plan::Mesh mesh = drawMesh();
    std::string axes;
    for (const std::string &axis : mesh.axes)
      axes += (axes.empty() ? "\"" : ", \"") + axis + "\"";
    text = replaced(text, kMesh,
                    "axes [" + axes + "] sizes [" + join(mesh.sizes) + "] ranks [" +
                        join(mesh.ranks) + "]");
    // Neighbours are near, so that there is something to do in two turns.
    text = replaced(
        text, "  optim.rule",
        "  optim.cluster levels [#optim.cluster_level<\"node\", ranks = 2, latency = 1.0e-6, gap = "
        "1.0e-6, bandwidth = 1.0e+11>, #optim.cluster_level<\"network\", latency = 1.0e-5, gap = "
        "1.0e-5, "
        "bandwidth = 1.0e+10>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, "
        "launch = "
        "0.0, threads = 1>\n  optim.rule");
    std::vector<int64_t> shape;
    int64_t batch = chance(40) ? 1 : 0;
    if (batch)
      shape.push_back(draw(random, 1, 4));
    // Often what axes divide, which some strategies need. Few sums of long lines travel in the place of elements.
    int64_t longest = chance(50) ? 16 : 3;
    for (int i = 0; i < 2; ++i)
      shape.push_back(chance(60) ? 4 * draw(random, 1, longest) : draw(random, 1, 3 * longest));
    auto dims = int64_t(shape.size());
    std::vector<plan::Placement> own =
                                     drawPlacements(random, shape, mesh, chance(30) ? batch : dims),
                                 gradient, state;
    if (chance(45))
      gradient = drawPartial(random, shape, mesh);
    else if (chance(50))
      gradient = drawPlacements(random, shape, mesh, dims);
    if (chance(50))
      state = drawPlacements(random, shape, mesh, dims);
    bool isPartial =
        llvm::any_of(gradient, [](const plan::Placement &each) { return each.isPartial(); });
    histogram["partial gradient"] += isPartial;
    for (const auto *each : {&own, &gradient, &state})
      for (const plan::Placement &placement : *each) {
        std::string kind = toString(placement);
        ++histogram["placement " + kind.substr(0, kind.find('('))];
      }
    std::string lists = "placements " + attributeText(own) +
                        list("gradient_placements", gradient, own) +
                        list("state_placements", state, own);
    int64_t rows = shape[size_t(batch)];
    if (rows % 2 == 0 && chance(40)) { // gate and up, each of which some ranks have
      std::string half = std::to_string(rows / 2);
      lists += " blocks <rows, [0, " + half + "], [" + half + ", " + std::to_string(rows) + "]>";
      ++histogram["divided"];
    }
    for (int64_t left = draw(random, 1, 3); left > 0; --left)
      text += "  optim.parameter @w" + std::to_string(left) + " shape [" + join(shape) +
              "] batch " + std::to_string(batch) + " type f32 gradient f32 mesh @mesh " + lists +
              " aliases []\n";
    return text + "}\n";
  }

  /// Has a rank bind the states of one block fewer, or of another one more, than it computes.
  void attackBlocks(Scheduled &made, const plan::Plan &plan, const std::string &text) {
    for (auto [index, group] : llvm::enumerate(plan.groups)) {
      if (group.blockStates.empty())
        continue;
      int64_t wrong = draw(random, 0, int64_t(plan.world().size()) - 1);
      auto lie = [&, wrong, index = int64_t(index)](const plan::Plan &plan) {
        verify::Expand expand = verify::runtimeExpand(plan);
        expand.computed = [truth = expand.computed, wrong, index](int64_t group, int64_t rank) {
          std::vector<int64_t> blocks = truth(group, rank);
          if (group != index || rank != wrong)
            return blocks;
          if (blocks.empty())
            return std::vector<int64_t>{0};
          blocks.pop_back();
          return blocks;
        };
        return expand;
      };
      made.error.clear();
      ASSERT_TRUE(failed(prove(*made.module, lie))) << text;
      ASSERT_NE(made.error.find("expected states of the "), std::string::npos) << made.error;
      ++histogram["refused blocks"];
    }
  }

  /// Proves it, and has each of some changes refused.
  void attack(Scheduled &made, const std::string &text, int changes) {
    ASSERT_TRUE(succeeded(prove(*made.module))) << text << made.error;
    FailureOr<ProgramPlan> program = planFromModule(*made.module);
    ASSERT_TRUE(succeeded(program));
    for (const plan::Table &table : program->plan.tables)
      histogram["state blocks"] += table.from.from == plan::Distribution::StateBlocks;
    for (const plan::Table &table : program->plan.tables)
      if (table.reduces())
        ++histogram["table " + std::string(plan::name(table.kind))];
    ASSERT_NO_FATAL_FAILURE(attackBlocks(made, program->plan, text));
    TableMutator mutator(random);
    for (int i = 0; i < changes; ++i) {
      std::optional<Mutation> mutation = mutator.mutate(program->plan);
      if (!mutation)
        continue;
      made.error.clear();
      auto lie = [&](const plan::Plan &plan) { return withMutation(plan, *mutation); };
      if (succeeded(prove(*made.module, lie))) {
        // A rank that has a replica brings it as far as the first of two hops, where it may not be the one that goes on.
        ASSERT_TRUE(mutation->table >= 0 &&
                    program->plan.tables[size_t(mutation->table)].to.to.kind ==
                        plan::Distribution::Pieces)
            << mutation->what << " in table " << mutation->table << " or start " << mutation->start
            << " on rank " << mutation->rank << "\n"
            << text;
        ++histogram["accepted: of a replica that does not go on"];
        continue;
      }
      ASSERT_FALSE(made.error.empty());
      ++histogram["refused"];
    }
  }

  Random random;
  Histogram histogram;
};

TEST_F(RandomLists, AreAcceptedAndMutationsRefused) {
  const std::vector<std::string> strategies = {
      "owner", "gather",  "local",  "subgroup-gather", "hierarchical",
      "agrs",  "in_turn", "joined", "shared",          ""};
  // Cut lines whose sums are fewer bytes than their elements are rare, so they may take more draws.
  constexpr const char *reducing[] = {"table whole_rows", "table whole_columns", "table part_rows",
                                      "table part_columns", "table part_blocks"};
  auto isRare = [&](const char *what) { return histogram[what] == 0; };
  for (int i = 0; i < 50 || (i < 900 && llvm::any_of(reducing, isRare)); ++i) {
    std::string text = drawModule();
    // Each in its turn, and what else is legal sometimes.
    for (size_t j = 0; j < strategies.size(); ++j) {
      if (j != size_t(i) % strategies.size() && !chance(25))
        continue;
      std::vector<std::string> forces;
      if (!strategies[j].empty())
        forces.push_back("*=" + strategies[j]);
      Scheduled made(text, forces, draw(random, 1, 2));
      if (made.error.find("not scheduled: ") == 0) {
        ASSERT_NE(made.error.find("strategy"), std::string::npos) << made.error << text;
        continue;
      }
      ++histogram["strategy " + strategies[j]];
      ASSERT_NO_FATAL_FAILURE(attack(made, "// " + strategies[j] + "\n" + text, 10));
    }
  }
  for (auto &[what, count] : histogram)
    std::cout << "  " << what << ": " << count << "\n";
  for (const std::string &strategy : strategies)
    EXPECT_GE(histogram["strategy " + strategy], 1) << strategy;
  for (const char *what :
       {"gradient_placements", "state_placements", "partial gradient", "placement R", "placement S",
        "placement _S", "placement IS", "placement owned", "placement flat", "placement P",
        "divided", "state blocks", "refused blocks"})
    EXPECT_GE(histogram[what], 3) << what;
  EXPECT_GE(histogram["refused"], 440);
  for (const char *what : reducing)
    EXPECT_GE(histogram[what], 1) << what;
  EXPECT_LE(histogram["accepted: of a replica that does not go on"], 20);
}

} // namespace
} // namespace stepc::test
