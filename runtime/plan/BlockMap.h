//===- BlockMap.h - Who sends which rectangle to whom -------------*- C++ -*-===//
//
// Internal to the plan: the routing rule and the layouts of Tables.h, computed
// once per group and value kind (geometry is the same for all parameters of a
// group) and shared by all tables and ranks.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_BLOCKMAP_H
#define STEPC_RUNTIME_PLAN_BLOCKMAP_H

#include "runtime/geometry/Geometry.h"
#include "runtime/plan/Memo.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/Teams.h"

#include <algorithm>
#include <array>
#include <forward_list>
#include <map>
#include <optional>
#include <span>
#include <tuple>

namespace stepc::plan {

/// Lists of items, one list per key, in one piece of memory. Key k has the items from first[k] up to, but
/// without, first[k + 1].
struct Lists {
  std::vector<int64_t> items, first;

  /// Puts item i into list keys[i], for all items in the order of `order`, or ascending if `order` is null.
  Lists() = default;
  Lists(const std::vector<int64_t> &keys, int64_t lists, const std::vector<int64_t> *order);
  std::span<const int64_t> of(int64_t key) const {
    auto begin = static_cast<size_t>(first[static_cast<size_t>(key)]);
    return {items.data() + begin, static_cast<size_t>(first[static_cast<size_t>(key) + 1]) - begin};
  }
};

/// Sorts positions into classes. The positions of one class differ only along certain factors.
struct Classes {
  std::vector<int64_t> of; // per position, its class: the member at 0 along all these factors
  Lists members;           // of each class, by ascending world rank
  /// The position that has the coordinates of `position` along the factors, and coordinate 0 elsewhere.
  int64_t part(int64_t position) const { return position - of[static_cast<size_t>(position)]; }
};

/// How positions in a mesh and world ranks correspond.
struct MeshView {
  std::vector<int64_t> worldOf;    // world rank of a position
  std::vector<int64_t> positionOf; // position of a world rank, or -1
  std::vector<int64_t> byWorld;    // positions by ascending world rank
  /// The key lists, for each factor, how far apart positions are along the factor, and the factor's size.
  std::map<std::vector<std::pair<int64_t, int64_t>>, Classes> classes;
};

/// A kind of values of a group, and the list of placements by which they lie in shards.
struct ShardForm {
  ValueKind value;
  ShardsKind whose;
  ShardForm(ValueKind value, ShardsKind whose = ShardsKind::Parameter)
      : value(value), whose(whose) {}
};

/// The rectangles that a position holds of one parameter, grouped by block. Their offsets are those in
/// shards, even where the position holds pieces.
struct ShardRects {
  std::vector<geometry::Rect> rects;
  std::vector<int64_t> first;    // block b has rectangles [first[b], first[b + 1])
  std::vector<int64_t> elements; // of each block
  std::vector<int64_t> held;     // the blocks that have any rectangle
  // Only for shards. `like` is a position whose shard has the same rectangles, shifted by a number of rows
  // and columns. All such positions have the same `like`. `row` and `col` are where the first rectangle
  // begins in its block.
  int64_t like = -1, row = 0, col = 0;
  // Only for shards in a group with slabs: per rectangle, the row (column) of its block's slab where it
  // begins.
  std::vector<int64_t> inSlab;
  bool filled = false;

