//===- ShardRuns.h - What placements mean, read backwards -------*- C++ -*-===//
//
// The verifier's own geometry. The runtime's slices a tensor axis from the first mesh axis to the last;
// this follows the elements of a shard from their local places back to the tensor, from the last mesh
// axis to the first. Neither uses the other.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_SHARDRUNS_H
#define STEPC_PASSES_VERIFY_SHARDRUNS_H

#include "runtime/model/Model.h"

#include <utility>
#include <vector>

namespace stepc::verify {

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
