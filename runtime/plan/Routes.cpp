//===- Routes.cpp - Who sends which rectangle to whom --------------------===//

#include "runtime/plan/Routes.h"

#include <numeric>

namespace stepc::plan {

using geometry::Rect;

Routes::Routes(const Plan &plan) : thePlan(plan), ranks(plan.world()) {
  for (const Mesh &mesh : plan.meshes) {
    MeshView view;
    view.positionOf.assign(ranks.size(), -1);
    for (size_t position = 0; position < mesh.ranks.size(); ++position) {
      auto found = std::lower_bound(ranks.begin(), ranks.end(), mesh.ranks[position]);
      // A mesh that no group uses may have ranks outside of the world.
      bool inside = found != ranks.end() && *found == mesh.ranks[position];
      view.worldOf.push_back(inside ? found - ranks.begin() : -1);
      if (inside)
        view.positionOf[static_cast<size_t>(view.worldOf.back())] = static_cast<int64_t>(position);
      view.coords.push_back(geometry::coordinates(mesh, static_cast<int64_t>(position)));
    }
    view.byWorld.resize(mesh.ranks.size());
    std::iota(view.byWorld.begin(), view.byWorld.end(), 0);
    std::sort(view.byWorld.begin(), view.byWorld.end(),
              [&](int64_t a, int64_t b) { return at(view.worldOf, a) < at(view.worldOf, b); });
    meshes.push_back(std::move(view));
  }
  for (const Group &group : plan.groups)
    blocksPerParameter.push_back(group.blocksPerParameter());
  kinds.resize(plan.groups.size() * 4);
}

int64_t Routes::position(int64_t segment, int64_t rank) const {
  if (rank < 0 || rank >= worldSize())
    return -1;
  return at(at(meshes, groupOf(segment).mesh).positionOf, rank);
}

KindView &Routes::kind(int64_t group, ValueKind kind) {
  auto &view = kinds[static_cast<size_t>(group * 4 + static_cast<int64_t>(kind))];
  if (!view) {
    const Group &g = at(thePlan.groups, group);
    view = std::make_unique<KindView>();
    geometry::View shape = geometry::view(g, kind);
    view->rows = shape.rows;
    view->cols = shape.cols;
    view->replicated = geometry::replicatedAxes(g, kind);
    view->shards.resize(at(thePlan.meshes, g.mesh).ranks.size());
  }
  return *view;
}

std::span<const Rect> Routes::rects(int64_t group, ValueKind valueKind, int64_t position,
                                    int64_t block) {
  ShardRects &shard = kind(group, valueKind).shards[static_cast<size_t>(position)];
  if (!shard.filled) {
    const Group &g = at(thePlan.groups, group);
    shard.rects = geometry::rectangles(g, at(thePlan.meshes, g.mesh), position, valueKind);
    shard.first.assign(static_cast<size_t>(at(blocksPerParameter, group)) + 1, 0);
    for (const Rect &rect : shard.rects)
      ++shard.first[static_cast<size_t>(rect.block) + 1];
    std::partial_sum(shard.first.begin(), shard.first.end(), shard.first.begin());
    shard.filled = true;
  }
  return shard.of(block);
}

int64_t Routes::elements(int64_t group, ValueKind kind, int64_t position, int64_t block) {
  int64_t count = 0;
  for (const Rect &rect : rects(group, kind, position, block))
    count += rect.rows * rect.cols;
  return count;
}

int64_t Routes::blockCount(int64_t segment) const {
  const Segment &s = at(thePlan.segments, segment);
  if (!s.all)
    return static_cast<int64_t>(s.blocks.size());
  return at(blocksPerParameter, s.group) *
         static_cast<int64_t>(at(thePlan.groups, s.group).parameters.size());
}

bool Routes::computes(int64_t group, int64_t block, int64_t position) {
  const Group &g = at(thePlan.groups, group);
  switch (g.strategy) {
  case Strategy::Elementwise:
    return false;
  case Strategy::Local:
    // A local group shards block axes alone, so that one value per block tells
    // who holds it.
    return !rects(group, ValueKind::One, position, block % at(blocksPerParameter, group)).empty();
  case Strategy::Owner:
    return at(g.owners, block) == position;
  case Strategy::Gather:
    return true;
  }
  return false;
}

std::vector<int64_t> Routes::computed(int64_t segment, int64_t position) {
  std::vector<int64_t> result;
  int64_t group = at(thePlan.segments, segment).group, count = blockCount(segment);
  for (int64_t index = 0; index < count; ++index)
    if (computes(group, block(segment, index), position))
      result.push_back(index);
  return result;
}

OwnParts Routes::own(const Place &place, int64_t position) {
  OwnParts result;
  int64_t segment = place.segment;
  int64_t groupIndex = at(thePlan.segments, segment).group, count = blockCount(segment);
  const Group &group = groupOf(segment);
  result.offsets.assign(static_cast<size_t>(count), -1);
  if (group.strategy != Strategy::Owner && group.strategy != Strategy::Gather)
    return result;
  const MeshView &mesh = at(meshes, group.mesh);
  const KindView &view = kind(groupIndex, place.value);
  int64_t perParameter = at(blocksPerParameter, groupIndex);

  // Buckets by peer, in segment order within each. A gather group has one
  // bucket: the copy that all receivers share, or (to shards) the rank's own
  // part.
  std::vector<std::pair<int64_t, int64_t>> order;
  for (int64_t index = 0; index < count; ++index) {
    int64_t b = block(segment, index);
    if (rects(groupIndex, place.value, position, b % perParameter).empty())
      continue;
    int64_t partner = group.strategy == Strategy::Owner ? at(group.owners, b) : position;
    if (place.from == Distribution::Shards && !serves(view, mesh, position, partner))
      continue;
    order.push_back({at(mesh.worldOf, partner), index});
  }
  std::sort(order.begin(), order.end());
  for (auto [peer, index] : order) {
    if (result.peers.empty() || result.peers.back().peer != peer)
      result.peers.push_back({peer, result.total, 0});
    result.offsets[static_cast<size_t>(index)] = result.total;
    int64_t size =
        elements(groupIndex, place.value, position, block(segment, index) % perParameter);
    result.total += size;
    result.peers.back().count += size;
  }

  if (group.strategy == Strategy::Gather && place.from == Distribution::Shards &&
      result.total > 0) {
    result.peers.clear();
    for (int64_t reader : mesh.byWorld)
      if (serves(view, mesh, position, reader))
        result.peers.push_back({at(mesh.worldOf, reader), 0, result.total});
  }
  return result;
}

} // namespace stepc::plan
