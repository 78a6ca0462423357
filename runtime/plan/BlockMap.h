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

/// A kind of values of a group, and the list of placements by which they lie in shards.
struct Form {
  ValueKind value;
  ShardsKind whose;
  Form(ValueKind value, ShardsKind whose = ShardsKind::Parameter) : value(value), whose(whose) {}
};

/// The rectangles that a position holds of one parameter, grouped by block. Their offsets are those in
/// shards, even where the position holds pieces.
struct ShardRects {
  std::vector<geometry::Rect> rects;
  std::vector<int64_t> first;    // block b's are [first[b], first[b + 1])
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
  /// The memory that all of it takes, in bytes, roughly.
  int64_t bytes() const;
  /// Fills `inSlab` for slabs along `axis`. Call `index` before.
  void findSlabs(Division::Axis axis);
};

/// A position's rectangles, cut where the shards by other placements end.
struct SharedRects : ShardRects {
  std::vector<int64_t> classes; // classes of the positions that also hold any of them, ascending
  std::vector<int64_t> with;    // per rectangle, its index in `classes`
  int64_t classOf(const geometry::Rect &rect) const {
    return classes[static_cast<size_t>(with[static_cast<size_t>(&rect - rects.data())])];
  }
};

/// The rectangles of all classes of positions in one block, by where they begin along one axis.
struct BlockCuts {
  struct Cut {
    const geometry::Rect *rect;
    int64_t which; // the class
    int64_t reach; // where the furthest of the cuts up to here ends
  };
  std::vector<Cut> cuts;
  bool byRow = true; // along columns, where all begin with the same row
};

/// A move between two levels of a group. A position of the upper level receives from (sends to) those that
/// differ from it along the factors of `peers`. A position of the lower level sends to (receives from) its
/// own coordinates with those along `kept` replaced: by the block's base, and by any along `targets`. Where
/// shards are replicated, only the position at the base along `serving` takes part.
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
  std::vector<int64_t> unlike; // one position per set of shards that are alike
  std::map<std::pair<int64_t, int64_t>, ShardRects> pieces; // per level above 0 and class
  /// Per level, factors and class: for each block within a parameter, the first one with equal rectangles at
  /// every member of the class.
  std::map<std::tuple<int64_t, const Classes *, int64_t>, std::vector<int64_t>> alikeBlocks;
  std::map<std::pair<int64_t, int64_t>, Move> moves; // per two levels
  std::vector<BlockCuts> cuts;                       // per block within a parameter
  /// By the other shards, and by `like`, `row` and `col` of the position's own shard.
  std::map<std::tuple<ShardsKind, int64_t, int64_t, int64_t>, SharedRects> shared;
};

/// The ranks to which the blocks of a segment go by the hops between two levels: the coordinates of their
/// bases along the hops' owned factors, as positions. Lists are indices in the segment, ascending.
struct Bases {
  const Classes *owned = nullptr; // along all of these factors; none: blocks go to all positions
  std::vector<int64_t> of;        // per index
  Lists at;                       // per position, the indices with that base
  /// Per block within a parameter: the bases of these blocks, and how many have each.
  std::vector<std::vector<std::pair<int64_t, int64_t>>> counts;
};

/// A segment's blocks, found by their number within a parameter and by their owners' bases. So a question
/// about one rank looks at that rank's blocks alone.
struct SegmentBlocks {
  std::vector<std::vector<int64_t>> within;           // indices per block within a parameter
  std::map<std::pair<int64_t, int64_t>, Bases> bases; // by two numbers of hops
};

/// The part of a packed value that goes to or comes from one peer.
struct PeerPart {
  int64_t peer, offset, count; // world rank, elements
};

/// The fields of a place as numbers, for keys of memos.
std::vector<int64_t> numbersOf(const Place &place);

