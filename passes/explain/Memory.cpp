//===- Memory.cpp - What each rank holds between steps ---------------------===//

#include "passes/explain/Explain.h"

#include "runtime/geometry/Geometry.h"

using namespace stepc;
using namespace stepc::explain;

/// The bytes of one parameter of a group, of its gradient and of its states on one rank of the mesh.
static RankMemory memoryOf(const plan::Plan &plan, const plan::Group &group, int64_t position) {
  const plan::Mesh &mesh = plan.meshes[group.mesh];
  auto bytesOf = [&](plan::ShardsKind of, plan::DType type) {
    std::vector<int64_t> shape = geometry::localShape(group.shape, group.placementsOf(of), mesh,
                                                      geometry::coordinates(mesh, position));
    return geometry::elements(shape) * plan::byteSize(type);
  };
  RankMemory memory;
  memory.parameters = bytesOf(plan::ShardsKind::Parameter, group.parameterType);
  memory.gradients = bytesOf(plan::ShardsKind::Gradient, group.gradientType);
  for (const plan::State &state : plan.rules[group.rule].states)
    if (plan::stateExists(group, state))
      memory.states +=
          geometry::elements(geometry::localStateShape(group, mesh, position, state.kind)) *
          plan::byteSize(state.dtype);
  return memory;
}

explain::Range explain::addMemory(const plan::Plan &plan, int64_t index, Report &report) {
  const plan::Group &group = plan.groups[index];
  int64_t parameters = llvm::count_if(
      plan.parameters, [&](const plan::Parameter &one) { return one.group == index; });
  const std::vector<int64_t> &ranks = plan.meshes[group.mesh].ranks;
  std::vector<RankMemory> ofGroup;
  for (auto [position, global] : llvm::enumerate(ranks)) {
    RankMemory one = memoryOf(plan, group, int64_t(position));
    const RankMemory &own = ofGroup.emplace_back(RankMemory{
        one.parameters * parameters, one.gradients * parameters, one.states * parameters});
    RankMemory &all = report.memory[llvm::lower_bound(report.world, global) - report.world.begin()];
    all.parameters += own.parameters;
    all.gradients += own.gradients;
    all.states += own.states;
  }
  return rangeOf(ofGroup, &RankMemory::states);
}

explain::Range explain::rangeOf(llvm::ArrayRef<RankMemory> ranks, int64_t RankMemory::*bytes) {
  Range range{INT64_MAX, 0};
  for (const RankMemory &rank : ranks)
    range = {std::min(range.least, rank.*bytes), std::max(range.most, rank.*bytes)};
  return range;
}
