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
#include <optional>
#include <span>
#include <tuple>

namespace stepc::plan {

/// Items by a key, in one piece of memory.
struct Lists {
  std::vector<int64_t> items, first;

  /// Item i of `order` (or i itself) goes to list keys[item].
  Lists() = default;
  Lists(const std::vector<int64_t> &keys, int64_t lists, const std::vector<int64_t> *order);
  std::span<const int64_t> of(int64_t key) const {
    auto begin = static_cast<size_t>(first[static_cast<size_t>(key)]);
    return {items.data() + begin, static_cast<size_t>(first[static_cast<size_t>(key) + 1]) - begin};
  }
};

/// Positions that differ along certain factors alone.
struct Classes {
  std::vector<int64_t> of; // per position its class: the member at 0 along all of them
  Lists members;           // of each class, by ascending world rank
  /// The coordinates of a position along the factors, as the position that has these alone.
  int64_t part(int64_t position) const { return position - of[static_cast<size_t>(position)]; }
};

/// A mesh seen from the world.
struct MeshView {
  std::vector<int64_t> worldOf;    // world rank of a position
  std::vector<int64_t> positionOf; // position of a world rank, or -1
  std::vector<int64_t> byWorld;    // positions by ascending world rank
  /// By how far apart positions are along each factor, and its size.
  std::map<std::vector<std::pair<int64_t, int64_t>>, Classes> classes;
};

/// Which of a group's values: their kind, and by whose placements they stand.
struct Form {
  ValueKind value;
  ShardsKind whose;
  Form(ValueKind value, ShardsKind whose = ShardsKind::Parameter) : value(value), whose(whose) {}
};

/// The rectangles of a position, grouped by block within the parameter. Their offsets are those of
/// the shards that they come from.
struct ShardRects {
  std::vector<geometry::Rect> rects;
  std::vector<int64_t> first;    // block b's are [first[b], first[b + 1])
  std::vector<int64_t> elements; // of each block
  std::vector<int64_t> held;     // the blocks that have any rectangle
  // Of a shard: a position whose shard differs in where it begins in its blocks alone, one for all
  // that are so; and the row and column there.
  int64_t like = -1, row = 0, col = 0;
  // Of a shard in a group with slabs: per rectangle, the row (column) of its block's slab where it begins.
  std::vector<int64_t> inSlab;
  bool filled = false;

