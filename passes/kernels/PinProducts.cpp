//===- PinProducts.cpp - Products by algorithms of a table ------------------===//

#include "passes/kernels/Passes.h"
#include "passes/kernels/PinnedProducts.h"
#include "passes/kernels/Target.h"

#include "mlir/IR/Remarks.h"

namespace stepc::kernels {
#define GEN_PASS_DEF_PINPRODUCTS
#include "passes/kernels/Passes.h.inc"

namespace {
using namespace mlir;

struct PinProducts : impl::PinProductsBase<PinProducts> {
  LogicalResult run(ModuleOp module) {
    FailureOr<ArrayAttr> table = tableOfModule(module);
    if (failed(table))
      return failure();
    if (!*table)
      return success();
    FailureOr<std::unique_ptr<Target>> target = targetOfModule(module);
    if (failed(target))
      return failure();
    if (!(*target)->libraryChip())
      return module.emitError("expected a target whose products a library may make beside ")
             << exec::kProductsAttr << ", found '" << (*target)->chip() << "'";
    module->removeAttr(exec::kProductsAttr);
    for (auto program : module.getOps<exec::ProgramOp>())
      pinAll(module, program, *table, **target);
    return success();
  }

  static void pinAll(ModuleOp module, exec::ProgramOp program, ArrayAttr table,
                     const Target &target) {
    int64_t most = mostWorkspace(module, program.getArena()), scratch = program.getScratch();
    for (auto product : program.getBody().getOps<exec::ProductOp>()) {
      Pinning found = pin(table, shapeOf(product), *target.libraryChip(), most);
      auto options = remark::RemarkOpts::name(found.algorithms.empty() ? "product-by-kernel"
                                                                       : "product-pinned")
                         .category("exec-pin-products");
      if (found.algorithms.empty()) {
        remark::missed(product.getLoc(), options) << remark::reason("{0}", found.refusal);
        continue;
      }
      SmallVector<Attribute> algorithms(found.algorithms.begin(), found.algorithms.end());
      product.setPinnedAttr(ArrayAttr::get(module.getContext(), algorithms));
      remark::passed(product.getLoc(), options)
          << remark::metric("algorithms", int64_t(algorithms.size()));
      for (exec::PinnedAlgorithmAttr algorithm : found.algorithms)
        scratch = std::max(scratch, scratchOf(algorithm.getValue().workspaceBytes));
    }
    program.setScratch(scratch);
  }

  void runOnOperation() override {
    if (failed(run(getOperation())))
      signalPassFailure();
  }
};

} // namespace
} // namespace stepc::kernels
