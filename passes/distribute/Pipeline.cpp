//===- Pipeline.cpp - decided → comm ---------------------------------------===//

#include "passes/distribute/Passes.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

void stepc::distribute::buildDistributePipeline(OpPassManager &manager,
                                                const DistributeOptions &options) {
  // The only pass that moves data between spaces.
  manager.addPass(createDistribute());
  // Before bufferization, so that scratch is planned like any buffer.
  OrthogonalizeToProductsOptions products;
  products.chip = options.chip;
  manager.addPass(createOrthogonalizeToProducts(products));
  // No CSE here: it would merge destinations (tensor.empty), and bufferization would then copy.
}

void stepc::distribute::registerDistributePipeline() {
  PassPipelineRegistration<>("stepc-distribute", "decided → comm",
                             [](OpPassManager &manager) { buildDistributePipeline(manager, {}); });
}
