//===- Pipeline.cpp - comm → scheduled -------------------------------------===//

#include "passes/schedule/Passes.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

void stepc::schedule::buildSchedulePipeline(OpPassManager &manager) {
  // Bufferizes the whole program once. A copy is an error.
  manager.addPass(createBufferizeProgram());
  // Runs before offsets are decided, because the order says when buffers live.
  manager.addPass(createPipelineWaves());
  // Decides the offsets of all buffers together.
  manager.addPass(createAssignArena());
  // Replaces all allocations by the parts of the workspace that were decided.
  manager.addPass(createPlaceBuffers());
}

void stepc::schedule::registerSchedulePipeline() {
  PassPipelineRegistration<>("stepc-schedule", "comm → scheduled",
                             [](OpPassManager &manager) { buildSchedulePipeline(manager); });
}
