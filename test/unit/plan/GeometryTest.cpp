//===- GeometryTest.cpp - Views, kinds, replicas --------------------------===//

#include "runtime/geometry/Geometry.h"
#include "test/unit/plan/RandomPlan.h"

#include <gtest/gtest.h>

namespace stepc::test {

using namespace plan;
using geometry::Rect;

namespace {

using Sizes = std::vector<int64_t>;
constexpr Placement R{};
Placement S(int64_t dim) { return {PlacementKind::Shard, dim, 1}; }
Placement SS(int64_t dim, int64_t factor) { return {PlacementKind::StridedShard, dim, factor}; }

struct Case {
  Case(Sizes meshSizes, std::vector<Placement> placements, Sizes shape, int64_t batchAxes = 0)
      : plan(simplePlan(meshSizes, placements, shape, batchAxes, Strategy::Elementwise).plan),
        group(plan.groups[0]), mesh(plan.meshes[0]) {}
  Plan plan;
  const Group &group;
  const Mesh &mesh;
};

TEST(Geometry, ViewsOfEveryShape) {
  auto view = [](Sizes shape, int64_t batchAxes) {
    geometry::View v = geometry::view(shape, batchAxes);
    return Sizes{v.blocks, v.rows, v.cols};
  };
  EXPECT_EQ(view({}, 0), (Sizes{1, 1, 1}));
  EXPECT_EQ(view({7}, 0), (Sizes{1, 1, 7}));
  EXPECT_EQ(view({5, 7}, 0), (Sizes{1, 5, 7}));
  EXPECT_EQ(view({3, 5, 7}, 1), (Sizes{3, 5, 7}));
  EXPECT_EQ(view({2, 3, 5, 7}, 2), (Sizes{6, 5, 7}));
  // Nothing declared: leading axes collapse all the same.
  EXPECT_EQ(view({2, 3, 5, 7}, 0), (Sizes{6, 5, 7}));
  // A stack of vectors, a stack of scalars.
  EXPECT_EQ(view({3, 7}, 1), (Sizes{3, 1, 7}));
  EXPECT_EQ(view({3}, 1), (Sizes{3, 1, 1}));
}

TEST(Geometry, StateShapesPerKind) {
  auto shapes = [](Sizes shape, int64_t batchAxes) {
    Case c({1}, {R}, shape, batchAxes);
    std::vector<Sizes> result;
    for (ValueKind kind : {ValueKind::Full, ValueKind::Rows, ValueKind::Cols, ValueKind::One})
      result.push_back(geometry::stateShape(c.group, kind));
    return result;
  };
  using Shapes = std::vector<Sizes>;
  EXPECT_EQ(shapes({5, 7}, 0), (Shapes{{5, 7}, {5}, {7}, {}}));
  EXPECT_EQ(shapes({3, 5, 7}, 1), (Shapes{{3, 5, 7}, {3, 5}, {3, 7}, {3}}));
  // Undeclared leading axes are part of one logical tensor: it has one scalar.
  EXPECT_EQ(shapes({3, 5, 7}, 0), (Shapes{{3, 5, 7}, {3, 5}, {3, 7}, {}}));
  EXPECT_EQ(shapes({7}, 0), (Shapes{{7}, {}, {7}, {}}));
  EXPECT_EQ(shapes({}, 0), (Shapes{{}, {}, {}, {}}));
  EXPECT_EQ(geometry::elements({}), 1);
}

TEST(Geometry, ShardsOfAShardAreShortOrEmpty) {
  // 5 over 2 gives 3 and 2; each over 2 again: 2 and 1, 1 and 1.
  Case c({2, 2}, {S(0), S(0)}, {5, 3});
  auto runs = [&](Sizes coords) {
    return geometry::axisRuns(0, 5, c.group.placements, c.mesh, coords);
  };
  EXPECT_EQ(runs({0, 0}), (std::vector<geometry::Run>{{0, 0, 2}}));
  EXPECT_EQ(runs({0, 1}), (std::vector<geometry::Run>{{2, 0, 1}}));
  EXPECT_EQ(runs({1, 0}), (std::vector<geometry::Run>{{3, 0, 1}}));
  EXPECT_EQ(runs({1, 1}), (std::vector<geometry::Run>{{4, 0, 1}}));
  // 3 over 4 with chunks of 1: the last rank holds nothing.
  Case d({4}, {S(0)}, {3, 2});
  EXPECT_TRUE(geometry::rectangles(d.group, d.mesh, 3, ValueKind::Full).empty());
  EXPECT_EQ(geometry::localStateShape(d.group, d.mesh, 3, ValueKind::Full), (Sizes{0, 2}));
}

TEST(Geometry, GradientAndStatesStandByTheirOwnPlacements) {
  Plan plan = simplePlan({2, 2}, {R, R}, {4, 6}, 0, Strategy::Elementwise).plan;
  Group &group = plan.groups[0];
  group.gradientPlacements = {S(1), R};
  group.statePlacements = {R, S(0)};
  const Mesh &mesh = plan.meshes[0];
  auto at = [&](int64_t position, ValueKind kind, ShardsKind of) {
    return geometry::rectangles(group, mesh, position, kind, of);
  };
  using enum ShardsKind;
  EXPECT_EQ(at(2, ValueKind::Full, Parameter), (std::vector<Rect>{{0, 0, 0, 4, 6, 0, 6}}));
  EXPECT_EQ(at(2, ValueKind::Full, Gradient), (std::vector<Rect>{{0, 0, 3, 4, 3, 0, 3}}));
  EXPECT_EQ(at(3, ValueKind::Rows, State), (std::vector<Rect>{{0, 2, 0, 2, 1, 0, 1}}));
  EXPECT_EQ(geometry::localStateShape(group, mesh, 1, ValueKind::Full), (Sizes{2, 6}));
  using Flags = std::vector<bool>;
  EXPECT_EQ(geometry::replicatedAxes(group, ValueKind::Full, Gradient), (Flags{false, true}));
  EXPECT_EQ(geometry::replicatedAxes(group, ValueKind::Rows, State), (Flags{true, false}));
}

TEST(Geometry, AStridedShardHasOneRunPerPiece) {
  // FSDP (first axis) of what TP (second axis) has sharded.
  Case c({2, 2}, {SS(0, 2), S(0)}, {8, 3});
  std::vector<std::vector<Rect>> expected = {{{0, 0, 0, 2, 3, 0, 3}},
                                             {{0, 4, 0, 2, 3, 0, 3}},
                                             {{0, 2, 0, 2, 3, 0, 3}},
                                             {{0, 6, 0, 2, 3, 0, 3}}};
  for (int64_t position = 0; position < 4; ++position)
    EXPECT_EQ(geometry::rectangles(c.group, c.mesh, position, ValueKind::Full),
              expected[static_cast<size_t>(position)]);
  // Without the later axis a shard consists of pieces.
  Case d({2}, {SS(1, 2)}, {2, 8});
  EXPECT_EQ(geometry::rectangles(d.group, d.mesh, 1, ValueKind::Full),
            (std::vector<Rect>{{0, 0, 2, 2, 2, 0, 4}, {0, 0, 6, 2, 2, 2, 4}}));
}

// Rows 0–1 and 6, 2–4, 5 of seven; the second rank holds rows 4 to 6.
TEST(Geometry, PartsOfMatrices) {
  Case c({2}, {S(1)}, {2, 7, 3}, 1);
  Group group = c.group;
  group.division = {Division::Rows, {{{0, 2}, {6, 7}}, {{2, 5}}, {{5, 6}}}};
  EXPECT_EQ(geometry::stateShape(group, ValueKind::Full), (Sizes{2, 7, 3}));
  EXPECT_EQ(geometry::stateShape(group, ValueKind::Rows), (Sizes{2, 7}));
  EXPECT_EQ(geometry::stateShape(group, ValueKind::Cols), (Sizes{2, 3, 3}));
  EXPECT_EQ(geometry::stateShape(group, ValueKind::One), (Sizes{2, 3}));
  EXPECT_EQ(geometry::localStateShape(group, c.mesh, 1, ValueKind::Cols), (Sizes{2, 3, 3}));
  EXPECT_EQ(geometry::rectangles(group, c.mesh, 1, ValueKind::One).size(), 2u);
  EXPECT_EQ(geometry::view(group, ValueKind::Cols).rows, 3);
  group.parts = {0};
  EXPECT_EQ(group.rows(), 3);
  EXPECT_EQ(geometry::rectangles(group, c.mesh, 0, ValueKind::Full),
            (std::vector<Rect>{{0, 0, 0, 2, 3, 0, 3}, {1, 0, 0, 2, 3, 12, 3}}));
  EXPECT_EQ(geometry::rectangles(group, c.mesh, 1, ValueKind::Rows),
            (std::vector<Rect>{{0, 2, 0, 1, 1, 2, 1}, {1, 2, 0, 1, 1, 5, 1}}));
  group.parts = {1};
  EXPECT_EQ(geometry::rectangles(group, c.mesh, 1, ValueKind::Cols),
            (std::vector<Rect>{{0, 0, 0, 1, 3, 3, 3}, {1, 0, 0, 1, 3, 12, 3}}));
  group.parts = {2};
  EXPECT_TRUE(geometry::rectangles(group, c.mesh, 0, ValueKind::Full).empty());
  EXPECT_EQ(geometry::rectangles(group, c.mesh, 0, ValueKind::One),
            (std::vector<Rect>{{0, 0, 0, 1, 1, 2, 1}, {1, 0, 0, 1, 1, 5, 1}}));
  // Two columns and one of three: a value per part and row.
  Case d({2}, {S(1)}, {2, 3});
  group = d.group;
  group.division = {Division::Columns, {{{0, 1}, {2, 3}}, {{1, 2}}}};
  EXPECT_EQ(geometry::stateShape(group, ValueKind::Rows), (Sizes{2, 2}));
  EXPECT_EQ(geometry::stateShape(group, ValueKind::One), (Sizes{2}));
  group.parts = {0};
  EXPECT_EQ(geometry::rectangles(group, d.mesh, 1, ValueKind::Full),
            (std::vector<Rect>{{0, 0, 1, 2, 1, 0, 1}}));
  EXPECT_EQ(geometry::rectangles(group, d.mesh, 1, ValueKind::Rows),
            (std::vector<Rect>{{0, 0, 0, 2, 1, 0, 2}}));
}

// Three experts with two projections each in the rows of one matrix; the second of two ranks has four rows more.
TEST(Geometry, EqualPartsInOneGroup) {
  Case c({2}, {S(0)}, {12, 5});
  Group group = c.group;
  for (int64_t i = 0; i < 6; ++i) {
    group.division.parts.push_back({{2 * i, 2 * i + 2}});
    group.parts.push_back(i);
  }
  EXPECT_EQ(group.blocksPerParameter(), 6);
  EXPECT_EQ(group.rows(), 2);
  EXPECT_EQ(
      geometry::rectangles(group, c.mesh, 1, ValueKind::Full),
      (std::vector<Rect>{{3, 0, 0, 2, 5, 0, 5}, {4, 0, 0, 2, 5, 10, 5}, {5, 0, 0, 2, 5, 20, 5}}));
  EXPECT_EQ(
      geometry::rectangles(group, c.mesh, 1, ValueKind::Rows),
      (std::vector<Rect>{{3, 0, 0, 2, 1, 0, 1}, {4, 0, 0, 2, 1, 2, 1}, {5, 0, 0, 2, 1, 4, 1}}));
  EXPECT_EQ(geometry::rectangles(group, c.mesh, 0, ValueKind::One).size(), 6u);
  EXPECT_EQ(geometry::view(group, ValueKind::One).blocks, 6);
  // Five ranks: blocks are cut, and some of them are whole.
  Case d({5}, {S(0)}, {12, 5});
  EXPECT_EQ(geometry::rectangles(group, d.mesh, 1, ValueKind::Full),
            (std::vector<Rect>{{1, 1, 0, 1, 5, 0, 5}, {2, 0, 0, 2, 5, 5, 5}}));
  // Those of one group of two, in each of two matrices.
  Case e({1}, {R}, {2, 4, 3}, 1);
  group = e.group;
  group.division = {Division::Columns, {{{0, 1}}, {{1, 2}}, {{2, 3}}}};
  group.parts = {0, 2};
  EXPECT_EQ(geometry::rectangles(group, e.mesh, 0, ValueKind::Full),
            (std::vector<Rect>{{0, 0, 0, 4, 1, 0, 3},
                               {1, 0, 0, 4, 1, 2, 3},
                               {2, 0, 0, 4, 1, 12, 3},
                               {3, 0, 0, 4, 1, 14, 3}}));
  EXPECT_EQ(plan::describeBlock(group, 3), "block 1 of columns 2:3 of ");
  EXPECT_EQ(plan::describeParts(group), "2 blocks of 1 column each of ");
}

// A convolution of 4 outputs, 3 inputs and a kernel of 2 × 2 is a matrix of 4 × 12.
TEST(Geometry, FlattenedAxes) {
  auto of = [](Case c, int64_t flatten) {
    Group group = c.group;
    group.flatten = flatten;
    return group;
  };
  Case whole({2}, {R}, {4, 3, 2, 2});
  Group group = of(whole, 1);
  EXPECT_EQ(group.rows(), 4);
  EXPECT_EQ(group.cols(), 12);
  EXPECT_EQ(group.blocksPerParameter(), 1);
  EXPECT_EQ(of(whole, 2).rows(), 12);
  EXPECT_EQ(geometry::stateShape(group, ValueKind::Rows), (Sizes{4}));
  EXPECT_EQ(geometry::stateShape(group, ValueKind::Cols), (Sizes{3, 2, 2}));
  EXPECT_EQ(geometry::stateShape(group, ValueKind::One), (Sizes{}));
  EXPECT_EQ(geometry::rectangles(group, whole.mesh, 1, ValueKind::Full),
            (std::vector<Rect>{{0, 0, 0, 4, 12, 0, 12}}));
  // Cut along the inputs: two of three, one run of columns. Along the kernel's rows: one run per input.
  Case inputs({2}, {S(1)}, {4, 3, 2, 2});
  EXPECT_EQ(geometry::rectangles(of(inputs, 1), inputs.mesh, 1, ValueKind::Full),
            (std::vector<Rect>{{0, 0, 8, 4, 4, 0, 4}}));
  EXPECT_EQ(geometry::replicatedAxes(of(inputs, 1), ValueKind::Rows), (std::vector<bool>{true}));
  EXPECT_EQ(geometry::replicatedAxes(of(inputs, 1), ValueKind::Cols), (std::vector<bool>{false}));
  Case kernel({2}, {S(2)}, {4, 3, 2, 2});
  EXPECT_EQ(
      geometry::rectangles(of(kernel, 1), kernel.mesh, 1, ValueKind::Full),
      (std::vector<Rect>{{0, 0, 2, 4, 2, 0, 6}, {0, 0, 6, 4, 2, 2, 6}, {0, 0, 10, 4, 2, 4, 6}}));
  EXPECT_FALSE(geometry::blocksAreWhole(of(kernel, 1), kernel.mesh));
  // Two of them in a stack, in two groups of outputs each.
  Case stack({2}, {S(0)}, {2, 4, 3, 2, 2}, 1);
  group = of(stack, 2);
  group.division = {Division::Rows, {{{0, 2}}, {{2, 4}}}};
  group.parts = {0, 1};
  EXPECT_EQ(geometry::rectangles(group, stack.mesh, 1, ValueKind::Full),
            (std::vector<Rect>{{2, 0, 0, 2, 12, 0, 12}, {3, 0, 0, 2, 12, 24, 12}}));
  EXPECT_TRUE(geometry::blocksAreWhole(group, stack.mesh));
}

TEST(Geometry, JoinedAxesAreOneMatrixOfFewPieces) {
  // Where a shard is one run of columns, it is one rectangle however many matrices there are.
  auto best = [](Sizes mesh, std::vector<Placement> placements, Sizes shape, int64_t batch = 0) {
    Case c(mesh, placements, shape, batch);
    Group group = c.group;
    group.joined = bestJoined(group);
    EXPECT_EQ(checkJoined(group, {}), "");
    EXPECT_EQ(group.blocksPerParameter(), 1);
    // Rules see their matrices.
    EXPECT_EQ(group.rows(), c.group.rows());
    EXPECT_EQ(group.cols(), c.group.cols());
    EXPECT_EQ(group.matrix().blocks, c.group.blocksPerParameter());
    // It is as if all axes were flattened there.
    Group flat = c.group;
    flat.batchAxes = 0;
    flat.flatten = group.joined;
    for (size_t position = 0; position < c.mesh.ranks.size(); ++position)
      EXPECT_EQ(geometry::rectangles(group, c.mesh, int64_t(position), ValueKind::Full),
                geometry::rectangles(flat, c.mesh, int64_t(position), ValueKind::Full));
    int64_t most = 0;
    for (size_t position = 0; position < c.mesh.ranks.size(); ++position)
      most = std::max<int64_t>(
          most, geometry::rectangles(group, c.mesh, int64_t(position), ValueKind::Full).size());
    EXPECT_LE(most, geometry::mostRectangles(group, 1 << 20));
    return std::pair(group.joined, geometry::mostRectangles(group, 1 << 20));
  };
  using Best = std::pair<int64_t, int64_t>;
  EXPECT_EQ(best({2}, {R}, {4, 5, 3, 3}), (Best{1, 1}));
  EXPECT_EQ(best({2}, {S(0)}, {4, 5, 3, 3}), (Best{1, 1}));
  EXPECT_EQ(best({2}, {S(1)}, {4, 5, 3, 3}, 2), (Best{1, 1}));
  EXPECT_EQ(best({2}, {S(3)}, {4, 5, 3, 3}), (Best{3, 1}));
  EXPECT_EQ(best({2, 2}, {S(0), S(2)}, {4, 5, 3, 3}), (Best{2, 1}));
  EXPECT_EQ(best({2, 2}, {S(3), SS(1, 2)}, {4, 5, 3, 3}), (Best{3, 8}));
  EXPECT_EQ(best({2}, {{PlacementKind::Flat}}, {4, 5, 3, 3}).first, 1);
}

TEST(Geometry, CountsPiecesWithoutMakingThem) {
  Case matrices({2}, {S(1)}, {1 << 20, 4, 4}, 1);
  EXPECT_EQ(geometry::mostRectangles(matrices.group, int64_t(1) << 40), 1 << 20);
  EXPECT_EQ(geometry::mostRectangles(matrices.group, 1000), 1001);
  Case many({2}, {R}, Sizes(20, 4));
  EXPECT_EQ(geometry::mostRectangles(many.group, int64_t(1) << 40), int64_t(1) << 36);
}

TEST(Model, SaysWhatIsWrongWithJoinedAxes) {
  Group group;
  group.shape = {4, 3, 2};
  group.joined = 3;
  EXPECT_EQ(checkJoined(group, {}), "expected columns of joined axes from axis 1 to 2 on, found 3");
  group.joined = -1;
  EXPECT_EQ(checkJoined(group, {}),
            "expected columns of joined axes from axis 1 to 2 on, found -1");
  group.joined = 1;
  EXPECT_EQ(
      checkJoined(group, {{"r", DType::F32, ValueKind::Rows}}),
      "expected no joined axes with state 'r' of a value per row, found columns from axis 1 on");
  group.computes = true;
  EXPECT_EQ(checkJoined(group, {}), "expected no joined axes where whole blocks are computed, "
                                    "found columns from axis 1 on");
}

TEST(Geometry, RectanglesOfABatch) {
  // Experts over the first axis, columns over the second.
  Case c({2, 2}, {S(0), S(2)}, {3, 2, 5}, 1);
  EXPECT_EQ(geometry::rectangles(c.group, c.mesh, 1, ValueKind::Full),
            (std::vector<Rect>{{0, 0, 3, 2, 2, 0, 2}, {1, 0, 3, 2, 2, 4, 2}}));
  EXPECT_EQ(geometry::rectangles(c.group, c.mesh, 3, ValueKind::Cols),
            (std::vector<Rect>{{2, 0, 3, 1, 2, 0, 2}}));
  EXPECT_EQ(geometry::rectangles(c.group, c.mesh, 3, ValueKind::Rows),
            (std::vector<Rect>{{2, 0, 0, 2, 1, 0, 1}}));
  EXPECT_EQ(geometry::rectangles(c.group, c.mesh, 0, ValueKind::One),
            (std::vector<Rect>{{0, 0, 0, 1, 1, 0, 1}, {1, 0, 0, 1, 1, 1, 1}}));
}

TEST(Geometry, ADroppedAxisReplicates) {
  using Flags = std::vector<bool>;
  Case c({2, 2, 2}, {R, S(0), S(1)}, {6, 6});
  EXPECT_EQ(geometry::replicatedAxes(c.group, ValueKind::Full), (Flags{true, false, false}));
  EXPECT_EQ(geometry::replicatedAxes(c.group, ValueKind::Rows), (Flags{true, false, true}));
  EXPECT_EQ(geometry::replicatedAxes(c.group, ValueKind::Cols), (Flags{true, true, false}));
  EXPECT_EQ(geometry::replicatedAxes(c.group, ValueKind::One), (Flags{true, true, true}));
}

TEST(Geometry, BlocksAreWhole) {
  auto whole = [](Sizes mesh, std::vector<Placement> placements, Sizes shape, int64_t batch,
                  std::vector<ValueKind> states = {}, std::vector<Factor> resolved = {}) {
    Case c(mesh, placements, shape, batch);
    return geometry::blocksAreWhole(c.group, c.mesh, resolved, ShardsKind::Parameter, states);
  };
  EXPECT_TRUE(whole({2}, {R}, {4, 4}, 0));
  EXPECT_TRUE(whole({4}, {S(0)}, {3, 4, 4}, 1));
  EXPECT_TRUE(whole({2, 2}, {SS(0, 2), S(0)}, {8, 4, 4}, 1));
  EXPECT_TRUE(whole({1, 2}, {S(1), R}, {4, 4}, 0)); // an axis of one rank cuts nothing
  EXPECT_FALSE(whole({2}, {S(0)}, {4, 4}, 0));
  EXPECT_FALSE(whole({2}, {S(1)}, {3, 4, 4}, 1));
  // One row over two ranks: whole for the parameter, but not for what its
  // columns share.
  EXPECT_TRUE(whole({2}, {S(0)}, {1, 4}, 0, {ValueKind::Rows}));
  EXPECT_FALSE(whole({2}, {S(0)}, {1, 4}, 0, {ValueKind::Cols}));
  // What comes together along a part of an axis: of three blocks over four ranks two are cut.
  EXPECT_FALSE(whole({2, 2}, {S(1), R}, {3, 4, 4}, 1));
  EXPECT_TRUE(whole({2, 2}, {S(1), R}, {3, 4, 4}, 1, {ValueKind::Cols}, {{0, 1, 2}}));
  EXPECT_FALSE(whole({2, 2}, {S(1), S(2)}, {3, 4, 4}, 1, {}, {{0, 1, 2}}));
}

} // namespace
} // namespace stepc::test