  std::span<const geometry::Rect> of(int64_t block) const {
    auto begin = static_cast<size_t>(first[static_cast<size_t>(block)]);
    auto end = static_cast<size_t>(first[static_cast<size_t>(block) + 1]);
    return {rects.data() + begin, end - begin};
  }
  /// Fills the rest, from rectangles by block.
  void index(size_t blocks);
  /// About how much memory all of it takes.
  int64_t bytes() const;
  /// Where rectangles begin in slabs along that axis, once they are indexed.
  void findSlabs(Division::Axis axis);
};

/// A position's rectangles, cut where those of shards by other placements end.
struct SharedRects : ShardRects {
  std::vector<int64_t> classes; // of the positions that have any of them, too; ascending
  std::vector<int64_t> with;    // per rectangle, which of these
  int64_t classOf(const geometry::Rect &rect) const {
    return classes[static_cast<size_t>(with[static_cast<size_t>(&rect - rects.data())])];
  }
};

/// The rectangles of all classes of positions in one block, by where they begin along one axis.
struct BlockCuts {
  struct Cut {
    const geometry::Rect *rect;
    int64_t which; // the class
    int64_t reach; // where the last ends of those up to here
  };
  std::vector<Cut> cuts;
  bool byRow = true; // along columns, where all begin with the same row
};

/// A move between two levels of a group. Of what stands in the upper one, `peers` differ along the
/// factors along which it came. What stands in the lower one goes to (comes from) those that are as
/// `kept` leaves it, at the block's base and anywhere along `targets`; only from a position that is
/// at the base along `serving`, where the shards are replicated.
struct Move {
  int64_t lower, upper;
  const Classes *peers, *kept, *targets, *serving;
};

/// A group's values of one kind.
struct KindView {
  int64_t rows = 1, cols = 1;     // of a block of this kind
  std::vector<bool> replicated;   // per mesh axis
  std::vector<ShardRects> shards; // per position; like all that follows filled on demand
  struct Level {
    const Classes *holders; // from whom a position has pieces
    bool all;               // something of every block stands at every position that bases allow
  };
  std::vector<Level> levels;   // after as many hops
  std::vector<int64_t> unlike; // of the shards that are alike, one position each
  std::map<std::pair<int64_t, int64_t>, ShardRects> pieces; // per level above 0 and class
  /// Per level, factors and class: of each block within a parameter the first one that has equal
  /// rectangles at every member.
  std::map<std::tuple<int64_t, const Classes *, int64_t>, std::vector<int64_t>> alikeBlocks;
  std::map<std::pair<int64_t, int64_t>, Move> moves; // per two levels
  std::vector<BlockCuts> cuts;                       // per block within a parameter
  /// Per other shards and what tells a position's own ones apart: `like`, `row` and `col`.
  std::map<std::tuple<ShardsKind, int64_t, int64_t, int64_t>, SharedRects> shared;
};

/// Where the blocks of a segment go by the hops between two levels: the coordinates of their bases
/// along the hops' owned factors, as positions. Lists are indices in the segment, ascending.
struct Bases {
  const Classes *owned = nullptr; // along all of these factors; none: blocks go to all positions
  std::vector<int64_t> of;        // per index
  Lists at;                       // per position, the indices with that base
  /// Per block within a parameter, the bases of such blocks and how many have each.
  std::vector<std::vector<std::pair<int64_t, int64_t>>> counts;
};

/// A segment's blocks by what tells them apart, so that a question about one rank looks at that
/// rank's blocks alone.
struct SegmentBlocks {
  std::vector<std::vector<int64_t>> within;           // indices per block within a parameter
  std::map<std::pair<int64_t, int64_t>, Bases> bases; // per two levels
};

/// What one peer's part of a packed layout is.
struct PeerPart {
  int64_t peer, offset, count; // world rank, elements
};

/// What tells a place apart, for keys of memos.
std::vector<int64_t> numbersOf(const Place &place);

/// What stands packed in the lower of the two distributions of a move.
struct LowerParts {
  std::vector<int64_t> next;    // per world rank that is the least of a part's receivers: its start
  std::vector<PeerPart> peers;  // ascending; who share a part have equal offsets
  std::vector<int64_t> offsets; // per block that stands there; -1: it is not packed
};

class BlockMap {
public:
  explicit BlockMap(const Plan &plan);

  /// The parts of a place where nothing stands.
  const std::shared_ptr<const std::vector<PeerPart>> noPeers =
      std::make_shared<const std::vector<PeerPart>>();

  const Plan &plan() const { return thePlan; }
  /// Forgets what is known of groups where that has become too much: with many groups on many ranks it would
  /// be memory for groups × ranks. Called between questions; what was answered by reference ends.
  void trim();
  int64_t worldSize() const { return static_cast<int64_t>(ranks.size()); }
  const Group &groupOf(int64_t segment) const {
    return at(thePlan.groups, at(thePlan.segments, segment).group);
  }
  /// The position of a world rank in the mesh of a segment's group, or -1.
  int64_t position(int64_t segment, int64_t rank) const;
  KindView &kind(int64_t group, Form form);
  /// What `position` holds of a parameter.
  const ShardRects &shard(int64_t group, Form form, int64_t position);
  /// The same, cut by what positions hold by the placements of `other`.
  const SharedRects &shared(int64_t group, Form form, ShardsKind other, int64_t position);
  /// What tells apart positions that hold other elements.
  const Classes &holders(int64_t group, Form form);
  const std::vector<BlockCuts> &cuts(int64_t group, Form form);

  int64_t blockCount(int64_t segment) const;
  /// The group's index of a segment's block.
  int64_t block(int64_t segment, int64_t index) const {
    const Segment &s = at(thePlan.segments, segment);
    return s.all ? index : at(s.blocks, index);
  }
  /// Indices in the segment of the blocks of which a shard holds any rectangle.
  std::vector<int64_t> held(int64_t segment, const ShardRects &shard);
  /// Indices in the segment of the blocks that `position` computes: slot k is
  /// the k-th.
  std::vector<int64_t> computed(int64_t segment, int64_t position);
  int64_t computedCount(int64_t segment, int64_t position);

