//===- JoinProducts.cpp - One launch for products of one kernel ------------===//

#include "dialects/exec/Exec.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/Target.h"

namespace stepc::kernels {
#define GEN_PASS_DEF_JOINPRODUCTS
#include "passes/kernels/Passes.h.inc"

namespace {
using namespace mlir;

/// Whether one product writes what the other reads or writes.
bool depend(exec::ProductOp a, exec::ProductOp b) {
  auto touches = [](exec::ProductOp writer, exec::ProductOp other) {
    return llvm::any_of(other.getBatches(), [&](Attribute batch) {
      return plan::mayShareBytes(writer.getOut().toPlan(), cast<exec::BatchAttr>(batch).toPlan());
    });
  };
  return touches(a, b) || touches(b, a);
}

struct JoinProducts : impl::JoinProductsBase<JoinProducts> {
  /// Products that begin together. They stand one after another.
  using Together = SmallVector<exec::ProductOp>;

  void join(exec::ProgramOp program, const Target &target) {
    SmallVector<Together> run; // since the last other command
    for (Operation &op : llvm::make_early_inc_range(program.getBody().front())) {
      auto product = dyn_cast<exec::ProductOp>(op);
      if (!product) {
        run.clear();
        continue;
      }
      Together *joined = nullptr;
      for (Together &before : llvm::reverse(run)) {
        if (llvm::any_of(before, [&](exec::ProductOp other) { return depend(other, product); }))
          break;
        if (!product.getPinned() && !before.front().getPinned() &&
            target.canJoin(before.front(), product)) {
          joined = &before;
          break;
        }
      }
      if (!joined) {
        run.push_back({product});
        continue;
      }
      product->moveAfter(joined->back());
      product.setJoins(true);
      joined->push_back(product);
      ++joinedProducts;
    }
  }

  void runOnOperation() override {
    FailureOr<std::unique_ptr<Target>> target = targetOfModule(getOperation());
    if (failed(target))
      return signalPassFailure();
    for (auto program : getOperation().getOps<exec::ProgramOp>())
      join(program, **target);
  }
};

} // namespace
} // namespace stepc::kernels
