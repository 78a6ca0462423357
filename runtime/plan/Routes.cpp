//===- Routes.cpp - Who sends which rectangle to whom --------------------===//

#include "runtime/plan/Routes.h"

#include <numeric>
#include <utility>

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
  segments.resize(plan.segments.size());
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

const ShardRects &Routes::shard(int64_t group, ValueKind valueKind, int64_t position) {
  ShardRects &shard = kind(group, valueKind).shards[static_cast<size_t>(position)];
  if (shard.filled)
    return shard;
  const Group &g = at(thePlan.groups, group);
  auto blocks = static_cast<size_t>(at(blocksPerParameter, group));
  shard.rects = geometry::rectangles(g, at(thePlan.meshes, g.mesh), position, valueKind);
  shard.first.assign(blocks + 1, 0);
  shard.elements.assign(blocks, 0);
  // Of a parameter without blocks, a value of kind One still has one.
  if (blocks == 0)
    shard.rects.clear();
  for (const Rect &rect : shard.rects) {
    if (shard.held.empty() || shard.held.back() != rect.block)
      shard.held.push_back(rect.block);
    ++shard.first[static_cast<size_t>(rect.block) + 1];
    shard.elements[static_cast<size_t>(rect.block)] += rect.rows * rect.cols;
  }
  std::partial_sum(shard.first.begin(), shard.first.end(), shard.first.begin());
  shard.filled = true;
  return shard;
}

int64_t Routes::blockCount(int64_t segment) const {
  const Segment &s = at(thePlan.segments, segment);
  if (!s.all)
    return static_cast<int64_t>(s.blocks.size());
  return at(blocksPerParameter, s.group) *
         static_cast<int64_t>(at(thePlan.groups, s.group).parameters.size());
}

const SegmentBlocks &Routes::blocksOf(int64_t segment) {
  std::unique_ptr<SegmentBlocks> &blocks = segments[static_cast<size_t>(segment)];
  if (blocks)
    return *blocks;
  blocks = std::make_unique<SegmentBlocks>();
  const Group &group = groupOf(segment);
  int64_t perParameter = at(blocksPerParameter, at(thePlan.segments, segment).group);
  bool owned = group.strategy == Strategy::Owner;
  blocks->within.resize(static_cast<size_t>(perParameter));
  blocks->owners.resize(owned ? blocks->within.size() : 0);
  blocks->owned.resize(owned ? at(meshes, group.mesh).worldOf.size() : 0);
  for (int64_t index = 0, count = blockCount(segment); index < count; ++index) {
    int64_t b = block(segment, index);
    auto place = static_cast<size_t>(b % perParameter);
    blocks->within[place].push_back(index);
    if (!owned)
      continue;
    blocks->owned[static_cast<size_t>(at(group.owners, b))].push_back(index);
    blocks->owners[place].push_back({at(group.owners, b), 1});
  }
  for (auto &list : blocks->owners) {
    std::sort(list.begin(), list.end());
    size_t kept = 0;
    for (auto [owner, count] : list)
      if (kept > 0 && list[kept - 1].first == owner)
        list[kept - 1].second += count;
      else
        list[kept++] = {owner, count};
    list.resize(kept);
  }
  return *blocks;
}

void Routes::collect(const ShardRects &shard, const std::vector<std::vector<int64_t>> &within,
                     int64_t count, std::vector<int64_t> &out) {
  bool all = shard.held.size() == within.size();
  out.clear();
  if (all) {
    out.resize(static_cast<size_t>(count));
    std::iota(out.begin(), out.end(), 0);
    return;
  }
  for (int64_t place : shard.held)
    out.insert(out.end(), at(within, place).begin(), at(within, place).end());
  if (!std::is_sorted(out.begin(), out.end()))
    std::sort(out.begin(), out.end());
}

std::vector<int64_t> Routes::held(int64_t segment, const ShardRects &shard) {
  std::vector<int64_t> result;
  collect(shard, blocksOf(segment).within, blockCount(segment), result);
  return result;
}

int64_t Routes::heldElements(int64_t segment, const ShardRects &shard) {
  const SegmentBlocks &blocks = blocksOf(segment);
  int64_t total = 0;
  for (int64_t place : shard.held)
    total += static_cast<int64_t>(at(blocks.within, place).size()) * at(shard.elements, place);
  return total;
}

