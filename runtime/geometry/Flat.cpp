//===- Flat.cpp - Ranges of a shard's elements -----------------------------===//

#include "runtime/geometry/Flat.h"

#include <algorithm>
#include <tuple>

namespace stepc::geometry {

using plan::Mesh;
using plan::Placement;
using plan::PlacementKind;

Interval chunk(int64_t size, int64_t count, int64_t index) {
  int64_t length = size / count + (size % count != 0);
  return {std::min(size, length * index), std::min(size, length * (index + 1))};
}

Interval flatRange(const std::vector<Placement> &placements, const Mesh &mesh,
                   const std::vector<int64_t> &coords, int64_t size) {
  // `index` is the rank's number along all flat axes, `other` its number along the flat axes without cuts.
  const std::vector<int64_t> *cuts = nullptr;
  int64_t index = 0, count = 1, other = 0, others = 1, own = 0;
  for (size_t axis = 0; axis < placements.size(); ++axis) {
    if (placements[axis].kind != PlacementKind::Flat)
      continue;
    index = index * mesh.sizes[axis] + coords[axis];
    count *= mesh.sizes[axis];
    if (!placements[axis].cuts.empty()) {
      cuts = &placements[axis].cuts;
      own = coords[axis];
      continue;
    }
    other = other * mesh.sizes[axis] + coords[axis];
    others *= mesh.sizes[axis];
  }
  if (!cuts)
    return chunk(size, count, index);
  auto range = [&](int64_t at) -> Interval {
    return {std::min(size, (*cuts)[static_cast<size_t>(at)]),
            std::min(size, (*cuts)[static_cast<size_t>(at) + 1])};
  };
  if (static_cast<int64_t>(cuts->size()) == count + 1)
    return range(index);
  Interval whole = range(own), part = chunk(whole.end - whole.begin, others, other);
  return {whole.begin + part.begin, whole.begin + part.end};
}

std::vector<Rect> clip(const std::vector<Rect> &rects, const Interval &range) {
  std::vector<Rect> result;
  for (const Rect &rect : rects) {
    auto add = [&](int64_t row, int64_t rows, int64_t begin, int64_t end) {
      if (rows > 0 && begin < end)
        result.push_back({rect.block, rect.row + row, rect.col + begin, rows, end - begin,
                          rect.offset + row * rect.stride + begin - range.begin, rect.stride});
    };
    // Rows [first, last) have elements in the range; the first and the last may be cut.
    int64_t before = range.begin - rect.offset - rect.cols, to = range.end - rect.offset;
    int64_t first = before < 0 ? 0 : before / rect.stride + 1;
    int64_t last = to <= 0 ? 0 : std::min(rect.rows, (to - 1) / rect.stride + 1);
    if (first >= last)
      continue;
    auto columns = [&](int64_t row) -> Interval {
      int64_t at = rect.offset + row * rect.stride;
      return {std::max<int64_t>(0, range.begin - at), std::min(rect.cols, range.end - at)};
    };
    Interval top = columns(first), bottom = columns(last - 1);
    bool cutsTop = top.begin > 0 || (last - first == 1 && top.end < rect.cols);
    bool cutsBottom = last - first > 1 && bottom.end < rect.cols;
    if (cutsTop)
      add(first, 1, top.begin, top.end);
    add(first + cutsTop, last - first - cutsTop - cutsBottom, 0, rect.cols);
    if (cutsBottom)
      add(last - 1, 1, 0, bottom.end);
  }
  // If rectangles stand side by side, their cut pieces are no longer in order.
  std::sort(result.begin(), result.end(), [](const Rect &a, const Rect &b) {
    return std::tie(a.block, a.row, a.col) < std::tie(b.block, b.row, b.col);
  });
  return result;
}

bool hasFlat(const std::vector<Placement> &placements) {
  return std::any_of(placements.begin(), placements.end(),
                     [](const Placement &p) { return p.kind == PlacementKind::Flat; });
}

} // namespace stepc::geometry
