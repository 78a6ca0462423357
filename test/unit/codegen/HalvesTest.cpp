//===- HalvesTest.cpp - Strategies of two hops, from another dialect -------===//
//
// Nothing but this folder knows of these strategies. They are forced by name, proven for all ranks, and
// step to the bits of a single rank; a copy that sends on what does not belong there is refused.
//
//===----------------------------------------------------------------------===//

#include "test/support/Proof.h"
#include "test/support/Tier.h"
#include "test/unit/codegen/Compile.h"
#include "test/unit/codegen/Stepping.h"

#include "dialects/comm/Comm.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;

namespace stepc::test {
namespace {

TEST(Halves, KeepTheBitsOfASingleRank) {
  std::string text = input("turns.mlir");
  Values single = step(replaced(text, kMesh, kOneRank), {"*=local"});
  ASSERT_FALSE(single.empty());
  EXPECT_NE(single.front().front(), kNever);
  const std::string on2x4 = R"(axes ["y", "x"] sizes [2, 4] ranks [0, 1, 2, 3, 4, 5, 6, 7])";
  const std::string r = "#optim.replicate", s0 = "#optim.shard<0>", s1 = "#optim.shard<1>";
  struct Layout {
    std::string mesh, placements, gradient = "", states = "";
  };
  size_t turn = 0;
  for (const Layout &layout : {
           Layout{kMesh, s0},
           Layout{kMesh, r},
           Layout{on2x4, r + ", " + s0},
           Layout{on2x4, s0 + ", " + s1},
           // Where the hops start is where the states are.
           Layout{kMesh, r, "", s0},
           Layout{kMesh, s0, "", s1},
           Layout{kMesh, s1, s0, r},
           Layout{on2x4, s0 + ", " + s1, "", s1 + ", " + s0},
           Layout{on2x4, r + ", " + s1, s0 + ", " + r, s0 + ", " + s0},
       }) {
    std::string list = "placements [" + layout.placements + "]";
    if (!layout.gradient.empty())
      list += " gradient_placements [" + layout.gradient + "]";
    if (!layout.states.empty())
      list += " state_placements [" + layout.states + "]";
    std::string there = replaced(text, kMesh, layout.mesh);
    there = replaced(replaced(there, "placements [#optim.shard<0>]", list),
                     "placements [#optim.shard<2>]", list);
    // Each layout has one strategy when landing, and all of them in the widest tier.
    size_t next = turn++;
    for (std::string strategy : {"in_turn", "joined", "shared"}) {
      if (tier() != "all" && next++ % 3 != 0)
        continue;
      EXPECT_TRUE(step(there, {"*=" + strategy}) == single) << strategy << " " << list;
      // Lists are brought together by whom the placements say.
      EXPECT_TRUE(Asked::onTheWorld == 0 || !layout.states.empty()) << strategy << " " << list;
      EXPECT_FALSE(Asked::opened.empty()) << strategy << " " << list;
    }
  }
}

/// Each hop has communicators of its own, along its half of the axis: neighbours, and those that are
/// two apart. Where the ranks are replicas of each other nothing comes together, and the results go back along
/// what owns them.
TEST(Halves, MeetOnHalvesOfTheAxis) {
  using Sets = std::set<std::vector<int32_t>>;
  std::string text = input("turns.mlir");
  const Sets neighbours = {{0, 1}, {2, 3}}, apart = {{0, 2}, {1, 3}};
  Sets both = neighbours;
  both.insert(apart.begin(), apart.end());
  for (std::string strategy : {"in_turn", "joined", "shared"}) {
    step(text, {"*=" + strategy});
    EXPECT_EQ(Asked::opened, both) << strategy;
  }
  std::string replicas = replaced(replaced(text, "[#optim.shard<0>]", "[#optim.replicate]"),
                                  "[#optim.shard<2>]", "[#optim.replicate]");
  step(replicas, {"*=in_turn"});
  EXPECT_EQ(Asked::opened, both);
  step(replicas, {"*=joined"});
  EXPECT_EQ(Asked::opened, apart);
  step(replicas, {"*=shared"});
  EXPECT_EQ(Asked::opened, neighbours);
}

/// The ranks of a start are changed: where one of its peers is not among them, it is refused.
TEST(Halves, WrongCommunicatorsAreRefused) {
  Scheduled made(input("turns.mlir"), {"*=in_turn"});
  ASSERT_EQ(made.error, "");
  std::vector<comm::CommunicatorOp> all;
  made.module->walk([&](comm::CommunicatorOp op) { all.push_back(op); });
  ASSERT_EQ(all.size(), 2u);
  using Factors = std::vector<plan::Factor>;
  const Factors first = {{0, 1, 2}}, second = {{0, 2, 2}};
  ASSERT_EQ(all[0].getRanks().getFactors(), llvm::ArrayRef(first));
  ASSERT_EQ(all[1].getRanks().getFactors(), llvm::ArrayRef(second));
  auto with = [&](comm::CommunicatorOp op, const Factors &factors) {
    comm::CommunicatorAttr before = op.getRanks();
    op.setRanksAttr(comm::CommunicatorAttr::get(&made.context, before.getMesh(), factors));
    made.error.clear();
    bool accepted = succeeded(prove(*made.module));
    op.setRanksAttr(before);
    EXPECT_TRUE(accepted ||
                made.error.find("expected messages between ranks of the communicator, "
                                "found one between rank 0 and rank") != std::string::npos)
        << made.error;
    return accepted;
  };
  EXPECT_TRUE(with(all[0], first));
  EXPECT_FALSE(with(all[0], second)); // another stride, or the other hop's
  EXPECT_FALSE(with(all[1], first));
  EXPECT_FALSE(with(all[0], {})); // each rank alone
  EXPECT_FALSE(with(all[1], {}));
  EXPECT_TRUE(with(all[0], {{0, 1, 4}})); // more ranks, all of whose messages are right
  EXPECT_TRUE(with(all[1], {{0, 1, 2}, {0, 2, 2}}));
}

/// Which strategies there are is said by the dialects that are loaded.
TEST(Halves, AreKnownByTheirNames) {
  std::string text = input("turns.mlir");
  EXPECT_THAT(
      Scheduled(text, {"*=thirds"}).error,
      testing::HasSubstr("expected a strategy as PATTERN=in_turn, PATTERN=joined, "
                         "PATTERN=shared, PATTERN=local, PATTERN=owner, PATTERN=subgroup-gather, "
                         "PATTERN=gather, PATTERN=agrs, PATTERN=hierarchical or PATTERN=slabs, "
                         "found \"*=thirds\""));
  std::string alone = replaced(text, kMesh, R"(axes ["x"] sizes [3] ranks [0, 1, 2])");
  EXPECT_THAT(Scheduled(alone, {"*=in_turn"}).error,
              testing::HasSubstr("found in_turn: the last axis has no halves"));
}

/// One row of one rank that sends on what arrived is changed: the proof refuses each.
TEST(Halves, WrongRelaysAreRefused) {
  Scheduled made(input("turns.mlir"), {"*=in_turn"});
  ASSERT_EQ(made.error, "");
  ASSERT_TRUE(succeeded(prove(*made.module)));
  auto refused = [&](const char *expected,
                     bool (*change)(std::vector<plan::CopyRow> &, const plan::Plan &)) {
    std::string error = provenWithOneChanged(
        made,
        [](const plan::Plan &, const plan::Table &table) {
          return table.kind == plan::TableKind::Copy && table.from.isMoving() &&
                 table.to.isMoving();
        },
        [&](const plan::Plan &plan, plan::RankTable &rows) {
          return rows.copies.size() > 1 && change(rows.copies, plan);
        });
    EXPECT_THAT(error, testing::HasSubstr(expected));
  };
  using Rows = std::vector<plan::CopyRow>;
  refused("of the message from rank", [](Rows &rows, const plan::Plan &) {
    for (plan::CopyRow &row : rows)
      if (row.rows == rows[0].rows && row.cols == rows[0].cols &&
          row.parameter == rows[0].parameter && row.source != rows[0].source) {
        std::swap(row.source, rows[0].source);
        return true;
      }
    return false;
  });
  refused("expected a packed buffer that holds every element once, found element",
          [](Rows &rows, const plan::Plan &) {
            rows.erase(rows.begin());
            return true;
          });
  refused("expected rows that each lead to the part of one peer in what is packed, found one that "
          "leads elsewhere on rank",
          [](Rows &rows, const plan::Plan &) {
            rows.back().source += 100000;
            return true;
          });
  refused(" that the rank has part in, found parameter ", [](Rows &rows, const plan::Plan &plan) {
    rows[0].parameter = int64_t(plan.parameters.size());
    return true;
  });
  refused("expected blocks of parameter 'b' in segment @", [](Rows &rows, const plan::Plan &plan) {
    bool isFirst = plan.parameters[rows[0].parameter].name == "a";
    rows[0].parameter += isFirst;
    return isFirst;
  });
}

} // namespace
} // namespace stepc::test
