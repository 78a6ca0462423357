//===- MemoryMap.cpp - Which element stands where in a memory --------------===//

#include "passes/verify/MemoryMap.h"

#include "passes/verify/ShardRuns.h"

#include <tuple>

namespace stepc::verify {

namespace {

/// The rows or columns of a group's matrices that a rank holds, and how many of whole matrices.
struct Lines {
  std::vector<Span> spans;
  int64_t extent = 0;
};

int64_t lengthOf(const std::vector<Span> &spans) {
  return spans.empty() ? 0 : spans.back().local + spans.back().length;
}

/// What of `spans` is in the group's part of divided matrices, by its place there.
std::vector<Span> inPart(const std::vector<Span> &spans, const std::vector<plan::Span> &part) {
  std::vector<Span> result;
  int64_t before = 0;
  for (const plan::Span &run : part) {
    for (const Span &span : spans) {
      int64_t begin = std::max(run.begin, span.global);
      int64_t end = std::min(run.end, span.global + span.length);
      if (begin < end)
        result.push_back(
            {before + begin - run.begin, span.local + begin - span.global, end - begin});
    }
    before += run.end - run.begin;
  }
  return result;
}

Lines linesOf(const plan::Group &group, const ShardRuns &runs, int64_t axis, bool isRows) {
  const auto &parts = group.division.parts;
  bool divides = !parts.empty() && (group.division.axis == plan::Division::Rows) == isRows;
  if (axis < 0 && divides) { // an element per part in the place of the axis
    auto count = int64_t(parts.size());
    return {group.part < 0 ? std::vector<Span>{{0, 0, count}}
                           : std::vector<Span>{{0, group.part, 1}},
            count};
  }
  if (axis < 0)
    return {{{0, 0, 1}}, 1};
  std::vector<Span> spans = runs.axis(axis, group.shape[size_t(axis)]);
  int64_t extent = lengthOf(spans);
  return {divides && group.part >= 0 ? inPart(spans, parts[size_t(group.part)]) : spans, extent};
}

} // namespace

MemoryMap MemoryMap::ofShard(const plan::Group &group, const plan::Mesh &mesh, int64_t position,
                             plan::ValueKind kind, plan::ShardsKind whose) {
  MemoryMap map;
  int64_t count = std::max<int64_t>(1, group.blocksPerParameter());
  map.spans.assign(count, {0, 0});
  map.elementsOf.assign(count, 0);
  ShardRuns runs(group.placementsOf(whose), mesh, position);
  plan::KeptAxes kept = plan::keptAxes(group, kind);
  Lines rows = linesOf(group, runs, kept.row, true), cols = linesOf(group, runs, kept.col, false);
  if (!runs.holdsAny() || rows.extent == 0 || cols.extent == 0)
    return map;
  // All blocks have grids of one size: the local matrix axes do not depend on the block.
  map.width = cols.extent;
  map.gridSize = rows.extent * cols.extent;
  for (const Span &row : rows.spans)
    for (const Span &col : cols.spans)
      map.parts.push_back({row.local, col.local, row.length, col.length, row.global, col.global});
  std::vector<int64_t> blocks{0};
  for (size_t axis : kept.leading) {
    std::vector<int64_t> next;
    for (int64_t block : blocks)
      for (const Span &span : runs.axis(int64_t(axis), group.shape[axis]))
        for (int64_t i = 0; i < span.length; ++i)
          next.push_back(block * group.shape[axis] + span.global + i);
    blocks = std::move(next);
  }
  for (int64_t block : blocks)
    map.grids.push_back({block, 0});
  int64_t elements = map.gridSize * int64_t(blocks.size());
  std::tie(map.windowBegin, map.windowEnd) =
      kind == plan::ValueKind::Full ? runs.flat(elements) : std::pair(int64_t(0), elements);
  map.count();
  return map;
}

void MemoryMap::count() {
  int64_t whole = 0, first = gridSize, last = 0; // of the parts of a grid
  for (const Part &part : parts) {
    whole += part.rows * part.cols;
    first = std::min(first, part.row * width + part.col);
    last = std::max(last, (part.row + part.rows - 1) * width + part.col + part.cols);
  }
  for (size_t i = 0; i < grids.size(); ++i) {
    Grid &grid = grids[i];
    int64_t base = int64_t(i) * gridSize;
    int64_t begin = std::max(windowBegin, base), end = std::min(windowEnd, base + gridSize);
    bool isWhole = end - begin == gridSize;
    if (parts.empty() || begin >= end)
      continue;
    // Of a grid that the window cuts, what is left of its parts.
    int64_t left = first, right = last;
    grid.elements = whole;
    if (!isWhole) {
      grid.elements = 0;
      left = gridSize, right = 0;
      auto visit = [&](const Cut &cut) {
        grid.elements += cut.rows * cut.cols;
        left = std::min(left, cut.second);
        right = std::max(right, cut.second + (cut.rows - 1) * cut.secondStride + cut.cols);
      };
      line(begin, begin - base, end - begin, visit);
    }
    if (grid.elements == 0)
      continue;
    elementsOf[grid.block] = grid.elements;
    spans[grid.block] = {base + left - windowBegin, base + right - windowBegin};
  }
}

std::pair<int64_t, int64_t> MemoryMap::origin() const {
  std::pair<int64_t, int64_t> least{0, 0};
  for (const Part &part : parts)
    least = &part == parts.data() ? std::pair(part.blockRow, part.blockCol)
                                  : std::pair(std::min(least.first, part.blockRow),
                                              std::min(least.second, part.blockCol));
  return least;
}

MemoryMap MemoryMap::ofBlocks(int64_t rows, int64_t cols, const std::vector<int64_t> &blocks,
                              std::pair<int64_t, int64_t> origin) {
  MemoryMap map;
  if (rows == 0 || cols == 0)
    return map;
  map.width = cols;
  map.gridSize = rows * cols;
  map.parts.push_back({0, 0, rows, cols, origin.first, origin.second});
  map.grids.reserve(blocks.size());
  for (int64_t block : blocks)
    map.grids.push_back({block, map.gridSize});
  map.windowEnd = map.gridSize * int64_t(blocks.size());
  return map;
}

bool MemoryMap::isMoved(const MemoryMap &other, int64_t rows, int64_t cols) const {
  return width == other.width && gridSize == other.gridSize && grids == other.grids &&
         spans == other.spans && windowBegin == other.windowBegin && windowEnd == other.windowEnd &&
         std::equal(parts.begin(), parts.end(), other.parts.begin(), other.parts.end(),
                    [&](Part part, const Part &moved) {
                      part.blockRow += rows;
                      part.blockCol += cols;
                      return part == moved;
                    });
}

CopyMap::CopyMap(const MemoryMap &shard, std::vector<int64_t> of, int64_t perParameter)
    : shard(shard), blocks(std::move(of)), starts{0}, perParameter(perParameter) {
  for (int64_t block : blocks) {
    auto [first, end] = shard.spanOf(block % perParameter);
    starts.push_back(starts.back() + end - first);
  }
}

} // namespace stepc::verify