/// The parts of a packed place whose distribution is the one nearer to the shards of its move's two, after
/// fewer hops.
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
  /// Forgets what is known of groups once it takes more than 32 MiB: it would grow with groups × ranks. Call
  /// it between questions, because references that were returned before become invalid.
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
  /// The rectangles of that shard, cut where the shards by the placements of `other` end.
  const SharedRects &shared(int64_t group, Form form, ShardsKind other, int64_t position);
  /// Classes of positions that hold the same elements: they differ only along axes that replicate the value.
  const Classes &holders(int64_t group, Form form);
  const std::vector<BlockCuts> &cuts(int64_t group, Form form);

  int64_t blockCount(int64_t segment) const;
  /// The index in the group of a segment's block.
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

  /// Per held block, the distance in elements from its offsets in the shard to those in `place`, which is
  /// shards or a copy of them. `total` is the number of elements of the place.
  std::vector<int64_t> shifts(const Place &place, int64_t position, int64_t *total = nullptr);
  /// Whether a packed place stands in the lower distribution of its move.
  bool isLower(const Place &place) const {
    const Group &group = groupOf(place.segment);
    Distribution other = place.end == End::Received ? place.from : place.to;
    return place.standsIn().level(group) < other.level(group);
  }
  /// The parts of a packed place. Positions that are known to have equal parts share one list.
  std::shared_ptr<const std::vector<PeerPart>> peers(const Place &place, int64_t position);
  /// Answers `peers` for one position of a place after the other. What does not differ between positions is
  /// looked up once.
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
  /// The rectangles that stand here in a move between shards, cut where the other end's shards end.
  const SharedRects &sharedOf(const Place &place, int64_t position) {
    ShardsKind other = (place.end == End::Received ? place.from : place.to).whose();
    return shared(at(thePlan.segments, place.segment).group,
                  {place.value, place.standsIn().whose()}, other, position);
  }
  /// Where the part begins that is shared with each of the classes of `sharedOf`, or -1 if nothing travels.
  std::vector<int64_t> begins(const Place &place, int64_t position) {
    return meet(place, position).starts;
  }
  /// Per team in which a position adds up a range: where each member's part begins in what arrived. Members
  /// are in the order in which they are added up: row-major along the factors of the slabs.
  std::vector<std::vector<int64_t>> beginsOfParts(const Place &place, int64_t position);
  /// The number of elements that a position adds up of values as in `place`.
  int64_t rangeElements(const Place &place, int64_t position);
  /// A key that is equal for positions whose walks over a packed place differ only in which blocks stand
  /// there and in where shards begin. Nothing: the walk is the position's own.
  std::optional<std::vector<int64_t>> walkKey(const Place &place, int64_t position);
  /// Walks over a packed place of a move, in its order: calls visit(number of the block among those that
  /// stand there, block in the group, rectangle, offset). Shards are visited whole. The offset is -1 for what
  /// does not travel from here.
  template <typename Visit> void walk(const Place &place, int64_t position, Visit visit);
  /// Walks over what slabs add to their blocks. A received place of distribution Ranges has only the ranges
  /// that this position adds up itself, and only these are visited. Calls visit(number, block, rectangle,
  /// offset, the number of the ranks that add up the block (Teams.h) among the position's, offset in the
  /// position's own ranges or -1).
  template <typename Visit> void walkSums(const Place &place, int64_t position, Visit visit);

