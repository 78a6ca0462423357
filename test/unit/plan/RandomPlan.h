//===- RandomPlan.h - Plans drawn from a seed -------------------*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_PLAN_RANDOMPLAN_H
#define STEPC_TEST_UNIT_PLAN_RANDOMPLAN_H

#include "test/unit/plan/Simulation.h"

#include <map>
#include <random>

namespace stepc::test {

struct Drawn {
  plan::Plan plan;
  std::vector<ValueTables> values; // per segment and kind
};

/// How often each trait was drawn, per group.
using Histogram = std::map<std::string, int>;

/// A valid plan of one or two meshes and one to three groups, all segments and
/// value kinds.
Drawn drawPlan(uint64_t seed, Histogram &histogram);

/// A list of placements of any kind but partial ones that can be, and that shard the first `axes` axes alone.
std::vector<plan::Placement> drawPlacements(std::mt19937_64 &random,
                                            const std::vector<int64_t> &shape,
                                            const plan::Mesh &mesh, int64_t axes, bool mayBeFlat);

/// Has gradients and states of a plan's groups stand by lists of their own, and ranks contribute to some gradients; drops
/// the tables. How many groups of parts have such a gradient.
int drawLists(std::mt19937_64 &random, plan::Plan &plan, bool mayBePartial, Histogram &histogram);
/// Has blocks come together in two hops, where one hop owns them.
void drawHops(std::mt19937_64 &random, plan::Plan &plan, Histogram &histogram);
/// The tables of the moves between the lists, and to where blocks are computed, appended to plan.tables.
void addMoves(plan::Plan &plan);

/// The hops of a strategy over a whole mesh; blocks have the owners that `owner` gives.
template <typename Owner>
void setStrategy(plan::Group &group, const plan::Mesh &mesh, Strategy strategy, Owner owner) {
  group.computes = strategy != Strategy::Elementwise;
  group.hops.clear();
  if (strategy == Strategy::Gather)
    group.hops = {{{}, plan::wholeAxes(mesh), {}}};
  if (strategy != Strategy::Owner)
    return;
  group.hops = {{plan::wholeAxes(mesh), {}, {}}};
  for (int64_t block = 0; block < group.blockCount(); ++block)
    group.hops[0].base.push_back(owner(block));
}

/// One group of `parameters` parameters on one mesh whose ranks are 0, 1, …:
/// for tests that spell a case out. Owners go round robin.
Drawn simplePlan(std::vector<int64_t> sizes, std::vector<plan::Placement> placements,
                 std::vector<int64_t> shape, int64_t batchAxes, Strategy strategy,
                 int64_t parameters = 1);

/// A plan in which every field differs from its default, so that a forgotten one shows.
plan::Plan richPlan();
/// Has all shards in its tables stand by one list.
void setShards(plan::Plan &plan, plan::Distribution::Kind kind);

} // namespace stepc::test

#endif