  std::span<const geometry::Rect> of(int64_t block) const {
    auto begin = static_cast<size_t>(first[static_cast<size_t>(block)]);
    auto end = static_cast<size_t>(first[static_cast<size_t>(block) + 1]);
    return {rects.data() + begin, end - begin};
  }
  /// Fills the other lists from the rectangles, which must stand block by block.
  void index(size_t blocks);
  /// The memory that this object takes, in bytes, roughly.
  int64_t bytes() const;
  /// Fills `inSlab` for slabs along `axis`. Call `index` before.
  void findSlabs(Division::Axis axis);
};

/// The rectangles of a position's shard, cut where shards by another list of placements end.
struct SharedRects : ShardRects {
  std::vector<int64_t> classes; // of positions with such elements by the other list, ascending
  std::vector<int64_t> with;    // per rectangle, its index in `classes`
  int64_t classOf(const geometry::Rect &rect) const {
    return classes[static_cast<size_t>(with[static_cast<size_t>(&rect - rects.data())])];
  }
};

/// The rectangles that all classes of positions hold of one block, sorted by where they begin along one
/// axis.
struct BlockCuts {
  struct Cut {
    const geometry::Rect *rect;
    int64_t which; // the class
    int64_t reach; // the largest end of all cuts up to this one
  };
  std::vector<Cut> cuts;
  bool byRow = true; // false: sorted by column, because all begin at the same row
};

/// A move of a group between two levels, which are numbers of hops. The lower level is nearer to the
/// shards. On the way to blocks, a position of the upper level receives from the positions that differ from
/// it along `peers`. A position of the lower level sends to the positions with its own coordinates, except
/// that they are at the block's base along `kept`, and anywhere along `targets`. Where shards are
/// replicated, only the replica at the base along `serving` sends. On the way back the upper level sends
/// and the lower one receives.
struct Move {
  int64_t lower, upper;
  const Classes *peers, *kept, *targets, *serving;
};

/// A group's values of one kind.
struct KindView {
  int64_t rows = 1, cols = 1;     // of a value of this kind
  std::vector<bool> replicated;   // per mesh axis
  std::vector<ShardRects> shards; // per position; filled on demand
  struct Level {
    const Classes *holders; // a position has the pieces of all shards of its class
    bool all;               // every position that bases allow has some of every block
  };
  std::vector<Level> levels;   // levels[n] is after n hops
  std::vector<int64_t> unlike; // one position per set of alike shards (ShardRects::like)
  std::map<std::pair<int64_t, int64_t>, ShardRects> pieces; // per level above 0 and class
  /// Per level, factors and class: for each block within a parameter, the first one with equal rectangles at
  /// every member of the class.
  std::map<std::tuple<int64_t, const Classes *, int64_t>, std::vector<int64_t>> alikeBlocks;
  std::map<std::pair<int64_t, int64_t>, Move> moves; // per two levels
  std::vector<BlockCuts> cuts;                       // per block within a parameter
  /// The key is the other list of placements, then `like`, `row` and `col` of the position's own shard.
  std::map<std::tuple<ShardsKind, int64_t, int64_t, int64_t>, SharedRects> shared;
};

/// The ranks to which the blocks of a segment go by the hops between two levels: the coordinates of the
/// blocks' bases along the hops' owned factors, as positions. Indices are those of a segment's blocks.
struct Bases {
  const Classes *owned = nullptr; // along the hops' owned factors; null: blocks go to all positions
  std::vector<int64_t> of;        // per block of the segment, its base
  Lists at;                       // per position, the indices of blocks with that base, ascending
  /// Per block within a parameter: each base, and how many of the segment's blocks have it.
  std::vector<std::vector<std::pair<int64_t, int64_t>>> counts;
};

/// A segment's blocks, found by their number within a parameter and by their owners' bases. So a question
/// about one rank looks at that rank's blocks alone.
struct SegmentBlocks {
  std::vector<std::vector<int64_t>> within;           // indices per block within a parameter
  std::map<std::pair<int64_t, int64_t>, Bases> bases; // by lower and upper level
};

/// The part of a packed value that goes to or comes from one peer.
struct PeerPart {
  int64_t peer, offset, count; // world rank, elements
};

/// The fields of a place as numbers, for keys of memos.
std::vector<int64_t> numbersOf(const Place &place);

/// The parts of a packed place that lies in the lower distribution of its move: the distribution after
/// fewer hops.
struct LowerParts {
  std::vector<int64_t> next;    // per world rank, where the part starts whose least receiver it is
  std::vector<PeerPart> peers;  // ascending; peers that share a part have equal offsets
  std::vector<int64_t> offsets; // per block that the place has; -1: the block is not packed
};

class BlockMap {
public:
  explicit BlockMap(const Plan &plan);

  /// The parts of a place that has no elements on a rank: an empty list.
  const std::shared_ptr<const std::vector<PeerPart>> noPeers =
      std::make_shared<const std::vector<PeerPart>>();

