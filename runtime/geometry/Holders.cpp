//===- Holders.cpp - Which ranks hold what, and whether it is whole --------===//

#include "runtime/geometry/Geometry.h"

#include <algorithm>

namespace stepc::geometry {

using plan::Group;
using plan::Mesh;
using plan::Placement;
using plan::PlacementKind;
using plan::ValueKind;

namespace {

/// Whether the rectangles `held` have all elements of `wanted`. The caller passes disjoint rectangles,
/// ordered by block.
bool cover(const std::vector<Rect> &held, const std::vector<Rect> &wanted) {
  auto begin = held.begin();
  for (const Rect &rect : wanted) {
    while (begin != held.end() && begin->block < rect.block)
      ++begin;
    int64_t left = rect.rows * rect.cols;
    for (auto each = begin; each != held.end() && each->block == rect.block; ++each) {
      int64_t rows =
          std::min(each->row + each->rows, rect.row + rect.rows) - std::max(each->row, rect.row);
      int64_t cols =
          std::min(each->col + each->cols, rect.col + rect.cols) - std::max(each->col, rect.col);
      left -= std::max<int64_t>(rows, 0) * std::max<int64_t>(cols, 0);
    }
    if (left > 0)
      return false;
  }
  return true;
}

} // namespace

bool holdsAll(const Group &group, const Mesh &mesh, plan::ShardsKind from, plan::ShardsKind to) {
  if (from == plan::ShardsKind::Gradient && plan::contributions(group, mesh).count > 1)
    return false; // ranks hold contributions to the sum
  const std::vector<Placement> &wanted = group.placementsOf(to);
  for (int64_t position = 0; position < static_cast<int64_t>(mesh.ranks.size()); ++position) {
    std::vector<int64_t> coords = coordinates(mesh, position);
    if (elements(localShape(group.shape, wanted, mesh, coords)) > 0 &&
        !cover(rectangles(group, mesh, position, ValueKind::Full, from),
               rectangles(group, mesh, position, ValueKind::Full, to)))
      return false;
  }
  return true;
}

std::vector<Placement> reducedPlacements(const Group &group, const Mesh &mesh,
                                         plan::ShardsKind home) {
  const std::vector<Placement> &gradient = group.placementsOf(plan::ShardsKind::Gradient);
  std::vector<Placement> result = group.placementsOf(home);
  bool isPartial = false, mayCut = true;
  for (size_t axis = 0; axis < result.size(); ++axis) {
    isPartial |= gradient[axis].isPartial();
    // Cuts that are the ranges of several axes together are not cut further. Then each replica adds up all
    // its elements.
    const std::vector<int64_t> &cuts = result[axis].cuts;
    mayCut &= cuts.empty() || static_cast<int64_t>(cuts.size()) == mesh.sizes[axis] + 1;
  }
  for (size_t axis = 0; axis < result.size() && mayCut; ++axis)
    if (gradient[axis].isPartial() && mesh.sizes[axis] > 1 &&
        result[axis].kind == PlacementKind::Replicate)
      result[axis] = {PlacementKind::Flat};
  return isPartial ? result : std::vector<Placement>();
}

std::vector<std::vector<int64_t>> heldElements(const Group &group, const Mesh &mesh,
                                               plan::ShardsKind of) {
  std::vector<std::vector<int64_t>> held;
  auto blocks = static_cast<size_t>(group.blocksPerParameter());
  for (int64_t position = 0; position < static_cast<int64_t>(mesh.ranks.size()); ++position) {
    std::vector<int64_t> &areas = held.emplace_back(blocks, 0);
    for (const Rect &rect : rectangles(group, mesh, position, ValueKind::Full, of))
      areas[static_cast<size_t>(rect.block)] += rect.rows * rect.cols;
  }
  return held;
}

bool blocksAreWhole(const Group &group, const Mesh &mesh, const std::vector<plan::Factor> &resolved,
                    plan::ShardsKind of, const std::vector<ValueKind> &states,
                    const std::vector<std::vector<int64_t>> *held) {
  auto firstMatrixAxis =
      static_cast<int64_t>(plan::keptAxes(group, ValueKind::Full).leading.size());
  std::vector<int64_t> left = mesh.sizes;
  for (const plan::Factor &factor : resolved)
    left[static_cast<size_t>(factor.axis)] /= factor.size;
  const std::vector<Placement> &placements = group.placementsOf(of);
  bool cuts = false;
  for (size_t axis = 0; axis < placements.size(); ++axis)
    if (const Placement &placement = placements[axis]; left[axis] > 1)
      cuts |= placement.kind == PlacementKind::Flat ||
              (placement.isShard() && placement.dim >= firstMatrixAxis);
  if (!cuts)
    return true;
  std::vector<bool> full = replicatedAxes(group, ValueKind::Full, of);
  for (ValueKind kind : states) {
    std::vector<bool> copied = replicatedAxes(group, kind, of);
    for (size_t axis = 0; axis < copied.size(); ++axis)
      if (left[axis] > 1 && copied[axis] && !full[axis])
        return false;
  }
  // Per position with coordinate 0 along the `resolved` factors: the elements of each block that come
  // together there, counted in one replica.
  std::vector<std::vector<int64_t>> found;
  if (!held) {
    found = heldElements(group, mesh, of);
    held = &found;
  }
  std::vector<plan::Factor> copies = resolved;
  std::erase_if(copies, [&](const plan::Factor &f) { return !full[static_cast<size_t>(f.axis)]; });
  std::vector<std::vector<int64_t>> together(held->size());
  for (size_t position = 0; position < held->size(); ++position) {
    auto at = static_cast<int64_t>(position);
    if (plan::along(mesh, copies, at) != 0)
      continue;
    auto &areas = together[position - static_cast<size_t>(plan::along(mesh, resolved, at))];
    areas.resize((*held)[position].size(), 0);
    for (size_t block = 0; block < areas.size(); ++block)
      areas[block] += (*held)[position][block];
  }
  int64_t whole = group.rows() * group.cols();
  return std::all_of(together.begin(), together.end(), [&](const std::vector<int64_t> &areas) {
    return std::all_of(areas.begin(), areas.end(),
                       [&](int64_t area) { return area == 0 || area == whole; });
  });
}

} // namespace stepc::geometry
