//===- ListsTest.cpp - Moves between shards by different placements --------===//
//
// Random plans in which parameter, gradient and states stand apart: values are taken from each
// of the three to each other, element by element, and every buffer is compared with what an
// oracle says that the ranks hold (Simulation.h).
//
//===----------------------------------------------------------------------===//

#include "runtime/geometry/Geometry.h"
#include "test/unit/plan/RandomPlan.h"

#include <gtest/gtest.h>
#include <set>

namespace stepc::test {

using namespace plan;

namespace {

using Ids = std::vector<int64_t>;

class Mover {
public:
  Mover(const Plan &plan, int64_t segment, ValueKind value, ShardsKind from, ShardsKind to)
      : plan(plan), segment(segment), value(value),
        group(plan.groups[static_cast<size_t>(plan.segments[static_cast<size_t>(segment)].group)]),
        mesh(plan.meshes[static_cast<size_t>(group.mesh)]), expander(plan),
        x(shardsOf(group, from)), y(shardsOf(group, to)), source(shards(from)), target(shards(to)) {
  }

  std::string run(bool &stays) {
    Place sent{segment, value, x, y, End::Sent}, received{segment, value, x, y, End::Received};
    Place kept{segment, value, y, y, End::Kept};
    auto sends = copies(bound(x), sent, source);
    chunks(bound(x), sent, source, sends, false);
    auto receives = exchange({TableKind::Message, sent, received, 4}, sends);
    chunks(bound(y), received, target, receives, true);
    auto keeps = copies(received, kept, packed(receives));
    chunks(bound(y), kept, target, keeps, true);
    toShards(kept, keeps);
    stays = value == ValueKind::Full && geometry::holdsAll(group, mesh, x.whose(), y.whose());
    if (stays && copies(bound(x), kept, source) != keeps)
      fail("a copy on the rank differs from what arrives");
    // A copy is sent as its shards are.
    if (copies(kept, {segment, value, y, x, End::Sent}, packed(keeps)) !=
        copies(bound(y), {segment, value, y, x, End::Sent}, target))
      fail("a copy is not sent as its shards are");
    return error;
  }

private:
  /// Per rank, per parameter of the group (or one list, of what is packed).
  using Memory = std::vector<std::vector<Ids>>;

  Place bound(Distribution in) const { return Place::resting(segment, value, in); }
  void fail(const std::string &message) {
    if (error.empty())
      error = message;
  }
  int64_t ranks() const { return static_cast<int64_t>(plan.world().size()); }

  Memory shards(ShardsKind of) {
    Group alone = group;
    alone.placements = group.placementsOf(of);
    Extent size = blockExtent(group, value);
    int64_t each = std::max<int64_t>(1, group.blocksPerParameter()) * size.rows * size.cols;
    Memory memory;
    std::vector<int64_t> world = plan.world();
    for (int64_t rank : world) {
      std::vector<Ids> &own = memory.emplace_back(group.parameters.size());
      auto found = std::find(mesh.ranks.begin(), mesh.ranks.end(), rank);
      for (size_t p = 0; p < own.size() && found != mesh.ranks.end(); ++p) {
        own[p] = shardIdentities(alone, mesh, found - mesh.ranks.begin(), value);
        for (int64_t &id : own[p])
          id += id < 0 ? 0 : static_cast<int64_t>(p) * each;
      }
    }
    return memory;
  }
  static Memory packed(const std::vector<Ids> &lists) {
    Memory memory;
    for (const Ids &list : lists)
      memory.push_back({list});
    return memory;
  }
  bool inSegment(int64_t id) const {
    const Segment &s = plan.segments[static_cast<size_t>(segment)];
    Extent size = blockExtent(group, value);
    return id >= 0 &&
           (s.all || std::count(s.blocks.begin(), s.blocks.end(), id / (size.rows * size.cols)));
  }
  /// The elements of the segment that a rank holds.
  std::multiset<int64_t> held(const Memory &memory, int64_t rank) const {
    std::multiset<int64_t> ids;
    for (const Ids &list : memory[static_cast<size_t>(rank)])
      for (int64_t id : list)
        if (inSegment(id))
          ids.insert(id);
    return ids;
  }
  static std::multiset<int64_t> asSet(const Ids &ids) { return {ids.begin(), ids.end()}; }
  int64_t indexOf(int64_t parameter) const {
    return plan.parameters[static_cast<size_t>(parameter)].indexInGroup;
  }

