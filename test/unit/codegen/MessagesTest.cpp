//===- MessagesTest.cpp - How many messages a wave takes -------------------===//
//
// Groups that gather along either axis of a mesh, along both, and one with owners: what goes from one rank to
// another in one direction is one message, and the step has the bits of a single rank.
//
//===----------------------------------------------------------------------===//

#include "test/unit/codegen/Compile.h"
#include "test/unit/codegen/Stepping.h"

#include "passes/plan/PlanFromIR.h"
#include "runtime/plan/Tables.h"

#include "gtest/gtest.h"

#include <array>
#include <map>

namespace stepc::test {
namespace {

/// The input's first three parameters with placements of their own on a mesh of 2 × 4 ranks.
std::string spread(const std::vector<std::string> &placements) {
  std::string text = replaced(input("turns.mlir"), kMesh,
                              R"(axes ["y", "x"] sizes [2, 4] ranks [0, 1, 2, 3, 4, 5, 6, 7])");
  text = replaced(text, "[#optim.shard<2>]", "[#optim.replicate, #optim.shard<2>]");
  for (const std::string &list : placements) {
    size_t at = text.find("[#optim.shard<0>]");
    text.replace(at, std::string("[#optim.shard<0>]").size(), list);
  }
  return text;
}

const std::string kAlongY = "[#optim.shard<0>, #optim.replicate]",
                  kAlongX = "[#optim.replicate, #optim.shard<1>]",
                  kAlongBoth = "[#optim.shard<0>, #optim.shard<1>]";

struct Counted {
  int64_t starts = 0, gathers = 0; ///< with any message; and those that are all-gathers
  int64_t copies = 0;
  int64_t most = 0;  ///< messages of one rank to another in one direction
  int64_t pairs = 0; ///< ranks and directions with a message
};

Counted count(const std::string &text, const std::vector<std::string> &forced) {
  Scheduled made(text, forced, /*waves=*/1);
  EXPECT_EQ(made.error, "");
  Counted result;
  if (!made.error.empty())
    return result;
  auto program = planFromModule(*made.module);
  const plan::Plan &plan = program->plan;
  plan::Expander expander(plan);
  std::map<std::array<int64_t, 3>, int64_t> messages;
  for (const plan::Start *start : plan.starts()) {
    bool travels = false;
    const plan::Place &place = plan.tables[start->tables[0]].from;
    const plan::Group &group = plan.groups[plan.segments[place.segment].group];
    bool there = place.from.level(group) < place.to.level(group);
    for (int64_t rank = 0; rank < 8; ++rank) {
      std::shared_ptr<const plan::RankStart> own = expander.start(*start, rank);
      result.copies += int64_t(own->sent.copies.size());
      for (const plan::Message &message : own->messages)
        if (message.peer != rank && message.sendCount > 0) {
          result.most = std::max(result.most, ++messages[{rank, message.peer, there}]);
          travels = true;
        }
    }
    result.starts += travels;
    result.gathers += travels && start->collective == plan::CollectiveKind::AllGather;
  }
  result.pairs = int64_t(messages.size());
  return result;
}

TEST(Messages, AreOnePerPeerWaveAndDirection) {
  std::string text = spread({kAlongY, kAlongX, kAlongBoth});
  Counted all = count(text, {"*=owner", "a=gather", "b=gather", "c=gather"});
  EXPECT_EQ(all.most, 1);
  EXPECT_EQ(all.starts, 2); // one there, one back
  EXPECT_EQ(all.gathers, 0);
  EXPECT_GT(all.copies, 0);
  // Gathers that share no two ranks stay what they are.
  Counted apart = count(spread({kAlongY, kAlongX, kAlongX}), {"*=gather"});
  EXPECT_EQ(apart.most, 1);
  EXPECT_EQ(apart.starts, 2);
  EXPECT_EQ(apart.gathers, 2);
  EXPECT_EQ(apart.copies, 0);
  EXPECT_EQ(apart.pairs, 8 * (1 + 3));
}

/// Owners' blocks stand in some waves alone: there what is gathered is exchanged.
TEST(Messages, MayBeOfAnotherKindInEveryWave) {
  std::string text = spread({kAlongY, kAlongX, kAlongBoth});
  for (int64_t waves = 1; waves <= 5; ++waves)
    EXPECT_EQ(Scheduled(text, {"*=gather", "a=owner"}, waves).error, "") << waves;
}

TEST(Messages, ThatGathersShareWithOwnersKeepTheBits) {
  std::string text = input("turns.mlir");
  Values single = step(replaced(text, kMesh, kOneRank), {"*=local"});
  for (const std::vector<std::string> &forced :
       {std::vector<std::string>{"*=owner", "a=gather", "b=gather"},
        {"*=owner", "a=gather", "c=gather"},
        {"*=gather", "c=owner"},
        {"*=gather", "a=owner", "b=in_turn"}})
    EXPECT_TRUE(step(spread({kAlongY, kAlongX, kAlongBoth}), forced) == single) << forced.back();
}

} // namespace
} // namespace stepc::test
