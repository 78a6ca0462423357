//===- ShardRuns.h - What shapes and placements mean -------------*- C++ -*-===//
//
// The verifier's own geometry: which axes of a tensor are blocks, rows and columns, and where its elements
// are. The runtime's geometry slices a tensor axis from the first mesh axis to the last. This one follows the
// elements of a shard from their local places back to the tensor, from the last mesh axis to the first.
// Neither uses the other.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_SHARDRUNS_H
#define STEPC_PASSES_VERIFY_SHARDRUNS_H

#include "runtime/model/Model.h"

#include <utility>
#include <vector>

namespace stepc::verify {

/// The axes of a tensor that a value of a kind has: axes that count blocks, rows and columns.
struct ValueAxes {
  std::vector<size_t> blocks, rows, cols;
};
ValueAxes axesOf(const plan::Group &group, plan::ValueKind kind);
/// How many blocks of the value a parameter of the group has, and how many rows and columns each block has.
plan::View viewOf(const plan::Group &group, plan::ValueKind kind);
/// The view of a value where it is computed. A full value of a group with slabs has the extent of the longest
/// slab.
plan::View computedOf(const plan::Group &group, plan::ValueKind kind);
/// Whether slabs differ in length, so that the shorter ones end in zeros.
bool endsInZeros(const plan::Group &group);
/// The blocks of all parameters of a group.
int64_t blockCountOf(const plan::Group &group);

/// Indices [global, global + length) of a tensor axis, which stand at [local, local + length).
struct Span {
  int64_t global, local, length;
};

/// What one rank holds by a list of placements.
class ShardRuns {
public:
  ShardRuns(const std::vector<plan::Placement> &placements, const plan::Mesh &mesh,
            int64_t position);

  /// False if another rank owns the whole.
  bool holdsAny() const { return holds; }
  /// What the rank holds of a tensor axis, in the order of local indices.
  std::vector<Span> axis(int64_t dim, int64_t size) const;
  /// The range of the shard's elements that the rank holds by its flat placements. `elements` is the size of
  /// the shard by all other placements.
  std::pair<int64_t, int64_t> flat(int64_t elements) const;

private:
  /// The ranges of indices, out of `length`, that the rank holds by the placement along one mesh axis.
  std::vector<std::pair<int64_t, int64_t>> partsOf(size_t meshAxis, int64_t length) const;

  const std::vector<plan::Placement> &placements;
  const plan::Mesh &mesh;
  std::vector<int64_t> at; // the rank's coordinates
  bool holds = true;
};

} // namespace stepc::verify

#endif