private:
  template <typename T> static const T &at(const std::vector<T> &list, int64_t index) {
    return list[static_cast<size_t>(index)];
  }
  /// Writes the items of the blocks that a shard holds, ascending. `within` lists the items of each block,
  /// `count` in all.
  static void collect(const ShardRects &shard, const std::vector<std::vector<int64_t>> &within,
                      int64_t count, std::vector<int64_t> &out);

  Form formOf(const Place &place) const { return {place.value, whose(thePlan, place)}; }
  static bool isBetweenShards(const Place &place) {
    return place.from.isShards() && place.to.isShards();
  }
  std::optional<std::vector<int64_t>> lowerKey(const Place &place, int64_t position);
  /// Per block within a parameter, the first one that is alike at all peers of a position at the upper end of
  /// a move.
  const std::vector<int64_t> &alikeBlocks(const Place &place, int64_t position);
  /// A packed place of a move between shards: its parts, and per class of `sharedOf` where its part starts,
  /// or -1.
  struct Meeting {
    std::vector<PeerPart> peers;
    std::vector<int64_t> starts;
  };
  Meeting meet(const Place &place, int64_t position);
  /// A key that is equal for positions with equal meetings.
  std::vector<int64_t> meetingKey(const Place &place, int64_t position);
  /// Classes of positions that send pieces to each other: they differ only along axes that do not replicate
  /// the source.
  const Classes &served(const Place &place);
  /// The parts of a packed place in the lower distribution, with an offset per block.
  LowerParts lowerOffsets(const Place &place, int64_t position);
  const Move &moveOf(const Place &place);
  /// ShardRects::like of a shard.
  int64_t like(int64_t group, Form form, int64_t position);
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
  KnownKind &known(int64_t group, Form form);
  /// The least world rank that receives the blocks of a position with some base.
  static int64_t firstOf(const Move &move, const MeshView &mesh, int64_t base, int64_t position) {
    return at(mesh.worldOf, move.targets->members.of(at(move.kept->of, position) + base).front());
  }
  /// Whether a move has hops. Without any, nothing is packed.
  bool travels(const Place &place) const {
    const Group &group = groupOf(place.segment);
    return group.computes && place.from.level(group) != place.to.level(group);
  }
  const Classes &classes(int64_t mesh, const std::vector<Factor> &factors);
  /// The factors of the hops of levels [lower, upper).
  static std::vector<Factor> factors(const Group &group, int64_t lower, int64_t upper, bool owned,
                                     bool replicated);
  /// The factors along whose axes a value is replicated, or those along whose axes it is not.
  static std::vector<Factor> along(const KindView &view, std::vector<Factor> factors,
                                   bool replicated);
  SegmentBlocks &blocksOf(int64_t segment);
  const Bases &bases(int64_t segment, int64_t lower, int64_t upper);
  /// What a position holds of a parameter after `level` hops.
  const ShardRects &pieces(int64_t group, Form form, int64_t level, int64_t position);
  /// Indices in the segment of the blocks of which a position holds anything after `level` hops.
  std::vector<int64_t> standing(int64_t segment, Form form, int64_t level, int64_t position);
  /// The blocks of a segment whose bases lead to a position after `level` hops. Nothing: all, because no hop
  /// owns factors.
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
  /// The teams of which the position is a member, for values as in `place`.
  std::vector<Team> teamsAt(const Place &place, int64_t position);
  /// What a position of these teams sends or receives, by ascending world rank of the peers.
  std::vector<TeamPart> teamParts(const Place &place, const std::vector<Team> &teams);
  std::vector<PeerPart> summedParts(const Place &place, int64_t position);
  LowerParts lower(const Place &place, int64_t position);
  /// `counts`: the number of blocks that stand there, per block within a parameter.
  std::vector<PeerPart> upperPeers(const Place &place, int64_t position,
                                   const std::map<int64_t, int64_t> &counts);
  template <typename Visit> void walkUpper(const Place &place, int64_t position, Visit visit);

  const Plan &thePlan;
  std::vector<int64_t> ranks;
  std::vector<MeshView> meshes;
  std::vector<int64_t> blocksPerParameter; // per group
  std::vector<ValueKind> presences;        // per group
  /// Per group and kind of shards; few of each, and each stays where it is.
  std::vector<std::forward_list<KnownKind>> kinds;
  std::vector<std::unique_ptr<SegmentBlocks>> segments;
  std::map<std::pair<int64_t, int64_t>, Teams> teams; // per group and class along its slabs
  Memo<std::vector<int64_t>, std::vector<PeerPart>>
      knownPeers;                       // by place and what tells positions apart
  int64_t heldBytes = 0, likeBytes = 0; // of kinds and segments, about; of likes
};

} // namespace stepc::plan

#endif
