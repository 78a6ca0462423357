//===- PlacementsTest.cpp - What torch cannot say, case by case -----------===//
//
// Interleaved, owned and flat placements, what is partial, and slabs. (GeometryTest.cpp has views, S and _S.)
//
//===----------------------------------------------------------------------===//

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
Placement IS(int64_t dim, int64_t stripes) {
  return {PlacementKind::InterleavedShard, dim, stripes};
}
Placement owned(int64_t rank) { return {PlacementKind::Owned, 0, 1, rank}; }
Placement flat(Sizes cuts = {}) { return {PlacementKind::Flat, 0, 1, 0, std::move(cuts)}; }
constexpr Placement kSum{PlacementKind::PartialSum}, kAverage{PlacementKind::PartialAverage};

struct Case {
  Case(Sizes meshSizes, std::vector<Placement> placements, Sizes shape, int64_t batchAxes = 0)
      : plan(simplePlan(meshSizes, placements, shape, batchAxes, Strategy::Elementwise).plan),
        group(plan.groups[0]), mesh(plan.meshes[0]) {}
  std::vector<Rect> full(int64_t position) const {
    return geometry::rectangles(group, mesh, position, ValueKind::Full);
  }
  Sizes shape(int64_t position) const {
    return geometry::localShape(group.shape, group.placements, mesh,
                                geometry::coordinates(mesh, position));
  }
  int64_t most() const { return geometry::mostElements(group.shape, group.placements, mesh); }
  Plan plan;
  Group &group;
  const Mesh &mesh;
};

using Rects = std::vector<Rect>;

TEST(Placements, InterleavedShardsHaveAPieceOfEachStripe) {
  // Gate and up of one expert: three rows of four each, over two ranks.
  Case c({2}, {IS(0, 2)}, {6, 2});
  EXPECT_EQ(c.full(0), (Rects{{0, 0, 0, 2, 2, 0, 2}, {0, 3, 0, 2, 2, 4, 2}}));
  EXPECT_EQ(c.full(1), (Rects{{0, 2, 0, 1, 2, 0, 2}, {0, 5, 0, 1, 2, 2, 2}}));
  EXPECT_EQ(c.most(), 8);
  // Two experts, of which each rank of the first axis has one.
  Case d({2, 2}, {S(0), IS(0, 2)}, {8, 3});
  EXPECT_EQ(geometry::axisRuns(0, 8, d.group.placements, d.mesh, {1, 0}),
            (std::vector<geometry::Run>{{4, 0, 1}, {6, 1, 1}}));
  EXPECT_EQ(d.shape(3), (Sizes{2, 3}));
}

TEST(Placements, OneOwnsTheWhole) {
  Case c({2, 2}, {owned(1), S(1)}, {4, 6});
  EXPECT_EQ(c.shape(0), (Sizes{0}));
  EXPECT_TRUE(c.full(1).empty());
  EXPECT_EQ(c.shape(3), (Sizes{4, 3}));
  EXPECT_EQ(c.full(3), (Rects{{0, 0, 3, 4, 3, 0, 3}}));
  EXPECT_EQ(c.most(), 12);
  EXPECT_EQ(geometry::replicatedAxes(c.group, ValueKind::Full), (std::vector<bool>{false, false}));
  EXPECT_EQ(geometry::localStateShape(c.group, c.mesh, 0, ValueKind::Rows), (Sizes{0}));
  EXPECT_EQ(geometry::localStateShape(c.group, c.mesh, 2, ValueKind::Rows), (Sizes{4}));
}