  /// Of shards or a copy of them, per block that stands there: how far from its offsets in the shard
  /// its elements are; and how many elements there are in all.
  std::vector<int64_t> shifts(const Place &place, int64_t position, int64_t *total = nullptr);
  /// Whether a packed place stands in the lower distribution of its move.
  bool isLower(const Place &place) const {
    const Group &group = groupOf(place.segment);
    Distribution other = place.end == End::Received ? place.from : place.to;
    return place.standsIn().level(group) < other.level(group);
  }
  /// The parts of a packed place: one list for positions that have equal ones, as far as is known.
  std::shared_ptr<const std::vector<PeerPart>> peers(const Place &place, int64_t position);
  /// The same, position after position of one place: what does not differ between them is looked up once.
  class PeersOfPlace {
  public:
    PeersOfPlace(BlockMap &map, const Place &place);
    std::shared_ptr<const std::vector<PeerPart>> at(int64_t position);

  private:
    BlockMap &map;
    const Place &place;
    const Move *move = nullptr; // none: ask without a short cut
    const Bases *bases =
        nullptr; // of what stands in the upper distribution, if these are not everywhere
    std::array<int64_t, 3> key{}; // of the last answer for the lower one
    std::shared_ptr<const std::vector<PeerPart>> last;
  };
  /// Indices in the segment of the blocks of which anything stands in a packed place.
  std::vector<int64_t> standing(const Place &place, int64_t position);
  /// Of what moves between shards: what stands here, cut where the other end's shards end; and where the part
  /// that is shared with each of its classes begins.
  const SharedRects &sharedOf(const Place &place, int64_t position) {
    ShardsKind other = (place.end == End::Received ? place.from : place.to).whose();
    return shared(at(thePlan.segments, place.segment).group,
                  {place.value, place.standsIn().whose()}, other, position);
  }
  std::vector<int64_t> begins(const Place &place, int64_t position) {
    return meet(place, position).starts;
  }
  /// Of each team in which a position adds up a range: where its members' parts begin of what arrived, in the order
  /// in which they are added up, row-major along the factors of the slabs.
  std::vector<std::vector<int64_t>> beginsOfParts(const Place &place, int64_t position);
  /// How many sums of a kind a position adds up.
  int64_t rangeElements(const Place &place, int64_t position);
  /// What tells apart positions at which a walk over a packed place differs in more than which blocks stand
  /// there and where shards begin; nothing: each one is of its own.
  std::optional<std::vector<int64_t>> walkKey(const Place &place, int64_t position);
  /// Of a packed place of a move: calls visit(number of the block among those that stand there,
  /// block in the group, rectangle, offset). What stands in shards is visited whole; offset -1: it
  /// does not travel from here.
  template <typename Visit> void walk(const Place &place, int64_t position, Visit visit);
  /// The same of values that are added up, and of what arrived to be added up the ranges that it is of:
  /// calls visit(number, block, rectangle, offset, number of the team among those of the position, offset in the
  /// position's own ranges or -1).
  template <typename Visit> void walkSums(const Place &place, int64_t position, Visit visit);

private:
  template <typename T> static const T &at(const std::vector<T> &list, int64_t index) {
    return list[static_cast<size_t>(index)];
  }
  /// Those of `count` items that stand in the lists of the blocks that a shard holds, ascending.
  static void collect(const ShardRects &shard, const std::vector<std::vector<int64_t>> &within,
                      int64_t count, std::vector<int64_t> &out);