  /// What the copies of all ranks write; each element of the target once.
  std::vector<Ids> copies(const Place &from, const Place &to, const Memory &memory) {
    std::vector<Ids> result;
    for (int64_t rank = 0; rank < ranks(); ++rank) {
      Ids &out = result.emplace_back(static_cast<size_t>(expander.elements(to, rank)), -1);
      for (const CopyRow &row : expander.table({TableKind::Copy, from, to, 4}, rank).copies) {
        const auto &lists = memory[static_cast<size_t>(rank)];
        const Ids &list = lists[from.isBound() ? static_cast<size_t>(indexOf(row.parameter)) : 0];
        for (int64_t i = 0; i < row.rows; ++i)
          for (int64_t j = 0; j < row.cols; ++j) {
            auto at = static_cast<size_t>(row.source + i * row.sourceStride + j);
            auto put = static_cast<size_t>(row.target + i * row.targetStride + j);
            if (at >= list.size() || put >= out.size() || out[put] != -1)
              fail("a copy reads outside, or writes outside or twice");
            else
              out[put] = list[at];
          }
      }
      // In a copy of shards other parts' elements have their places, too.
      if (std::count(out.begin(), out.end(), -1) && (group.parts.empty() || to.end != End::Kept))
        fail("a buffer is not filled, of a copy from " + name(from.from) + " to " + name(to.from));
    }
    return result;
  }

  /// A stage over shards visits each element once and finds it in the staged buffer.
  void chunks(const Place &walked, const Place &staged, const Memory &memory,
              const std::vector<Ids> &buffers, bool reads) {
    for (int64_t rank = 0; rank < ranks(); ++rank) {
      std::multiset<int64_t> visited;
      const Ids &buffer = buffers[static_cast<size_t>(rank)];
      for (const Chunk &c :
           expander.table({TableKind::ShardChunks, walked, staged, 0}, rank).chunks)
        for (int64_t i = 0; i < c.rows; ++i)
          for (int64_t j = 0; j < c.cols; ++j) {
            int64_t id =
                memory[static_cast<size_t>(rank)][static_cast<size_t>(indexOf(c.parameter))]
                      [static_cast<size_t>(c.local + i * c.localStride + j)];
            visited.insert(id);
            auto at = static_cast<size_t>(c.staged + i * c.stagedStride + j);
            if (c.staged < 0 ? reads : at >= buffer.size() || buffer[at] != id)
              fail("a stage finds another element in its staged operand");
          }
      if (visited != held(memory, rank))
        fail("a stage does not visit each element of the shards once");
    }
  }

  std::vector<Ids> exchange(const Table &table, const std::vector<Ids> &sends) {
    std::vector<RankTable> all;
    for (int64_t rank = 0; rank < ranks(); ++rank)
      all.push_back(expander.table(table, rank));
    std::vector<Ids> result;
    for (int64_t rank = 0; rank < ranks(); ++rank) {
      Ids &out = result.emplace_back(static_cast<size_t>(expander.elements(table.to, rank)), -1);
      std::multiset<int64_t> own = held(source, rank);
      for (const Message &m : all[static_cast<size_t>(rank)].messages) {
        Message other{};
        for (const Message &each : all[static_cast<size_t>(m.peer)].messages)
          if (each.peer == rank)
            other = each;
        if (other.sendCount != m.receiveCount || other.receiveCount != m.sendCount) {
          fail("a send and its receive differ");
          return result;
        }
        for (int64_t i = 0; i < m.receiveCount; ++i) {
          int64_t id =
              sends[static_cast<size_t>(m.peer)][static_cast<size_t>(other.sendOffset + i)];
          out[static_cast<size_t>(m.receiveOffset + i)] = id;
          if (m.peer != rank && own.count(id))
            fail("a rank is sent what it has");
        }
      }
      if (asSet(out) != held(target, rank))
        fail("not every element arrives once");
    }
    return result;
  }

