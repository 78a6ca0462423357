//===- CudaTarget.cpp - NVIDIA's GPUs ----------------------------------------===//
//
// Kernels are gpu.funcs of one module, which becomes machine code for the chip. Commands name declarations,
// because the host has no body for kernels.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/GpuChips.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/Target.h"
#include "passes/kernels/gpu/GpuKernels.h"
#include "passes/kernels/gpu/WarpgroupProduct.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

/// Elements of a chunk: thirty-two for each thread of its GPU block.
constexpr int64_t kChunkElements = 32 * kThreads;

class CudaTarget : public Target {
public:
  CudaTarget(std::string text, GpuTarget target)
      : Target(std::move(text)), target(std::move(target)) {}

  FailureOr<LLVM::LLVMFuncOp> kernel(func::FuncOp kernel,
                                     ArrayRef<exec::DispatchChunksOp> dispatches) const override {
    auto module = kernel->getParentOfType<ModuleOp>();
    return onHost(module, addGpuChunkKernel(codeOf(module), kernel, dispatches));
  }
  FailureOr<LLVM::LLVMFuncOp>
  kernel(func::FuncOp kernel, ArrayRef<exec::DispatchParametersOp> dispatches) const override {
    auto module = kernel->getParentOfType<ModuleOp>();
    return onHost(module, addGpuParameterKernel(codeOf(module), kernel, dispatches));
  }

  int64_t chunkElements() const override { return kChunkElements; }
  exec::Accumulation accumulation(Type lhs, Type rhs) const override {
    return gpuAccumulation(target.tensorCores, lhs, rhs);
  }
  ProductTile productTile(const cost::BlockProduct &product,
                          exec::Accumulation accumulation) const override {
    return gpuProductTile(target, product, accumulation);
  }
  int64_t scratchBytesPerBlock(exec::BatchOpInterface command) const override {
    return gpuScratchBytesPerBlock(command);
  }
  Kernels kernels(SymbolTable &symbols, Operation *command) const override {
    auto module = cast<ModuleOp>(symbols.getOp());
    Kernels kernels;
    for (auto [function, blocksPerSlot] : addGpuKernels(codeOf(module), command)) {
      auto known = symbols.lookup<LLVM::LLVMFuncOp>(function.getName());
      if (!known)
        symbols.insert(known = declare(module, function));
      kernels.push_back({known, blocksPerSlot});
    }
    return kernels;
  }

  bool canJoin(exec::ProductOp one, exec::ProductOp other) const override {
    return target.hasWarpgroups() && areOfOneWarpgroupForm(one, other);
  }
  void addKernelPasses(OpPassManager &manager) const override {
    buildPtxPipeline(manager);
    AssembleGpuOptions options;
    options.chip = target.chip.name;
    options.ptx = target.ptx;
    manager.addPass(createAssembleGpu(options));
  }
  /// Chains must have the CPU's bits, which no library gives.
  std::optional<int64_t> libraryChip() const override {
    return target.tensorCores ? std::optional(target.number()) : std::nullopt;
  }
  bool fuses() const override { return true; }
  bool convertsHalf() const override { return true; }

private:
  gpu::GPUModuleOp codeOf(ModuleOp module) const {
    for (auto known : module.getOps<gpu::GPUModuleOp>())
      return known;
    gpu::GPUModuleOp made = target.hasWarpgroups()
                                ? makeGpuModule(module, target.chip.name, "+ptx86")
                                : makeGpuModule(module, ptxChipOf(target.chip), "+ptx80");
    if (target.bounded)
      made->setAttr(kBoundedAttr, UnitAttr::get(made.getContext()));
    return made;
  }

  static LLVM::LLVMFuncOp declare(ModuleOp module, gpu::GPUFuncOp kernel) {
    OpBuilder b(module.getBodyRegion());
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                            {pointer, b.getI64Type(), b.getI64Type()});
    auto declared = LLVM::LLVMFuncOp::create(b, kernel.getLoc(), kernel.getName(), type);
    moveLaunch(kernel, declared);
    return declared;
  }

  static FailureOr<LLVM::LLVMFuncOp> onHost(ModuleOp module, FailureOr<gpu::GPUFuncOp> made) {
    if (failed(made))
      return failure();
    return declare(module, *made);
  }

  GpuTarget target;
};

} // namespace

llvm::Expected<std::unique_ptr<Target>> makeCudaTarget(StringRef chip) {
  llvm::Expected<GpuTarget> target = cudaTarget(chip);
  if (!target)
    return target.takeError();
  return std::make_unique<CudaTarget>(chip.str(), std::move(*target));
}

} // namespace stepc::kernels