  const Plan &plan() const { return thePlan; }
  /// Forgets what is known of groups once this takes more than 32 MiB, because it grows with groups ×
  /// ranks. The caller must hold no reference that another function returned: all become invalid.
  void trim();
  int64_t worldSize() const { return static_cast<int64_t>(ranks.size()); }
  const Group &groupOf(int64_t segment) const {
    return at(thePlan.groups, at(thePlan.segments, segment).group);
  }
  /// The position of a world rank in the mesh of a segment's group, or -1.
  int64_t position(int64_t segment, int64_t rank) const {
    return positionIn(at(thePlan.segments, segment).group, rank);
  }
  /// The position of a world rank in the mesh of a group, or -1.
  int64_t positionIn(int64_t group, int64_t rank) const;
  KindView &kind(int64_t group, ShardForm form);
  /// The rectangles of one parameter in the shard of `position`. For states that stay with blocks: all of the
  /// parameter's blocks, each at offset 0 (`held` and `shifts` say which the position has, and where).
  const ShardRects &shard(int64_t group, ShardForm form, int64_t position);
  /// The rectangles of the shard of `position`, cut where shards by the placements of `other` end.
  const SharedRects &shared(int64_t group, ShardForm form, ShardsKind other, int64_t position);
  /// Classes of positions that hold the same elements: they differ only along axes that replicate the value.
  const Classes &holders(int64_t group, ShardForm form);
  const std::vector<BlockCuts> &cuts(int64_t group, ShardForm form);

  int64_t blockCount(int64_t segment) const;
  /// The index in the group of a segment's block.
  int64_t block(int64_t segment, int64_t index) const {
    const Segment &s = at(thePlan.segments, segment);
    return s.all ? index : at(s.blocks, index);
  }
  /// Indices in the segment of the blocks of which a shard holds any rectangle.
  std::vector<int64_t> held(int64_t segment, const ShardRects &shard);
  /// Indices in the segment of the blocks of which a rank has any element in its shards, or in the shards
  /// that are copied to `place`.
  std::vector<int64_t> held(const Place &place, int64_t position) {
    if (place.from == Distribution::StateBlocks)
      return computed(place.segment, position);
    int64_t group = at(thePlan.segments, place.segment).group;
    return held(place.segment, shard(group, formOf(place), position));
  }
  /// Indices in the segment of the blocks that `position` computes: slot k is
  /// the k-th.
  std::vector<int64_t> computed(int64_t segment, int64_t position);
  int64_t computedCount(int64_t segment, int64_t position);
  /// The blocks of a group, in all its segments, that `position` computes: ascending indices in the group.
  std::vector<int64_t> computedOf(int64_t group, int64_t position);

  /// Per held block, what to add to an offset in the shard to get the offset in `place`, in elements. The
  /// place is shards or a copy of shards. `total` (may be null) receives the number of elements of the
  /// place.
  std::vector<int64_t> shifts(const Place &place, int64_t position, int64_t *total = nullptr);
  /// Whether a packed place lies in the lower distribution of its move, which is the one after fewer hops.
  bool isLower(const Place &place) const {
    const Group &group = groupOf(place.segment);
    Distribution other = place.end == End::Received ? place.from : place.to;
    return place.standsIn().level(group) < other.level(group);
  }
  /// The parts of a packed place. Positions that are known to have equal parts share one list.
  std::shared_ptr<const std::vector<PeerPart>> peers(const Place &place, int64_t position);
  /// Returns the parts of a place (`peers`) for one position after the other. Looks up only once what is
  /// equal for all positions.
  class PeersOfPlace {
  public:
    PeersOfPlace(BlockMap &map, const Place &place);
    std::shared_ptr<const std::vector<PeerPart>> at(int64_t position);

