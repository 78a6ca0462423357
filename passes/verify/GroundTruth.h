//===- GroundTruth.h - What placements and hops alone imply -----*- C++ -*-===//
//
// Which rank holds which elements, and which rank computes which blocks. Both follow from placements
// (ShardRuns.h), hops and the segments' blocks, and are cached. Offsets in buffers are not part of it: tables
// claim them, and the tables are under proof.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_GROUNDTRUTH_H
#define STEPC_PASSES_VERIFY_GROUNDTRUTH_H

#include "passes/verify/MemoryMap.h"
#include "passes/verify/Pieces.h"
#include "passes/verify/RangeMap.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace stepc::verify {

/// The coordinates of a position along the axes of a mesh. The last axis runs fastest.
std::vector<int64_t> coordinatesOf(const plan::Mesh &mesh, int64_t position);

/// The blocks of a segment.
struct SegmentView {
  std::vector<int64_t> blocks;              ///< in order
  std::vector<std::vector<int64_t>> within; ///< per block within a parameter: indices in `blocks`
  /// Indices in `blocks`, by the coordinates of a block's bases along all owned factors, as one number.
  std::unordered_map<int64_t, std::vector<int64_t>> owned;
  bool has(int64_t block) const { return indexOf(block) >= 0; }
  /// The index in the segment of a block of the group, or -1.
  int64_t indexOf(int64_t block) const {
    int64_t place = block - least;
    return place < 0 || place >= int64_t(indices.size()) ? -1 : indices[place];
  }

private:
  friend class GroundTruth;
  int64_t least = 0;            // the least of `blocks`
  std::vector<int64_t> indices; // per number from `least` on; -1: not in `blocks`
};

class GroundTruth {
public:
  explicit GroundTruth(const plan::Plan &plan);

  const plan::Plan &plan() const { return thePlan; }
  /// Forgets all shards if there are many. Otherwise their memory would grow with groups × ranks. The caller
  /// must not use references to shards afterwards.
  void trim();
  int64_t rankCount() const { return int64_t(world.size()); }
  int64_t groupOf(int64_t segment) const { return thePlan.segments[segment].group; }
  /// The position of a world rank in the mesh of a group, or -1.
  int64_t position(int64_t group, int64_t rank) const {
    return positions[thePlan.groups[group].mesh][rank];
  }
  /// Per world rank, a number that is equal for ranks that meet in a communicator; -1: the rank takes no
  /// part.
  std::vector<int64_t> meetings(const plan::Communicator &communicator) const;
  /// The shard of one parameter of the group at a position. Its blocks are numbered within the parameter.
  const MemoryMap &shard(int64_t group, plan::ValueKind kind, int64_t position,
                         plan::ShardsKind whose = plan::ShardsKind::Parameter);
  const SegmentView &segment(int64_t index);
  /// Indices in the segment, ascending, of the blocks that have elements in a shard.
  std::vector<int64_t> held(int64_t segment, const MemoryMap &shard);
  /// The blocks of a segment that a position computes: slot k holds the k-th.
  std::vector<int64_t> computed(int64_t segment, int64_t position);

  /// The blocks of a parameter of a group that a position computes, ascending, by their numbers within the
  /// parameter. States that stay with blocks are these, one after another.
  std::vector<int64_t> computedOf(int64_t group, int64_t position, int64_t indexInGroup);

  /// The number of contributions to a group's gradient, and the number of the one that a position has,
  /// row-major along the partial axes.
  int64_t contributions(int64_t group) const;
  int64_t contributionOf(int64_t group, int64_t position) const;
  /// The same for parts of lines: ranks have parts of the same lines along axes of the mesh that cut full
  /// values and not values of `kind`.
  int64_t lineParts(int64_t group, plan::ValueKind kind) const;
  int64_t linePartOf(int64_t group, plan::ValueKind kind, int64_t position) const;

