//===- LowerToTarget.cpp - The target's code for what level 5 says ---------===//

#include "passes/kernels/ForEachKernel.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/Target.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace stepc::kernels {
#define GEN_PASS_DEF_LOWERTOTARGET
#include "passes/kernels/Passes.h.inc"

namespace {
using namespace mlir;

struct LowerToTarget : impl::LowerToTargetBase<LowerToTarget> {
  /// Gives a product or a reduction its kernels.
  template <typename Command>
  static LogicalResult lower(Command op, const Target &target, SymbolTable &symbols) {
    if constexpr (std::is_same_v<Command, exec::ProductOp>) {
      exec::Accumulation expected =
          target.accumulation(op.getLhs().getType(), op.getRhs().getType());
      if (op.getAccumulation() != expected)
        return op.emitOpError("expected the target's accumulation, ")
               << plan::name(expected) << ", found " << plan::name(op.getAccumulation());
    }
    int64_t needed = target.scratchBytesPerBlock(op);
    if (needed > int64_t(op.getScratch()))
      return op.emitOpError("expected at least ")
             << needed << " bytes of scratch per block, which the target needs, found "
             << op.getScratch();
    SmallVector<Attribute> kernels;
    for (const Kernel &kernel : target.kernels(symbols, op))
      kernels.push_back(exec::KernelAttr::get(
          op.getContext(), FlatSymbolRefAttr::get(kernel.function), kernel.itemsPerBlock));
    op.setKernelsAttr(ArrayAttr::get(op.getContext(), kernels));
    return success();
  }

  /// Gives a command its kernel, where the device needs one for it.
  template <typename Command>
  static LogicalResult lowerToOne(Command op, const Target &target, SymbolTable &symbols) {
    for (const Kernel &kernel : target.kernels(symbols, op))
      op.setKernelAttr(FlatSymbolRefAttr::get(kernel.function));
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
      for (Operation &op : program.getBody().front()) {
        auto result = llvm::TypeSwitch<Operation *, LogicalResult>(&op)
                          .Case<exec::ProductOp, exec::ReduceOp>(
                              [&](auto op) { return lower(op, **target, symbols); })
                          .Case<exec::CopyOp, exec::SumOp, exec::StartOp, exec::AwaitOp,
                                exec::AdvanceStepsOp>(
                              [&](auto op) { return lowerToOne(op, **target, symbols); })
                          .Default(success());
        if (failed(result))
          return failure();
      }
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
