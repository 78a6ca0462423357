//===- Pipeline.cpp - optim → decided --------------------------------------===//

#include "passes/decide/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void stepc::decide::buildRoutePipeline(OpPassManager &manager) {
  // Stands before routes, which erase the names of frozen parameters: patterns of blocks also count these.
  manager.addPass(createDivideParameters());
  manager.addPass(createRouteParameters());
}

void stepc::decide::buildDecidePipeline(OpPassManager &manager, const DecideOptions &options) {
  // Stands early, so that an unclaimed parameter is reported before anything else.
  buildRoutePipeline(manager);
  // Named ops become arithmetic, so that the cut may pass through them.
  manager.addPass(createExpandNamed());
  // Equal scalars become one column of the scalar table, and dead ones none.
  manager.addPass(createCSEPass());
  // On rules alone: does not depend on parameters.
  manager.addPass(createCutSpaces());
  // Needs spaces: a force tells parameters apart only if there is something to exchange.
  GroupParametersOptions groups;
  for (const std::string &force : options.strategies)
    groups.force.push_back(force);
  manager.addPass(createGroupParameters(groups));
  // Needs spaces (has the rule a matrix space?) and groups.
  AssignStrategiesOptions strategies;
  for (const std::string &force : options.strategies)
    strategies.force.push_back(force);
  manager.addPass(createAssignStrategies(strategies));
  // Over all owner groups together.
  manager.addPass(createBalanceOwners());
  // Last: what a wave needs depends on the owners.
  AssignWavesOptions waves;
  waves.waves = options.waves;
  manager.addPass(createAssignWaves(waves));
}

void stepc::decide::registerDecidePipeline() {
  PassPipelineRegistration<>("stepc-decide", "optim → decided",
                             [](OpPassManager &manager) { buildDecidePipeline(manager, {}); });
}