  void toShards(const Place &kept, const std::vector<Ids> &keeps) {
    for (int64_t rank = 0; rank < ranks(); ++rank) {
      std::multiset<int64_t> written;
      for (const CopyRow &row : expander.table({TableKind::Copy, kept, bound(y), 4}, rank).copies)
        for (int64_t i = 0; i < row.rows; ++i)
          for (int64_t j = 0; j < row.cols; ++j) {
            int64_t id = keeps[static_cast<size_t>(rank)]
                              [static_cast<size_t>(row.source + i * row.sourceStride + j)];
            written.insert(id);
            if (target[static_cast<size_t>(rank)][static_cast<size_t>(indexOf(row.parameter))]
                      [static_cast<size_t>(row.target + i * row.targetStride + j)] != id)
              fail("a shard gets another element");
          }
      if (written != held(target, rank))
        fail("a shard does not get each element once");
    }
  }

  const Plan &plan;
  int64_t segment;
  ValueKind value;
  const Group &group;
  const Mesh &mesh;
  Expander expander;
  Distribution x, y;
  Memory source, target;
  std::string error;
};

TEST(Lists, EveryElementArrivesOnceFromAnyShardsInAnyOthers) {
  Histogram histogram;
  std::mt19937_64 random(11);
  auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int moves = 0, copies = 0, divided = 0;
  Histogram drawn;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Plan plan = drawPlan(seed, histogram).plan;
    divided += drawLists(random, plan, /*mayBePartial=*/false, drawn);
    ASSERT_EQ(validate(plan), "") << "seed " << seed;
    for (size_t segment = 0; segment < plan.segments.size(); ++segment) {
      const Group &group = plan.groups[static_cast<size_t>(plan.segments[segment].group)];
      for (int64_t from = 0; from < 3; ++from)
        for (int64_t to = 0; to < 3; ++to) {
          if (group.placementsOf(ShardsKind(from)) == group.placementsOf(ShardsKind(to)))
            continue;
          ValueKind value = kNamedKinds[static_cast<size_t>(draw(1, 100) > 40 ? 0 : draw(1, 3))].second;
          if (group.blocksPerParameter() == 0)
            continue; // what has no blocks has no values of any kind
          bool stays = false;
          ASSERT_EQ(
              Mover(plan, static_cast<int64_t>(segment), value, ShardsKind(from), ShardsKind(to))
                  .run(stays),
              "")
              << "seed " << seed << ", segment " << segment << ", value " << name(value)
              << ", from " << from << " to " << to << ", shape "
              << testing::PrintToString(group.shape) << ", batch axes " << group.batchAxes
              << ", columns from " << group.flatten << ", "
              << toString(group.placementsOf(ShardsKind(from))) << " and "
              << toString(group.placementsOf(ShardsKind(to)));
          ++moves;
          copies += stays;
        }
    }
  }
  printf("%d moves, %d of them without messages; placements", moves, copies);
  for (auto [kind, count] : drawn)
    printf(" %s %d", kind.c_str(), count);
  printf("\n");
  EXPECT_EQ(drawn.size(), 6u);
  EXPECT_GT(moves, 300);
  EXPECT_GT(divided, 20);
  EXPECT_GT(copies, 20);
}

// What several ranks need alike is packed once.
TEST(Lists, ReplicasShareAPart) {
  Plan plan = simplePlan({4}, {{}}, {8, 2}, 0, Strategy::Elementwise).plan;
  plan.groups[0].statePlacements = {{PlacementKind::Shard, 0, 1}};
  Place sent{0, ValueKind::Full, Distribution::StateShards, Distribution::Shards, End::Sent};
  Place received = sent;
  received.end = End::Received;
  EXPECT_EQ(Expander(plan).elements(sent, 1), 4);
  RankTable table = Expander(plan).table({TableKind::Message, sent, received, 4}, 1);
  ASSERT_EQ(table.messages.size(), 4u);
  for (const Message &message : table.messages) {
    EXPECT_EQ(message.sendOffset, 0);
    EXPECT_EQ(message.sendCount, 4);
    EXPECT_EQ(message.receiveOffset, 4 * message.peer);
  }
  // Back nothing travels: every rank has its part.
  std::swap(sent.from, sent.to);
  std::swap(received.from, received.to);
  table = Expander(plan).table({TableKind::Message, sent, received, 4}, 1);
  ASSERT_EQ(table.messages.size(), 1u);
  EXPECT_EQ(table.messages[0].peer, 1);
}

} // namespace
} // namespace stepc::test
