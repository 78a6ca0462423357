//===- ChoicesTest.cpp - What all are given, and one computes --------------===//
//
// The strategy agrs: its second hop chooses. Steps have the bits of a single rank, whatever stands where; a copy that
// takes something else from what arrived than what its rank computes is refused.
//
//===----------------------------------------------------------------------===//

#include "test/support/Proof.h"
#include "test/unit/codegen/Compile.h"
#include "test/unit/codegen/Stepping.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;

namespace stepc::test {
namespace {

/// Shards of equal sizes, and fewer blocks than ranks.
std::string even() {
  return replaced(replaced(input("turns.mlir"), "shape [18, 12]", "shape [16, 12]"),
                  "shape [3, 5, 7]", "shape [3, 8, 8]");
}

TEST(Choices, KeepTheBitsOfASingleRank) {
  std::string text = even();
  Values single = step(replaced(text, kMesh, kOneRank), {"*=local"});
  ASSERT_FALSE(single.empty());
  EXPECT_NE(single.front().front(), kNever);
  const std::string on2x4 = R"(axes ["y", "x"] sizes [2, 4] ranks [0, 1, 2, 3, 4, 5, 6, 7])";
  const std::string r = "#optim.replicate", s0 = "#optim.shard<0>", s1 = "#optim.shard<1>";
  for (auto [mesh, placements, states] :
       {std::tuple(std::string(kMesh), s0, s0), std::tuple(std::string(kMesh), s1, s1),
        std::tuple(std::string(kMesh), r, s0), std::tuple(on2x4, r + ", " + s0, r + ", " + s0),
        std::tuple(on2x4, s0 + ", " + s1, s0 + ", " + s1),
        std::tuple(on2x4, s1 + ", " + r, s0 + ", " + r)}) {
    std::string list = "placements [" + placements + "]";
    if (states != placements)
      list += " state_placements [" + states + "]";
    std::string there = replaced(text, kMesh, mesh);
    // A stack of three has no equal shards of its first axis.
    std::string stack = replaced(list, "#optim.shard<0>", "#optim.shard<2>");
    there = replaced(there, "placements [#optim.shard<0>]", list);
    there = replaced(there, "placements [#optim.shard<2>]", stack);
    EXPECT_TRUE(step(there, {"[abc]=agrs", "d=owner"}) == single) << list;
  }
}

/// One row of one rank that copies what it computes is changed.
TEST(Choices, WrongCopiesAreRefused) {
  Scheduled made(even(), {"[abc]=agrs", "d=owner"});
  ASSERT_EQ(made.error, "");
  ASSERT_TRUE(succeeded(prove(*made.module)));
  auto refused = [&](const char *expected, bool (*change)(std::vector<plan::CopyRow> &)) {
    std::string error = provenWithOneChanged(
        made,
        [](const plan::Plan &, const plan::Table &table) {
          return table.kind == plan::TableKind::Copy &&
                 table.from.to.kind == plan::Distribution::Pieces;
        },
        [&](const plan::Plan &, plan::RankTable &rows) {
          return rows.copies.size() > 1 && change(rows.copies);
        });
    EXPECT_THAT(error, testing::HasSubstr(expected));
  };
  using Rows = std::vector<plan::CopyRow>;
  // Another block, which another rank computes: as large a part of the same sender follows it.
  refused("of what arrives on rank", [](Rows &rows) {
    int64_t part = rows[0].rows * rows[0].cols;
    rows[0].source += rows[0].source % (3 * part) < 2 * part ? part : -part;
    return true;
  });
  refused("expected every element of the rank's computed blocks once, found", [](Rows &rows) {
    rows.pop_back();
    return true;
  });
  refused("expected every element of the rank's computed blocks once, found", [](Rows &rows) {
    rows.push_back(rows.back());
    return true;
  });
  refused("expected rows that each lead to the part of one peer in what is packed, found one that "
          "leads elsewhere on rank",
          [](Rows &rows) {
            rows.back().source += 100000;
            return true;
          });
}

} // namespace
} // namespace stepc::test
