//===- BetweenShards.cpp - What shards by different placements share ------===//

#include "runtime/plan/BlockMap.h"

#include <utility>

namespace stepc::plan {

using geometry::Rect;

const Classes &BlockMap::holders(int64_t group, ShardForm form) {
  const Group &g = at(thePlan.groups, group);
  return classes(g.mesh, along(kind(group, form), wholeAxes(at(thePlan.meshes, g.mesh)), true));
}

const std::vector<BlockCuts> &BlockMap::cuts(int64_t group, ShardForm form) {
  std::vector<BlockCuts> &result = kind(group, form).cuts;
  if (!result.empty())
    return result;
  result.resize(static_cast<size_t>(at(blocksPerParameter, group)));
  const Classes &all = holders(group, form);
  for (int64_t which = 0; which < static_cast<int64_t>(all.of.size()); ++which)
    if (at(all.of, which) == which)
      for (const Rect &rect : shard(group, form, which).rects)
        result[static_cast<size_t>(rect.block)].cuts.push_back({&rect, which, 0});
  for (BlockCuts &block : result) {
    std::vector<BlockCuts::Cut> &cuts = block.cuts;
    block.byRow = std::any_of(cuts.begin(), cuts.end(), [&](const BlockCuts::Cut &cut) {
      return cut.rect->row != cuts[0].rect->row;
    });
    std::sort(cuts.begin(), cuts.end(), [&](const BlockCuts::Cut &a, const BlockCuts::Cut &b) {
      return block.byRow ? a.rect->row < b.rect->row : a.rect->col < b.rect->col;
    });
    int64_t reach = 0;
    for (BlockCuts::Cut &cut : cuts) {
      const Rect &rect = *cut.rect;
      reach = std::max(reach, block.byRow ? rect.row + rect.rows : rect.col + rect.cols);
      cut.reach = reach;
    }
  }
  return result;
}

const SharedRects &BlockMap::shared(int64_t group, ShardForm form, ShardsKind other,
                                    int64_t position) {
  const ShardRects &own = shard(group, form, position);
  SharedRects &result = kind(group, form).shared[{other, own.like, own.row, own.col}];
  if (result.filled)
    return result;
  struct SharedRect {
    Rect rect;
    int64_t which;
  };
  std::vector<SharedRect> parts;
  const std::vector<BlockCuts> &others = cuts(group, {form.value, other});
  for (const Rect &a : own.rects) {
    const BlockCuts &block = at(others, a.block);
    int64_t begin = block.byRow ? a.row : a.col;
    auto first =
        std::partition_point(block.cuts.begin(), block.cuts.end(),
                             [&](const BlockCuts::Cut &cut) { return cut.reach <= begin; });
    for (; first != block.cuts.end(); ++first) {
      const Rect &b = *first->rect;
      if (block.byRow ? b.row >= a.row + a.rows : b.col >= a.col + a.cols)
        break;
      int64_t row = std::max(a.row, b.row), end = std::min(a.row + a.rows, b.row + b.rows);
      int64_t col = std::max(a.col, b.col), right = std::min(a.col + a.cols, b.col + b.cols);
      if (row < end && col < right)
        parts.push_back({{a.block, row, col, end - row, right - col,
                          a.offset + (row - a.row) * a.stride + col - a.col, a.stride},
                         first->which});
    }
  }
  // This order is the same at both ends of a move.
  std::sort(parts.begin(), parts.end(), [](const SharedRect &a, const SharedRect &b) {
    return std::tie(a.rect.block, a.rect.row, a.rect.col, a.which) <
           std::tie(b.rect.block, b.rect.row, b.rect.col, b.which);
  });
  for (const SharedRect &part : parts)
    result.classes.push_back(part.which);
  std::sort(result.classes.begin(), result.classes.end());
  result.classes.erase(std::unique(result.classes.begin(), result.classes.end()),
                       result.classes.end());
  for (const SharedRect &part : parts) {
    result.rects.push_back(part.rect);
    auto found = std::lower_bound(result.classes.begin(), result.classes.end(), part.which);
    result.with.push_back(found - result.classes.begin());
  }
  result.index(static_cast<size_t>(at(blocksPerParameter, group)));
  heldBytes += result.bytes();
  return result;
}

const Classes &BlockMap::served(const Place &place) {
  const Group &group = groupOf(place.segment);
  ShardForm source{place.value, place.from.whose()};
  return classes(group.mesh, along(kind(at(thePlan.segments, place.segment).group, source),
                                   wholeAxes(at(thePlan.meshes, group.mesh)), false));
}

std::vector<int64_t> BlockMap::meetingKey(const Place &place, int64_t position) {
  const ShardRects &own = shard(at(thePlan.segments, place.segment).group,
                                {place.value, place.standsIn().whose()}, position);
  return {own.like, own.row, own.col, at(served(place).of, position)};
}

BlockMap::Meeting BlockMap::meet(const Place &place, int64_t position) {
  int64_t group = at(thePlan.segments, place.segment).group;
  const MeshView &mesh = at(meshes, groupOf(place.segment).mesh);
  const SharedRects &shared = sharedOf(place, position);
  const SegmentBlocks &blocks = blocksOf(place.segment);
  std::vector<int64_t> sizes(shared.classes.size(), 0);
  for (size_t i = 0; i < shared.rects.size(); ++i) {
    const Rect &rect = shared.rects[i];
    auto count = static_cast<int64_t>(at(blocks.within, rect.block).size());
    sizes[static_cast<size_t>(shared.with[i])] += count * rect.rows * rect.cols;
  }
  // A part goes to (comes from) each peer that this position serves. Peers with equal shards share a part.
  ShardForm other{place.value, (place.end == End::Received ? place.from : place.to).whose()};
  const Classes &theirs = holders(group, other), &served = this->served(place);
  // World ranks of peers, each with the index of its class in shared.classes.
  std::vector<std::pair<int64_t, size_t>> peers;
  for (size_t which = 0; which < sizes.size(); ++which)
    for (int64_t peer : theirs.members.of(shared.classes[which]))
      if (sizes[which] > 0 && at(served.of, peer) == at(served.of, position))
        peers.push_back({at(mesh.worldOf, peer), which});
  std::sort(peers.begin(), peers.end());
  Meeting result;
  result.starts.assign(sizes.size(), -1);
  int64_t total = 0;
  for (auto [rank, which] : peers) {
    if (result.starts[which] < 0)
      result.starts[which] = std::exchange(total, total + sizes[which]);
    result.peers.push_back({rank, result.starts[which], sizes[which]});
  }
  return result;
}

} // namespace stepc::plan
