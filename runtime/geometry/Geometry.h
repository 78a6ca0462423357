//===- Geometry.h - Where the elements of a parameter lie -------*- C++ -*-===//
//
// The one place that knows what a placement means. Everything above asks for
// rectangles: which part of which matrix block a rank holds, and where in its
// local shard that part stands. A new kind of placement adds code here only.
//
// PyTorch's meaning (torch.distributed.tensor): placements apply in the order of
// mesh axes; S(d) splits as torch.chunk does (ceil(n / k) per shard, the last
// ones short or empty); _S(d, sf) at an axis means that the shards of later axes
// come first: the local shard is the concatenation of its pieces in global order.
// Sizes that do not divide evenly follow torch exactly (README.md has the fine print).
// IS(d, n) splits each of n equal stripes of what earlier axes left; owned(r) leaves the
// whole to the ranks at r; flat cuts the elements of the shard that all other axes leave.
//
// Arguments must be consistent (plan::validate): nothing is checked here but by checkPlacements.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_GEOMETRY_GEOMETRY_H
#define STEPC_RUNTIME_GEOMETRY_GEOMETRY_H

#include "runtime/model/Model.h"

#include <optional>
#include <span>

namespace stepc::geometry {

/// A run of indices along one tensor axis: global [global, global + length)
/// stands at local [local, local + length).
struct Run {
  int64_t global, local, length;
  bool operator==(const Run &) const = default;
};

/// A rectangle of a matrix block held by a rank: rows [row, row + rows) and
/// columns [col, col + cols) of block `block` (within the parameter); its first
/// element stands at `offset` of the local shard, rows `stride` apart.
struct Rect {
  int64_t block, row, col, rows, cols, offset, stride;
  bool operator==(const Rect &) const = default;
};

using plan::View;
using plan::view;

/// The product of the sizes; 1 for a scalar.
int64_t elements(const std::vector<int64_t> &shape);

/// The coordinates of position `position` (row-major) in a mesh.
std::vector<int64_t> coordinates(const plan::Mesh &mesh, int64_t position);

/// The runs along tensor axis `dim` of size `size` that the rank at `coords` holds,
/// in increasing local order. Adjacent runs are merged.
std::vector<Run> axisRuns(int64_t dim, int64_t size, const std::vector<plan::Placement> &placements,
                          const plan::Mesh &mesh, const std::vector<int64_t> &coords);

/// The local shard's shape: {0} where another rank owns it, {n} of a flat range.
std::vector<int64_t> localShape(const std::vector<int64_t> &shape,
                                const std::vector<plan::Placement> &placements,
                                const plan::Mesh &mesh, const std::vector<int64_t> &coords);

/// The elements of the largest shard.
int64_t mostElements(const std::vector<int64_t> &shape,
                     const std::vector<plan::Placement> &placements, const plan::Mesh &mesh);

/// Pieces of a strided placement, and stripes of an interleaved one: what a rank holds has as many runs.
inline constexpr int64_t kMaxFactor = int64_t(1) << 20;

/// The first placement that cannot be, and why: "expected …, found '…'".
struct WrongPlacement {
  size_t axis;
  std::string reason;
};
/// Whether a tensor of positive sizes can be placed so on a mesh; a placement per axis is given.
std::optional<WrongPlacement> checkPlacements(const std::vector<int64_t> &shape,
                                              const std::vector<plan::Placement> &placements,
                                              const plan::Mesh &mesh, bool isGradient = false);

/// The group of undivided matrices (or joined axes) that has the same shards, as the trainer sees them. If
/// matrices are divided, a state that drops the divided axis has an element per part in its place, on every
/// rank. All other states are as if nothing were divided.
plan::Group whole(const plan::Group &group);

/// All rectangles of a shard at mesh position `position`, ordered by block, row, column. `of` says whether it
/// is the parameter's, the gradient's or the states' shard. `kind` gives the rectangles of a state of that
/// kind: for Rows the parameter's shape without its last axis (C = 1), for Cols without its second last (R =
/// 1), for One only the batch axes. If an axis is dropped, mesh axes that shard it replicate. So do flat mesh
/// axes, because they cut only full values. Divided matrices have the rectangles of the group's parts: rows
/// and columns count in the part, offsets and strides in the whole shard.
std::vector<Rect> rectangles(const plan::Group &group, const plan::Mesh &mesh, int64_t position,
                             plan::ValueKind kind,
                             plan::ShardsKind of = plan::ShardsKind::Parameter);

/// A bound for the rectangles that a shard has of full values, by any of a group's lists of placements. The
/// edges of each list cut the rectangles of the others. `limit` + 1 means more than `limit`. The rectangles
/// are not built.
int64_t mostRectangles(const plan::Group &group, int64_t limit);

/// The local shape of a state of that kind.
std::vector<int64_t> localStateShape(const plan::Group &group, const plan::Mesh &mesh,
                                     int64_t position, plan::ValueKind kind);

/// The global shape of a state of that kind.
std::vector<int64_t> stateShape(const plan::Group &group, plan::ValueKind kind);

/// Per mesh axis, whether a value of that kind is replicated along it: the placement is R, or it shards a
/// tensor axis that the kind drops. Along a partial axis ranks hold the same elements, but another
/// contribution to each.
std::vector<bool> replicatedAxes(const plan::Group &group, plan::ValueKind kind,
                                 plan::ShardsKind of = plan::ShardsKind::Parameter);

/// Whether the shard of every rank by the placements of `from` has all that its shard by those of `to` has,
/// for full values.
bool holdsAll(const plan::Group &group, const plan::Mesh &mesh, plan::ShardsKind from,
              plan::ShardsKind to);

/// Per position, how many elements of each block of a parameter (or its gradient, or states) it holds.
std::vector<std::vector<int64_t>> heldElements(const plan::Group &group, const plan::Mesh &mesh,
                                               plan::ShardsKind of = plan::ShardsKind::Parameter);

/// Whether every rank that holds any of a block holds it whole, once what differs along the `resolved`
/// factors came together. Ranks that hold a state of these kinds must also hold the block whole, because a
/// state that drops an axis stands on ranks that hold other blocks. `held` is the result of heldElements;
/// without it that is called if placements alone do not tell.
bool blocksAreWhole(const plan::Group &group, const plan::Mesh &mesh,
                    const std::vector<plan::Factor> &resolved = {},
                    plan::ShardsKind of = plan::ShardsKind::Parameter,
                    const std::vector<plan::ValueKind> &states = {},
                    const std::vector<std::vector<int64_t>> *held = nullptr);

/// The slabs in which the shards cut blocks. They lie along the mesh axes that shard one side of the matrices
/// (the longer one if both are), and along flat axes, whose ranges are of rows. Without factors if no axis
/// cuts them.
plan::Slabs slabsOf(const plan::Group &group, const plan::Mesh &mesh, plan::ShardsKind of);
/// The rows (columns) of the slab that a rank has of a block with these rectangles: ascending in the block,
/// and one after the other in the slab.
std::vector<Run> slabRuns(std::span<const Rect> rects, plan::Division::Axis axis);
/// Per block of a parameter and replica, the positions with slabs of it, ascending.
std::vector<std::vector<int64_t>> slabHolders(const plan::Group &group, const plan::Mesh &mesh,
                                              const plan::Slabs &slabs, plan::ShardsKind of);
/// Whether all ranks that differ along the factors have slabs of the same blocks.
bool haveSameSlabs(const plan::Group &group, const plan::Mesh &mesh, const plan::Slabs &slabs,
                   plan::ShardsKind of);
/// The lengths of the longest and the shortest of these slabs, for messages.
std::string slabLengths(const plan::Group &group, const plan::Mesh &mesh, const plan::Slabs &slabs,
                        plan::ShardsKind of);
/// What keeps blocks from being computed in these slabs where they stand: each rank must have whole rows
/// (columns) of the longer side, or none.
std::string checkSlabs(const plan::Group &group, const plan::Mesh &mesh, const plan::Slabs &slabs,
                       plan::ShardsKind of);

/// Where contributions to a partial gradient are added up: where the shards of `home` stand. If these are
/// replicated along a partial axis, in equal ranges of them, so that each element is added up once. Empty if
/// the gradient is not partial.
std::vector<plan::Placement> reducedPlacements(const plan::Group &group, const plan::Mesh &mesh,
                                               plan::ShardsKind home);

} // namespace stepc::geometry

#endif
