//===- Communicators.cpp - Which ranks meet in a move ----------------------===//

#include "passes/distribute/Communicators.h"

#include "runtime/geometry/Geometry.h"

#include <tuple>

using namespace mlir;
using namespace stepc;
using namespace stepc::distribute;
using comm::Distribution;
using plan::Factor;

/// Sorts factors, drops those of size 1 and merges those that adjoin on an axis. Equal sets of ranks then
/// have equal lists.
static std::vector<Factor> joined(std::vector<Factor> factors) {
  llvm::erase_if(factors, [](const Factor &factor) { return factor.size == 1; });
  llvm::sort(factors, [](const Factor &a, const Factor &b) {
    return std::tie(a.axis, a.stride) < std::tie(b.axis, b.stride);
  });
  std::vector<Factor> result;
  for (const Factor &factor : factors) {
    Factor *last = result.empty() ? nullptr : &result.back();
    if (last && last->axis == factor.axis && last->stride * last->size == factor.stride)
      last->size *= factor.size;
    else
      result.push_back(factor);
  }
  return result;
}

/// The factors along which elements travel from shards by one list of placements to shards by another. No
/// element travels along an axis of the mesh
/// - that replicates the shards of `from`, because every rank along it already has the elements;
/// - that splits an axis of the tensor equally in both lists, if all mesh axes before it do so, too;
/// - along which both lists name the same owner, or which is flat in two equal lists.
/// Contributions to a partial gradient go to all ranks along their axis.
static std::vector<Factor> betweenShards(const plan::Mesh &mesh,
                                         const std::vector<plan::Placement> &from,
                                         const std::vector<plan::Placement> &to) {
  std::vector<Factor> factors = plan::wholeAxes(mesh), result;
  for (const Factor &axis : factors) {
    const plan::Placement &here = from[axis.axis];
    if (here.kind == plan::PlacementKind::Replicate)
      continue;
    bool alike = here.kind == plan::PlacementKind::Flat ? from == to : !here.isPartial();
    for (int64_t before = 0; here.isShard() && before <= axis.axis; ++before) {
      const plan::Placement &a = from[before], &b = to[before];
      auto splits = [&](const plan::Placement &placement) {
        return placement.isShard() && placement.dim == here.dim;
      };
      alike &= a == b || !(splits(a) || splits(b));
    }
    // In `to` the mesh axis may have another placement.
    if (!alike || to[axis.axis] != here)
      result.push_back(axis);
  }
  return result;
}

std::vector<Factor> distribute::factorsOf(const plan::Group &group, const plan::Mesh &mesh,
                                          Distribution home, Distribution from, Distribution to) {
  if (from.isShards() && to.isShards())
    return joined(
        betweenShards(mesh, group.placementsOf(from.whose()), group.placementsOf(to.whose())));
  if (from.isSummed())
    return joined(group.slabs.factors);
  int64_t first = from.level(group), last = to.level(group);
  std::vector<Factor> factors;
  for (int64_t level = std::min(first, last); level < std::max(first, last); ++level) {
    const plan::Hop &hop = group.hops[level];
    llvm::append_range(factors, hop.owned);
    // On the way back, results are already on all ranks along a replicated factor.
    if (first < last)
      llvm::append_range(factors, hop.replicated);
  }
  // On the way there, each replica of the shards brings its own pieces together.
  const std::vector<plan::Placement> &placements = group.placementsOf(home.whose());
  if (first < last)
    llvm::erase_if(factors, [&](const Factor &factor) {
      return placements[factor.axis].kind == plan::PlacementKind::Replicate;
    });
  return joined(std::move(factors));
}

bool distribute::meetAlong(ArrayRef<Factor> factors, ArrayRef<Factor> communicator) {
  std::vector<Factor> ranks = joined(communicator.vec());
  return llvm::all_of(joined(factors.vec()), [&](const Factor &factor) {
    return llvm::any_of(ranks, [&](const Factor &in) {
      return in.axis == factor.axis && factor.stride % in.stride == 0 &&
             in.stride * in.size % (factor.stride * factor.size) == 0;
    });
  });
}

std::vector<Factor> distribute::factorsOfLines(const plan::Group &group, const plan::Mesh &mesh,
                                               plan::ValueKind kind) {
  return joined(geometry::lineFactors(group, mesh, kind));
}

Value Communicators::get(OpBuilder &builder, Location loc, FlatSymbolRefAttr mesh,
                         ArrayRef<Factor> factors) {
  auto ranks = comm::CommunicatorAttr::get(builder.getContext(), mesh, factors);
  Value &value = made[ranks];
  if (!value)
    value = comm::CommunicatorOp::create(builder, loc,
                                         comm::CommunicatorType::get(builder.getContext()), ranks);
  return value;
}
