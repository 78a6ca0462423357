//===- PlantedFaultsTest.cpp - Mistakes of a runtime, each refused ---------===//
//
// A library whose tables follow from something else than what was asked for: another bucket, other stripes, other hops; or
// that leaves out, doubles or shifts what stands in one run, or sends what belongs to no tensor. The proof knows placements and
// hops by its own geometry, and must find each of them.
//
//===----------------------------------------------------------------------===//

#include "test/unit/codegen/Compile.h"
#include "test/unit/codegen/Halves.h"
#include "test/unit/codegen/Stepping.h"

#include "passes/verify/Verify.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;

namespace stepc::test {
namespace {

/// The parameters of turns.mlir, of which each axis divides, at those placements.
std::string placed(const std::string &placements) {
  std::string text = replaced(replaced(input("turns.mlir"), "shape [18, 12]", "shape [16, 12]"),
                              "shape [3, 5, 7]", "shape [4, 6, 8]");
  std::string stack = replaced(placements, "_shard<0", "_shard<1");
  stack = replaced(stack, "#optim.shard<0", "#optim.shard<1");
  text = replaced(text, "placements [#optim.shard<0>]", "placements [" + placements + "]");
  return replaced(text, "placements [#optim.shard<2>]", "placements [" + stack + "]");
}

/// Every group of the plan that tables are made from is changed; the proof sees the plan as it is.
template <typename Change>
std::string provenWithout(const std::string &text, const std::string &strategy, Change change) {
  Scheduled made(text, {"*=" + strategy});
  EXPECT_EQ(made.error, "");
  EXPECT_TRUE(succeeded(verify::verifyPlan(*made.module)));
  auto lying = [&](const plan::Plan &plan) {
    auto other = std::make_shared<plan::Plan>(plan);
    for (plan::Group &group : other->groups)
      change(group);
    verify::Expand truth = verify::runtimeExpand(*other);
    verify::Expand expand = truth; // each keeps the plan that it was made from
    expand.table = [other, truth](int64_t index, int64_t rank) { return truth.table(index, rank); };
    return expand;
  };
  made.error.clear();
  EXPECT_TRUE(failed(verify::verifyPlan(*made.module, lying)));
  return made.error;
}

/// The first table of a kind that has enough rows on a rank is changed there.
template <typename Change>
std::string provenWith(const std::string &text, plan::TableKind kind, Change change) {
  Scheduled made(text, {"*=owner"});
  EXPECT_EQ(made.error, "");
  return provenWithOneChanged(
      made,
      [&](const plan::Plan &, const plan::Table &table) {
        return table.kind == kind && (table.to != table.from || kind == plan::TableKind::Message);
      },
      [&](const plan::Plan &, plan::RankTable &rows) { return change(rows); });
}

using testing::HasSubstr;

TEST(PlantedFaults, ABucketOffsetOffByOne) {
  std::string error =
      provenWithout(placed("#optim.flat<0, 50, 100, 150, 192>"), "owner", [](plan::Group &group) {
        for (plan::Placement &placement : group.placements)
          for (int64_t &cut : placement.cuts)
            cut += cut > 0 && cut < 192;
      });
  EXPECT_THAT(error, HasSubstr("expected rows inside of the shard of parameter 'a', found 1 x 51 "
                               "elements from local element 0 of 50 on rank 0"));
}

TEST(PlantedFaults, AStripeOfAnotherExpert) {
  std::string error =
      provenWithout(placed("#optim.interleaved_shard<0, 2>"), "owner", [](plan::Group &group) {
        for (plan::Placement &placement : group.placements)
          placement.factor = 1;
      });
  EXPECT_THAT(error, HasSubstr("expected the row that starts at local element"));
}

TEST(PlantedFaults, AHopToTheWrongFactor) {
  std::string error = provenWithout(placed("#optim.shard<0>"), "in_turn", [](plan::Group &group) {
    std::swap(group.hops.front().owned, group.hops.back().owned);
  });
  EXPECT_THAT(
      error,
      HasSubstr("expected messages between ranks of the communicator, found one between rank "
                "0 and rank 2, which do not meet in it"));
}

TEST(PlantedFaults, RunsThatAreMissingDoubledOrShifted) {
  std::string text = placed("#optim.interleaved_shard<0, 2>");
  auto edited = [&](auto change) {
    return provenWith(text, plan::TableKind::ShardChunks, [&](plan::RankTable &rows) {
      if (rows.chunks.size() < 2)
        return false;
      change(rows.chunks);
      return true;
    });
  };
  using Rows = std::vector<plan::Chunk>;
  EXPECT_THAT(edited([](Rows &rows) { rows.erase(rows.begin()); }), HasSubstr("once, found"));
  EXPECT_THAT(edited([](Rows &rows) { rows.push_back(rows.front()); }), HasSubstr("once, found"));
  EXPECT_THAT(edited([](Rows &rows) { ++rows.front().local; }),
              HasSubstr("expected the row that starts at local element"));
}

TEST(PlantedFaults, PaddingIsSent) {
  // An element more in the last part, as where each peer has as many as the most.
  std::string error =
      provenWith(placed("#optim.shard<0>"), plan::TableKind::Message, [](plan::RankTable &rows) {
        for (plan::Message &message : rows.messages)
          if (message.sendCount > 0 && &message == &rows.messages.back()) {
            ++message.sendCount;
            return true;
          }
        return false;
      });
  EXPECT_THAT(error, HasSubstr("bytes that rank"));
}

} // namespace
} // namespace stepc::test