  private:
    BlockMap &map;
    const Place &place;
    const Move *move = nullptr; // null: BlockMap::peers answers without a short cut
    const Bases *bases =
        nullptr; // for the upper distribution, if blocks do not go to all positions
    std::array<int64_t, 3> key{}; // of `last`, for the lower distribution
    std::shared_ptr<const std::vector<PeerPart>> last;
  };
  /// Indices in the segment of the blocks of which anything stands in a packed place.
  std::vector<int64_t> standing(const Place &place, int64_t position);
  /// For a move between shards: the rectangles of the shard at this end, cut where shards at the other end
  /// end.
  const SharedRects &sharedOf(const Place &place, int64_t position) {
    ShardsKind other = (place.end == End::Received ? place.from : place.to).whose();
    return shared(at(thePlan.segments, place.segment).group,
                  {place.value, place.standsIn().whose()}, other, position);
  }
  /// Per class of `sharedOf`, the element at which the part for this class begins. It is -1 if nothing
  /// travels.
  std::vector<int64_t> begins(const Place &place, int64_t position) {
    return meet(place, position).starts;
  }
  /// Per team (Teams.h) of a position: where the part of each member begins in what arrived. Members are in
  /// the order in which their parts are added up: row-major along the factors of the slabs.
  std::vector<std::vector<int64_t>> beginsOfParts(const Place &place, int64_t position);
  /// The number of elements that a position adds up for the value of `place`.
  int64_t rangeElements(const Place &place, int64_t position);
  /// A key that is equal for positions whose walks over a packed place differ only in two things: which
  /// blocks the place has, and where shards begin in them. Returns nothing if the walk is the position's
  /// own.
  std::optional<std::vector<int64_t>> walkKey(const Place &place, int64_t position);
  /// Walks over a packed place of a move, in the place's order. Calls visit(number, block, rectangle,
  /// offset), where `number` counts the blocks that the place has and `block` is the index in the group.
  /// All rectangles of a shard are visited. The offset is -1 for a rectangle that does not travel from
  /// here.
  template <typename Visit> void walk(const Place &place, int64_t position, Visit visit);
  /// Walks over values that teams add up (Teams.h). Calls visit(slot, block, rectangle, offset, team, own),
  /// where `team` is the number of the block's team among the position's teams. `own` is the offset in the
  /// ranges that the position adds up itself, or -1. A received place of distribution Ranges has these
  /// ranges alone.
  template <typename Visit> void walkSums(const Place &place, int64_t position, Visit visit);

private:
  template <typename T> static const T &at(const std::vector<T> &list, int64_t index) {
    return list[static_cast<size_t>(index)];
  }
  /// Writes to `out` the items of all blocks that a shard holds, ascending. `within` lists the items of
  /// each block, `count` is the number of all items.
  static void collect(const ShardRects &shard, const std::vector<std::vector<int64_t>> &within,
                      int64_t count, std::vector<int64_t> &out);

