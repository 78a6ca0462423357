//===- RandomLists.cpp - Lists of placements drawn from a seed ------------===//

#include "runtime/geometry/Geometry.h"
#include "test/unit/plan/RandomPlan.h"

#include <algorithm>
#include <set>

namespace stepc::test {

using namespace plan;

namespace {

/// One list, which need not be one that can be.
std::vector<Placement> tryPlacements(std::mt19937_64 &random, const std::vector<int64_t> &shape,
                                     const Mesh &mesh, int64_t axes, bool mayBeFlat) {
  auto range = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  auto chance = [&](int percent) { return range(1, 100) <= percent; };
  std::vector<Placement> result(mesh.sizes.size()), others;
  std::vector<int64_t> later(shape.size(), 1); // into how much later axes have cut, up to here
  mayBeFlat &= chance(25);
  for (size_t axis = result.size(); axis-- > 0;) {
    Placement &placement = result[axis];
    int64_t size = mesh.sizes[axis];
    if (chance(8)) {
      placement.kind = PlacementKind::Owned;
      placement.owner = range(0, size - 1);
    } else if (mayBeFlat && chance(50)) {
      placement.kind = PlacementKind::Flat;
    } else if (axes > 0 && chance(75)) {
      placement = {PlacementKind::Shard, range(0, axes - 1), 1};
      int64_t &pieces = later[static_cast<size_t>(placement.dim)];
      if (pieces > 1 && chance(60))
        placement = {PlacementKind::StridedShard, placement.dim, pieces};
      else if (chance(35))
        placement = {PlacementKind::InterleavedShard, placement.dim, range(2, 4)};
      pieces *= placement.kind == PlacementKind::InterleavedShard ? 1 : size;
    }
  }
  others = result;
  int64_t ranges = 1;
  auto flat = result.end();
  for (size_t axis = result.size(); axis-- > 0;)
    if (result[axis].kind == PlacementKind::Flat) {
      flat = result.begin() + static_cast<int64_t>(axis);
      ranges *= mesh.sizes[axis];
      others[axis] = {};
    }
  if (flat == result.end() || chance(30) || geometry::checkPlacements(shape, others, mesh))
    return result;
  int64_t most = geometry::mostElements(shape, others, mesh);
  for (int64_t i = 1; i < ranges; ++i)
    flat->cuts.push_back(range(0, most));
  flat->cuts.insert(flat->cuts.end(), {0, most});
  std::sort(flat->cuts.begin(), flat->cuts.end());
  return result;
}

} // namespace

std::vector<Placement> drawPlacements(std::mt19937_64 &random, const std::vector<int64_t> &shape,
                                      const Mesh &mesh, int64_t axes, bool mayBeFlat) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    std::vector<Placement> result = tryPlacements(random, shape, mesh, axes, mayBeFlat);
    if (!geometry::checkPlacements(shape, result, mesh))
      return result;
  }
  return std::vector<Placement>(mesh.sizes.size());
}

int drawLists(std::mt19937_64 &random, Plan &plan, bool mayBePartial, Histogram &histogram) {
  auto chance = [&](int percent) {
    return std::uniform_int_distribution<int>(1, 100)(random) <= percent;
  };
  int divided = 0;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    Group &group = plan.groups[g];
    const Mesh &mesh = plan.meshes[static_cast<size_t>(group.mesh)];
    int64_t own = plan.parameters[static_cast<size_t>(group.parameters[0])].group;
    if (own != static_cast<int64_t>(g)) { // the shards are those of the parameter's first parts
      group.gradientPlacements = plan.groups[g - 1].gradientPlacements;
      group.statePlacements = plan.groups[g - 1].statePlacements;
      divided += !group.gradientPlacements.empty();
      continue;
    }
    for (auto *list : {&group.gradientPlacements, &group.statePlacements}) {
      *list =
          drawPlacements(random, group.shape, mesh, static_cast<int64_t>(group.shape.size()), true);
      if (mayBePartial && list == &group.gradientPlacements && chance(50))
        for (size_t axis = 0; axis < mesh.sizes.size(); ++axis)
          if (mesh.sizes[axis] > 1 && chance(60))
            (*list)[axis] = {chance(50) ? PlacementKind::PartialSum
                                        : PlacementKind::PartialAverage};
      // What is cut no longer leaves other sizes to the axes behind it.
      if (geometry::checkPlacements(group.shape, *list, mesh, list == &group.gradientPlacements))
        list->assign(mesh.sizes.size(), {});
      for (const Placement &placement : *list)
        ++histogram[toString(placement).substr(0, toString(placement).find('('))];
      if (*list == group.placements)
        list->clear();
    }
  }
  // Blocks that are computed where they stand are whole with the states.
  std::set<int64_t> whole;
  for (const Group &group : plan.groups)
    if (group.computes && group.hops.empty())
      whole.insert(group.parameters.begin(), group.parameters.end());
  for (Group &group : plan.groups) {
    if (whole.count(group.parameters[0]))
      group.statePlacements.clear();
    const Mesh &mesh = plan.meshes[static_cast<size_t>(group.mesh)];
    if (std::any_of(group.gradientPlacements.begin(), group.gradientPlacements.end(),
                    [](const Placement &each) { return each.isPartial(); }))
      group.reducedPlacements = geometry::reducedPlacements(
          group, mesh, home(group, plan.rules[static_cast<size_t>(group.rule)]).whose());
  }
  plan.tables.clear(); // hops start elsewhere now
  return divided;
}