  Form formOf(const Place &place) const { return {place.value, whose(thePlan, place)}; }
  static bool isBetweenShards(const Place &place) {
    return place.from.isShards() && place.to.isShards();
  }
  std::optional<std::vector<int64_t>> lowerKey(const Place &place, int64_t position);
  /// Per block within a parameter the first one that is alike at all that send to (receive from) a
  /// position with the upper end of a move.
  const std::vector<int64_t> &alikeBlocks(const Place &place, int64_t position);
  /// Of what moves between shards: the parts, and per class of what is shared the start of its part, or -1.
  struct Meeting {
    std::vector<PeerPart> peers;
    std::vector<int64_t> starts;
  };
  Meeting meet(const Place &place, int64_t position);
  /// What tells apart positions at which that differs.
  std::vector<int64_t> meetingKey(const Place &place, int64_t position);
  /// Who sends pieces to each other: positions that differ along axes alone that do not replicate the source.
  const Classes &served(const Place &place);
  /// With an offset per block, of a packed place in the lower distribution.
  LowerParts lowerOffsets(const Place &place, int64_t position);
  const Move &moveOf(const Place &place);
  /// ShardRects::like of a shard.
  int64_t like(int64_t group, Form form, int64_t position);
  std::array<int64_t, 3> lowerKey(const Place &place, const Move &move, int64_t position) {
    return {like(at(thePlan.segments, place.segment).group, formOf(place), position),
            at(move.kept->of, position), move.serving->part(position)};
  }
  static size_t kindIndex(int64_t group, Form form) {
    return static_cast<size_t>((group * kShardsKinds + static_cast<int64_t>(form.whose)) *
                                   kValueKinds +
                               static_cast<int64_t>(form.value));
  }
  /// The least world rank of those to which a position's blocks of some base go.
  static int64_t firstOf(const Move &move, const MeshView &mesh, int64_t base, int64_t position) {
    return at(mesh.worldOf, move.targets->members.of(at(move.kept->of, position) + base).front());
  }
  /// Nothing is packed where a move has no hops.
  bool travels(const Place &place) const {
    const Group &group = groupOf(place.segment);
    return group.computes && place.from.level(group) != place.to.level(group);
  }
  const Classes &classes(int64_t mesh, const std::vector<Factor> &factors);
  /// The factors of the hops of levels [lower, upper).
  static std::vector<Factor> factors(const Group &group, int64_t lower, int64_t upper, bool owned,
                                     bool replicated);
  /// Those along whose axes a value is replicated, or is not.
  static std::vector<Factor> along(const KindView &view, std::vector<Factor> factors,
                                   bool replicated);
  SegmentBlocks &blocksOf(int64_t segment);
  const Bases &bases(int64_t segment, int64_t lower, int64_t upper);
  /// What stands at a position in the distribution after `level` hops, of a parameter.
  const ShardRects &pieces(int64_t group, Form form, int64_t level, int64_t position);
  /// Indices in the segment of the blocks of which anything stands there.
  std::vector<int64_t> standing(int64_t segment, Form form, int64_t level, int64_t position);
  /// Of a segment's blocks, those that bases allow after `level` hops; nothing: all.
  std::optional<std::span<const int64_t>> based(int64_t segment, int64_t level, int64_t position);

  /// The kind of value by which a rank has a block. One without elements has a single value nonetheless.
  ValueKind presence(int64_t segment) const {
    return at(presences, at(thePlan.segments, segment).group);
  }
  Place computedIn(int64_t segment) const {
    return Place::resting(segment, presence(segment), Distribution::Blocks);
  }
  /// The teams of those that differ from a position along the factors of slabs alone.
  const Teams &teamsOf(int64_t segment, int64_t position);
  /// Those in which the position is, for values as in `place`.
  std::vector<Team> teamsAt(const Place &place, int64_t position);
  /// What moves from or to a position of these teams, by ascending world rank of the peers.
  std::vector<TeamPart> teamParts(const Place &place, const std::vector<Team> &teams);
  std::vector<PeerPart> summedParts(const Place &place, int64_t position);
  LowerParts lower(const Place &place, int64_t position);
  /// `counts`: how many blocks stand there of each place within a parameter.
  std::vector<PeerPart> upperPeers(const Place &place, int64_t position,
                                   const std::map<int64_t, int64_t> &counts);
  template <typename Visit> void walkUpper(const Place &place, int64_t position, Visit visit);

  const Plan &thePlan;
  std::vector<int64_t> ranks;
  std::vector<MeshView> meshes;
  std::vector<int64_t> blocksPerParameter;      // per group
  std::vector<ValueKind> presences;             // per group
  std::vector<std::unique_ptr<KindView>> kinds; // per kindIndex
  // Per kindIndex and position what the shard is like, -1: not known. Much less than shards, so kept for
  // longer.
  std::vector<std::vector<int32_t>> likes;
  std::vector<std::unique_ptr<SegmentBlocks>> segments;
  std::map<std::pair<int64_t, int64_t>, Teams> teams; // per group and class along its slabs
  Memo<std::vector<int64_t>, std::vector<PeerPart>>
      knownPeers;                       // by place and what tells positions apart
  int64_t heldBytes = 0, likeBytes = 0; // of kinds and segments, about; of likes
};

} // namespace stepc::plan

#endif
