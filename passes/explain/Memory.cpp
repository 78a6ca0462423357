//===- Memory.cpp - What each rank holds between steps ---------------------===//

#include "passes/explain/Explain.h"

#include "runtime/geometry/Geometry.h"
#include "runtime/plan/BlockStates.h"
#include "runtime/plan/Tables.h"

using namespace stepc;
using namespace stepc::explain;

/// The bytes of one parameter of a group, of its gradient and of its states on one rank of the mesh. States
/// that stay with blocks are left out.
static RankMemory memoryOf(const plan::Plan &plan, const plan::Group &group, int64_t position) {
  const plan::Mesh &mesh = plan.meshes[group.mesh];
  auto bytesOf = [&](plan::ShardsKind of, plan::DType type) {
    std::vector<int64_t> shape = geometry::localShape(group.shape, group.placementsOf(of), mesh,
                                                      geometry::coordinates(mesh, position));
    return geometry::elements(shape) * plan::byteSize(type);
  };
  RankMemory memory;
  if (!plan.isOfModel(group)) { // which has states alone
    memory.parameters = bytesOf(plan::ShardsKind::Parameter, group.parameterType);
    memory.gradients = bytesOf(plan::ShardsKind::Gradient, group.gradientType);
  }
  memory.states = plan::shardStateBytes(group, plan.rules[group.rule], mesh, position);
  return memory;
}

void explain::addMemory(const plan::Plan &plan, int64_t index, plan::Expander &expander,
                        Report &report, GroupReport &out) {
  const plan::Group &group = plan.groups[index];
  int64_t blockBytes = plan::blockStateBytes(group, plan.rules[group.rule]);
  for (int64_t number : group.blockStates)
    out.blockStates.push_back(plan.rules[group.rule].states[number].name);
  int64_t parameters = llvm::count_if(
      plan.parameters, [&](const plan::Parameter &one) { return one.group == index; });
  const std::vector<int64_t> &ranks = plan.meshes[group.mesh].ranks;
  std::vector<RankMemory> ofGroup, ofBlocks;
  for (auto [position, global] : llvm::enumerate(ranks)) {
    RankMemory one = memoryOf(plan, group, int64_t(position));
    int64_t rank = llvm::lower_bound(report.world, global) - report.world.begin();
    int64_t blocks = blockBytes ? int64_t(expander.computedOf(index, rank).size()) : 0;
    ofBlocks.push_back({0, 0, blocks * blockBytes});
    const RankMemory &own =
        ofGroup.emplace_back(RankMemory{one.parameters * parameters, one.gradients * parameters,
                                        one.states * parameters + blocks * blockBytes});
    RankMemory &all = report.memory[rank];
    all.parameters += own.parameters;
    all.gradients += own.gradients;
    all.states += own.states;
  }
  out.stateBytes = rangeOf(ofGroup, &RankMemory::states);
  out.blockStateBytes = rangeOf(ofBlocks, &RankMemory::states);
}

explain::Range explain::rangeOf(llvm::ArrayRef<RankMemory> ranks, int64_t RankMemory::*bytes) {
  Range range{INT64_MAX, 0};
  for (const RankMemory &rank : ranks)
    range = {std::min(range.least, rank.*bytes), std::max(range.most, rank.*bytes)};
  return range;
}
