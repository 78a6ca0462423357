//===- Lines.cpp - Lines of which several ranks have parts ----------------===//

#include "runtime/geometry/Geometry.h"

#include <algorithm>

namespace stepc::geometry {

using plan::Group;
using plan::Mesh;
using plan::Placement;
using plan::PlacementKind;
using plan::ShardsKind;
using plan::ValueKind;

namespace {

/// The most elements that one exact sum of a block should take in, and the most sums of a block on a rank:
/// enough to keep a processor's cores busy.
constexpr int64_t kSumElements = int64_t(1) << 17, kMostSums = 64;

} // namespace

std::vector<plan::Factor> lineFactors(const Group &group, const Mesh &mesh, ValueKind kind) {
  std::vector<bool> copies = replicatedAxes(group, kind, ShardsKind::State),
                    copiesFull = replicatedAxes(group, ValueKind::Full, ShardsKind::State);
  std::vector<plan::Factor> factors = plan::wholeAxes(mesh);
  std::erase_if(factors, [&](const plan::Factor &factor) {
    auto axis = static_cast<size_t>(factor.axis);
    return factor.size == 1 || !copies[axis] || copiesFull[axis];
  });
  return factors;
}

int64_t linePartCount(const Group &group, const Mesh &mesh, ValueKind kind) {
  int64_t count = 1;
  for (const plan::Factor &factor : lineFactors(group, mesh, kind))
    count *= factor.size;
  return count;
}

int64_t numberAlong(const Mesh &mesh, const std::vector<plan::Factor> &factors, int64_t position) {
  std::vector<int64_t> coords = coordinates(mesh, position);
  int64_t number = 0;
  for (const plan::Factor &factor : factors)
    number = number * factor.size +
             coords[static_cast<size_t>(factor.axis)] / factor.stride % factor.size;
  return number;
}

int64_t sumsPerValue(const Group &group, const Mesh &mesh, ValueKind kind) {
  if (kind != ValueKind::One)
    return 1;
  View block = view(group, ValueKind::Full);
  return sumsFor(block.rows * block.cols / linePartCount(group, mesh, kind));
}

int64_t sumsFor(int64_t elements) {
  return std::clamp<int64_t>(elements / kSumElements, 1, kMostSums);
}

Group lineSums(const Group &group, ValueKind kind) {
  plan::KeptAxes kept = plan::keptAxes(group, kind);
  auto keeps = [&](size_t axis) {
    auto in = [&](const std::vector<size_t> &axes) {
      return std::find(axes.begin(), axes.end(), axis) != axes.end();
    };
    return in(kept.leading) || in(kept.rows) || in(kept.cols);
  };
  Group sums = group;
  for (size_t axis = 0; axis < sums.shape.size(); ++axis)
    sums.shape[axis] = keeps(axis) ? sums.shape[axis] : 1;
  sums.placements = group.placementsOf(ShardsKind::State);
  for (Placement &placement : sums.placements)
    if (placement.kind == PlacementKind::Flat ||
        (placement.isShard() && !keeps(static_cast<size_t>(placement.dim))))
      placement = {PlacementKind::Flat};
  sums.gradientPlacements.clear();
  sums.statePlacements.clear();
  sums.reducedPlacements.clear();
  return sums;
}

std::string checkLines(const Group &group, const Mesh &mesh, ValueKind kind, bool mayBeWhole) {
  if (kind != ValueKind::Rows && kind != ValueKind::Cols && kind != ValueKind::One)
    return "expected rows, cols or one values, found " + plan::name(kind);
  if (!group.division.parts.empty() || group.joined > 0)
    return "expected matrices that are neither divided nor joined, found some";
  View block = view(group, ValueKind::Full);
  if (block.rows * block.cols == 0 || view(group, kind).blocks != block.blocks)
    return "expected a value of each block that is not empty, found others";
  if (!mayBeWhole && linePartCount(group, mesh, kind) == 1)
    return "expected lines of which several ranks have parts, found whole ones";
  return {};
}

} // namespace stepc::geometry
