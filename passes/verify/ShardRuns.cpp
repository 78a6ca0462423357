//===- ShardRuns.cpp - What placements mean, read backwards ----------------===//

#include "passes/verify/ShardRuns.h"

#include <algorithm>

namespace stepc::verify {

using plan::PlacementKind;

ShardRuns::ShardRuns(const std::vector<plan::Placement> &placements, const plan::Mesh &mesh,
                     int64_t position)
    : placements(placements), mesh(mesh), at(mesh.sizes.size()) {
  for (size_t axis = at.size(); axis-- > 0; position /= mesh.sizes[axis])
    at[axis] = position % mesh.sizes[axis];
  for (size_t axis = 0; axis < at.size(); ++axis)
    holds = holds && (placements[axis].kind != PlacementKind::Owned ||
                      placements[axis].owner == at[axis]);
}

/// Where part `index` of `count` parts of `length` indices begins: each has ceil(length / count), as long
/// as there are any left.
static int64_t beginOf(int64_t length, int64_t count, int64_t index) {
  return std::min(length, (length + count - 1) / count * index);
}

std::vector<std::pair<int64_t, int64_t>> ShardRuns::partsOf(size_t meshAxis,
                                                            int64_t length) const {
  const plan::Placement &placement = placements[meshAxis];
  int64_t ranks = mesh.sizes[meshAxis], rank = at[meshAxis];
  int64_t stripes = placement.kind == PlacementKind::Shard ? 1 : placement.factor;
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (int64_t stripe = 0; stripe < stripes; ++stripe) {
    int64_t first = beginOf(length, stripes, stripe), last = beginOf(length, stripes, stripe + 1);
    if (first == last)
      break;
    int64_t begin = beginOf(last - first, ranks, rank), end = beginOf(last - first, ranks, rank + 1);
    if (begin < end)
      parts.push_back({first + begin, first + end});
  }
  return parts;
}

std::vector<Span> ShardRuns::axis(int64_t dim, int64_t size) const {
  std::vector<std::vector<std::pair<int64_t, int64_t>>> steps; // of the mesh axes that shard it
  for (size_t meshAxis = 0; meshAxis < placements.size(); ++meshAxis) {
    bool shards = placements[meshAxis].kind == PlacementKind::Shard ||
                  placements[meshAxis].kind == PlacementKind::StridedShard ||
                  placements[meshAxis].kind == PlacementKind::InterleavedShard;
    if (!shards || placements[meshAxis].dim != dim)
      continue;
    steps.push_back(partsOf(meshAxis, size));
    size = 0;
    for (auto [begin, end] : steps.back())
      size += end - begin;
  }
  // All that is local, and of each step back the places before it.
  std::vector<Span> spans{{0, 0, size}};
  for (size_t step = steps.size(); step-- > 0;) {
    std::vector<Span> before;
    for (const Span &span : spans) {
      int64_t local = span.local, from = span.global, left = span.length, passed = 0;
      for (auto [begin, end] : steps[step]) {
        int64_t inside = from - passed; // of this part
        passed += end - begin;
        if (left == 0 || inside >= end - begin)
          continue;
        int64_t length = std::min(left, end - begin - inside);
        if (!before.empty() && before.back().global + before.back().length == begin + inside &&
            before.back().local + before.back().length == local)
          before.back().length += length;
        else
          before.push_back({begin + inside, local, length});
        local += length;
        from += length;
        left -= length;
      }
    }
    spans = std::move(before);
  }
  if (spans.size() == 1 && spans[0].length == 0)
    spans.clear();
  return spans;
}

std::pair<int64_t, int64_t> ShardRuns::flat(int64_t elements) const {
  const plan::Placement *first = nullptr;
  int64_t ranks = 1, rank = 0;
  for (size_t axis = 0; axis < placements.size(); ++axis)
    if (placements[axis].kind == PlacementKind::Flat) {
      first = first ? first : &placements[axis];
      ranks *= mesh.sizes[axis];
      rank = rank * mesh.sizes[axis] + at[axis];
    }
  auto begin = [&](int64_t index) {
    return first->cuts.empty() ? beginOf(elements, ranks, index)
                               : std::min(elements, first->cuts[size_t(index)]);
  };
  return first ? std::pair(begin(rank), begin(rank + 1)) : std::pair(int64_t(0), elements);
}

} // namespace stepc::verify
