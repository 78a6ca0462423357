//===- Slabs.cpp - Blocks that are computed where their rows stand ---------===//

#include "runtime/geometry/Geometry.h"

#include <algorithm>

namespace stepc::geometry {

using plan::Division;
using plan::Group;
using plan::Mesh;
using plan::Placement;
using plan::Slabs;

/// The axis of the tensor that has the rows (columns) of its matrices.
static int64_t tensorAxis(const Group &group, Division::Axis axis) {
  return static_cast<int64_t>(group.shape.size()) - (axis == Division::Rows ? 2 : 1);
}

Slabs slabsOf(const Group &group, const Mesh &mesh, plan::ShardsKind of) {
  if (static_cast<int64_t>(group.shape.size()) != group.batchAxes + 2)
    return {};
  std::vector<Division::Axis> axes{Division::Columns, Division::Rows};
  if (group.rows() > group.cols())
    std::swap(axes[0], axes[1]);
  for (Division::Axis axis : axes) {
    Slabs slabs{axis, {}};
    const std::vector<Placement> &placements = group.placementsOf(of);
    for (size_t i = 0; i < placements.size(); ++i)
      if (mesh.sizes[i] > 1 && placements[i].isShard() &&
          placements[i].dim == tensorAxis(group, axis))
        slabs.factors.push_back({static_cast<int64_t>(i), 1, mesh.sizes[i]});
    if (!slabs.factors.empty())
      return slabs;
  }
  return {};
}

std::string slabLengths(const Group &group, const Mesh &mesh, const Slabs &slabs,
                        plan::ShardsKind of) {
  int64_t extent = slabs.axis == Division::Rows ? group.rows() : group.cols();
  std::vector<int64_t> all; // per position
  for (int64_t position = 0; position < static_cast<int64_t>(mesh.ranks.size()); ++position) {
    all.push_back(0);
    for (const Run &run : axisRuns(tensorAxis(group, slabs.axis), extent, group.placementsOf(of),
                                   mesh, coordinates(mesh, position)))
      all.back() += run.length;
  }
  auto longest = std::max_element(all.begin(), all.end());
  auto shortest = std::min_element(all.begin(), all.end());
  auto on = [&](auto which) {
    return std::to_string(*which) + (slabs.axis == Division::Rows ? " rows" : " columns") +
           " on rank " + std::to_string(mesh.ranks[static_cast<size_t>(which - all.begin())]);
  };
  return on(longest) + " and " + on(shortest);
}

std::string checkSlabs(const Group &group, const Mesh &mesh, const Slabs &slabs,
                       plan::ShardsKind of) {
  bool isRows = slabs.axis == Division::Rows;
  std::string what = isRows ? "rows" : "columns";
  if (!group.division.parts.empty())
    return "expected whole matrices, found divided ones";
  if (slabsOf(group, mesh, of) != slabs)
    return "expected the slabs of shards that cut the " + what + " of blocks, found placements " +
           toString(group.placementsOf(of));
  // The shorter side is what the Gram matrix has.
  int64_t rows = group.rows(), cols = group.cols();
  if (isRows ? rows < cols : cols < rows)
    return "expected shards that cut the longer side of blocks, found " + what + " of " +
           std::to_string(rows) + " x " + std::to_string(cols);
  if (!blocksAreWhole(group, mesh, slabs.factors, of))
    return "expected shards that cut blocks by " + what + " alone, found placements " +
           toString(group.placementsOf(of));
  int64_t axis = tensorAxis(group, slabs.axis), extent = isRows ? rows : cols;
  for (int64_t position = 0; position < static_cast<int64_t>(mesh.ranks.size()); ++position) {
    std::vector<Run> runs =
        axisRuns(axis, extent, group.placementsOf(of), mesh, coordinates(mesh, position));
    if (runs.size() > 1)
      return "expected slabs of one run of " + what + ", found " + std::to_string(runs.size()) +
             " runs on rank " + std::to_string(mesh.ranks[static_cast<size_t>(position)]);
  }
  return {};
}

} // namespace stepc::geometry
