//===- CpuTarget.cpp - Processors of this machine's architecture -----------===//

#include "passes/kernels/BlockKernels.h"
#include "passes/kernels/CpuKernels.h"
#include "passes/kernels/Target.h"
#include "passes/kernels/products/Tiling.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Transforms/Passes.h"

namespace stepc::kernels {
namespace {

/// An element of a product is one chain of (fused) multiply-adds over increasing k, whatever the vector
/// width.
class CpuTarget : public Target {
public:
  CpuTarget(std::string chip, const TargetShape &shape) : Target(std::move(chip)), shape(shape) {}

  // 64 KiB of f32: a few of them, one per operand, fit in a core's caches.
  int64_t chunkElements() const override { return plan::kChunkElements; }
  exec::Accumulation accumulation(mlir::Type, mlir::Type) const override {
    return shape.fma ? exec::Accumulation::FusedChain : exec::Accumulation::RoundedChain;
  }
  ProductTile productTile(const cost::BlockProduct &product,
                          exec::Accumulation accumulation) const override {
    Tiling tiling(product.m, product.n, product.k, accumulation == exec::Accumulation::FusedChain,
                  shape);
    return {cost::ProductKernel::Chain, tiling.tileRows, tiling.tileCols, product.k, 1};
  }
  int64_t scratchBytesPerBlock(exec::BatchOpInterface command) const override {
    if (auto product = llvm::dyn_cast<exec::ProductOp>(*command))
      return stepc::kernels::scratchBytesPerBlock(product, shape);
    auto apply = llvm::cast<exec::ApplyOp>(*command);
    return blockKernels(apply).scratchBytesPerBlock(apply);
  }
  Kernels kernels(mlir::SymbolTable &symbols, mlir::Operation *command) const override {
    return llvm::TypeSwitch<mlir::Operation *, Kernels>(command)
        .Case([&](exec::ProductOp op) { return emit(symbols, op, shape); })
        .Case([&](exec::ApplyOp op) { return blockKernels(op).onCpu(symbols, op); })
        .Case([&](exec::SumOp op) { return Kernels{{addCpuSumKernel(symbols, op), 1}}; })
        .Case([&](exec::CollectOp op) { return Kernels{{addCpuCollectKernel(symbols, op), 1}}; })
        .Default(Kernels());
  }
  mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
  kernel(mlir::func::FuncOp kernel,
         llvm::ArrayRef<exec::DispatchChunksOp> dispatches) const override {
    return lowerChunkKernel(kernel, dispatches);
  }
  mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
  kernel(mlir::func::FuncOp kernel,
         llvm::ArrayRef<exec::DispatchParametersOp> dispatches) const override {
    return lowerParameterKernel(kernel, dispatches);
  }
  void addKernelPasses(mlir::OpPassManager &manager) const override {
    using namespace mlir;
    // Loops become branches. Vectors of several axes become arrays of LLVM vectors.
    manager.addNestedPass<LLVM::LLVMFuncOp>(createSCFToControlFlowPass());
    manager.addPass(createConvertVectorToLLVMPass());
    // One pass per dialect that is left; their order is free.
    manager.addNestedPass<LLVM::LLVMFuncOp>(createConvertMathToLLVMPass());
    manager.addNestedPass<LLVM::LLVMFuncOp>(createArithToLLVMConversionPass());
    manager.addPass(createConvertControlFlowToLLVMPass());
    // Folds casts back and forth, which the passes above leave, and removes repeated operations.
    manager.addNestedPass<LLVM::LLVMFuncOp>(createCanonicalizerPass());
    manager.addNestedPass<LLVM::LLVMFuncOp>(createCSEPass());
  }
  bool fuses() const override { return shape.fma; }
  bool convertsHalf() const override { return shape.half; }

private:
  TargetShape shape;
};

} // namespace

llvm::Expected<std::unique_ptr<Target>> makeCpuTarget(llvm::StringRef chip) {
  llvm::Expected<TargetShape> shape = shapeOfChip(chip);
  if (!shape)
    return shape.takeError();
  return std::make_unique<CpuTarget>(chip.str(), *shape);
}

} // namespace stepc::kernels
