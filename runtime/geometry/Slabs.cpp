//===- Slabs.cpp - Blocks that are computed where their rows stand ---------===//

#include "runtime/geometry/Geometry.h"

#include <algorithm>
#include <map>

namespace stepc::geometry {

using plan::Division;
using plan::Group;
using plan::Mesh;
using plan::Placement;
using plan::PlacementKind;
using plan::Slabs;

/// Where a rectangle begins along an axis of its block, and its length along this axis.
static std::pair<int64_t, int64_t> alongAxis(const Rect &rect, Division::Axis axis) {
  return axis == Division::Rows ? std::pair(rect.row, rect.rows) : std::pair(rect.col, rect.cols);
}

std::vector<Run> slabRuns(std::span<const Rect> rects, Division::Axis axis) {
  std::vector<Run> runs;
  for (const Rect &rect : rects) {
    auto [begin, length] = alongAxis(rect, axis);
    runs.push_back({begin, 0, length});
  }
  std::sort(runs.begin(), runs.end(),
            [](const Run &a, const Run &b) { return a.global < b.global; });
  std::vector<Run> merged;
  for (const Run &run : runs) {
    if (merged.empty()) {
      merged.push_back(run);
      continue;
    }
    Run &last = merged.back();
    int64_t end = last.global + last.length;
    if (run.global <= end)
      last.length = std::max(end, run.global + run.length) - last.global;
    else
      merged.push_back({run.global, last.local + last.length, run.length});
  }
  return merged;
}

namespace {

/// The slab of one block on one rank.
struct Slab {
  int64_t position, block, length;
  bool isWhole; // it has all columns (rows) of its rows (columns)
};

} // namespace

/// Calls visit(slab) for each slab of each rank.
template <typename Visit>
static void forSlabs(const Group &group, const Mesh &mesh, Division::Axis axis, plan::ShardsKind of,
                     Visit visit) {
  int64_t across = axis == Division::Rows ? group.cols() : group.rows();
  for (int64_t position = 0; position < static_cast<int64_t>(mesh.ranks.size()); ++position) {
    std::vector<Rect> rects = rectangles(group, mesh, position, plan::ValueKind::Full, of);
    for (auto first = rects.begin(), end = first; first != rects.end(); first = end) {
      int64_t elements = 0;
      for (; end != rects.end() && end->block == first->block; ++end)
        elements += end->rows * end->cols;
      std::vector<Run> runs = slabRuns({first, end}, axis);
      int64_t length = runs.back().local + runs.back().length;
      if (elements > 0)
        visit(Slab{position, first->block, length, elements == length * across});
    }
  }
}

Slabs slabsOf(const Group &group, const Mesh &mesh, plan::ShardsKind of) {
  std::vector<Division::Axis> axes{Division::Columns, Division::Rows};
  if (group.rows() >= group.cols())
    std::swap(axes[0], axes[1]);
  plan::KeptAxes kept = plan::keptAxes(group, plan::ValueKind::Full);
  for (Division::Axis axis : axes) {
    Slabs slabs{axis, {}};
    const std::vector<size_t> &dims = axis == Division::Rows ? kept.rows : kept.cols;
    const std::vector<Placement> &placements = group.placementsOf(of);
    for (size_t i = 0; i < placements.size(); ++i) {
      bool cuts = placements[i].isShard()
                      ? std::ranges::count(dims, static_cast<size_t>(placements[i].dim)) > 0
                      : placements[i].kind == PlacementKind::Flat && axis == Division::Rows;
      if (mesh.sizes[i] > 1 && cuts)
        slabs.factors.push_back({static_cast<int64_t>(i), 1, mesh.sizes[i]});
    }
    if (slabs.factors.empty())
      continue;
    forSlabs(group, mesh, axis, of, [&](const Slab &slab) {
      slabs.longest = std::max(slabs.longest, slab.length);
      slabs.shortest = slabs.shortest ? std::min(slabs.shortest, slab.length) : slab.length;
    });
    return slabs;
  }
  return {};
}

std::string slabLengths(const Group &group, const Mesh &mesh, const Slabs &slabs,
                        plan::ShardsKind of) {
  std::vector<Slab> all;
  forSlabs(group, mesh, slabs.axis, of, [&](const Slab &slab) { all.push_back(slab); });
  if (all.empty())
    return "none";
  auto shortest = std::ranges::min_element(all, {}, &Slab::length);
  auto longest = std::ranges::max_element(all, {}, &Slab::length);
  auto on = [&](const Slab &slab) {
    return std::to_string(slab.length) + (slabs.axis == Division::Rows ? " rows" : " columns") +
           " on rank " + std::to_string(mesh.ranks[static_cast<size_t>(slab.position)]);
  };
  return on(*longest) + " and " + on(*shortest);
}

std::vector<std::vector<int64_t>> slabHolders(const Group &group, const Mesh &mesh,
                                              const Slabs &slabs, plan::ShardsKind of) {
  // The key is a position without its coordinates along the factors, and a block.
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> holders;
  forSlabs(group, mesh, slabs.axis, of, [&](const Slab &slab) {
    int64_t apart = slab.position - plan::along(mesh, slabs.factors, slab.position);
    holders[{apart, slab.block}].push_back(slab.position);
  });
  std::vector<std::vector<int64_t>> result;
  for (auto &[block, positions] : holders)
    result.push_back(std::move(positions));
  return result;
}

bool haveSameSlabs(const Group &group, const Mesh &mesh, const Slabs &slabs, plan::ShardsKind of) {
  size_t ranks = 1;
  for (const plan::Factor &factor : slabs.factors)
    ranks *= static_cast<size_t>(factor.size);
  return std::ranges::all_of(
      slabHolders(group, mesh, slabs, of),
      [&](const std::vector<int64_t> &positions) { return positions.size() == ranks; });
}

std::string checkSlabs(const Group &group, const Mesh &mesh, const Slabs &slabs,
                       plan::ShardsKind of) {
  bool isRows = slabs.axis == Division::Rows;
  std::string what = isRows ? "rows" : "columns";
  Slabs stand = slabsOf(group, mesh, of);
  if (stand.axis != slabs.axis || stand.factors != slabs.factors)
    return "expected the slabs of shards that cut the " + what + " of blocks, found placements " +
           toString(group.placementsOf(of));
  // The Gram matrix has the extent of the shorter side, so slabs must cut the longer one.
  int64_t rows = group.rows(), cols = group.cols();
  if (isRows ? rows < cols : cols < rows)
    return "expected shards that cut the longer side of blocks, found " + what + " of " +
           std::to_string(rows) + " x " + std::to_string(cols);
  const std::vector<Placement> &placements = group.placementsOf(of);
  std::optional<Slab> cut;
  forSlabs(group, mesh, slabs.axis, of, [&](const Slab &slab) {
    if (!slab.isWhole && !cut)
      cut = slab;
  });
  bool isFlat = std::ranges::any_of(
      placements, [](const Placement &each) { return each.kind == PlacementKind::Flat; });
  if (cut && isFlat)
    return "expected ranges of whole " + what + ", found a part of one of block " +
           std::to_string(cut->block) + " on rank " +
           std::to_string(mesh.ranks[static_cast<size_t>(cut->position)]);
  if (cut || !blocksAreWhole(group, mesh, slabs.factors, of))
    return "expected shards that cut blocks by " + what + " alone, found placements " +
           toString(placements);
  if (stand != slabs)
    return "expected slabs of " + std::to_string(stand.shortest) + " to " +
           std::to_string(stand.longest) + " " + what + ", found " +
           std::to_string(slabs.shortest) + " to " + std::to_string(slabs.longest);
  return {};
}

} // namespace stepc::geometry
