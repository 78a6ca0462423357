//===- LowerToTarget.cpp - The target's code for what level 5 says ---------===//

#include "passes/kernels/BlockKernels.h"
#include "passes/kernels/ForEachKernel.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/Target.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace stepc::kernels {
#define GEN_PASS_DEF_LOWERTOTARGET
#include "passes/kernels/Passes.h.inc"

namespace {
using namespace mlir;

struct LowerToTarget : impl::LowerToTargetBase<LowerToTarget> {
  /// Gives a command on computed blocks its kernels. Gives any other command but a dispatch its kernel if the
  /// device needs one.
  static LogicalResult lower(Operation &op, const Target &target, SymbolTable &symbols) {
    if (auto product = dyn_cast<exec::ProductOp>(op)) {
      exec::Accumulation expected =
          target.accumulation(product.getLhs().getType(), product.getRhs().getType());
      if (product.getAccumulation() != expected)
        return product.emitOpError("expected the target's accumulation, ")
               << plan::name(expected) << ", found " << plan::name(product.getAccumulation());
    }
    if (auto apply = dyn_cast<exec::ApplyOp>(op); apply && failed(checkBlockKernels(apply)))
      return failure();
    auto batch = dyn_cast<exec::BatchOpInterface>(op);
    // The proof reads the kernels of dispatches alone. A target makes all others.
    if (Attribute kernel = op.getAttr(batch ? "kernels" : "kernel"))
      return op.emitOpError("expected no kernel before exec-lower-to-target, found ") << kernel;
    if (batch)
      if (int64_t needed = target.scratchBytesPerBlock(batch); needed > int64_t(batch.getScratch()))
        return op.emitOpError("expected at least ")
               << needed << " bytes of scratch per block, which the target needs, found "
               << batch.getScratch();
    SmallVector<Attribute> made;
    for (const Kernel &kernel : target.kernels(symbols, &op)) {
      auto symbol = FlatSymbolRefAttr::get(kernel.function);
      made.push_back(exec::KernelAttr::get(op.getContext(), symbol, kernel.itemsPerBlock));
      if (!batch)
        op.setAttr("kernel", symbol);
    }
    if (batch)
      batch.setKernelsAttr(ArrayAttr::get(op.getContext(), made));
    return success();
  }

  /// Replaces the kernels of dispatches of one kind.
  template <typename Dispatch>
  static LogicalResult lower(ModuleOp module, const Target &target, SymbolTable &symbols) {
    return forEachKernel<Dispatch>(
        module, symbols, [&](func::FuncOp kernel, ArrayRef<Dispatch> dispatches) {
          FailureOr<LLVM::LLVMFuncOp> made = target.kernel(kernel, dispatches);
          if (failed(made))
            return failure();
          symbols.erase(kernel);
          symbols.insert(*made);
          return success();
        });
  }

  LogicalResult run(ModuleOp module) {
    FailureOr<std::unique_ptr<Target>> target = targetOfModule(module);
    if (failed(target))
      return failure();
    SymbolTable symbols(module);
    for (auto program : module.getOps<exec::ProgramOp>())
      for (Operation &op : program.getBody().front())
        if (!isa<exec::DispatchChunksOp, exec::DispatchParametersOp>(op) &&
            failed(lower(op, **target, symbols)))
          return failure();
    return success(succeeded(lower<exec::DispatchParametersOp>(module, **target, symbols)) &&
                   succeeded(lower<exec::DispatchChunksOp>(module, **target, symbols)));
  }

  void runOnOperation() override {
    if (failed(run(getOperation())))
      signalPassFailure();
  }
};

} // namespace
} // namespace stepc::kernels
