//===- ShardRuns.h - What shapes and placements mean -------------*- C++ -*-===//
//
// The verifier's own geometry: what of a tensor is blocks, rows and columns, and where its elements are. The
// runtime's slices a tensor axis from the first mesh axis to the last; this follows the elements of a shard
// from their local places back to the tensor, from the last mesh axis to the first. Neither uses the other.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_SHARDRUNS_H
#define STEPC_PASSES_VERIFY_SHARDRUNS_H

#include "runtime/model/Model.h"

#include <utility>
#include <vector>

namespace stepc::verify {

/// The axes of a tensor that a value of a kind has, by what they are of it.
struct ValueAxes {
  std::vector<size_t> blocks, rows, cols;
};
ValueAxes axesOf(const plan::Group &group, plan::ValueKind kind);
/// How many blocks of such a value a parameter has in the group, and their rows and columns.
plan::View viewOf(const plan::Group &group, plan::ValueKind kind);
/// The same as it stands where it is computed: the longest slab.
plan::View computedOf(const plan::Group &group, plan::ValueKind kind);
/// Whether slabs are of different lengths, and the shorter ones end in zeros.
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

  /// False where another rank owns the whole.
  bool holdsAny() const { return holds; }
  /// Of a tensor axis, by local index.
  std::vector<Span> axis(int64_t dim, int64_t size) const;
  /// Which elements of a shard of so many, that all other placements leave, flat ones leave.
  std::pair<int64_t, int64_t> flat(int64_t elements) const;

private:
  /// Of one placement: the parts of `length` indices that the rank at its coordinate holds.
  std::vector<std::pair<int64_t, int64_t>> partsOf(size_t meshAxis, int64_t length) const;

  const std::vector<plan::Placement> &placements;
  const plan::Mesh &mesh;
  std::vector<int64_t> at; // coordinates
  bool holds = true;
};

} // namespace stepc::verify

#endif
