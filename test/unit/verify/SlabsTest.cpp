//===- SlabsTest.cpp - Sums over ranks that have slabs of blocks -----------===//
//
// Of random groups with slabs: the tables of all ranks are proven; carried out, they give every rank the sums
// of all parts, in the order of the slabs; and whatever number of a row is changed, the proof fails or nothing
// changed. A wrong division of blocks into slabs is refused, too.
//
//===----------------------------------------------------------------------===//

#include "passes/verify/TableProof.h"
#include "runtime/geometry/Geometry.h"
#include "runtime/plan/Tables.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

using namespace stepc;
using namespace stepc::plan;

namespace {

constexpr Placement R{};
Placement shard(int64_t dim) { return {PlacementKind::Shard, dim, 1}; }

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
    auto expander = std::make_shared<Expander>(plan);
    verify::Expand expand{[&, expander](int64_t table, int64_t rank) {
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
    auto faults = verify::TableProof(plan, expand).prove(use);
    return faults.empty() ? "" : faults[0].message;
  }
};

/// Random ranges of the rows of a matrix, some of them empty.
Placement rowRanges(std::mt19937_64 &random, int64_t rows, int64_t cols, int64_t ranks) {
  Placement flat{PlacementKind::Flat};
  for (int64_t i = 0; i <= ranks; ++i)
    flat.cuts.push_back(i == 0 ? 0 : i == ranks ? rows : int64_t(random() % uint64_t(rows + 1)));
  std::sort(flat.cuts.begin(), flat.cuts.end());
  for (int64_t &cut : flat.cuts)
    cut *= cols;
  return flat;
}

/// Random parts of the rows (columns) of fused matrices, equal in size: each one run, or two.
Division divide(std::mt19937_64 &random, Division::Axis axis, int64_t parts, int64_t each) {
  Division division{axis, {}};
  int64_t first = int64_t(random() % 2) ? each : int64_t(random() % uint64_t(each)) + 1;
  for (int64_t part = 0; part < parts; ++part) {
    division.parts.push_back({{part * first, (part + 1) * first}});
    if (first < each)
      division.parts.back().push_back({parts * first + part * (each - first),
                                       parts * first + (part + 1) * (each - first)});
  }
  return division;
}

/// A group of random matrices, fused ones as well, whose longer side random axes of a random mesh cut, in runs of any
/// number and length.
Scene draw(uint64_t seed) {
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

uint64_t firstSeed() {
  const char *given = std::getenv("STEPC_SEED");
  return given ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

/// The parts of all ranks through copies, messages and sums: what each rank has in the end.
class Carrier {
public:
  using Buffers = std::vector<std::vector<double>>; // per rank

  explicit Carrier(const Scene &scene) : scene(scene), expander(scene.plan) {}

  Buffers run(const Buffers &parts) {
    Buffers sums = sum(exchange(scene.messages, copy(scene.parts, parts)));
    return copy(scene.values, exchange(scene.gathers, copy(scene.ranges, sums)));
  }

private:
  RankTable tableOf(int64_t table, size_t rank) {
    return expander.table(scene.plan.tables[size_t(table)], int64_t(rank));
  }
  static double &at(std::vector<double> &list, int64_t index) {
    if (index >= int64_t(list.size()))
      list.resize(size_t(index) + 1, NAN);
    return list[size_t(index)];
  }

  Buffers copy(int64_t table, const Buffers &from) {
    Buffers to(from.size());
    for (size_t rank = 0; rank < from.size(); ++rank)
      for (const CopyRow &row : tableOf(table, rank).copies)
        for (int64_t i = 0; i < row.rows * row.cols; ++i)
          at(to[rank], row.target + i / row.cols * row.targetStride + i % row.cols) =
              from[rank].at(size_t(row.source + i / row.cols * row.sourceStride + i % row.cols));
    return to;
  }

  Buffers exchange(int64_t table, const Buffers &sent) {
    Buffers received(sent.size());
    for (size_t rank = 0; rank < sent.size(); ++rank)
      for (const Message &m : tableOf(table, rank).messages)
        for (const Message &theirs : tableOf(table, size_t(m.peer)).messages)
          for (int64_t i = 0; theirs.peer == int64_t(rank) && i < m.receiveCount; ++i)
            at(received[rank], m.receiveOffset + i) =
                sent[size_t(m.peer)].at(size_t(theirs.sendOffset + i));
    return received;
  }

  Buffers sum(const Buffers &received) {
    Buffers sums(received.size());
    for (size_t rank = 0; rank < received.size(); ++rank) {
      RankTable table = tableOf(scene.sum, rank);
      for (const SumRow &row : table.sums)
        for (int64_t i = 0; i < row.rows * row.cols; ++i) {
          int64_t from = row.source + i / row.cols * row.sourceStride + i % row.cols;
          double &sum = at(sums[rank], row.target + i / row.cols * row.targetStride + i % row.cols);
          sum = 0;
          // Not the sum alone: the order shows, too.
          for (int64_t part = 0; part < row.count; ++part)
            sum = 31 * sum + received[rank].at(size_t(table.lists[size_t(row.list + part)] + from));
        }
    }
    return sums;
  }

  const Scene &scene;
  Expander expander;
};

TEST(Slabs, SumsOfRandomGroups) {
  uint64_t seed = firstSeed();
  int64_t withSlabs = 0, apart = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    Scene scene = draw(seed + i);
    SCOPED_TRACE("STEPC_SEED=" + std::to_string(seed + i));
    const Group &group = scene.plan.groups[0];
    const Mesh &mesh = scene.plan.meshes[0];
    if (group.slabs.factors.empty())
      continue;
    ++withSlabs;
    ASSERT_EQ(validate(scene.plan), "");
    ASSERT_EQ(scene.prove(), "");
    // Each rank's elements have a number of the rank, the block and the element.
    Place part = scene.plan.tables[size_t(scene.parts)].from;
    View value = view(group, part.value);
    int64_t each = value.rows * value.cols;
    Expander expander(scene.plan);
    std::vector<std::vector<double>> parts(mesh.ranks.size());
    std::vector<std::map<int64_t, int64_t>> slots(mesh.ranks.size()); // by block
    auto number = [](size_t rank, int64_t block, int64_t e) {
      return double(int64_t(rank) * 1000003 + block * 1009 + e);
    };
    for (size_t rank = 0; rank < parts.size(); ++rank) {
      for (const Chunk &chunk : expander.table(scene.plan.tables[size_t(scene.blocks)], int64_t(rank)).chunks)
        slots[rank][chunk.block] = chunk.slot;
      parts[rank].resize(slots[rank].size() * size_t(each));
      ASSERT_EQ(int64_t(parts[rank].size()), expander.elements(part, int64_t(rank)));
      for (auto [block, slot] : slots[rank])
        for (int64_t e = 0; e < each; ++e)
          parts[rank][size_t(slot * each + e)] = number(rank, block, e);
    }
    auto found = Carrier(scene).run(parts);
    for (size_t position = 0; position < mesh.ranks.size(); ++position) {
      auto rank = size_t(mesh.ranks[position]);
      ASSERT_EQ(found[rank].size(), parts[rank].size());
      for (auto [block, slot] : slots[rank]) {
        std::vector<size_t> ranks; // with slabs of the block, row-major
        for (size_t other = 0; other < mesh.ranks.size(); ++other)
          if (slots[size_t(mesh.ranks[other])].count(block) &&
              int64_t(other) - along(mesh, group.slabs.factors, int64_t(other)) ==
                  int64_t(position) - along(mesh, group.slabs.factors, int64_t(position)))
            ranks.push_back(size_t(mesh.ranks[other]));
        apart += ranks.size() > 1 && ranks.size() < mesh.ranks.size();
        for (int64_t e = 0; e < each; ++e) {
          double wanted = 0;
          for (size_t other : ranks)
            wanted = 31 * wanted + number(other, block, e);
          ASSERT_EQ(found[rank][size_t(slot * each + e)], wanted);
        }
      }
    }
  }
  EXPECT_GE(withSlabs, 60);
  EXPECT_GE(apart, 60); // blocks of which not all ranks have slabs
}

TEST(Slabs, EveryChangedNumberIsRefused) {
  uint64_t seed = firstSeed();
  int64_t changed = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    Scene scene = draw(seed + i);
    const Mesh &mesh = scene.plan.meshes[0];
    if (scene.plan.groups[0].slabs.factors.empty())
      continue;
    std::mt19937_64 random(seed + i);
    int64_t victim = int64_t(random() % mesh.ranks.size());
    auto field = random() % 7, which = random();
    bool did = false;
    auto lie = [&](RankTable &rows, int64_t table, int64_t rank) {
      if (table != scene.sum || rank != victim || rows.sums.empty())
        return;
      SumRow &row = rows.sums[which % rows.sums.size()];
      did = true;
      switch (field) {
      case 0:
        ++row.cols;
        break;
      case 1:
        ++row.source;
        break;
      case 2:
        ++row.target;
        break;
      case 3: // one is left out
        --row.count;
        break;
      case 4: // one is added twice, in the place of another
        did = row.count > 1;
        rows.lists[size_t(row.list + row.count - 1)] = rows.lists[size_t(row.list)];
        break;
      case 5: // in another order
        did = row.count > 1;
        std::swap(rows.lists[size_t(row.list + row.count - 1)], rows.lists[size_t(row.list)]);
        break;
      default:
        rows.sums.erase(rows.sums.begin() + int64_t(which % rows.sums.size()));
      }
    };
    std::string refusal = scene.prove(lie);
    changed += did;
    EXPECT_EQ(refusal.empty(), !did) << "STEPC_SEED=" << seed + i << ", field " << field;
  }
  EXPECT_GE(changed, 10);
}

TEST(Slabs, SlabsThatAreNoneAreRefused) {
  Scene scene(ValueKind::Gram);
  scene.plan.meshes = {{"mesh", {"a", "b"}, {2, 2}, {0, 1, 2, 3}}};
  Group &group = scene.plan.groups[0];
  group.shape = {8, 4};
  group.placements = {shard(0), R};
  scene.setParameters(1);
  group.slabs = {Division::Rows, {{0, 1, 2}}, 4, 4};
  EXPECT_EQ(validate(scene.plan), "");
  EXPECT_EQ(scene.prove(), "");
  auto refused = [&](auto change) {
    Scene other = scene;
    change(other.plan.groups[0]);
    return validate(other.plan);
  };
  Scene exact = scene;
  exact.plan.numerics = "exact";
  EXPECT_EQ(validate(exact.plan),
            "group g: expected slabs in fast numerics alone, found some in exact ones");
  EXPECT_EQ(refused([](Group &g) { g.slabs.factors = {{1, 1, 2}}; }),
            "group g: expected the slabs of shards that cut the rows of blocks, found placements "
            "[S(0), R]");
  EXPECT_EQ(refused([](Group &g) { g.shape = {7, 4}; }),
            "group g: expected slabs of 3 to 4 rows, found 4 to 4");
  EXPECT_EQ(refused([](Group &g) { // the shorter one has zeros behind
              g.shape = {7, 4};
              g.slabs.shortest = 3;
            }),
            "");
  EXPECT_EQ(refused([](Group &g) { g.shape = {8, 16}; }),
            "group g: expected shards that cut the longer side of blocks, found rows of 8 x 16");
  EXPECT_EQ(
      refused([](Group &g) { g.placements[1] = shard(1); }),
      "group g: expected shards that cut blocks by rows alone, found placements [S(0), S(1)]");
  EXPECT_EQ(refused([](Group &g) { g.placements[0] = {PlacementKind::InterleavedShard, 0, 2}; }),
            "");
  // The proof has a geometry of its own, and is asked of plans that nobody has validated.
  auto unproven = [&](auto change) {
    Scene other = scene;
    change(other.plan.groups[0]);
    return other.prove();
  };
  EXPECT_NE(unproven([](Group &g) { g.slabs.factors = {{1, 1, 2}}; }), "");
  // Of 3 + 2 + 2 rows those with a gradient fill no slab: one of the others' would not be zero behind.
  Scene lacking = scene;
  lacking.plan.groups[0].shape = {7, 4};
  lacking.plan.groups[0].slabs = {Division::Rows, {{0, 1, 2}}, 3, 4};
  EXPECT_EQ(lacking.prove(), "");
  lacking.plan.groups[0].gradientPlacements = {shard(0), {PlacementKind::Owned}};
  lacking.plan.tables[size_t(lacking.in)].from.from = Distribution::GradientShards;
  EXPECT_NE(lacking.prove(), "");
  EXPECT_EQ(unproven([](Group &g) { g.slabs.longest = 5; }),
            "expected slabs of 4 to 4 rows, found 4 to 5");
  EXPECT_EQ(unproven([](Group &g) { g.placements[0] = {PlacementKind::Flat, 0, 1, 0, {0, 18, 32}}; }),
            "expected slabs of whole rows, found 18 elements in 5 rows of parameter 'p0'");
}

} // namespace
