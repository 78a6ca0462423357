//===- SlabScene.h - Random groups with slabs, and their tables --*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_VERIFY_SLABSCENE_H
#define STEPC_TEST_UNIT_VERIFY_SLABSCENE_H

#include "passes/verify/TableProof.h"
#include "runtime/geometry/Geometry.h"
#include "runtime/plan/Tables.h"

#include <gtest/gtest.h>

#include <random>

namespace stepc::test {

using namespace stepc::plan;

inline constexpr Placement R{};
inline Placement shard(int64_t dim) { return {PlacementKind::Shard, dim, 1}; }

/// What the step of one group does with its tables.
struct Scene {
  Plan plan;
  int64_t in, blocks, parts, messages, sum, ranges, gathers, values;
  verify::ProgramUse use;

  explicit Scene(ValueKind kind) {
    plan.numerics = "fast";
    plan.rules = {{"R", {}, {}, 0}};
    plan.routes = {{"R", 0, {}, MissingGrad::Error}};
    plan.groups.resize(1);
    Group &group = plan.groups[0];
    group.name = "g";
    group.computes = true;
    plan.segments = {{"s", 0, {}, true}};
    auto shards = Place::resting(0, ValueKind::Full, Distribution::Shards);
    auto full = Place::resting(0, ValueKind::Full, Distribution::Blocks);
    auto part = Place::resting(0, kind, Distribution::Parts);
    auto value = Place::resting(0, kind, Distribution::Blocks);
    Place sent{0, kind, Distribution::Parts, Distribution::Ranges, End::Sent}, received = sent;
    Place kept{0, kind, Distribution::Ranges, Distribution::Ranges, End::Kept};
    Place leaving{0, kind, Distribution::Ranges, Distribution::Blocks, End::Sent}, back = leaving;
    received.end = back.end = End::Received;
    in = add({TableKind::ShardChunks, shards, full, 0});
    blocks = add({TableKind::BlockChunks, value, value, 0});
    parts = add({TableKind::Copy, part, sent, 4});
    messages = add({TableKind::Message, sent, received, 4});
    sum = add({TableKind::Sum, received, kept, 4});
    ranges = add({TableKind::Copy, kept, leaving, 4});
    gathers = add({TableKind::Message, leaving, back, 4});
    values = add({TableKind::Copy, back, value, 4});
    use.uses = {{in, false, true}, {blocks}, {parts}, {sum}, {ranges}, {values}};
    use.ways = {{parts, messages, sum}, {ranges, gathers, values}};
  }

  int64_t add(Table table) {
    plan.tables.push_back(table);
    return int64_t(plan.tables.size()) - 1;
  }

  void setParameters(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      plan.groups[0].parameters.push_back(i);
      plan.parameters.push_back({"p" + std::to_string(i), 0, 0, i});
    }
  }

  std::string prove(const std::function<void(RankTable &, int64_t, int64_t)> &lie = {}) const {
    auto makeExpand = [&](const Plan &plan) {
      auto expander = std::make_shared<Expander>(plan);
      return verify::Expand{[&, expander](int64_t table, int64_t rank) {
                              if (!lie)
                                return expander->common(plan.tables[size_t(table)], rank);
                              RankTable own = expander->table(plan.tables[size_t(table)], rank);
                              lie(own, table, rank);
                              return CommonTable(std::move(own));
                            },
                            {},
                            [&, expander](int64_t pool, int64_t rank) {
                              return expander->pool(plan.pools[size_t(pool)], rank);
                            }};
    };
    auto faults = verify::TableProof(plan, makeExpand).prove(use);
    return faults.empty() ? "" : faults[0].message;
  }
};

/// Random ranges of the rows of a matrix, some of them empty.
inline Placement rowRanges(std::mt19937_64 &random, int64_t rows, int64_t cols, int64_t ranks) {
  Placement flat{PlacementKind::Flat};
  for (int64_t i = 0; i <= ranks; ++i)
    flat.cuts.push_back(i == 0 ? 0 : i == ranks ? rows : int64_t(random() % uint64_t(rows + 1)));
  std::sort(flat.cuts.begin(), flat.cuts.end());
  for (int64_t &cut : flat.cuts)
    cut *= cols;
  return flat;
}

