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

/// The axes of a tensor that a value of a kind has, by their role in it.
struct ValueAxes {
  std::vector<size_t> blocks, rows, cols;
};
ValueAxes axesOf(const plan::Group &group, plan::ValueKind kind);
/// How many blocks of such a value a parameter has in the group, and their rows and columns.
plan::View viewOf(const plan::Group &group, plan::ValueKind kind);
/// The view of a value as it stands where it is computed, with the extents of the longest slab.
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
  /// The range that flat placements leave of a shard, which has `elements` by all other placements.
  std::pair<int64_t, int64_t> flat(int64_t elements) const;

private:
  /// The parts of `length` indices that the rank holds by one placement.
  std::vector<std::pair<int64_t, int64_t>> partsOf(size_t meshAxis, int64_t length) const;

  const std::vector<plan::Placement> &placements;
  const plan::Mesh &mesh;
  std::vector<int64_t> at; // coordinates
  bool holds = true;
};

} // namespace stepc::verify

#endif