TEST(Placements, FlatRangesCutRows) {
  // Ranges of 7 and 5 elements of 3 × 4: a row and three quarters, and the rest.
  Case c({2}, {flat({0, 7, 12})}, {3, 4});
  EXPECT_EQ(c.shape(0), (Sizes{7}));
  EXPECT_EQ(c.shape(1), (Sizes{5}));
  EXPECT_EQ(c.full(0), (Rects{{0, 0, 0, 1, 4, 0, 4}, {0, 1, 0, 1, 3, 4, 4}}));
  EXPECT_EQ(c.full(1), (Rects{{0, 1, 3, 1, 1, 0, 4}, {0, 2, 0, 1, 4, 1, 4}}));
  EXPECT_EQ(c.most(), 7);
  // Values that drop an axis are whole on every rank.
  EXPECT_EQ(geometry::localStateShape(c.group, c.mesh, 1, ValueKind::Rows), (Sizes{3}));
  EXPECT_EQ(geometry::replicatedAxes(c.group, ValueKind::Rows), (std::vector<bool>{true}));
  // Of the shard that another axis leaves: 2 × 3, and 2 × 2, which ends early.
  Case d({2, 2}, {S(1), flat({0, 5, 6})}, {2, 5});
  EXPECT_EQ(d.shape(0), (Sizes{5}));
  EXPECT_EQ(d.shape(2), (Sizes{4}));
  EXPECT_EQ(d.shape(3), (Sizes{0}));
  EXPECT_EQ(d.full(1), (Rects{{0, 1, 2, 1, 1, 0, 3}}));
  // Both axes together, in equal ranges; and the first of them by what the second halves.
  Case e({2, 2}, {flat(), flat()}, {2, 5});
  EXPECT_EQ(e.shape(2), (Sizes{3}));
  EXPECT_EQ(e.shape(3), (Sizes{1}));
  Case f({2, 2}, {flat({0, 8, 10}), flat()}, {2, 5});
  EXPECT_EQ(f.shape(1), (Sizes{4}));
  EXPECT_EQ(f.shape(2), (Sizes{1}));
}

TEST(Placements, HoldsAll) {
  auto holds = [](std::vector<Placement> from, std::vector<Placement> to) {
    Case c(Sizes(from.size(), 2), from, {4, 4});
    c.group.statePlacements = to;
    return geometry::holdsAll(c.group, c.mesh, ShardsKind::Parameter, ShardsKind::State);
  };
  EXPECT_TRUE(holds({R}, {S(0)}));
  EXPECT_FALSE(holds({S(0)}, {R}));
  EXPECT_TRUE(holds({S(0)}, {flat({0, 8, 16})}));
  EXPECT_FALSE(holds({S(0)}, {flat({0, 9, 16})}));
  EXPECT_FALSE(holds({S(0)}, {IS(0, 2)}));
  EXPECT_TRUE(holds({R}, {owned(1)}));
  EXPECT_FALSE(holds({owned(0)}, {owned(1)}));
  EXPECT_TRUE(holds({S(0), R}, {S(0), S(1)}));
  // Contributions are no elements.
  Case c({2}, {R}, {4, 4});
  c.group.gradientPlacements = {kSum};
  EXPECT_FALSE(geometry::holdsAll(c.group, c.mesh, ShardsKind::Gradient, ShardsKind::Parameter));
}

TEST(Placements, WhereContributionsAreAddedUp) {
  auto reduced = [](std::vector<Placement> home, std::vector<Placement> gradient) {
    Case c(Sizes(home.size(), 2), home, {4, 4});
    c.group.gradientPlacements = gradient;
    return toString(geometry::reducedPlacements(c.group, c.mesh, ShardsKind::Parameter));
  };
  EXPECT_EQ(reduced({S(0)}, {R}), "[]");
  EXPECT_EQ(reduced({S(0)}, {kAverage}), "[S(0)]");
  EXPECT_EQ(reduced({owned(1)}, {kSum}), "[owned(1)]");
  // Replicas have a range each of what both need.
  EXPECT_EQ(reduced({R}, {kSum}), "[flat]");
  EXPECT_EQ(reduced({R, S(0)}, {kAverage, S(0)}), "[flat, S(0)]");
  EXPECT_EQ(reduced({R, R}, {kAverage, R}), "[flat, R]");
  EXPECT_EQ(reduced({R, flat({0, 9, 16})}, {kSum, kSum}), "[flat, flat(0, 9, 16)]");
  // Ranges of two axes together are not cut further: each replica adds up all of its own.
  Case c({2, 2, 2}, {R, flat({0, 1, 2, 3, 16}), flat()}, {4, 4});
  c.group.gradientPlacements = {kSum, R, R};
  EXPECT_EQ(toString(geometry::reducedPlacements(c.group, c.mesh, ShardsKind::Parameter)),
            "[R, flat(0, 1, 2, 3, 16), flat]");
}