/// Random parts of the rows (columns) of fused matrices, equal in size: each one run, or two.
inline Division divide(std::mt19937_64 &random, Division::Axis axis, int64_t parts, int64_t each) {
  Division division{axis, {}};
  int64_t first = int64_t(random() % 2) ? each : int64_t(random() % uint64_t(each)) + 1;
  for (int64_t part = 0; part < parts; ++part) {
    division.parts.push_back({{part * first, (part + 1) * first}});
    if (first < each)
      division.parts.back().push_back(
          {parts * first + part * (each - first), parts * first + (part + 1) * (each - first)});
  }
  return division;
}

/// A group of random matrices, fused ones as well, whose longer side random axes of a random mesh cut, in runs of any
/// number and length.
inline Scene draw(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto number = [&](int64_t least, int64_t most) {
    return least + int64_t(random() % uint64_t(most - least + 1));
  };
  Scene scene(number(0, 2) ? ValueKind::Gram : ValueKind::One);
  Mesh mesh{"mesh", {}, {}, {}};
  Group &group = scene.plan.groups[0];
  bool tall = number(0, 1), experts = number(0, 1);
  int64_t ranks = 1, slabs = 1, dim = (experts ? 1 : 0) + (tall ? 0 : 1);
  bool fused = number(0, 2) == 0;
  int64_t stripes = number(0, 2) ? 1 : number(2, 3);
  for (int64_t axis = 0, axes = number(1, 3); axis < axes; ++axis) {
    mesh.axes.push_back("a" + std::to_string(axis));
    mesh.sizes.push_back(number(1, 3));
    ranks *= mesh.sizes.back();
    int64_t what = number(0, 3);
    group.placements.push_back(what > 1 ? shard(dim) : what && experts ? shard(0) : R);
    if (group.placements.back() != shard(dim))
      continue;
    slabs *= mesh.sizes.back();
    if (stripes > 1)
      group.placements.back() = {PlacementKind::InterleavedShard, dim, std::exchange(stripes, 1)};
  }
  for (int64_t rank = 0; rank < ranks; ++rank)
    mesh.ranks.push_back(rank);
  std::shuffle(mesh.ranks.begin(), mesh.ranks.end(), random);
  int64_t large = number(0, 1) ? 6 * slabs * number(1, 4) : number(1, 9 * slabs);
  int64_t small = number(1, large), parts = fused ? number(2, 4) : 1;
  int64_t rows = tall ? parts * large : small, cols = tall ? small : parts * large;
  group.shape = {rows, cols};
  if (fused) {
    group.division = divide(random, tall ? Division::Rows : Division::Columns, parts, large);
    for (int64_t part = 0; part < parts; ++part)
      group.parts.push_back(part);
  }
  group.batchAxes = experts;
  if (experts)
    group.shape.insert(group.shape.begin(), number(1, 5));
  while (auto wrong = geometry::checkPlacements(group.shape, group.placements, mesh))
    group.placements[wrong->axis] = R;
  // Ranges of a shard that no other axis cuts.
  if (tall && number(0, 2) == 0) {
    std::ranges::fill(group.placements, R);
    auto axis = size_t(number(0, int64_t(mesh.sizes.size()) - 1));
    int64_t matrices = experts ? group.shape[0] : 1;
    group.placements[axis] = rowRanges(random, matrices * rows, cols, mesh.sizes[axis]);
  }
  scene.plan.meshes = {mesh};
  scene.setParameters(number(1, 3));
  group.slabs = stepc::geometry::slabsOf(group, mesh, ShardsKind::Parameter);
  EXPECT_TRUE(group.slabs.factors.empty() ||
              geometry::checkSlabs(group, mesh, group.slabs, ShardsKind::Parameter).empty());
  return scene;
}

} // namespace stepc::test

#endif
