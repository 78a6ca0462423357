//===- MemoryMap.cpp - Which element stands where in a memory --------------===//

#include "passes/verify/MemoryMap.h"

#include <tuple>

namespace stepc::verify {

namespace {

int64_t lengthOf(const std::vector<Span> &spans) {
  return spans.empty() ? 0 : spans.back().local + spans.back().length;
}

/// The spans of several axes together, as of one axis. The last axis runs fastest.
std::vector<Span> spansOf(const plan::Group &group, const ShardRuns &runs,
                          const std::vector<size_t> &axes) {
  std::vector<Span> spans{{0, 0, 1}};
  int64_t size = 1; // the product of the axes so far, in the whole tensor
  for (size_t i = axes.size(); i-- > 0;) {
    std::vector<Span> next;
    int64_t length = lengthOf(spans);
    for (const Span &outer : runs.axis(int64_t(axes[i]), group.shape[axes[i]])) {
      if (length == size) {
        next.push_back({outer.global * size, outer.local * size, outer.length * size});
        continue;
      }
      for (int64_t index = 0; index < outer.length; ++index)
        for (const Span &inner : spans)
          next.push_back({(outer.global + index) * size + inner.global,
                          (outer.local + index) * length + inner.local, inner.length});
    }
    spans = std::move(next);
    size *= group.shape[axes[i]];
  }
  return spans;
}

/// A group of tensors of values per row, column or block. Where full values are cut and these are not, flat
/// ranges take the place of the cut: so the sums of lines are shared out.
plan::Group sumsOf(const plan::Group &group, plan::ValueKind kind) {
  ValueAxes axes = axesOf(group, kind);
  std::vector<bool> isKept(group.shape.size(), false);
  for (const auto *list : {&axes.blocks, &axes.rows, &axes.cols})
    for (size_t axis : *list)
      isKept[axis] = true;
  plan::Group sums = group;
  sums.statePlacements.clear();
  sums.gradientPlacements.clear();
  sums.reducedPlacements.clear();
  sums.placements = group.placementsOf(plan::ShardsKind::State);
  for (plan::Placement &placement : sums.placements) {
    bool isDropped = placement.isShard() && !isKept[size_t(placement.dim)];
    if (isDropped || placement.kind == plan::PlacementKind::Flat)
      placement = {plan::PlacementKind::Flat};
  }
  for (size_t axis = 0; axis < isKept.size(); ++axis)
    if (!isKept[axis])
      sums.shape[axis] = 1;
  return sums;
}

} // namespace

MemoryMap::Lines MemoryMap::linesOf(const plan::Group &group, const ShardRuns &runs,
                                    const std::vector<size_t> &axes, bool isRows) {
  const auto &parts = group.division.parts;
  bool divides = !parts.empty() && (group.division.axis == plan::Division::Rows) == isRows;
  auto count = int64_t(parts.size());
  Lines result;
  if (axes.empty() && divides) { // the value has one element per part instead of the axis
    result.extent = count;
    for (size_t number = 0; number < group.parts.size(); ++number)
      result.lines.push_back({group.parts[number], 1, 0, int64_t(number)});
    if (group.parts.empty())
      result.lines.push_back({0, count, 0, 0});
    return result;
  }
  std::vector<Span> spans = spansOf(group, runs, axes);
  result.extent = lengthOf(spans);
  if (!divides || group.parts.empty()) {
    for (const Span &span : spans)
      result.lines.push_back({span.local, span.length, span.global, 0});
    return result;
  }
  // Intersects the spans with the parts of this group. `before` counts the indices of the part's earlier
  // runs.
  for (size_t number = 0; number < group.parts.size(); ++number) {
    int64_t before = 0;
    for (const plan::Span &run : parts[size_t(group.parts[number])]) {
      auto span = std::partition_point(spans.begin(), spans.end(), [&](const Span &each) {
        return each.global + each.length <= run.begin;
      });
      for (; span != spans.end() && span->global < run.end; ++span) {
        int64_t begin = std::max(run.begin, span->global);
        int64_t end = std::min(run.end, span->global + span->length);
        result.lines.push_back({span->local + begin - span->global, end - begin,
                                before + begin - run.begin, int64_t(number)});
      }
      before += run.end - run.begin;
    }
  }
  std::sort(result.lines.begin(), result.lines.end(),
            [](const Line &a, const Line &b) { return a.at < b.at; });
  return result;
}

MemoryMap MemoryMap::ofShard(const plan::Group &group, const plan::Mesh &mesh, int64_t position,
                             plan::ValueKind kind, plan::ShardsKind whose) {
  if (whose == plan::ShardsKind::LineSums)
    return ofShard(sumsOf(group, kind), mesh, position, plan::ValueKind::Full,
                   plan::ShardsKind::Parameter);
  MemoryMap map;
  int64_t count = std::max<int64_t>(1, viewOf(group, plan::ValueKind::Full).blocks);
  map.spans.assign(count, {0, 0});
  map.elementsOf.assign(count, 0);
  ShardRuns runs(group.placementsOf(whose), mesh, position);
  ValueAxes axes = axesOf(group, kind);
  Lines rows = linesOf(group, runs, axes.rows, true), cols = linesOf(group, runs, axes.cols, false);
  if (!runs.holdsAny() || rows.extent == 0 || cols.extent == 0)
    return map;
  // All grids have one size, because a rank holds the same rows and columns of every matrix.
  map.width = cols.extent;
  map.gridSize = rows.extent * cols.extent;
  map.rows = std::move(rows.lines);
  map.cols = std::move(cols.lines);
  map.blocksPerGrid = std::max<int64_t>(1, int64_t(group.parts.size()));
  std::vector<int64_t> blocks{0};
  for (size_t axis : axes.blocks) {
    std::vector<int64_t> next;
    for (int64_t block : blocks)
      for (const Span &span : runs.axis(int64_t(axis), group.shape[axis]))
        for (int64_t i = 0; i < span.length; ++i)
          next.push_back(block * group.shape[axis] + span.global + i);
    blocks = std::move(next);
  }
  for (int64_t block : blocks)
    map.grids.push_back(block * map.blocksPerGrid);
  int64_t elements = map.gridSize * int64_t(blocks.size());
  std::tie(map.windowBegin, map.windowEnd) =
      kind == plan::ValueKind::Full ? runs.flat(elements) : std::pair(int64_t(0), elements);
  map.count();
  return map;
}

void MemoryMap::count() {
  // The elements that a grid has of one block, and where they begin and end.
  struct Extent {
    int64_t elements = 0, first, last = 0;
  };
  auto none = [&] { return std::vector<Extent>(size_t(blocksPerGrid), Extent{0, gridSize, 0}); };
  auto add = [](Extent &extent, int64_t at, int64_t rows, int64_t stride, int64_t cols) {
    extent.elements += rows * cols;
    extent.first = std::min(extent.first, at);
    extent.last = std::max(extent.last, at + (rows - 1) * stride + cols);
  };
  std::vector<Extent> whole = none();
  for (const Line &row : rows)
    for (const Line &col : cols)
      add(whole[size_t(row.part + col.part)], row.at * width + col.at, row.length, width,
          col.length);
  for (size_t i = 0; i < grids.size(); ++i) {
    int64_t base = int64_t(i) * gridSize;
    int64_t begin = std::max(windowBegin, base), end = std::min(windowEnd, base + gridSize);
    if (begin >= end)
      continue;
    // If the window cuts this grid: what the window leaves of the grid's blocks.
    std::vector<Extent> left;
    if (end - begin < gridSize) {
      left = none();
      auto visit = [&](const Cut &cut) {
        add(left[size_t(cut.block - grids[i])], cut.second, cut.rows, cut.secondStride, cut.cols);
      };
      line(begin, begin - base, end - begin, visit);
    }
    for (int64_t part = 0; part < blocksPerGrid; ++part) {
      const Extent &extent = (left.empty() ? whole : left)[size_t(part)];
      if (extent.elements == 0)
        continue;
      held.push_back(grids[i] + part);
      elementsOf[grids[i] + part] = extent.elements;
      spans[grids[i] + part] = {base + extent.first - windowBegin,
                                base + extent.last - windowBegin};
    }
  }
}

MemoryMap MemoryMap::ofBlocks(int64_t rows, int64_t cols, const std::vector<int64_t> &blocks) {
  MemoryMap map;
  if (rows == 0 || cols == 0)
    return map;
  map.width = cols;
  map.gridSize = rows * cols;
  map.rows.push_back({0, rows, 0, 0});
  map.cols.push_back({0, cols, 0, 0});
  map.grids = blocks;
  map.windowEnd = map.gridSize * int64_t(blocks.size());
  return map;
}

bool MemoryMap::isMoved(const MemoryMap &other, int64_t rows, int64_t cols) const {
  auto areMoved = [](const std::vector<Line> &lines, const std::vector<Line> &moved, int64_t by) {
    return std::equal(lines.begin(), lines.end(), moved.begin(), moved.end(),
                      [&](Line line, const Line &other) {
                        line.inBlock += by;
                        return line == other;
                      });
  };
  return width == other.width && gridSize == other.gridSize && grids == other.grids &&
         held == other.held && elementsOf == other.elementsOf && spans == other.spans &&
         windowBegin == other.windowBegin && windowEnd == other.windowEnd &&
         areMoved(this->rows, other.rows, rows) && areMoved(this->cols, other.cols, cols);
}

CopyMap::CopyMap(const MemoryMap &shard, std::vector<int64_t> of, int64_t perParameter)
    : shard(shard), blocks(std::move(of)), starts{0}, perParameter(perParameter) {
  for (int64_t block : blocks) {
    auto [first, end] = shard.spanOf(block % perParameter);
    starts.push_back(starts.back() + end - first);
  }
}

} // namespace stepc::verify
