//===- Pipeline.cpp - comm → scheduled -------------------------------------===//

#include "passes/schedule/Passes.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

void stepc::schedule::buildSchedulePipeline(OpPassManager &manager) {
  // Once, on the way out of tensors; a copy is an error.
  manager.addPass(createBufferizeProgram());
  // Before places are decided: the order says what lives when.
  manager.addPass(createPipelineWaves());
  // Over all buffers together.
  manager.addPass(createAssignArena());
  // Follows the decision; past it there is no allocation.
  manager.addPass(createPlaceBuffers());
}

void stepc::schedule::registerSchedulePipeline() {
  PassPipelineRegistration<>("stepc-schedule", "comm → scheduled",
                             [](OpPassManager &manager) { buildSchedulePipeline(manager); });
}
