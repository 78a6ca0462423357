//===- SlabsTest.cpp - Sums over ranks that have slabs of blocks -----------===//
//
// Of random groups with slabs: the tables of all ranks are proven; carried out, they give every rank the sums
// of all parts, in the order of the slabs; and whatever number of a row is changed, the proof fails or nothing
// changed. A wrong division of blocks into slabs is refused, too.
//
//===----------------------------------------------------------------------===//

#include "test/unit/verify/SlabScene.h"

#include <cstdlib>
#include <map>
#include <random>

using namespace stepc;
using namespace stepc::plan;
using namespace stepc::test;

namespace {

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
      for (const Chunk &chunk :
           expander.table(scene.plan.tables[size_t(scene.blocks)], int64_t(rank)).chunks)
        slots[rank][chunk.block] = chunk.perBlock;
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
  EXPECT_EQ(
      unproven([](Group &g) { g.placements[0] = {PlacementKind::Flat, 0, 1, 0, {0, 18, 32}}; }),
      "expected slabs of whole rows, found 18 elements in 5 rows of parameter 'p0'");
}

} // namespace