  ShardForm formOf(const Place &place) const { return {place.value, whose(thePlan, place)}; }
  /// As `shifts`, for states that stay with blocks.
  std::vector<int64_t> shiftsOfBlocks(const Place &place, int64_t position);
  static bool isBetweenShards(const Place &place) {
    return place.from.isShards() && place.to.isShards();
  }
  std::optional<std::vector<int64_t>> lowerKey(const Place &place, int64_t position);
  /// Per block within a parameter, the first block with equal rectangles at all peers of a position, which
  /// is at the upper end of a move.
  const std::vector<int64_t> &alikeBlocks(const Place &place, int64_t position);
  /// A packed place of a move between shards: its parts, and per class of `sharedOf` where the class's part
  /// starts, or -1 if there is none.
  struct Meeting {
    std::vector<PeerPart> peers;
    std::vector<int64_t> starts;
  };
  Meeting meet(const Place &place, int64_t position);
  /// A key that is equal for positions for which `meet` returns the same.
  std::vector<int64_t> meetingKey(const Place &place, int64_t position);
  /// Classes of positions that send pieces to each other: they differ only along axes that do not replicate
  /// the source.
  const Classes &served(const Place &place);
  /// The parts of a packed place in the lower distribution, with an offset per block.
  LowerParts lowerOffsets(const Place &place, int64_t position);
  const Move &moveOf(const Place &place);
  /// ShardRects::like of a shard.
  int64_t like(int64_t group, ShardForm form, int64_t position);
  std::array<int64_t, 3> lowerKey(const Place &place, const Move &move, int64_t position) {
    return {like(at(thePlan.segments, place.segment).group, formOf(place), position),
            at(move.kept->of, position), move.serving->part(position)};
  }
  /// What is known of one kind of value in one kind of a group's shards, on first use.
  struct KnownKind {
    ValueKind value;
    std::unique_ptr<KindView> view;
    /// ShardRects::like per position; -1: not known. It takes much less memory than shards, so it is kept
    /// for longer.
    std::vector<int32_t> likes = {};
  };
  KnownKind &known(int64_t group, ShardForm form);
  /// The least world rank that receives the blocks with base `base` from `position`.
  static int64_t firstOf(const Move &move, const MeshView &mesh, int64_t base, int64_t position) {
    return at(mesh.worldOf, move.targets->members.of(at(move.kept->of, position) + base).front());
  }
  /// Whether the move of a place passes hops. If it passes none, nothing is packed.
  bool travels(const Place &place) const {
    const Group &group = groupOf(place.segment);
    return group.computes && place.from.level(group) != place.to.level(group);
  }
  const Classes &classes(int64_t mesh, const std::vector<Factor> &factors);
  /// The owned factors, the replicated ones, or both, of hops [lower, upper).
  static std::vector<Factor> factors(const Group &group, int64_t lower, int64_t upper, bool owned,
                                     bool replicated);
  /// Keeps the factors along whose axes a value is replicated, or, if `replicated` is false, all other
  /// factors.
  static std::vector<Factor> along(const KindView &view, std::vector<Factor> factors,
                                   bool replicated);
  SegmentBlocks &blocksOf(int64_t segment);
  const Bases &bases(int64_t segment, int64_t lower, int64_t upper);
  /// What a position holds of a parameter after `level` hops.
  const ShardRects &pieces(int64_t group, ShardForm form, int64_t level, int64_t position);
  /// Indices in the segment of the blocks of which a position holds anything after `level` hops.
  std::vector<int64_t> standing(int64_t segment, ShardForm form, int64_t level, int64_t position);
  /// The blocks of a segment whose bases lead to a position after `level` hops. Returns nothing if no hop
  /// owns factors: all blocks may stand there.
  std::optional<std::span<const int64_t>> based(int64_t segment, int64_t level, int64_t position);

  /// The kind of value that says whether a rank has a block. A block without elements still has a value of
  /// kind One.
  ValueKind presence(int64_t segment) const {
    return at(presences, at(thePlan.segments, segment).group);
  }
  Place computedIn(int64_t segment) const {
    return Place::resting(segment, presence(segment), Distribution::Blocks);
  }
  /// The teams of the positions that differ from `position` only along the factors of slabs.
  const Teams &teamsOf(int64_t segment, int64_t position);
  /// The teams (Teams.h) of which the position is a member, for the value of `place`.
  std::vector<Team> teamsAt(const Place &place, int64_t position);
  /// What a position of these teams sends or receives, by ascending world rank of the peers.
  std::vector<TeamPart> teamParts(const Place &place, const std::vector<Team> &teams);
  std::vector<PeerPart> summedParts(const Place &place, int64_t position);
  LowerParts lower(const Place &place, int64_t position);
  /// The parts in the upper distribution. `counts` is the number of blocks that the place has, per block
  /// within a parameter.
  std::vector<PeerPart> upperPeers(const Place &place, int64_t position,
                                   const std::map<int64_t, int64_t> &counts);
  template <typename Visit> void walkUpper(const Place &place, int64_t position, Visit visit);

  const Plan &thePlan;
  std::vector<int64_t> ranks;
  std::vector<MeshView> meshes;
  std::vector<int64_t> blocksPerParameter; // per group
  std::vector<ValueKind> presences;        // per group
  /// Per group and kind of shards. Each list is short, and its items never move in memory.
  std::vector<std::forward_list<KnownKind>> kinds;
  std::vector<std::unique_ptr<SegmentBlocks>> segments;
  std::map<std::pair<int64_t, int64_t>, Teams> teams; // per group and class along its slabs
  Memo<std::vector<int64_t>, std::vector<PeerPart>>
      knownPeers;                       // by place and what tells positions apart
  int64_t heldBytes = 0, likeBytes = 0; // bytes of kinds and segments, roughly; of likes
};

} // namespace stepc::plan

#endif
