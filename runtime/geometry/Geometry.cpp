//===- Geometry.cpp - Placements to runs, shapes and rectangles ----------===//

#include "runtime/geometry/Flat.h"

#include <algorithm>

namespace stepc::geometry {

using plan::Group;
using plan::KeptAxes;
using plan::keptAxes;
using plan::Mesh;
using plan::Placement, plan::PlacementKind;
using plan::ValueKind;

namespace {

bool keeps(const KeptAxes &kept, int64_t dim) {
  for (const std::vector<size_t> *axes : {&kept.leading, &kept.rows, &kept.cols})
    if (std::find(axes->begin(), axes->end(), static_cast<size_t>(dim)) != axes->end())
      return true;
  return false;
}

/// The sizes of a value's axes, computed from the sizes of the parameter's axes.
std::vector<int64_t> keptSizes(const Group &group, ValueKind kind,
                               const std::vector<int64_t> &sizes) {
  KeptAxes kept = keptAxes(group, kind);
  auto parts = static_cast<int64_t>(group.division.parts.size());
  std::vector<int64_t> result;
  for (size_t axis : kept.leading)
    result.push_back(sizes[axis]);
  for (auto [axes, divides] : {std::pair(&kept.rows, plan::Division::Rows),
                               std::pair(&kept.cols, plan::Division::Columns)}) {
    for (size_t axis : *axes)
      result.push_back(sizes[axis]);
    if (axes->empty() && parts > 0 && group.division.axis == divides)
      result.push_back(parts);
  }
  return result;
}

int64_t totalLength(const std::vector<Run> &runs) {
  return runs.empty() ? 0 : runs.back().local + runs.back().length;
}

/// Keeps the indices of `runs` whose local numbers lie in `intervals`, which must increase. Numbers the
/// local indices anew.
std::vector<Run> slice(const std::vector<Run> &runs, const std::vector<Interval> &intervals) {
  std::vector<Run> result;
  int64_t local = 0;
  size_t at = 0;
  for (const Interval &interval : intervals) {
    while (at < runs.size() && runs[at].local + runs[at].length <= interval.begin)
      ++at;
    for (size_t i = at; i < runs.size() && runs[i].local < interval.end; ++i) {
      int64_t begin = std::max(interval.begin, runs[i].local);
      int64_t end = std::min(interval.end, runs[i].local + runs[i].length);
      if (begin >= end)
        continue;
      int64_t global = runs[i].global + (begin - runs[i].local);
      if (!result.empty() && result.back().global + result.back().length == global)
        result.back().length += end - begin;
      else
        result.push_back({global, local, end - begin});
      local += end - begin;
    }
  }
  return result;
}

/// Keeps the indices that lie in `spans`. Their global numbers then count through the spans.
std::vector<Run> within(const std::vector<Run> &runs, const std::vector<plan::Span> &spans) {
  std::vector<Run> result;
  for (const Run &run : runs) {
    int64_t before = 0;
    for (const plan::Span &span : spans) {
      int64_t begin = std::max(span.begin, run.global);
      int64_t end = std::min(span.end, run.global + run.length);
      Run next{before + begin - span.begin, run.local + begin - run.global, end - begin};
      before += span.end - span.begin;
      if (begin >= end)
        continue;
      if (!result.empty() && result.back().global + result.back().length == next.global &&
          result.back().local + result.back().length == next.local)
        result.back().length += next.length;
      else
        result.push_back(next);
    }
  }
  return result;
}

std::vector<Run> wholeAxis(int64_t size) {
  return size > 0 ? std::vector<Run>{{0, 0, size}} : std::vector<Run>{};
}

/// The runs of two axes that are joined to one. The inner axis has `size` indices.
std::vector<Run> join(const std::vector<Run> &outer, const std::vector<Run> &inner, int64_t size) {
  std::vector<Run> result;
  int64_t length = totalLength(inner);
  for (const Run &run : outer) {
    if (length == size && size > 0) { // nothing is cut
      result.push_back({run.global * size, run.local * size, run.length * size});
      continue;
    }
    for (int64_t i = 0; i < run.length; ++i)
      for (const Run &each : inner) {
        int64_t global = (run.global + i) * size + each.global;
        if (!result.empty() && result.back().global + result.back().length == global)
          result.back().length += each.length;
        else
          result.push_back({global, (run.local + i) * length + each.local, each.length});
      }
  }
  return result;
}

} // namespace

Group whole(const Group &group) {
  Group result;
  result.shape = group.shape;
  result.batchAxes = group.batchAxes;
  result.flatten = group.flatten;
  result.joined = group.joined;
  result.placements = group.placements;
  result.gradientPlacements = group.gradientPlacements;
  result.statePlacements = group.statePlacements;
  result.reducedPlacements = group.reducedPlacements;
  result.division = group.division;
  result.sizes = group.sizes;
  return result;
}

int64_t elements(const std::vector<int64_t> &shape) {
  int64_t product = 1;
  for (int64_t size : shape)
    product *= size;
  return product;
}

std::vector<int64_t> coordinates(const Mesh &mesh, int64_t position) {
  std::vector<int64_t> coords(mesh.sizes.size());
  for (size_t axis = mesh.sizes.size(); axis-- > 0;) {
    coords[axis] = position % mesh.sizes[axis];
    position /= mesh.sizes[axis];
  }
  return coords;
}

std::vector<Run> axisRuns(int64_t dim, int64_t size, const std::vector<Placement> &placements,
                          const Mesh &mesh, const std::vector<int64_t> &coords) {
  // A chunk of one run is one run. So no list of runs is needed before a placement that takes several
  // chunks.
  Interval whole{0, size};
  size_t axis = 0;
  for (; axis < placements.size(); ++axis) {
    const Placement &placement = placements[axis];
    if (!placement.isShard() || placement.dim != dim)
      continue;
    if (placement.kind != PlacementKind::Shard)
      break;
    Interval part = chunk(whole.end - whole.begin, mesh.sizes[axis], coords[axis]);
    whole = {whole.begin + part.begin, whole.begin + part.end};
  }
  std::vector<Run> runs;
  if (whole.begin < whole.end)
    runs.push_back({whole.begin, 0, whole.end - whole.begin});
  std::vector<Interval> intervals;
  for (; axis < placements.size(); ++axis) {
    const Placement &placement = placements[axis];
    if (!placement.isShard() || placement.dim != dim)
      continue;
    int64_t length = totalLength(runs);
    intervals.clear();
    if (placement.kind == PlacementKind::Shard) {
      intervals.push_back(chunk(length, mesh.sizes[axis], coords[axis]));
    } else {
      // This rank takes its chunk of each stripe. The stripes of _S are the shards of later axes (`factor` of
      // them), which come first: a later S(dim) finds its own part in one piece if sizes are even.
      for (int64_t piece = 0; piece < placement.factor; ++piece) {
        Interval outer = chunk(length, placement.factor, piece);
        if (outer.begin >= outer.end)
          break;
        Interval inner = chunk(outer.end - outer.begin, mesh.sizes[axis], coords[axis]);
        intervals.push_back({outer.begin + inner.begin, outer.begin + inner.end});
      }
    }
    runs = slice(runs, intervals);
  }
  return runs;
}

namespace {

/// Whether a rank at other coordinates owns the whole tensor.
bool isOwnedElsewhere(const std::vector<Placement> &placements,
                      const std::vector<int64_t> &coords) {
  for (size_t axis = 0; axis < placements.size(); ++axis)
    if (placements[axis].kind == PlacementKind::Owned && placements[axis].owner != coords[axis])
      return true;
  return false;
}

/// The local shard's shape if flat and owned placements are ignored.
std::vector<int64_t> uncutShape(const std::vector<int64_t> &shape,
                                const std::vector<Placement> &placements, const Mesh &mesh,
                                const std::vector<int64_t> &coords) {
  std::vector<int64_t> result;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    result.push_back(
        totalLength(axisRuns(static_cast<int64_t>(axis), shape[axis], placements, mesh, coords)));
  return result;
}

} // namespace

std::vector<int64_t> localShape(const std::vector<int64_t> &shape,
                                const std::vector<Placement> &placements, const Mesh &mesh,
                                const std::vector<int64_t> &coords) {
  if (isOwnedElsewhere(placements, coords))
    return {0};
  std::vector<int64_t> uncut = uncutShape(shape, placements, mesh, coords);
  if (!hasFlat(placements))
    return uncut;
  Interval range = flatRange(placements, mesh, coords, elements(uncut));
  return {range.end - range.begin};
}

int64_t mostElements(const std::vector<int64_t> &shape, const std::vector<Placement> &placements,
                     const Mesh &mesh) {
  // Along axes that shard, the first rank has the most elements. Along flat axes any rank may have the
  // most.
  std::vector<int64_t> coords(placements.size(), 0);
  std::vector<size_t> flat;
  int64_t ranks = 1, most = 0;
  for (size_t axis = 0; axis < placements.size(); ++axis)
    if (placements[axis].kind == PlacementKind::Owned) {
      coords[axis] = placements[axis].owner;
    } else if (placements[axis].kind == PlacementKind::Flat) {
      flat.push_back(axis);
      ranks *= mesh.sizes[axis];
    }
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t rest = rank;
    for (size_t axis : flat) {
      coords[axis] = rest % mesh.sizes[axis];
      rest /= mesh.sizes[axis];
    }
    most = std::max(most, elements(localShape(shape, placements, mesh, coords)));
  }
  return most;
}