TEST(Placements, Slabs) {
  auto slabs = [](std::vector<Placement> placements, Sizes shape, int64_t batch = 0) {
    return Case(Sizes(placements.size(), 2), placements, shape, batch);
  };
  auto of = [](const Case &c) { return geometry::slabsOf(c.group, c.mesh, ShardsKind::Parameter); };
  auto check = [&](const Case &c) {
    return geometry::checkSlabs(c.group, c.mesh, of(c), ShardsKind::Parameter);
  };
  Case rows = slabs({S(0)}, {8, 3});
  EXPECT_EQ(of(rows), (plan::Slabs{Division::Rows, {{0, 1, 2}}, 4, 4}));
  EXPECT_EQ(check(rows), "");
  EXPECT_EQ(geometry::slabLengths(slabs({S(0)}, {5, 3}).group, rows.mesh, of(rows),
                                  ShardsKind::Parameter),
            "3 rows on rank 0 and 2 rows on rank 1");
  // Both axes are cut: the longer one.
  EXPECT_EQ(of(slabs({S(0), S(1)}, {3, 8})).axis, Division::Columns);
  EXPECT_EQ(check(slabs({S(0), S(1)}, {3, 8})),
            "expected shards that cut blocks by columns alone, found placements [S(0), S(1)]");
  EXPECT_TRUE(of(slabs({R}, {8, 3})).factors.empty());
  EXPECT_TRUE(of(slabs({S(0)}, {2, 8, 3}, 1)).factors.empty());
  EXPECT_EQ(check(slabs({S(1)}, {8, 3})),
            "expected shards that cut the longer side of blocks, found columns of 8 x 3");
  using Lengths = std::pair<int64_t, int64_t>;
  auto lengths = [&](const Case &c) {
    EXPECT_EQ(check(c), "");
    return Lengths(of(c).shortest, of(c).longest);
  };
  EXPECT_EQ(lengths(slabs({S(0)}, {5, 3})), (Lengths{2, 3}));
  EXPECT_EQ(lengths(slabs({IS(0, 2)}, {8, 3})), (Lengths{4, 4})); // of two runs
  // Flat ranges of whole rows; and one that cuts a row.
  EXPECT_EQ(lengths(slabs({flat({0, 15, 24})}, {8, 3})), (Lengths{3, 5}));
  EXPECT_EQ(check(slabs({flat({0, 16, 24})}, {8, 3})),
            "expected ranges of whole rows, found a part of one of block 0 on rank 0");
  EXPECT_EQ(check(slabs({S(1), flat({0, 4, 8})}, {8, 3})),
            "expected ranges of whole rows, found a part of one of block 0 on rank 0");
  // Three matrices in one, of which two stand on two ranks each; and one whose rows are of two runs.
  Case fused = slabs({S(0), S(0)}, {12, 3});
  fused.group.division = {Division::Rows, {{{0, 4}}, {{4, 8}}, {{8, 12}}}};
  fused.group.parts = {0, 1, 2};
  EXPECT_EQ(lengths(fused), (Lengths{1, 3}));
  EXPECT_EQ(geometry::slabHolders(fused.group, fused.mesh, of(fused), ShardsKind::Parameter),
            (std::vector<Sizes>{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_FALSE(geometry::haveSameSlabs(fused.group, fused.mesh, of(fused), ShardsKind::Parameter));
  EXPECT_TRUE(geometry::haveSameSlabs(rows.group, rows.mesh, of(rows), ShardsKind::Parameter));
  fused.group.division = {Division::Rows, {{{0, 3}, {9, 12}}, {{3, 9}}}};
  fused.group.parts = {0, 1};
  EXPECT_EQ(lengths(fused), (Lengths{3, 3}));
  // A convolution whose inputs are cut: columns of the matrix that it is, in a run for each.
  Case flattened = slabs({S(1)}, {2, 6, 3});
  flattened.group.flatten = 1;
  EXPECT_EQ(of(flattened), (plan::Slabs{Division::Columns, {{0, 1, 2}}, 9, 9}));
  EXPECT_EQ(check(flattened), "");
  Case other = rows;
  other.group.slabs = {Division::Rows, {{0, 1, 2}}, 3, 4};
  EXPECT_EQ(geometry::checkSlabs(other.group, other.mesh, other.group.slabs, ShardsKind::Parameter),
            "expected slabs of 4 to 4 rows, found 3 to 4");
}

TEST(Placements, WhereRowsStandInSlabs) {
  // Rows 1 and 2, 5, and 6 to 9, of which columns stand apart.
  std::vector<Rect> rects = {{0, 1, 0, 2, 3, 0, 3}, {0, 5, 0, 1, 3, 6, 3}, {0, 6, 0, 4, 2, 9, 2},
                             {0, 6, 2, 4, 1, 17, 1}};
  EXPECT_EQ(geometry::slabRuns(rects, Division::Rows),
            (std::vector<geometry::Run>{{1, 0, 2}, {5, 2, 5}}));
  EXPECT_EQ(geometry::slabRuns(rects, Division::Columns),
            (std::vector<geometry::Run>{{0, 0, 3}}));
}

/// Stripes divide what earlier axes leave on every rank: the lengths that the check knows are those that ranks have.
TEST(Placements, StripesThatDivideEveryShard) {
  std::mt19937_64 random(17);
  auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int legal = 0, illegal = 0;
  for (int round = 0; round < 20000; ++round) {
    Mesh mesh{"mesh", {"a", "b", "c"}, {draw(1, 4), draw(1, 4), draw(1, 3)}, {}};
    Sizes shape{draw(1, 60)};
    std::vector<Placement> list{draw(0, 1) ? S(0) : IS(0, draw(1, 4)),
                                draw(0, 1) ? S(0) : IS(0, draw(1, 3)), R};
    if (draw(0, 2) == 0) // pieces that need not be equal
      list = {{PlacementKind::StridedShard, 0, mesh.sizes[1]}, S(0), R};
    if (geometry::checkPlacements(shape, list, mesh))
      continue;
    int64_t stripes = draw(2, 4);
    bool divides = true;
    for (int64_t position = 0; position < mesh.sizes[0] * mesh.sizes[1]; ++position) {
      Sizes coords{position / mesh.sizes[1], position % mesh.sizes[1], 0};
      divides &= geometry::localShape(shape, list, mesh, coords)[0] % stripes == 0;
    }
    list[2] = IS(0, stripes);
    auto wrong = geometry::checkPlacements(shape, list, mesh);
    bool refused = wrong && wrong->reason.starts_with("expected stripes that divide");
    ASSERT_EQ(refused, !divides) << toString(list) << " of " << shape[0] << " on " << mesh.sizes[0]
                                 << ", " << mesh.sizes[1];
    ++(divides ? legal : illegal);
  }
  EXPECT_GT(legal, 200);
  EXPECT_GT(illegal, 200);
}

/// A plan that a library is opened with is held to the same.
TEST(Placements, OfAPlan) {
  auto message = [](auto change) {
    Plan plan = richPlan();
    change(plan);
    return validate(plan);
  };
  EXPECT_EQ(message([](Plan &) {}), "");
  EXPECT_EQ(message([](Plan &p) {
              p.groups[0].placements[1].cuts = {0, 24};
            }),
            "group group: placement 1: expected ranges of flat placements alone, found 'S(0)'");
  EXPECT_EQ(
      message([](Plan &p) {
        p.groups[0].gradientPlacements[1] = {PlacementKind::Flat, 0, 1, 0, {0, 13, 23}};
      }),
      "group group: gradient's placement 1: expected ranges that begin at 0 and end at 24, the "
      "elements of the largest shard, found 'flat(0, 13, 23)'");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].statePlacements[1] = {PlacementKind::PartialSum}; }),
            "group group: states' placement 1: expected no partial sum but of a gradient, found "
            "'P(sum)'");
  EXPECT_EQ(message([](Plan &p) { p.groups[0].placements[0].factor = 3; }),
            "group group: placement 0: expected a split factor that the later axes which shard "
            "dimension 0 multiply to (1, 2), found 3 in '_S(0, 3)'");
}

} // namespace
} // namespace stepc::test