  /// The number of parts in a sum over the slabs of a block: one per slab that is not empty, among the
  /// positions that differ from `position` only along the factors of the slabs.
  int64_t partsOf(int64_t group, int64_t position, int64_t block) {
    return int64_t(teamsOf(group, position).of[block % perParameter[group]].size());
  }
  /// Whether positions differ only along the factors of the slabs.
  bool differBySlabs(int64_t group, int64_t one, int64_t other) const {
    return besideSlabs(group, one) == besideSlabs(group, other);
  }
  /// Whether all positions that differ only along the factors of the slabs have slabs of the same blocks.
  bool haveSameSlabs(int64_t group);
  /// The sums that a rank adds up for a value of its computed blocks. Blocks of which the same ranks have
  /// slabs form a list. Each of these ranks adds up one range of the list; the ranges are in the order of the
  /// ranks. Lists are in the order of the least number, within a parameter, of a block that these ranks
  /// share, even if that block is not in the segment.
  RangeMap rangesOf(int64_t segment, int64_t position, const plan::View &value);
  /// Checks that the slabs of each group have every element of its blocks once. Returns a group whose slabs
  /// do not, and the error; nullopt if there is none.
  std::optional<std::pair<int64_t, std::string>> checkSlabs();
  /// The shard of which the slabs of a position consist.
  const MemoryMap &slabs(int64_t group, int64_t position) {
    return shard(group, plan::ValueKind::Full, position, beforeHops(group));
  }
  /// The rows (columns) that a position has of a block within a parameter, and where they are in its slab.
  const std::vector<Span> &slabOf(int64_t group, int64_t position, int64_t block);

  /// The number of a block's first element among all of its parameter: matrices, their parts and rows are
  /// counted one after another.
  int64_t firstElement(int64_t group, int64_t block, plan::ValueKind kind = plan::ValueKind::Full);
  /// Checks that the runtime counts elements so. Returns a group in which it does not, and the error.
  std::optional<std::pair<int64_t, std::string>> checkCounts();

  int64_t blocksPerParameter(int64_t group) const { return perParameter[group]; }
  /// "block 2 of parameter 'w'".
  std::string describeBlock(int64_t group, int64_t block) const;
  /// "rows 0:4 and columns 2:3 of block 2 of parameter 'w'".
  std::string describe(int64_t group, const Piece &piece) const;
  /// "element (0, 2) of block 2 of parameter 'w'".
  std::string describeElement(int64_t group, const Piece &piece) const;

private:
  /// A team is the positions that have slabs of a block, by ascending world rank. Per block within a
  /// parameter: its team, and the first block that has the same team.
  struct Teams {
    std::vector<std::vector<int64_t>> of;
    std::vector<int64_t> first;
  };
  struct SlabsOfGroup {
    std::map<std::vector<int64_t>, Teams> teams;      // by the result of besideSlabs
    std::vector<std::vector<std::vector<Span>>> runs; // per position and block within a parameter
  };
  std::string checkSlabs(int64_t group);
  /// The coordinates of a position, with 0 along the factors of the slabs. They are equal for positions that
  /// differ only along these factors.
  std::vector<int64_t> besideSlabs(int64_t group, int64_t position) const;
  const Teams &teamsOf(int64_t group, int64_t position);
  /// Appends a position's coordinates along the owned factors of a hop to those in `number`, row-major.
  void addCoordinates(int64_t group, size_t hop, int64_t position, int64_t &number);
  /// Whose placements the group's blocks have before any hop: those of the states or, if the rule stores
  /// none, those of the parameter.
  plan::ShardsKind beforeHops(int64_t group) const;
  /// The blocks within a parameter that the hops bring to a position, ascending.
  const std::vector<int64_t> &brought(int64_t group, int64_t position);

  const plan::Plan &thePlan;
  std::vector<int64_t> world;
  std::vector<int64_t> perParameter;           // per group
  std::vector<std::vector<int64_t>> positions; // per mesh and world rank
  /// By group and kind of shards (as one number) and kind of value. The vector is by position.
  std::map<std::pair<int64_t, plan::ValueKind>, std::vector<std::unique_ptr<MemoryMap>>> shards;
  std::vector<std::unique_ptr<SegmentView>> segments;
  std::vector<SlabsOfGroup> knownSlabs; // per group
  std::vector<std::vector<int64_t>>
      firstOfParts; // per group: where its parts begin in a matrix, and its end
  /// Per group: the result of `brought`, by the coordinates that no hop resolves. The key is empty if hops
  /// resolve all coordinates.
  std::vector<std::map<std::vector<int64_t>, std::vector<int64_t>>> broughtTo;
  std::vector<int64_t> along; // memory that addCoordinates uses again
  int64_t shardCount = 0;
};

} // namespace stepc::verify

#endif