/// A value of sizes of its own, which is never cut: a matrix for each part of each matrix, one after another.
static std::vector<Rect> wholeMatrices(const Group &group, ValueKind kind) {
  View view = plan::view(group, kind);
  auto all = std::max<int64_t>(1, static_cast<int64_t>(group.division.parts.size()));
  int64_t own = group.parts.empty() ? all : static_cast<int64_t>(group.parts.size());
  std::vector<Rect> rects;
  for (int64_t block = 0, size = view.rows * view.cols; block < view.blocks; ++block) {
    int64_t part =
        group.parts.empty() ? block % own : group.parts[static_cast<size_t>(block % own)];
    rects.push_back(
        {block, 0, 0, view.rows, view.cols, (block / own * all + part) * size, view.cols});
  }
  return rects;
}

std::vector<Rect> rectangles(const Group &group, const Mesh &mesh, int64_t position, ValueKind kind,
                             plan::ShardsKind of) {
  if (of == plan::ShardsKind::LineSums)
    return rectangles(lineSums(group, kind), mesh, position, ValueKind::Full);
  if (!kind.isStored())
    return wholeMatrices(group, kind);
  KeptAxes kept = keptAxes(group, kind);
  std::vector<int64_t> coords = coordinates(mesh, position);
  const std::vector<Placement> &placements = group.placementsOf(of);
  if (isOwnedElsewhere(placements, coords))
    return {};
  auto runsOf = [&](size_t axis) {
    return axisRuns(static_cast<int64_t>(axis), group.shape[axis], placements, mesh, coords);
  };
  auto runsOfAll = [&](const std::vector<size_t> &axes) {
    if (axes.size() == 1)
      return runsOf(axes[0]);
    std::vector<Run> runs = wholeAxis(1);
    for (size_t axis : axes)
      runs = join(runs, runsOf(axis), group.shape[axis]);
    return runs;
  };
  std::vector<Run> rowRuns = runsOfAll(kept.rows), colRuns = runsOfAll(kept.cols);
  int64_t localRows = totalLength(rowRuns), localCols = totalLength(colRuns);
  // The runs of each of the group's parts along the divided axis. Empty if the blocks are whole matrices.
  bool columns = group.division.axis == plan::Division::Columns;
  std::vector<std::vector<Run>> parts;
  if (auto all = static_cast<int64_t>(group.division.parts.size())) {
    bool drops = (columns ? kept.cols : kept.rows).empty();
    std::vector<Run> &runs = columns ? colRuns : rowRuns;
    if (drops) {
      (columns ? localCols : localRows) = all;
      runs = wholeAxis(all);
    }
    for (int64_t part : group.parts)
      parts.push_back(drops ? std::vector<Run>{{0, part, 1}}
                            : within(runs, group.division.parts[static_cast<size_t>(part)]));
  }
  const std::vector<Run> &divided = columns ? colRuns : rowRuns;
  auto partOf = [&](int64_t part) -> const std::vector<Run> & {
    return parts.empty() ? divided : parts[static_cast<size_t>(part)];
  };
  std::vector<Rect> result;
  if (localRows == 0 || localCols == 0)
    return result;

  // The blocks that this rank holds, in the shard's order, as row-major indices over the batch axes.
  std::vector<int64_t> blocks{0};
  for (size_t axis : kept.leading) {
    std::vector<int64_t> next;
    std::vector<Run> runs = runsOf(axis);
    next.reserve(blocks.size() * static_cast<size_t>(totalLength(runs)));
    for (int64_t block : blocks)
      for (const Run &run : runs)
        for (int64_t i = 0; i < run.length; ++i)
          next.push_back(block * group.shape[axis] + run.global + i);
    blocks = std::move(next);
  }

  auto count = std::max<int64_t>(1, static_cast<int64_t>(parts.size()));
  int64_t base = 0;
  for (int64_t block : blocks) {
    for (int64_t part = 0; part < count; ++part)
      for (const Run &row : columns ? rowRuns : partOf(part))
        for (const Run &col : columns ? partOf(part) : colRuns)
          result.push_back({block * count + part, row.global, col.global, row.length, col.length,
                            base + row.local * localCols + col.local, localCols});
    base += localRows * localCols;
  }
  if (kind == ValueKind::Full && hasFlat(placements))
    return clip(result, flatRange(placements, mesh, coords, base));
  return result;
}

