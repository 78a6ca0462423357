//===- Pipeline.cpp - optim → decided --------------------------------------===//

#include "passes/decide/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void stepc::decide::buildRoutePipeline(OpPassManager &manager) {
  // Runs before routing, which erases frozen parameters: patterns of an optim.divide may match these, too.
  manager.addPass(createDivideParameters());
  manager.addPass(createRouteParameters());
}

void stepc::decide::buildDecidePipeline(OpPassManager &manager, const DecideOptions &options) {
  // Runs first, so that an unclaimed parameter is reported before anything else.
  buildRoutePipeline(manager);
  // Named ops become arithmetic, so that the cut may pass through them.
  manager.addPass(createExpandNamed());
  // Equal scalars then get one column of the scalar table, and unused scalars no column.
  manager.addPass(createCSEPass());
  // Needs routes, which may leave parameters out, and equal reductions of the model as one.
  manager.addPass(createExpandModel());
  // Works on rules as if no rank had more than a part of a block.
  manager.addPass(createCutSpaces());
  // Needs spaces: forces divide parameters into groups only if their rule has a matrix space.
  GroupParametersOptions groups;
  for (const std::string &force : options.strategies)
    groups.force.push_back(force);
  manager.addPass(createGroupParameters(groups));
  // Needs groups: their blocks have one size each.
  manager.addPass(createFoldConditions());
  // Needs groups: where lines are whole depends on placements.
  ReduceOnShardsOptions reductions;
  for (const std::string &force : options.strategies)
    reductions.force.push_back(force);
  manager.addPass(createReduceOnShards(reductions));
  // Needs spaces (has the rule a matrix space?) and groups.
  AssignStrategiesOptions strategies;
  for (const std::string &force : options.strategies)
    strategies.force.push_back(force);
  manager.addPass(createAssignStrategies(strategies));
  // Needs hops: states may stay only where blocks come to.
  manager.addPass(createPlaceStates());
  // Balances the owners of all groups together.
  manager.addPass(createBalanceOwners());
  // Runs last, because the workspace and time of a wave depend on the owners.
  AssignWavesOptions waves;
  waves.waves = options.waves;
  waves.targetBytes = options.targetBytes;
  manager.addPass(createAssignWaves(waves));
}

void stepc::decide::registerDecidePipeline() {
  PassPipelineRegistration<>("stepc-decide", "optim → decided",
                             [](OpPassManager &manager) { buildDecidePipeline(manager, {}); });
}
