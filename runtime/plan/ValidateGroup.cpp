//===- ValidateGroup.cpp - Who holds and meets, and whether blocks come together -===//

#include "runtime/geometry/Geometry.h"
#include "runtime/plan/Checks.h"

#include <algorithm>

namespace stepc::plan {

// Far above any device's memory: 256 GiB of f32.
static constexpr int64_t kMaxHeld = int64_t(1) << 36;

Check checkValue(const Group &group, ValueKind kind) {
  for (int64_t extent : {kind.rows, kind.cols})
    if (extent <= ValueKind::ofSize(static_cast<int64_t>(group.sizes.size())))
      return "expected sizes of the group, which has " + std::to_string(group.sizes.size()) +
             ", found " + name(kind);
  View of = view(group, kind);
  if (of.rows == 0 || of.cols <= kMaxHeld / of.rows)
    return {};
  return "expected at most " + std::to_string(kMaxHeld) +
         " elements in a value of a block, found " + std::to_string(of.rows) + " x " +
         std::to_string(of.cols);
}

Check checkHeld(const Plan &plan, const Group &group) {
  const Mesh &mesh = plan.meshes[static_cast<size_t>(group.mesh)];
  std::string expected = "expected at most " + std::to_string(kMaxHeld) + " elements ";
  if (group.computes && group.rows() * group.cols() > kMaxHeld)
    return expected + "in a block, found " + std::to_string(group.rows() * group.cols());
  for (ShardsKind kind :
       {ShardsKind::Parameter, ShardsKind::Gradient, ShardsKind::State, ShardsKind::Reduced}) {
    int64_t count = static_cast<int64_t>(group.parameters.size()) *
                    geometry::mostElements(group.shape, group.placementsOf(kind), mesh);
    if (count > kMaxHeld)
      return expected + "on one rank, found " + std::to_string(count);
  }
  return {};
}

Check checkCommunicator(const Plan &plan, const Communicator &communicator) {
  if (communicator.mesh == -1)
    return communicator.factors.empty() ? Check()
                                        : "expected no factors of the world, found " +
                                              std::to_string(communicator.factors.size());
  if (!inside(communicator.mesh, plan.meshes))
    return outside("mesh", communicator.mesh, plan.meshes);
  const Mesh &mesh = at(plan.meshes, communicator.mesh);
  for (const Group &group : plan.groups)
    if (group.mesh == communicator.mesh)
      return checkFactors(mesh, communicator.factors);
  return "expected a communicator of a mesh that some group uses, found mesh " + mesh.name;
}

Check checkHops(const Plan &plan, const Group &group) {
  const Mesh &mesh = plan.meshes[static_cast<size_t>(group.mesh)];
  if (!group.computes)
    return group.hops.empty() && group.slabs == Slabs()
               ? Check()
               : "expected no hops and no slabs where nothing is computed, found " +
                     std::to_string(group.hops.size()) + " hops";
  if (group.flatten == 0 && static_cast<int64_t>(group.shape.size()) > group.batchAxes + 2)
    return "expected a matrix and " + std::to_string(group.batchAxes) +
           " batch axes of what is computed in matrix space, found " +
           std::to_string(group.shape.size()) + " axes";
  for (const Hop &hop : group.hops) {
    int64_t count = hop.owned.empty() ? 0 : group.blockCount();
    if (static_cast<int64_t>(hop.base.size()) != count)
      return "expected " + std::to_string(count) + " positions for the blocks of a hop, found " +
             std::to_string(hop.base.size());
    for (int64_t base : hop.base)
      if (!inside(base, mesh.ranks))
        return outside("position in mesh " + mesh.name, base, mesh.ranks);
  }
  std::vector<Factor> resolved = resolvedFactors(group.hops, group.hops.size());
  if (Check wrong = checkFactors(mesh, resolved); !wrong.empty())
    return wrong;
  const Rule &rule = at(plan.rules, group.rule);
  ShardsKind home = plan::home(group, rule).whose();
  std::vector<ValueKind> states;
  for (const State &state : rule.states)
    if (state.kind.isLine())
      states.push_back(state.kind);
  if (group.slabs != Slabs() && plan.numerics != "fast")
    return "expected slabs in fast numerics alone, found some in " + plan.numerics + " ones";
  if (group.slabs != Slabs())
    return group.hops.empty() ? geometry::checkSlabs(group, mesh, group.slabs, home)
                              : "expected no hops of a group with slabs, found " +
                                    std::to_string(group.hops.size());
  if (geometry::blocksAreWhole(group, mesh, resolved, home, states))
    return {};
  std::string left;
  for (size_t axis = 0; axis < mesh.sizes.size(); ++axis) {
    // These factors resolve all other axes.
    std::vector<Factor> along = resolved;
    for (const Factor &other : wholeAxes(mesh))
      if (other.axis != static_cast<int64_t>(axis)) {
        std::erase_if(along, [&](const Factor &factor) { return factor.axis == other.axis; });
        along.push_back(other);
      }
    if (!geometry::blocksAreWhole(group, mesh, along, home, states))
      left += (left.empty() ? "" : " and ") + mesh.axes[axis];
  }
  return "expected whole blocks on every rank after its hops, found blocks cut along " + left +
         " of mesh " + mesh.name;
}

} // namespace stepc::plan