int64_t mostRectangles(const Group &group, int64_t limit) {
  auto product = [&](int64_t a, int64_t b) { return a != 0 && b > limit / a ? limit + 1 : a * b; };
  // `runs` is the most runs of a shard along each axis, `spans` the most ranges of a part.
  std::vector<int64_t> runs(group.shape.size(), 1);
  int64_t spans = 1;
  for (const std::vector<plan::Span> &part : group.division.parts)
    spans = std::max(spans, static_cast<int64_t>(part.size()));
  KeptAxes kept = keptAxes(group, ValueKind::Full);
  auto forPlacements = [&](auto visit) {
    for (auto *list : {&group.placements, &group.gradientPlacements, &group.statePlacements,
                       &group.reducedPlacements}) // lists that equal another one are empty
      for (const Placement &placement : *list)
        if (placement.isShard())
          visit(placement, static_cast<size_t>(placement.dim));
  };
  std::vector<size_t> isCut(group.shape.size(), 0);
  forPlacements([&](const Placement &placement, size_t axis) {
    isCut[axis] = 1;
    if (placement.kind != PlacementKind::Shard)
      runs[axis] =
          std::min(product(runs[axis], placement.factor), std::max<int64_t>(1, group.shape[axis]));
  });
  int64_t result = std::min(limit + 1, group.blocksPerParameter());
  for (auto [axes, divides] : {std::pair(&kept.rows, plan::Division::Rows),
                               std::pair(&kept.cols, plan::Division::Columns)}) {
    int64_t count = group.division.axis == divides ? spans : 1, extent = 1;
    for (size_t i = 0; i < axes->size(); ++i) {
      // If a further joined or flattened axis is cut, every index of the axes before it has runs of its own.
      size_t axis = (*axes)[i];
      int64_t size = std::max<int64_t>(1, group.shape[axis]);
      bool isCutBehind = std::any_of(axes->begin() + static_cast<int64_t>(i) + 1, axes->end(),
                                     [&](size_t behind) { return isCut[behind] != 0; });
      count = product(count, isCutBehind ? size : runs[axis]);
      extent = product(extent, size);
    }
    result = product(result, std::min(count, extent));
  }
  return result;
}

