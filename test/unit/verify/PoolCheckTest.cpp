//===- PoolCheckTest.cpp - Pools that lie ---------------------------------===//
//
// The places of a pool's members on one rank are changed: whatever the change, it is refused where
// two members would share a byte or one would leave the pool.
//
//===----------------------------------------------------------------------===//

#include "passes/verify/Verify.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace stepc;

namespace {

/// Four matrices of 6 x 4 on two ranks, of which rank 0 computes three; a segment of each.
plan::Plan makePlan() {
  plan::Plan plan;
  plan.meshes = {{"world", {"dp"}, {2}, {0, 1}}};
  plan.rules = {{"R", {}, {}, 0}};
  plan.routes = {{"R", 0, {}, plan::MissingGrad::Error}};
  plan::Group group;
  group.name = "g";
  group.shape = {6, 4};
  group.placements = {{plan::PlacementKind::Shard, 0, 1}};
  group.computes = true;
  group.hops = {{{{0, 1, 2}}, {}, {0, 1, 0, 0}}};
  for (int64_t i = 0; i < 4; ++i) {
    plan.parameters.push_back({"p" + std::to_string(i), 0, 0, i});
    plan.segments.push_back({"s" + std::to_string(i), 0, {i}, false});
    group.parameters.push_back(i);
  }
  plan.groups = {group};
  // On rank 0: 96 bytes at 0, 4 at 128, 24 at 192. On rank 1 one of 48.
  plan.pools = {{0, 216, {{0, 96}, {1, 48}, {2, 4}, {3, 24}}}};
  return plan;
}

std::string check(const plan::Plan &plan, std::function<void(plan::RankPool &, int64_t)> lie = {}) {
  verify::TableProof proof(plan, [&](const plan::Plan &plan) {
    verify::Expand expand = verify::runtimeExpand(plan);
    expand.pool = [&lie, honest = expand.pool](int64_t pool, int64_t rank) {
      plan::RankPool made = honest(pool, rank);
      if (lie)
        lie(made, rank);
      return made;
    };
    return expand;
  });
  return proof.checkPool(0);
}

TEST(PoolCheck, AcceptsWhatTheRuntimeMakes) {
  plan::Plan plan = makePlan();
  ASSERT_EQ(plan::validate(plan), "");
  EXPECT_EQ(check(plan), "");
  // A byte less is too little for rank 0.
  plan.pools[0].bytes = 215;
  EXPECT_EQ(check(plan), "expected room for 1 blocks of 24 bytes each, which rank 0 computes of "
                         "member 3, found 23 bytes from byte 192 of 215");
}

TEST(PoolCheck, RefusesEveryChangedPlace) {
  plan::Plan plan = makePlan();
  using plan::RankPool;
  auto refused = [&](auto lie) { EXPECT_NE(check(plan, lie), ""); };
  refused([](RankPool &made, int64_t) { made.begins.pop_back(); });
  refused([](RankPool &made, int64_t) { made.begins.push_back(0); });
  // Rank 0 computes members 0, 2 and 3; rank 1 member 1.
  for (auto [rank, member] : {std::pair(0, 0), {0, 2}, {0, 3}, {1, 1}})
    for (int64_t by : {-64, 64, 192, 256, 1, 4})
      if (auto place = check(plan,
                             [&](RankPool &made, int64_t of) {
                               if (of == rank)
                                 made.begins[member] += by;
                             });
          place.empty()) {
        // Only where it still has room, which is on rank 1: nothing else stands there.
        EXPECT_EQ(rank, 1) << member << " by " << by;
        EXPECT_EQ(by, 64);
      }
  for (auto [one, other] : {std::pair(0, 2), {0, 3}, {2, 3}})
    refused([&](RankPool &made, int64_t rank) {
      if (rank == 0)
        std::swap(made.begins[one], made.begins[other]);
    });
}

} // namespace
