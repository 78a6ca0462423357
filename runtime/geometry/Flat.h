//===- Flat.h - Ranges of a shard's elements --------------------*- C++ -*-===//
//
// Internal to the geometry.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_GEOMETRY_FLAT_H
#define STEPC_RUNTIME_GEOMETRY_FLAT_H

#include "runtime/geometry/Geometry.h"

namespace stepc::geometry {

/// A half-open interval of indices along an axis, or of elements of a shard.
struct Interval {
  int64_t begin, end;
};

/// Chunk `index` of `count` of [0, size), as torch.chunk splits.
Interval chunk(int64_t size, int64_t count, int64_t index);

bool hasFlat(const std::vector<plan::Placement> &placements);

/// The range of elements that a rank keeps, by the flat placements, of a shard of `size` elements.
Interval flatRange(const std::vector<plan::Placement> &placements, const plan::Mesh &mesh,
                   const std::vector<int64_t> &coords, int64_t size);

/// Cuts the rectangles of a shard to a range of the shard's elements. Offsets then count from the range's
/// begin.
std::vector<Rect> clip(const std::vector<Rect> &rects, const Interval &range);

} // namespace stepc::geometry

#endif
