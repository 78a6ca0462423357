//===- GroundTruth.h - What placements and hops alone imply -----*- C++ -*-===//
//
// Who holds which elements, who computes which blocks: derived from placements (ShardRuns.h),
// hops and the segments' blocks, and remembered. Where values stand in buffers is not
// among it: those are what tables claim.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_GROUNDTRUTH_H
#define STEPC_PASSES_VERIFY_GROUNDTRUTH_H

#include "passes/verify/MemoryMap.h"
#include "passes/verify/Pieces.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace stepc::verify {

/// The blocks of a segment.
struct SegmentView {
  std::vector<int64_t> blocks;              ///< in order
  std::vector<std::vector<int64_t>> within; ///< indices per block within a parameter
  /// Indices per coordinates of their blocks' bases along all owned factors.
  std::map<std::vector<int64_t>, std::vector<int64_t>> owned;
  bool has(int64_t block) const { return indexOf(block) >= 0; }
  /// The index in the segment of a block of the group, or -1.
  int64_t indexOf(int64_t block) const {
    int64_t place = block - least;
    return place < 0 || place >= int64_t(indices.size()) ? -1 : indices[place];
  }

private:
  friend class GroundTruth;
  int64_t least = 0;            // of the blocks
  std::vector<int64_t> indices; // per block from `least` to the greatest: many waves are ranges
};

class GroundTruth {
public:
  explicit GroundTruth(const plan::Plan &plan);

  const plan::Plan &plan() const { return thePlan; }
  int64_t rankCount() const { return int64_t(world.size()); }
  int64_t groupOf(int64_t segment) const { return thePlan.segments[segment].group; }
  /// The position of a world rank in the mesh of a group, or -1.
  int64_t position(int64_t group, int64_t rank) const {
    return positions[thePlan.groups[group].mesh][rank];
  }
  /// Per world rank, a number that those have in common who meet in a communicator; -1: the rank takes
  /// no part.
  std::vector<int64_t> meetings(const plan::Communicator &communicator) const;
  /// A parameter's shard; blocks are those within the parameter.
  const MemoryMap &shard(int64_t group, plan::ValueKind kind, int64_t position,
                         plan::ShardsKind whose = plan::ShardsKind::Parameter);
  const SegmentView &segment(int64_t index);
  /// Indices in the segment of the blocks with a place in a shard, ascending.
  std::vector<int64_t> held(int64_t segment, const MemoryMap &shard);
  /// The blocks of a segment that a position computes: slot k holds the k-th.
  std::vector<int64_t> computed(int64_t segment, int64_t position);

  /// How many contributions to a group's gradient there are, and the number of the one that a position has,
  /// row-major along the partial axes.
  int64_t contributions(int64_t group) const;
  int64_t contributionOf(int64_t group, int64_t position) const;

  /// The same of what a rank and those that have slabs of its blocks add up: one part for each slab that is not empty,
  /// row-major along the factors; -1 of a rank that has none of them.
  int64_t parts(int64_t group, int64_t position) { return int64_t(adders(group, position).size()); }
  int64_t partOf(int64_t group, int64_t position, int64_t of);
  /// The range of these sums that a rank adds up: of as many ranges as there are ranks with slabs, in the order of the
  /// ranks, that of `elements` of all blocks.
  std::pair<int64_t, int64_t> rangeOf(int64_t group, int64_t position, int64_t elements);
  /// A group whose slabs do not make up its blocks, each element in one slab, and why not.
  std::optional<std::pair<int64_t, std::string>> checkSlabs();
  /// Where the slab of a rank begins in its blocks: row and column; of a group without slabs 0.
  std::pair<int64_t, int64_t> slabOf(int64_t group, int64_t position) {
    if (thePlan.groups[group].slabs.factors.empty())
      return {0, 0};
    return shard(group, plan::ValueKind::Full, position, beforeHops(group)).origin();
  }

  int64_t blocksPerParameter(int64_t group) const { return perParameter[group]; }
  /// "block 2 of parameter 'w'".
  std::string describeBlock(int64_t group, int64_t block) const;
  /// "rows 0:4 and columns 2:3 of block 2 of parameter 'w'".
  std::string describe(int64_t group, const Piece &piece) const;
  /// "element (0, 2) of block 2 of parameter 'w'".
  std::string describeElement(int64_t group, const Piece &piece) const;

private:
  std::string checkSlabs(int64_t group);
  /// What ranks have in common that differ along a group's slabs alone.
  std::vector<int64_t> besideSlabs(int64_t group, int64_t position) const;
  /// The positions that have slabs of a position's blocks, by ascending world rank.
  const std::vector<int64_t> &adders(int64_t group, int64_t position);
  /// A position's coordinates along the owned factors of hop `hop`, behind those in `coordinates`.
  void addCoordinates(int64_t group, size_t hop, int64_t position,
                      std::vector<int64_t> &coordinates) const;
  /// By whose placements a group's blocks lie before any hop: where its rule's states are stored, or of a
  /// rule that stores none, the parameter.
  plan::ShardsKind beforeHops(int64_t group) const;
  /// The blocks within a parameter that the hops bring to a position, ascending.
  const std::vector<int64_t> &brought(int64_t group, int64_t position);

  const plan::Plan &thePlan;
  std::vector<int64_t> world;
  std::vector<int64_t> perParameter;           // per group
  std::vector<std::vector<int64_t>> positions; // per mesh and world rank
  std::vector<std::vector<std::unique_ptr<MemoryMap>>>
      shards; // (group · kShardsKinds + whose) · kValueKinds + kind, position
  std::vector<std::unique_ptr<SegmentView>> segments;
  /// Per group and coordinates beside its slabs, the positions that have these, by ascending world rank.
  std::vector<std::map<std::vector<int64_t>, std::vector<int64_t>>> knownAdders;
  /// Per group and what no hop resolves of a position's coordinates.
  std::vector<std::map<std::vector<int64_t>, std::vector<int64_t>>> broughtTo;
};

} // namespace stepc::verify

#endif