std::vector<int64_t> Routes::computed(int64_t segment, int64_t position) {
  const Group &group = groupOf(segment);
  switch (group.strategy) {
  case Strategy::Elementwise:
    break;
  case Strategy::Local:
    // A local group shards block axes alone, so that one value per block tells
    // who holds it.
    return held(segment, shard(at(thePlan.segments, segment).group, ValueKind::One, position));
  case Strategy::Owner:
    return at(blocksOf(segment).owned, position);
  case Strategy::Gather: {
    std::vector<int64_t> all(static_cast<size_t>(blockCount(segment)));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  }
  return {};
}

int64_t Routes::computedCount(int64_t segment, int64_t position) {
  const Group &group = groupOf(segment);
  if (group.strategy == Strategy::Owner)
    return static_cast<int64_t>(at(blocksOf(segment).owned, position).size());
  return group.strategy == Strategy::Gather
             ? blockCount(segment)
             : static_cast<int64_t>(computed(segment, position).size());
}

std::vector<PeerPart> Routes::readers(const KindView &view, const MeshView &mesh, int64_t position,
                                      int64_t total) const {
  std::vector<PeerPart> peers;
  for (int64_t reader : mesh.byWorld)
    if (total > 0 && serves(view, mesh, position, reader))
      peers.push_back({at(mesh.worldOf, reader), 0, total});
  return peers;
}

/// Parts of the given sizes per world rank, one after the other; sizes become offsets.
static std::vector<PeerPart> layOut(std::vector<int64_t> &sizes, int64_t &total) {
  std::vector<PeerPart> peers;
  for (size_t rank = 0; rank < sizes.size(); ++rank) {
    if (sizes[rank] > 0)
      peers.push_back({static_cast<int64_t>(rank), total, sizes[rank]});
    total += std::exchange(sizes[rank], total);
  }
  return peers;
}

OwnParts Routes::own(int64_t segment, Direction direction, ValueKind valueKind, int64_t position) {
  OwnParts result;
  int64_t groupIndex = at(thePlan.segments, segment).group;
  const Group &group = groupOf(segment);
  const ShardRects &shard = this->shard(groupIndex, valueKind, position);
  std::vector<int64_t> indices = held(segment, shard);
  result.offsets.assign(indices.size(), -1);
  if (!travels(group))
    return result;
  const MeshView &mesh = at(meshes, group.mesh);
  const KindView &view = kind(groupIndex, valueKind);
  int64_t perParameter = at(blocksPerParameter, groupIndex);

  // One part per peer, in segment order within each. A gather group has one part: the copy that
  // all receivers share, or (to shards) the rank's own.
  auto visit = [&](auto function) {
    for (size_t k = 0; k < indices.size(); ++k) {
      int64_t b = block(segment, indices[k]);
      int64_t partner = group.strategy == Strategy::Owner ? at(group.owners, b) : position;
      if (direction == Direction::ToShards || serves(view, mesh, position, partner))
        function(k, static_cast<size_t>(at(mesh.worldOf, partner)),
                 at(shard.elements, b % perParameter));
    }
  };
  std::vector<int64_t> next(ranks.size(), 0);
  visit([&](size_t, size_t peer, int64_t size) { next[peer] += size; });
  result.peers = layOut(next, result.total);
  visit([&](size_t k, size_t peer, int64_t size) {
    result.offsets[k] = next[peer];
    next[peer] += size;
  });
  if (group.strategy == Strategy::Gather && direction == Direction::ToMatrix)
    result.peers = readers(view, mesh, position, result.total);
  return result;
}

std::vector<PeerPart> Routes::ownPeers(int64_t segment, Direction direction, ValueKind valueKind,
                                       int64_t position) {
  int64_t groupIndex = at(thePlan.segments, segment).group, total = 0;
  const Group &group = groupOf(segment);
  if (!travels(group))
    return {};
  const MeshView &mesh = at(meshes, group.mesh);
  const KindView &view = kind(groupIndex, valueKind);
  const ShardRects &shard = this->shard(groupIndex, valueKind, position);
  if (group.strategy == Strategy::Gather && direction == Direction::ToMatrix)
    return readers(view, mesh, position, heldElements(segment, shard));
  std::vector<int64_t> sizes(ranks.size(), 0);
  auto add = [&](int64_t partner, int64_t size) {
    sizes[static_cast<size_t>(at(mesh.worldOf, partner))] += size;
  };
  if (group.strategy == Strategy::Gather)
    add(position, heldElements(segment, shard));
  else
    for (int64_t place : shard.held)
      for (auto [owner, count] : at(blocksOf(segment).owners, place))
        if (direction == Direction::ToShards || serves(view, mesh, position, owner))
          add(owner, count * at(shard.elements, place));
  return layOut(sizes, total);
}

std::vector<PeerPart> Routes::foreignPeers(int64_t segment, Direction direction,
                                           ValueKind valueKind, int64_t position) {
  std::vector<PeerPart> peers;
  int64_t groupIndex = at(thePlan.segments, segment).group, offset = 0;
  const Group &group = groupOf(segment);
  if (!travels(group))
    return peers;
  const MeshView &mesh = at(meshes, group.mesh);
  const KindView &view = kind(groupIndex, valueKind);
  // How many blocks of each place in their parameters are computed here.
  std::vector<std::pair<int64_t, int64_t>> counts;
  const SegmentBlocks &blocks = blocksOf(segment);
  if (group.strategy == Strategy::Owner) {
    int64_t perParameter = at(blocksPerParameter, groupIndex);
    for (int64_t index : at(blocks.owned, position))
      counts.push_back({block(segment, index) % perParameter, 1});
  } else {
    for (size_t place = 0; place < blocks.within.size(); ++place)
      counts.push_back(
          {static_cast<int64_t>(place), static_cast<int64_t>(blocks.within[place].size())});
  }
  for (int64_t holder : mesh.byWorld) {
    if (!linked(group, view, mesh, direction, holder, position))
      continue;
    const ShardRects &shard = this->shard(groupIndex, valueKind, holder);
    int64_t size = 0;
    for (auto [place, count] : counts)
      size += count * at(shard.elements, place);
    if (size > 0)
      peers.push_back({at(mesh.worldOf, holder), offset, size});
    offset += size;
  }
  return peers;
}

} // namespace stepc::plan
