//===- GroupGeometry.h - A group's geometry and modelled cost ---*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_GROUPGEOMETRY_H
#define STEPC_PASSES_DECIDE_GROUPGEOMETRY_H

#include "dialects/optim/Optim.h"
#include "passes/cost/Cluster.h"
#include "passes/decide/ChainBytes.h"
#include "runtime/geometry/Geometry.h"

namespace stepc::decide {

struct MatrixWork; // MatrixWork.h

/// A group in the plan's form, for runtime/geometry: shape, placements, mesh and hops of one of its
/// parameters.
struct GroupGeometry {
  plan::Group group;
  plan::Mesh mesh;
  int64_t parameters = 0;
  plan::ShardsKind home; ///< the shards over which stages run

  explicit GroupGeometry(optim::GroupOp op);

  int64_t blocksPerParameter() const { return group.blocksPerParameter(); }
  int64_t blockCount() const { return blocksPerParameter() * parameters; }
  /// Elements of block `block` of a parameter that the rank at `position` holds.
  int64_t held(int64_t position, int64_t block) const { return areas[position][block]; }
  const std::vector<std::vector<int64_t>> &held() const { return areas; }
  llvm::ArrayRef<int64_t> heldByBlock(int64_t position) const { return areas[position]; }
  /// The most blocks of which one rank holds elements.
  double mostBlocks() const;
  /// The first position that holds elements of the block. Returns 0 if no position does.
  int64_t firstHolder(int64_t block) const;

private:
  std::vector<std::vector<int64_t>> areas; // [position][block]
};

/// The ranks whose pieces come together by a group's hops. If no hop has owners, each rank of a team computes
/// every block of which some rank of the team holds elements.
struct Team {
  std::vector<int64_t> positions;
  std::vector<bool> computes; ///< per block of a parameter
  int64_t blocks() const { return llvm::count(computes, true); }
};
/// All teams, in the order of their first positions.
std::vector<Team> teams(const GroupGeometry &geometry, llvm::ArrayRef<plan::Hop> hops);

/// The bases of a group's blocks. A base is written as the position that has the base's coordinates along all
/// owned factors, and 0 along all else.
struct Bases {
  explicit Bases(const GroupGeometry &geometry);

  std::vector<plan::Factor> owned; // empty if hops have no owners: then bases do not matter
  std::vector<int64_t> of;         // per block; empty until the bases are decided
  /// The base of the blocks that a position computes.
  int64_t at(int64_t position) const { return plan::along(mesh, owned, position); }

private:
  const plan::Mesh &mesh;
};

/// An exchange of all of a group's elements between shards by two lists of placements. `peers` and `bytes`
/// are what a rank receives, on the average.
struct ListMove {
  bool
      behind; ///< comes after matrix space (a parameter that only `out` reads, and the new parameter)
  double peers, bytes;
  int64_t room; ///< the most bytes of workspace on any rank: for a copy, for sends and for receives
  int64_t sums = 0; ///< the bytes of `room` that are sums of contributions to the gradient
};
/// The most elements of the group's shards of a kind that a rank has.
int64_t mostElements(const GroupGeometry &geometry, plan::ShardsKind of);
/// The exchanges that a group needs because stages run over the shards at `home`, and read and write shards
/// with other placements. A move has 0 peers and bytes if each rank already holds all of its elements.
std::vector<ListMove> listMoves(const GroupGeometry &geometry, optim::RuleOp rule);

/// Whether the rule has operations in matrix space.
bool hasMatrixSpace(optim::RuleOp rule);
/// The kinds of values, other than full ones, that matrix space makes and stages on shards read.
llvm::SmallVector<plan::ValueKind> lineKinds(optim::RuleOp rule);

/// Modelled floating-point operations of a block's matrix space: those of its products and functions of
/// blocks, plus a few per element. A product counts as the operations that take as long on the device.
double modelledOperations(const MatrixWork &work, int64_t rows, int64_t cols,
                          const cost::Device &device);
/// The memory that a block needs: bytes per element in messages, and on the rank that computes it bytes of
/// buffers and of scratch. All products of the block use the same scratch.
struct BlockBytes {
  int64_t element, work, scratch;
  int64_t resting = 0;   ///< bytes of a slab's buffers while its sums travel
  ChainBytes chain = {}; ///< of whole blocks
};
BlockBytes modelledBytes(optim::RuleOp rule, const optim::MatrixExtents &block);
/// The memory that a slab of a block needs, in a group with slabs. `work` includes the messages of its sums.
BlockBytes modelledSlabBytes(optim::RuleOp rule, const GroupGeometry &geometry);

} // namespace stepc::decide

#endif
