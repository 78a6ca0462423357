//===- Geometry.h - Where the elements of a parameter lie -------*- C++ -*-===//
//
// The one place that knows what a placement means. All other rooms ask it for rectangles: which elements of
// which block a rank holds, and where they lie in the rank's shard. A new kind of placement adds code here
// only.
//
// PyTorch's meaning (torch.distributed.tensor): placements apply in the order of mesh axes. S(d) splits as
// torch.chunk does: ceil(n / k) indices per shard, the last shards short or empty. _S(d, sf) at an axis
// means that the shards of later axes come first: the local shard is the concatenation of its pieces in
// global order. Sizes that do not divide evenly follow torch exactly (README.md has the details). IS(d, n)
// splits each of n equal stripes of what earlier axes leave. owned(r) leaves the whole tensor to the ranks
// at coordinate r. flat cuts the elements of the shard that all other axes leave.
//
// The caller must pass consistent arguments (plan::validate). Only checkPlacements checks any.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_GEOMETRY_GEOMETRY_H
#define STEPC_RUNTIME_GEOMETRY_GEOMETRY_H

#include "runtime/model/Model.h"

#include <optional>
#include <span>

namespace stepc::geometry {

/// A run of indices along one tensor axis. Indices [global, global + length) of the tensor are indices
/// [local, local + length) of the shard.
struct Run {
  int64_t global, local, length;
  bool operator==(const Run &) const = default;
};

/// A rectangle of a block that a rank holds: rows [row, row + rows) and columns [col, col + cols) of block
/// `block`, which counts within the parameter. In the local shard its first element is element `offset`,
/// and its rows are `stride` elements apart.
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

/// The shape of the local shard. It is {0} if another rank owns the tensor, and {n} for a flat range of n
/// elements.
std::vector<int64_t> localShape(const std::vector<int64_t> &shape,
                                const std::vector<plan::Placement> &placements,
                                const plan::Mesh &mesh, const std::vector<int64_t> &coords);

/// The number of elements of the largest shard.
int64_t mostElements(const std::vector<int64_t> &shape,
                     const std::vector<plan::Placement> &placements, const plan::Mesh &mesh);

/// The most pieces of a strided placement, and the most stripes of an interleaved one. A shard has as many
/// runs.
inline constexpr int64_t kMaxFactor = int64_t(1) << 20;

/// A placement that is impossible: its mesh axis, and the reason, as "expected …, found '…'".
struct WrongPlacement {
  size_t axis;
  std::string reason;
};
/// Returns a placement that a tensor of this shape cannot have on the mesh, or nothing if all are possible.
/// The caller passes positive sizes and one placement per mesh axis. Only gradients may be partial.
std::optional<WrongPlacement> checkPlacements(const std::vector<int64_t> &shape,
                                              const std::vector<plan::Placement> &placements,
                                              const plan::Mesh &mesh, bool isGradient = false);

/// The group with the same shards and undivided matrices (or joined axes), as the trainer sees them. If
/// matrices are divided, a state that drops the divided axis has an axis with one element per part instead,
/// whole on every rank. All other states are as if nothing were divided.
plan::Group whole(const plan::Group &group);

/// All rectangles of a shard at mesh position `position`, ordered by block, row, column. `of` says which
/// tensor the shard is of. `kind` is the kind of the value. Rows has the parameter's shape without its last
/// axis (C = 1), Cols without its second last (R = 1), One has only the batch axes. Mesh axes that shard a
/// dropped axis replicate the value. Flat mesh axes cut only full values and replicate all others. If
/// matrices are divided, the blocks are the group's parts: rows and columns count in the part, offsets and
/// strides in the whole shard.
std::vector<Rect> rectangles(const plan::Group &group, const plan::Mesh &mesh, int64_t position,
                             plan::ValueKind kind,
                             plan::ShardsKind of = plan::ShardsKind::Parameter);

/// An upper bound for the number of rectangles of a shard of full values, by any of a group's lists of
/// placements. Rectangles are also cut where shards by the other lists end. Returns `limit` + 1 if the
/// bound is above `limit`. Builds no rectangles.
int64_t mostRectangles(const plan::Group &group, int64_t limit);

/// The local shape of a state of that kind.
std::vector<int64_t> localStateShape(const plan::Group &group, const plan::Mesh &mesh,
                                     int64_t position, plan::ValueKind kind);

/// The global shape of a state of that kind.
std::vector<int64_t> stateShape(const plan::Group &group, plan::ValueKind kind);

/// Per mesh axis, whether ranks along it hold copies of a value of that kind. They do if the placement is
/// R, if it shards a tensor axis that the kind drops, or if it is flat and the kind is not full. Along a
/// partial axis they do not: ranks hold different contributions to the same elements.
std::vector<bool> replicatedAxes(const plan::Group &group, plan::ValueKind kind,
                                 plan::ShardsKind of = plan::ShardsKind::Parameter);

/// Whether every rank's shard by the placements of `from` has all elements of its shard by those of `to`,
/// for full values. False for a partial gradient, whose shards hold contributions.
bool holdsAll(const plan::Group &group, const plan::Mesh &mesh, plan::ShardsKind from,
              plan::ShardsKind to);

/// Per position and block of a parameter, the number of elements that the position's shard holds.
std::vector<std::vector<int64_t>> heldElements(const plan::Group &group, const plan::Mesh &mesh,
                                               plan::ShardsKind of = plan::ShardsKind::Parameter);

/// Whether every rank that holds any element of a block holds the whole block, after shards that differ
/// along the `resolved` factors have come together. Also false if a state of kind `states` is replicated
/// along an unresolved axis that does not replicate full values: then ranks have the state that hold other
/// blocks. `held` is the result of heldElements. If it is null, heldElements is called when placements
/// alone do not decide.
bool blocksAreWhole(const plan::Group &group, const plan::Mesh &mesh,
                    const std::vector<plan::Factor> &resolved = {},
                    plan::ShardsKind of = plan::ShardsKind::Parameter,
                    const std::vector<plan::ValueKind> &states = {},
                    const std::vector<std::vector<int64_t>> *held = nullptr);

/// The slabs into which shards cut blocks. Their factors are the mesh axes that shard one side of the
/// matrices (the longer side if both are sharded), and flat axes, whose ranges are of rows. Returns slabs
/// without factors if no axis cuts blocks.
plan::Slabs slabsOf(const plan::Group &group, const plan::Mesh &mesh, plan::ShardsKind of);
/// The rows (columns) of a block that one rank's slab has, from the rank's rectangles of the block.
/// `global` counts in the block and ascends, `local` counts in the slab.
std::vector<Run> slabRuns(std::span<const Rect> rects, plan::Division::Axis axis);
/// A list for each block of a parameter in each replica: the positions that have slabs of the block,
/// ascending.
std::vector<std::vector<int64_t>> slabHolders(const plan::Group &group, const plan::Mesh &mesh,
                                              const plan::Slabs &slabs, plan::ShardsKind of);
/// Whether all ranks that differ along the factors have slabs of the same blocks.
bool haveSameSlabs(const plan::Group &group, const plan::Mesh &mesh, const plan::Slabs &slabs,
                   plan::ShardsKind of);
/// The lengths of the longest and the shortest of these slabs, for messages.
std::string slabLengths(const plan::Group &group, const plan::Mesh &mesh, const plan::Slabs &slabs,
                        plan::ShardsKind of);
/// Why blocks cannot be computed in these slabs; empty if they can. Each rank must have whole rows
/// (columns), along the longer side of blocks, or none.
std::string checkSlabs(const plan::Group &group, const plan::Mesh &mesh, const plan::Slabs &slabs,
                       plan::ShardsKind of);

/// The placements by which contributions to a partial gradient are added up: those of `home`. If these
/// replicate along a partial axis, equal flat ranges replace the copies, so that each element is added up
/// once. Returns an empty list if the gradient is not partial.
std::vector<plan::Placement> reducedPlacements(const plan::Group &group, const plan::Mesh &mesh,
                                               plan::ShardsKind home);

//===----------------------------------------------------------------------===//
// Lines that are cut: rows, columns or blocks of which several ranks have parts. Each of these ranks adds up
// its own elements exactly, by the placements of the states (ShardsKind::LineParts). One of them adds up the
// parts (LineSums), and all get the result.
//===----------------------------------------------------------------------===//

/// The mesh axes along which ranks have different elements of the same lines, as factors: axes that cut full
/// values and replicate those of `kind`.
std::vector<plan::Factor> lineFactors(const plan::Group &group, const plan::Mesh &mesh,
                                      plan::ValueKind kind);
/// How many ranks have parts of each line.
int64_t linePartCount(const plan::Group &group, const plan::Mesh &mesh, plan::ValueKind kind);
/// The number of a position among those that differ along factors, row-major.
int64_t numberAlong(const plan::Mesh &mesh, const std::vector<plan::Factor> &factors,
                    int64_t position);
/// How many exact sums make up a rank's part of one value. The elements of a block are shared out to several,
/// so that several threads can add them up.
int64_t sumsPerValue(const plan::Group &group, const plan::Mesh &mesh, plan::ValueKind kind);
/// In how many shares a rank adds up so many elements.
int64_t sumsFor(int64_t elements);
/// A group whose full values are the values of `kind`, by the placements of LineSums: equal flat ranges in
/// the place of axes along which ranks have parts.
plan::Group lineSums(const plan::Group &group, plan::ValueKind kind);
/// Why lines of a group cannot be added up in this way; empty if they can. Each must have parts on several
/// ranks, unless it `mayBeWhole`.
std::string checkLines(const plan::Group &group, const plan::Mesh &mesh, plan::ValueKind kind,
                       bool mayBeWhole = false);

} // namespace stepc::geometry

#endif
