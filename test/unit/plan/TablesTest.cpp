//===- TablesTest.cpp - Tables spelled out, row for row -------------------===//

#include "test/unit/plan/RandomPlan.h"

#include <ctime>
#include <gtest/gtest.h>

namespace stepc::test {

using namespace plan;

namespace {

constexpr Placement R{};
Placement S(int64_t dim) { return {PlacementKind::Shard, dim, 1}; }

using Row = std::vector<int64_t>;
using Rows = std::vector<Row>;

Rows rows(const std::vector<Chunk> &chunks) {
  Rows result;
  for (const Chunk &c : chunks)
    result.push_back({c.parameter, c.block, c.row, c.col, c.rows, c.cols, c.local, c.localStride,
                      c.staged, c.stagedStride});
  return result;
}
Rows rows(const std::vector<CopyRow> &copies) {
  Rows result;
  for (const CopyRow &c : copies)
    result.push_back(
        {c.parameter, c.rows, c.cols, c.source, c.sourceStride, c.target, c.targetStride});
  return result;
}
Rows rows(const std::vector<Message> &messages) {
  Rows result;
  for (const Message &m : messages)
    result.push_back({m.peer, m.sendOffset, m.sendCount, m.receiveOffset, m.receiveCount});
  return result;
}

/// Checks a simple plan as a whole and gives its tables.
struct Expanded {
  explicit Expanded(Drawn drawn) : drawn(std::move(drawn)), ranks(expandAll(this->drawn.plan)) {
    EXPECT_EQ(validate(this->drawn.plan), "");
    for (const ValueTables &value : this->drawn.values)
      EXPECT_EQ(simulate(this->drawn.plan, ranks, value), "");
  }
  const ValueTables &full() const { return drawn.values[0]; }
  const RankTable &table(int64_t index, size_t rank) const {
    return ranks[rank].tables[static_cast<size_t>(index)];
  }
  Drawn drawn;
  std::vector<RankTables> ranks;
};

TEST(Tables, OwnerOfTwoMatricesInRows) {
  // Two 3 × 4 matrices over two ranks by rows; rank 0 owns the first, rank 1
  // the second.
  Expanded e(simplePlan({2}, {S(0)}, {3, 4}, 0, Strategy::Owner, 2));
  EXPECT_EQ(rows(e.table(e.full().pack, 0).chunks),
            (Rows{{0, 0, 0, 0, 1, 8, 0, 8, 0, 8}, {1, 1, 0, 0, 1, 8, 0, 8, 8, 8}}));
  EXPECT_EQ(rows(e.table(e.full().gather, 0).messages), (Rows{{0, 0, 8, 0, 8}, {1, 8, 8, 8, 4}}));
  EXPECT_EQ(rows(e.table(e.full().gather, 1).messages), (Rows{{0, 0, 4, 0, 8}, {1, 4, 4, 8, 4}}));
  // Both parts follow each other in the block as well, but each may stand anywhere: two rows.
  EXPECT_EQ(rows(e.table(e.full().place, 1).copies),
            (Rows{{1, 1, 8, 0, 8, 0, 8}, {1, 1, 4, 8, 4, 8, 4}}));
  EXPECT_EQ(rows(e.table(e.full().compute, 1).chunks), (Rows{{1, 1, 0, 0, 3, 4, 0, 0, 0, 4}}));
  EXPECT_EQ(e.table(e.full().compute, 1).blocks, 1);
  EXPECT_EQ(rows(e.table(e.full().scatter, 1).messages), (Rows{{0, 0, 8, 0, 4}, {1, 8, 4, 4, 4}}));
}

TEST(Tables, ColumnsArePackedInTheSendBuffer) {
  Expanded e(simplePlan({2}, {S(1)}, {3, 5}, 0, Strategy::Owner, 1));
  // The local shard is 3 × 2, contiguous as it is packed; the block's rows are
  // not.
  EXPECT_EQ(rows(e.table(e.full().pack, 1).chunks), (Rows{{0, 0, 0, 3, 1, 6, 0, 6, 0, 6}}));
  EXPECT_EQ(rows(e.table(e.full().place, 0).copies),
            (Rows{{0, 3, 3, 0, 3, 0, 5}, {0, 3, 2, 9, 2, 3, 5}}));
  EXPECT_EQ(rows(e.table(e.full().unplace, 0).copies),
            (Rows{{0, 3, 3, 0, 5, 0, 3}, {0, 3, 2, 3, 5, 9, 2}}));
}

TEST(Tables, OnlyTheServingReplicaSends) {
  // Two replicas; the owner of the first block is position 0, of the second
  // position 1.
  Expanded e(simplePlan({2}, {R}, {2, 2}, 0, Strategy::Owner, 2));
  EXPECT_EQ(rows(e.table(e.full().pack, 0).chunks),
            (Rows{{0, 0, 0, 0, 1, 4, 0, 4, 0, 4}, {1, 1, 0, 0, 1, 4, 0, 4, -1, 0}}));
  EXPECT_EQ(rows(e.table(e.full().gather, 0).messages), (Rows{{0, 0, 4, 0, 4}}));
  EXPECT_EQ(rows(e.table(e.full().scatter, 0).messages), (Rows{{0, 0, 4, 0, 4}, {1, 4, 4, 4, 4}}));
}

TEST(Tables, AGatherSendsOneCopyToAll) {
  Expanded e(simplePlan({3}, {S(0)}, {4, 2}, 0, Strategy::Gather, 2));
  EXPECT_EQ(rows(e.table(e.full().gather, 1).messages),
            (Rows{{0, 0, 8, 0, 8}, {1, 0, 8, 8, 8}, {2, 0, 8, 0, 0}}));
  // On the way back every rank reads its own rows of its own blocks.
  EXPECT_EQ(rows(e.table(e.full().out, 1).chunks),
            (Rows{{0, 0, 2, 0, 1, 4, 0, 4, 4, 4}, {1, 1, 2, 0, 1, 4, 0, 4, 12, 4}}));
  EXPECT_TRUE(e.table(e.full().out, 2).chunks.empty());
}

TEST(Tables, LocalBlocksNeedNoMessages) {
  // Three experts over two ranks.
  Expanded e(simplePlan({2}, {S(0)}, {3, 2, 2}, 1, Strategy::Local));
  EXPECT_EQ(rows(e.table(e.full().in, 0).chunks), (Rows{{0, 0, 0, 0, 1, 8, 0, 8, 0, 8}}));
  EXPECT_EQ(rows(e.table(e.full().in, 1).chunks), (Rows{{0, 2, 0, 0, 1, 4, 0, 4, 0, 4}}));
  Table message{TableKind::Message,
                {0, ValueKind::Full, Distribution::Shards, Distribution::Blocks, End::Sent},
                {0, ValueKind::Full, Distribution::Shards, Distribution::Blocks, End::Received},
                4};
  EXPECT_TRUE(Expander(e.drawn.plan).table(message, 0).messages.empty());
  EXPECT_EQ(Expander(e.drawn.plan).elements(message.from, 0), 0);
}

TEST(Tables, PeersAreWorldRanksNotPositions) {
  Drawn drawn = simplePlan({2}, {S(0)}, {2, 3}, 0, Strategy::Owner, 1);
  drawn.plan.meshes[0].ranks = {7, 3}; // position 0, the owner, is world rank 1
  Expanded e(drawn);
  EXPECT_EQ(rows(e.table(e.full().gather, 1).messages), (Rows{{0, 0, 0, 0, 3}, {1, 0, 3, 3, 3}}));
  EXPECT_EQ(rows(e.table(e.full().gather, 0).messages), (Rows{{1, 0, 3, 0, 0}}));
  // The second row of the matrix stands at position 1, world rank 0, and comes
  // first.
  EXPECT_EQ(rows(e.table(e.full().place, 1).copies),
            (Rows{{0, 1, 3, 0, 3, 3, 3}, {0, 1, 3, 3, 3, 0, 3}}));
}

TEST(Tables, MessagesMayReceiveAnotherSegment) {
  Drawn drawn = simplePlan({2}, {S(0)}, {2, 3}, 0, Strategy::Owner, 3);
  drawn.plan.segments.push_back({"first", 0, {0}, false});
  drawn.plan.segments.push_back({"rest", 0, {2, 1}, false});
  Table table{TableKind::Message,
              {1, ValueKind::Full, Distribution::Shards, Distribution::Blocks, End::Sent},
              {2, ValueKind::Full, Distribution::Shards, Distribution::Blocks, End::Received},
              4};
  EXPECT_EQ(rows(Expander(drawn.plan).table(table, 0).messages),
            (Rows{{0, 0, 3, 0, 3}, {1, 0, 0, 3, 3}}));
}

TEST(Tables, LongRowsAreCut) {
  // One vector of 40,000 elements: pieces of the plan's chunkElements, the last one short.
  Expanded e(simplePlan({1}, {R}, {40000}, 0, Strategy::Elementwise));
  EXPECT_EQ(rows(e.table(e.full().untouched, 0).chunks),
            (Rows{{0, 0, 0, 0, 1, 16384, 0, 16384, 0, 0},
                  {0, 0, 0, 16384, 1, 16384, 16384, 16384, 0, 0},
                  {0, 0, 0, 32768, 1, 7232, 32768, 7232, 0, 0}}));
  // Cut within rows of a matrix: the place of the first element is kept.
  Expanded f(simplePlan({1}, {R}, {3, 10000}, 0, Strategy::Local));
  EXPECT_EQ(rows(f.table(f.full().in, 0).chunks),
            (Rows{{0, 0, 0, 0, 1, 16384, 0, 16384, 0, 16384},
                  {0, 0, 1, 6384, 1, 13616, 16384, 13616, 16384, 13616}}));
}

TEST(Tables, APlanSaysHowLongRowsAre) {
  Drawn drawn = simplePlan({1}, {R}, {3, 4}, 0, Strategy::Local);
  drawn.plan.chunkElements = 5;
  Expanded e(drawn);
  EXPECT_EQ(rows(e.table(e.full().in, 0).chunks), (Rows{{0, 0, 0, 0, 1, 5, 0, 5, 0, 5},
                                                        {0, 0, 1, 1, 1, 5, 5, 5, 5, 5},
                                                        {0, 0, 2, 2, 1, 2, 10, 2, 10, 2}}));
  EXPECT_EQ(e.table(e.full().compute, 0).chunks.size(), 3u); // whole rows of a block
}

TEST(Tables, RectanglesAreCutByRowsAndLongRowsByColumns) {
  // Columns over two ranks read from whole blocks: rows do not touch each
  // other.
  Expanded e(simplePlan({2}, {S(1)}, {5, 12000}, 0, Strategy::Gather));
  EXPECT_EQ(rows(e.table(e.full().out, 1).chunks),
            (Rows{{0, 0, 0, 6000, 2, 6000, 0, 6000, 6000, 12000},
                  {0, 0, 2, 6000, 2, 6000, 12000, 6000, 30000, 12000},
                  {0, 0, 4, 6000, 1, 6000, 24000, 6000, 54000, 6000}}));
  Expanded f(simplePlan({2}, {S(1)}, {2, 40000}, 0, Strategy::Gather));
  EXPECT_EQ(rows(f.table(f.full().out, 0).chunks),
            (Rows{{0, 0, 0, 0, 1, 16384, 0, 16384, 0, 16384},
                  {0, 0, 0, 16384, 1, 3616, 16384, 3616, 16384, 3616},
                  {0, 0, 1, 0, 1, 16384, 20000, 16384, 40000, 16384},
                  {0, 0, 1, 16384, 1, 3616, 36384, 3616, 56384, 3616}}));
}

TEST(Tables, BlockRowsAreWholeRows) {
  Expanded e(simplePlan({1}, {R}, {5, 8000}, 0, Strategy::Local));
  EXPECT_EQ(rows(e.table(e.full().compute, 0).chunks),
            (Rows{{0, 0, 0, 0, 2, 8000, 0, 0, 0, 8000},
                  {0, 0, 2, 0, 2, 8000, 0, 0, 16000, 8000},
                  {0, 0, 4, 0, 1, 8000, 0, 0, 32000, 8000}}));
  Expanded f(simplePlan({1}, {R}, {2, 20000}, 0, Strategy::Local));
  EXPECT_EQ(f.table(f.full().compute, 0).chunks.size(), 2u);
}

TEST(Tables, ARankOutsideTheWorldHasEmptyTables) {
  Plan plan = simplePlan({2}, {S(0)}, {4, 4}, 0, Strategy::Owner).plan;
  for (int64_t rank : {-1, 2}) {
    for (const RankTable &table : expand(plan, rank).tables)
      EXPECT_TRUE(table.chunks.empty() && table.copies.empty() && table.messages.empty());
    EXPECT_EQ(
        Expander(plan).elements(Place::resting(0, ValueKind::Full, Distribution::Blocks), rank), 0);
  }
}

/// The seconds to expand 1,000 parameters for all of 64 ranks, with the tables
/// of a Muon step.
double secondsToExpand(std::vector<int64_t> sizes, std::vector<Placement> placements,
                       int64_t groups) {
  int64_t each = 1000 / groups;
  Plan plan = simplePlan(sizes, placements, {1024, 4096}, 0, Strategy::Owner, each).plan;
  const Group first = plan.groups[0];
  plan.groups.clear();
  plan.parameters.clear();
  plan.segments.clear();
  plan.tables.clear();
  for (int64_t g = 0; g < groups; ++g) {
    Group group = first;
    group.shape[0] += g;
    for (int64_t i = 0; i < each; ++i) {
      group.parameters[static_cast<size_t>(i)] = static_cast<int64_t>(plan.parameters.size());
      group.hops[0].base[static_cast<size_t>(i)] = (i * groups + g) % 64;
      plan.parameters.push_back({"p", 0, g, i});
    }
    plan.groups.push_back(group);
    plan.segments.push_back({"s", g, {}, true});
    using enum Distribution::Kind;
    auto add = [&](TableKind kind, const Place &from, const Place &to) {
      plan.tables.push_back({kind, from, to, 2});
    };
    ValueTables t{.segment = g, .kind = ValueKind::Full};
    add(TableKind::ShardChunks, t.shards(), t.packed(Shards, End::Sent));
    add(TableKind::Message, t.packed(Shards, End::Sent), t.packed(Shards, End::Received));
    add(TableKind::Copy, t.packed(Shards, End::Received), t.blocks());
    add(TableKind::BlockChunks, t.blocks(), t.blocks());
    add(TableKind::Copy, t.blocks(), t.packed(Blocks, End::Sent));
    add(TableKind::Message, t.packed(Blocks, End::Sent), t.packed(Blocks, End::Received));
    add(TableKind::ShardChunks, t.shards(), t.packed(Blocks, End::Received));
  }
  EXPECT_EQ(validate(plan), "");
  std::clock_t start = std::clock(); // of this process: other work must not fail the test
  size_t count = 0;
  for (int64_t rank = 0; rank < 64; ++rank)
    for (const RankTable &table : expand(plan, rank).tables)
      count += table.chunks.size() + table.copies.size() + table.messages.size();
  double time = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  printf("%lld groups: %zu rows in %.3f s\n", static_cast<long long>(groups), count, time);
  return time;
}

TEST(Tables, AThousandParametersOnSixtyFourRanks) {
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "sanitizers are slow";
#endif
  // No absolute times: a core that shares its units with another takes twice as long.
  double few = secondsToExpand({64}, {S(0)}, 20);
  EXPECT_LT(secondsToExpand({8, 8}, {S(0), S(1)}, 20), 15 * few);
  EXPECT_LT(secondsToExpand({8, 8}, {R, S(0)}, 20), 15 * few); // four times as many rows
  // Where no two shapes are alike, four times as many take four times as long.
  EXPECT_LT(secondsToExpand({64}, {S(0)}, 1000), 10 * secondsToExpand({64}, {S(0)}, 250));
}

} // namespace
} // namespace stepc::test
