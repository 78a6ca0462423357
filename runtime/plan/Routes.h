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
  std::vector<int64_t> first;    // block b's are [first[b], first[b + 1])
  std::vector<int64_t> elements; // of each block
  std::vector<int64_t> held;     // the blocks that have any rectangle
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

/// A segment's blocks by what tells them apart, so that a question about one rank looks at that
/// rank's blocks alone. All lists are indices in the segment, ascending.
struct SegmentBlocks {
  std::vector<std::vector<int64_t>> within; // per block within a parameter
  std::vector<std::vector<int64_t>> owned;  // Owner: per position
  /// Owner: per block within a parameter, the positions that own such blocks and how many.
  std::vector<std::vector<std::pair<int64_t, int64_t>>> owners;
};

/// What one peer's part of a packed layout is.
struct PeerPart {
  int64_t peer, offset, count; // world rank, elements
};

/// A rank's own rectangles in the layout that it sends (to matrix) or receives
/// (to shards).
struct OwnParts {
  std::vector<int64_t> offsets; // per block of `held`; -1: this block is not in the layout
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
  /// What `position` holds of a parameter.
  const ShardRects &shard(int64_t group, ValueKind kind, int64_t position);

  int64_t blockCount(int64_t segment) const;
  /// The group's index of a segment's block.
  int64_t block(int64_t segment, int64_t index) const {
    const Segment &s = at(thePlan.segments, segment);
    return s.all ? index : at(s.blocks, index);
  }
  /// Indices in the segment of the blocks of which a shard holds any rectangle.
  std::vector<int64_t> held(int64_t segment, const ShardRects &shard);
  /// Elements of a segment's blocks in a shard.
  int64_t heldElements(int64_t segment, const ShardRects &shard);
  /// Indices in the segment of the blocks that `position` computes: slot k is
  /// the k-th.
  std::vector<int64_t> computed(int64_t segment, int64_t position);
  int64_t computedCount(int64_t segment, int64_t position);

  /// Send, to matrix; Receive, to shards.
  OwnParts own(int64_t segment, Direction direction, ValueKind kind, int64_t position);
  std::vector<PeerPart> ownPeers(int64_t segment, Direction direction, ValueKind kind,
                                 int64_t position);

  /// Receive, to matrix; Send, to shards: calls visit(slot, block in the group, rectangle, offset)
  /// in the layout's order.
  template <typename Visit>
  void foreign(int64_t segment, Direction direction, ValueKind kind, int64_t position, Visit visit);
  std::vector<PeerPart> foreignPeers(int64_t segment, Direction direction, ValueKind kind,
                                     int64_t position);

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
  /// Those of `count` items that stand in the lists of the blocks that a shard holds, ascending.
  static void collect(const ShardRects &shard, const std::vector<std::vector<int64_t>> &within,
                      int64_t count, std::vector<int64_t> &out);
  template <typename T> static const T &at(const std::vector<T> &list, int64_t index) {
    return list[static_cast<size_t>(index)];
  }
  static bool travels(const Group &group) {
    return group.strategy == Strategy::Owner || group.strategy == Strategy::Gather;
  }
  /// Whether a rank that computes blocks receives from a holder, or sends back to it.
  bool linked(const Group &group, const KindView &view, const MeshView &mesh, Direction direction,
              int64_t holder, int64_t position) const {
    if (direction == Direction::ToMatrix)
      return serves(view, mesh, holder, position);
    // Every rank of a gather group has the result already; an owner serves all holders.
    return group.strategy != Strategy::Gather || holder == position;
  }
  const SegmentBlocks &blocksOf(int64_t segment);
  /// What a gather group's rank sends: one copy for all ranks that it serves.
  std::vector<PeerPart> readers(const KindView &view, const MeshView &mesh, int64_t position,
                                int64_t total) const;

  const Plan &thePlan;
  std::vector<int64_t> ranks;
  std::vector<MeshView> meshes;
  std::vector<int64_t> blocksPerParameter;      // per group
  std::vector<std::unique_ptr<KindView>> kinds; // group · 4 + kind
  std::vector<std::unique_ptr<SegmentBlocks>> segments;
};

template <typename Visit>
void Routes::foreign(int64_t segment, Direction direction, ValueKind valueKind, int64_t position,
                     Visit visit) {
  const Group &group = groupOf(segment);
  // In a local group nothing travels; an elementwise one has no matrix side.
  if (!travels(group))
    return;
  std::vector<int64_t> mine = computed(segment, position);
  if (mine.empty())
    return;
  int64_t groupIndex = at(thePlan.segments, segment).group;
  const MeshView &mesh = at(meshes, group.mesh);
  const KindView &view = kind(groupIndex, valueKind);
  int64_t perParameter = at(blocksPerParameter, groupIndex);
  // Slots by block within the parameter: most holders hold some of these alone.
  std::vector<std::vector<int64_t>> within(static_cast<size_t>(perParameter));
  std::vector<int64_t> slots;
  for (size_t slot = 0; slot < mine.size(); ++slot)
    within[static_cast<size_t>(block(segment, mine[slot]) % perParameter)].push_back(
        static_cast<int64_t>(slot));
  int64_t offset = 0;
  for (int64_t holder : mesh.byWorld) {
    if (!linked(group, view, mesh, direction, holder, position))
      continue;
    const ShardRects &shard = this->shard(groupIndex, valueKind, holder);
    collect(shard, within, static_cast<int64_t>(mine.size()), slots);
    for (int64_t slot : slots) {
      int64_t b = block(segment, at(mine, slot));
      for (const geometry::Rect &rect : shard.of(b % perParameter)) {
        visit(slot, b, rect, offset);
        offset += rect.rows * rect.cols;
      }
    }
  }
}

} // namespace stepc::plan

#endif