void drawHops(std::mt19937_64 &random, Plan &plan, Histogram &histogram) {
  for (Group &group : plan.groups) {
    const Mesh &mesh = plan.meshes[static_cast<size_t>(group.mesh)];
    if (group.hops.size() != 1 || group.hops[0].owned.empty())
      continue;
    Hop all = group.hops[0], first = all, second = all;
    // The first part of the last axis that has parts, and all else.
    Factor &last = second.owned.back();
    bool splits = last.size % 2 == 0 && last.size > 2;
    first.owned = {{last.axis, 1, splits ? 2 : last.size}};
    if (splits)
      last = {last.axis, 2, last.size / 2};
    else
      second.owned.pop_back();
    if (second.owned.empty())
      continue;
    switch (std::uniform_int_distribution<int>(0, 3)(random)) {
    case 0:
      ++histogram["hops in turn"];
      group.hops = {first, second};
      break;
    case 1:
      ++histogram["hops that gather and choose"];
      group.hops = {{{}, wholeAxes(mesh), {}}, all};
      break;
    case 2:
      ++histogram["hops that gather and own"];
      group.hops = {{{}, first.owned, {}}, second};
      break;
    default:
      break;
    }
  }
}

namespace {

/// From home to where blocks are computed, by way of what stands between hops.
void addHops(Plan &plan, int64_t segment, const Group &group) {
  const Rule &rule = plan.rules[static_cast<size_t>(group.rule)];
  Distribution at = home(group, rule);
  auto blocks = Place::resting(segment, ValueKind::Full, Distribution::Blocks);
  Place arrived = Place::resting(segment, ValueKind::Full, at);
  for (size_t hop = 0; hop < group.hops.size() && !chooses(group.hops, hop); ++hop) {
    Distribution next = Distribution::after(group, static_cast<int64_t>(hop) + 1);
    Place sent{segment, ValueKind::Full, at, next, End::Sent}, received = sent;
    received.end = End::Received;
    plan.tables.push_back({TableKind::Copy, arrived, sent, 4});
    plan.tables.push_back({TableKind::Message, sent, received, 4});
    arrived = received;
    at = next;
  }
  plan.tables.push_back({TableKind::Copy, arrived, blocks, 4});
}

} // namespace

void addMoves(Plan &plan) {
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    const Group &group = plan.groups[static_cast<size_t>(plan.segments[s].group)];
    auto segment = static_cast<int64_t>(s);
    bool isPartial = !group.reducedPlacements.empty();
    auto add = [&](ShardsKind from, ShardsKind to, TableKind adds) {
      Distribution x = shardsOf(group, from), y = shardsOf(group, to);
      if (x == y)
        return;
      Place sent{segment, ValueKind::Full, x, y, End::Sent}, received = sent;
      received.end = End::Received;
      Place kept{segment, ValueKind::Full, y, y, End::Kept}, bound = kept;
      bound.end = End::Rest;
      plan.tables.push_back(
          {TableKind::Copy, Place::resting(segment, ValueKind::Full, x), sent, 4});
      plan.tables.push_back({TableKind::Message, sent, received, 4});
      plan.tables.push_back({adds, received, kept, 4});
      plan.tables.push_back({TableKind::ShardChunks, bound, kept, 0});
    };
    for (ShardsKind from : {ShardsKind::Parameter, ShardsKind::State, ShardsKind::Reduced})
      for (ShardsKind to : {ShardsKind::Parameter, ShardsKind::State})
        if (from != ShardsKind::Reduced || isPartial)
          add(from, to, TableKind::Copy);
    if (isPartial)
      add(ShardsKind::Gradient, ShardsKind::Reduced, TableKind::Sum);
    else
      add(ShardsKind::Gradient, ShardsKind::State, TableKind::Copy);
    if (!group.hops.empty())
      addHops(plan, segment, group);
  }
}

} // namespace stepc::test
