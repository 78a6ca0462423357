//===- Routes.h - Who sends which rectangle to whom -------------*- C++ -*-===//
//
// Internal to the plan: the routing rule and the layouts of Tables.h, computed
// once per group and value kind (geometry is the same for all parameters of a
// group) and shared by all tables and ranks.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_ROUTES_H
#define STEPC_RUNTIME_PLAN_ROUTES_H

#include "runtime/geometry/Geometry.h"
#include "runtime/plan/Plan.h"

#include <algorithm>
#include <memory>
#include <span>

namespace stepc::plan {

/// A mesh seen from the world.
struct MeshView {
  std::vector<int64_t> worldOf;    // world rank of a position
  std::vector<int64_t> positionOf; // position of a world rank, or -1
  std::vector<int64_t> byWorld;    // positions by ascending world rank
  std::vector<std::vector<int64_t>> coords;
};

/// The rectangles of one shard, grouped by block within the parameter.
struct ShardRects {
  std::vector<geometry::Rect> rects;
  std::vector<int64_t> first; // block b's are [first[b], first[b + 1])
  bool filled = false;

  std::span<const geometry::Rect> of(int64_t block) const {
    auto begin = static_cast<size_t>(first[static_cast<size_t>(block)]);
    auto end = static_cast<size_t>(first[static_cast<size_t>(block) + 1]);
    return {rects.data() + begin, end - begin};
  }
};

/// A group's values of one kind.
struct KindView {
  int64_t rows = 1, cols = 1;     // of a block of this kind
  std::vector<bool> replicated;   // per mesh axis
  std::vector<ShardRects> shards; // per position, filled on demand
};

/// What one peer's part of a packed layout is.
struct PeerPart {
  int64_t peer, offset, count; // world rank, elements
};

/// A rank's own rectangles in what is packed where the shards are.
struct OwnParts {
  std::vector<int64_t> offsets; // per index in the segment; -1: this block is not in the layout
  std::vector<PeerPart> peers;  // ascending; gather: equal offsets, one copy
  int64_t total = 0;
};

class Routes {
public:
  explicit Routes(const Plan &plan);

  const Plan &plan() const { return thePlan; }
  int64_t worldSize() const { return static_cast<int64_t>(ranks.size()); }
  const MeshView &mesh(int64_t index) const { return meshes[static_cast<size_t>(index)]; }
  const Group &groupOf(int64_t segment) const {
    return at(thePlan.groups, at(thePlan.segments, segment).group);
  }
  /// The position of a world rank in the mesh of a segment's group, or -1.
  int64_t position(int64_t segment, int64_t rank) const;
  KindView &kind(int64_t group, ValueKind kind);
  /// The rectangles of block `block` (within the parameter) at `position`.
  std::span<const geometry::Rect> rects(int64_t group, ValueKind kind, int64_t position,
                                        int64_t block);

  int64_t blockCount(int64_t segment) const;
  /// The group's index of a segment's block.
  int64_t block(int64_t segment, int64_t index) const {
    const Segment &s = at(thePlan.segments, segment);
    return s.all ? index : at(s.blocks, index);
  }
  bool computes(int64_t group, int64_t block, int64_t position);
  /// Indices in the segment of the blocks that `position` computes: slot k is
  /// the k-th.
  std::vector<int64_t> computed(int64_t segment, int64_t position);

  /// Of a packed place that stands in shards.
  OwnParts own(const Place &place, int64_t position);

  /// Of a packed place that stands in blocks: calls visit(peer's world rank, slot,
  /// block in the group, rectangle, offset) in the order of packing and returns
  /// the peers' parts.
  template <typename Visit>
  std::vector<PeerPart> foreign(const Place &place, int64_t position, Visit visit);

  /// True when `holder` sends its rectangles to `reader`
  /// (geometry::servingReplica).
  bool serves(const KindView &view, const MeshView &mesh, int64_t holder, int64_t reader) const {
    const auto &of = at(mesh.coords, holder), &by = at(mesh.coords, reader);
    for (size_t axis = 0; axis < of.size(); ++axis)
      if (view.replicated[axis] && of[axis] != by[axis])
        return false;
    return true;
  }

private:
  template <typename T> static const T &at(const std::vector<T> &list, int64_t index) {
    return list[static_cast<size_t>(index)];
  }
  int64_t elements(int64_t group, ValueKind kind, int64_t position, int64_t block);

  const Plan &thePlan;
  std::vector<int64_t> ranks;
  std::vector<MeshView> meshes;
  std::vector<int64_t> blocksPerParameter;      // per group
  std::vector<std::unique_ptr<KindView>> kinds; // group · 4 + kind
};

template <typename Visit>
std::vector<PeerPart> Routes::foreign(const Place &place, int64_t position, Visit visit) {
  std::vector<PeerPart> peers;
  int64_t segment = place.segment;
  const Group &group = groupOf(segment);
  // In a local group nothing travels; an elementwise one has no matrix side.
  if (group.strategy != Strategy::Owner && group.strategy != Strategy::Gather)
    return peers;
  std::vector<int64_t> mine = computed(segment, position);
  if (mine.empty())
    return peers;
  int64_t groupIndex = at(thePlan.segments, segment).group;
  const MeshView &mesh = at(meshes, group.mesh);
  const KindView &view = kind(groupIndex, place.value);
  int64_t perParameter = at(blocksPerParameter, groupIndex);
  int64_t offset = 0;
  for (int64_t holder : mesh.byWorld) {
    // Every rank of a gather group has the result already; an owner serves all
    // holders.
    bool linked = place.from == Distribution::Shards   ? serves(view, mesh, holder, position)
                  : group.strategy == Strategy::Gather ? holder == position
                                                       : true;
    if (!linked)
      continue;
    PeerPart part{at(mesh.worldOf, holder), offset, 0};
    for (size_t slot = 0; slot < mine.size(); ++slot) {
      int64_t b = block(segment, mine[slot]);
      for (const geometry::Rect &rect : rects(groupIndex, place.value, holder, b % perParameter)) {
        visit(part.peer, static_cast<int64_t>(slot), b, rect, offset);
        offset += rect.rows * rect.cols;
      }
    }
    part.count = offset - part.offset;
    if (part.count > 0)
      peers.push_back(part);
  }
  return peers;
}

} // namespace stepc::plan

#endif
