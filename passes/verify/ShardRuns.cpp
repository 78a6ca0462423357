//===- ShardRuns.cpp - What shapes and placements mean ---------------------===//

#include "passes/verify/ShardRuns.h"

#include <algorithm>

namespace stepc::verify {

using plan::PlacementKind;
using plan::ValueKind;

ValueAxes axesOf(const plan::Group &group, ValueKind kind) {
  bool hasRows = kind == ValueKind::Full || kind == ValueKind::Rows;
  bool hasCols = kind == ValueKind::Full || kind == ValueKind::Cols;
  ValueAxes result;
  // From the last axis to the first: columns, then rows, then axes that count matrices.
  auto axis = int64_t(group.shape.size()), cols = group.flatten ? group.flatten : axis - 1;
  auto rows = group.flatten ? group.batchAxes : axis - 2, batch = group.batchAxes;
  if (group.joined > 0 && kind == ValueKind::Full) {
    cols = group.joined;
    rows = batch = 0;
  }
  while (axis-- > 0) {
    if (axis < batch)
      result.blocks.push_back(size_t(axis));
    else if (axis >= cols && hasCols)
      result.cols.push_back(size_t(axis));
    else if (axis >= rows && axis < cols && hasRows)
      result.rows.push_back(size_t(axis));
    else if (axis < rows && (hasRows || hasCols)) // no batch axes are declared
      result.blocks.push_back(size_t(axis));
  }
  for (std::vector<size_t> *axes : {&result.blocks, &result.rows, &result.cols})
    std::reverse(axes->begin(), axes->end());
  return result;
}

plan::View viewOf(const plan::Group &group, ValueKind kind) {
  if (!kind.isStored()) {
    plan::View full = viewOf(group, ValueKind::Full);
    auto extentOf = [&](int64_t extent) -> int64_t {
      if (auto size = size_t(ValueKind::OfFirstSize - extent); extent <= ValueKind::OfFirstSize)
        return size < group.sizes.size() ? group.sizes[size] : 0;
      switch (extent) {
      case ValueKind::OfRows:
        return full.rows;
      case ValueKind::OfCols:
        return full.cols;
      case ValueKind::OfSmaller:
        return std::min(full.rows, full.cols);
      default:
        return extent;
      }
    };
    return {viewOf(group, ValueKind::One).blocks, extentOf(kind.rows), extentOf(kind.cols)};
  }
  ValueAxes axes = axesOf(group, kind);
  auto indices = [&](const std::vector<size_t> &of) {
    int64_t count = 1;
    for (size_t axis : of)
      count *= group.shape[axis];
    return count;
  };
  plan::View result{indices(axes.blocks), indices(axes.rows), indices(axes.cols)};
  const auto &parts = group.division.parts;
  if (parts.empty())
    return result;
  bool isRows = group.division.axis == plan::Division::Rows;
  bool isKept = !(isRows ? axes.rows : axes.cols).empty();
  int64_t &divided = isRows ? result.rows : result.cols;
  if (group.parts.empty()) {
    // Blocks are whole matrices. A value without the divided axis has one element per part.
    divided = isKept ? divided : int64_t(parts.size());
    return result;
  }
  result.blocks *= int64_t(group.parts.size());
  if (isKept) {
    divided = 0;
    for (const plan::Span &run : parts[size_t(group.parts.front())])
      divided += run.end - run.begin;
  }
  return result;
}

plan::View computedOf(const plan::Group &group, ValueKind kind) {
  plan::View result = viewOf(group, kind);
  if (kind == ValueKind::Full && !group.slabs.factors.empty())
    (group.slabs.axis == plan::Division::Rows ? result.rows : result.cols) = group.slabs.longest;
  return result;
}

bool endsInZeros(const plan::Group &group) { return group.slabs.shortest < group.slabs.longest; }

int64_t blockCountOf(const plan::Group &group) {
  return viewOf(group, ValueKind::Full).blocks * int64_t(group.parameters.size());
}

ShardRuns::ShardRuns(const std::vector<plan::Placement> &placements, const plan::Mesh &mesh,
                     int64_t position)
    : placements(placements), mesh(mesh), at(mesh.sizes.size()) {
  for (size_t axis = at.size(); axis-- > 0; position /= mesh.sizes[axis])
    at[axis] = position % mesh.sizes[axis];
  for (size_t axis = 0; axis < at.size(); ++axis)
    holds = holds &&
            (placements[axis].kind != PlacementKind::Owned || placements[axis].owner == at[axis]);
}

/// Where part `index` begins if `length` indices are divided into `count` parts. Each part has ceil(length /
/// count) indices until none are left.
static int64_t beginOf(int64_t length, int64_t count, int64_t index) {
  return std::min(length, (length + count - 1) / count * index);
}

std::vector<std::pair<int64_t, int64_t>> ShardRuns::partsOf(size_t meshAxis, int64_t length) const {
  const plan::Placement &placement = placements[meshAxis];
  int64_t ranks = mesh.sizes[meshAxis], rank = at[meshAxis];
  int64_t stripes = placement.kind == PlacementKind::Shard ? 1 : placement.factor;
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (int64_t stripe = 0; stripe < stripes; ++stripe) {
    int64_t first = beginOf(length, stripes, stripe), last = beginOf(length, stripes, stripe + 1);
    if (first == last)
      break;
    int64_t begin = beginOf(last - first, ranks, rank),
            end = beginOf(last - first, ranks, rank + 1);
    if (begin < end)
      parts.push_back({first + begin, first + end});
  }
  return parts;
}

std::vector<Span> ShardRuns::axis(int64_t dim, int64_t size) const {
  std::vector<std::vector<std::pair<int64_t, int64_t>>> steps; // one per mesh axis that shards it
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
  // Begins with all local indices. Each step back finds the places that they had before a mesh axis cut the
  // tensor.
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
  // The rank's number along all flat axes, and along all flat axes but the one that has explicit cuts.
  struct Numbers {
    int64_t ranks = 1, rank = 0;
    void add(int64_t size, int64_t coordinate) {
      ranks *= size;
      rank = rank * size + coordinate;
    }
  } all, others;
  const plan::Placement *cut = nullptr;
  int64_t own = 0;
  for (size_t axis = 0; axis < placements.size(); ++axis)
    if (placements[axis].kind == PlacementKind::Flat) {
      all.add(mesh.sizes[axis], at[axis]);
      if (placements[axis].cuts.empty())
        others.add(mesh.sizes[axis], at[axis]);
      else
        cut = &placements[axis], own = at[axis];
    }
  auto split = [](int64_t first, int64_t last, const Numbers &among) {
    return std::pair(first + beginOf(last - first, among.ranks, among.rank),
                     first + beginOf(last - first, among.ranks, among.rank + 1));
  };
  if (!cut)
    return split(0, elements, all);
  bool ofAll = int64_t(cut->cuts.size()) == all.ranks + 1;
  int64_t number = ofAll ? all.rank : own;
  int64_t first = std::min(elements, cut->cuts[size_t(number)]);
  int64_t last = std::min(elements, cut->cuts[size_t(number) + 1]);
  return split(first, last, ofAll ? Numbers() : others);
}

} // namespace stepc::verify