std::vector<int64_t> localStateShape(const Group &group, const Mesh &mesh, int64_t position,
                                     ValueKind kind) {
  const std::vector<Placement> &placements = group.placementsOf(plan::ShardsKind::State);
  std::vector<int64_t> coords = coordinates(mesh, position);
  if (!kind.isStored()) // it has no placements
    return {0};
  if (kind == ValueKind::Full || isOwnedElsewhere(placements, coords))
    return localShape(group.shape, placements, mesh, coords);
  return keptSizes(group, kind, uncutShape(group.shape, placements, mesh, coords));
}

std::vector<int64_t> stateShape(const Group &group, ValueKind kind) {
  if (kind.isStored())
    return keptSizes(group, kind, group.shape);
  // Values of other sizes have their blocks' leading axes, the parts of a division, and their own.
  std::vector<int64_t> shape = keptSizes(group, ValueKind::One, group.shape);
  View each = view(group, kind);
  shape.insert(shape.end(), {each.rows, each.cols});
  return shape;
}

std::vector<bool> replicatedAxes(const Group &group, ValueKind kind, plan::ShardsKind of) {
  if (of == plan::ShardsKind::LineParts || of == plan::ShardsKind::LineSums)
    kind = ValueKind::Full; // parts of a line differ, and each sum is on one rank
  KeptAxes kept = keptAxes(group, kind);
  std::vector<bool> result;
  for (const Placement &placement : group.placementsOf(of))
    result.push_back(placement.isShard() ? !keeps(kept, placement.dim)
                     : placement.kind == PlacementKind::Flat
                         ? kind != ValueKind::Full
                         : placement.kind == PlacementKind::Replicate);
  return result;
}

} // namespace stepc::geometry
