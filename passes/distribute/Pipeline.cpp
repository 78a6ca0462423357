//===- Pipeline.cpp - decided → comm ---------------------------------------===//

#include "passes/distribute/Passes.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

void stepc::distribute::buildDistributePipeline(OpPassManager &manager) {
  // The only pass that moves data between spaces.
  manager.addPass(createDistribute());
  // Runs before bufferization, so that the buffers of iterates are planned like all other buffers.
  manager.addPass(createExpandMatrix());
  // No CSE here: it would merge destinations (tensor.empty), and bufferization would then copy.
}

void stepc::distribute::registerDistributePipeline() {
  PassPipelineRegistration<>("stepc-distribute", "decided → comm", buildDistributePipeline);
}
