//===- PropertyTest.cpp - Random plans, carried out on all ranks ----------===//
//
// STEPC_SEEDS sets how many plans are drawn, STEPC_SEED the first seed.
//
//===----------------------------------------------------------------------===//

#include "test/support/Tier.h"
#include "test/unit/plan/RandomPlan.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>

namespace stepc::test {

using namespace plan;

namespace {

uint64_t setting(const char *name, uint64_t otherwise) {
  const char *value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

TEST(PlanProperties, EveryElementIsRoutedOnceEachWay) {
  uint64_t first = setting("STEPC_SEED", 1), count = setting("STEPC_SEEDS", uint64_t(draws(200)));
  // A random seed may draw a trait rarely. More plans are drawn until each was drawn often enough.
  const char *const traits[] = {
      "strategy elementwise", "strategy local",  "strategy owner", "strategy gather",
      "mesh axes 3",          "placement R",     "placement S",    "placement _S",
      "placement IS",         "placement owned", "placement flat", "uneven",
      "empty shard",          "batched",         "large",          "divided rows",
      "divided columns",      "equal blocks",    "several parts",  "flattened",
      "segment all",          "segment list"};
  constexpr int kOften = 4;
  Histogram histogram;
  auto isRare = [&](const char *trait) { return histogram[trait] < kOften; };
  uint64_t most = count < 300 ? count : 4 * count, seed = first;
  for (; seed < first + count || (seed < first + most && std::ranges::any_of(traits, isRare));
       ++seed) {
    Drawn drawn = drawPlan(seed, histogram);
    ASSERT_EQ(validate(drawn.plan), "") << "seed " << seed;
    auto ranks = expandAll(drawn.plan);
    for (const ValueTables &value : drawn.values)
      ASSERT_EQ(simulate(drawn.plan, ranks, value), "")
          << "seed " << seed << ", segment " << value.segment << ", value " << name(value.kind);
  }
  printf("seeds %llu to %llu:", static_cast<unsigned long long>(first),
         static_cast<unsigned long long>(seed - 1));
  for (const auto &[trait, times] : histogram)
    printf(" %s %d;", trait.c_str(), times);
  printf("\n");
  if (count >= 300)
    for (const char *trait : traits)
      EXPECT_FALSE(isRare(trait)) << trait << " is drawn " << histogram[trait] << " times";
}

/// Changes one number of a row of a random table by one; nothing where all are
/// empty.
std::string plantFault(std::vector<RankTables> &ranks, const ValueTables &value,
                       std::mt19937_64 &random) {
  auto pick = [&](size_t size) {
    return std::uniform_int_distribution<size_t>(0, size - 1)(random);
  };
  struct Field {
    int64_t *number;
    std::string name;
  };
  std::vector<Field> fields;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    auto add = [&](int64_t &number, const char *name) {
      fields.push_back({&number, std::string(name) + " on rank " + std::to_string(rank)});
    };
    for (int64_t index : {value.place, value.packCopy, value.unplace, value.unpackCopy,
                          value.inCopy, value.outCopy})
      if (index >= 0)
        for (CopyRow &row : ranks[rank].tables[static_cast<size_t>(index)].copies) {
          add(row.source, "copy source");
          add(row.target, "copy target");
          add(row.rows, "copy rows");
          add(row.cols, "copy cols");
          if (row.rows > 1) {
            add(row.sourceStride, "copy source stride");
            add(row.targetStride, "copy target stride");
          }
        }
    for (int64_t index : {value.pack, value.unpack, value.out, value.untouched})
      if (index >= 0)
        for (Chunk &row : ranks[rank].tables[static_cast<size_t>(index)].chunks) {
          add(row.local, "chunk local");
          add(row.cols, "chunk cols");
          add(row.row, "chunk row");
          add(row.col, "chunk col");
          if (index != value.untouched && row.staged > 0)
            add(row.staged, "chunk staged");
        }
    for (int64_t index : {value.gather, value.scatter})
      if (index >= 0)
        for (Message &m : ranks[rank].tables[static_cast<size_t>(index)].messages) {
          if (m.sendCount > 0) {
            add(m.sendOffset, "send offset");
            add(m.sendCount, "send count");
          }
          if (m.receiveCount > 0) {
            add(m.receiveOffset, "receive offset");
            add(m.receiveCount, "receive count");
          }
        }
  }
  if (fields.empty())
    return {};
  Field field = fields[pick(fields.size())];
  *field.number += pick(2) == 0 ? 1 : -1;
  return field.name;
}

TEST(PlanProperties, TheCheckerCatchesAPlantedFault) {
  Histogram histogram;
  std::mt19937_64 random(7);
  int planted = 0;
  for (uint64_t seed = 5000; seed < 5150; ++seed) {
    Drawn drawn = drawPlan(seed, histogram);
    auto ranks = expandAll(drawn.plan);
    for (const ValueTables &value : drawn.values) {
      auto faulty = ranks;
      std::string fault = plantFault(faulty, value, random);
      if (fault.empty())
        continue;
      ++planted;
      EXPECT_NE(simulate(drawn.plan, faulty, value), "") << "seed " << seed << ": " << fault;
    }
  }
  printf("%d faults planted\n", planted);
  EXPECT_GT(planted, 300);
}

TEST(PlanProperties, AllWaysToExpandAgree) {
  Histogram histogram, kinds;
  std::mt19937_64 random(3);
  auto same = [](const RankTable &a, const RankTable &b) {
    auto bytes = [](const auto &list) {
      return std::string(reinterpret_cast<const char *>(list.data()),
                         list.size() * sizeof(list[0]));
    };
    return bytes(a.chunks) == bytes(b.chunks) && bytes(a.copies) == bytes(b.copies) &&
           bytes(a.sums) == bytes(b.sums) && a.lists == b.lists &&
           bytes(a.messages) == bytes(b.messages) && a.blocks == b.blocks;
  };
  std::vector<CommonTable> kept; // no rows get the address of others
  std::set<const RankTable *> rows;
  size_t tables = 0;
  int sums = 0;
  for (uint64_t seed = 9000; seed < 9060; ++seed) {
    Plan plan = drawPlan(seed, histogram).plan;
    // Every second one is of moves between lists that stand apart.
    if (seed % 2) {
      drawHops(random, plan, kinds);
      drawLists(random, plan, /*mayBePartial=*/true, kinds);
      addMoves(plan);
    }
    ASSERT_EQ(validate(plan), "") << "seed " << seed;
    auto ranks = expandAll(plan);
    Expander expander(plan);
    for (size_t i = 0; i < plan.tables.size(); ++i)
      for (size_t rank = 0; rank < ranks.size(); ++rank) {
        const Table &table = plan.tables[i];
        CommonTable common = expander.common(table, static_cast<int64_t>(rank));
        auto segment = static_cast<size_t>(table.from.segment);
        const Group &group = plan.groups[static_cast<size_t>(plan.segments[segment].group)];
        EXPECT_TRUE(same(common.resolve(group), ranks[rank].tables[i]));
        rows.insert(common.rows.get());
        sums += !common.rows->sums.empty();
        kept.push_back(std::move(common));
      }
    tables += plan.tables.size() * ranks.size();
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      RankTables whole = expand(plan, static_cast<int64_t>(rank));
      for (size_t i = 0; i < plan.tables.size(); ++i) {
        EXPECT_TRUE(same(whole.tables[i], ranks[rank].tables[i]));
        EXPECT_TRUE(same(Expander(plan).table(plan.tables[i], static_cast<int64_t>(rank)),
                         ranks[rank].tables[i]));
      }
    }
  }
  EXPECT_LT(rows.size() * 3, tables * 2); // ranks have much in common
  EXPECT_GT(sums, 30);
  for (const char *kind : {"R", "S", "_S", "IS", "owned", "flat", "P", "hops in turn",
                           "hops that gather and choose", "hops that gather and own"})
    EXPECT_GT(kinds[kind], 3) << kind;
}

} // namespace
} // namespace stepc::test
