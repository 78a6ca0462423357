//===- EmulatedTarget.cpp - A GPU's kernels on this machine ----------------===//
//
// Kernels are those that exec-kernels-to-gpu makes, run by this machine thread after thread, or, where
// threads wait for each other, in turns. Nothing but its lowering is the processor's.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/GpuChips.h"
#include "passes/kernels/Target.h"
#include "passes/kernels/gpu/GpuKernels.h"
#include "passes/kernels/products/VectorBuilder.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

class EmulatedTarget : public Target {
public:
  EmulatedTarget(std::string chip, GpuTarget gpu, std::unique_ptr<Target> host)
      : Target(std::move(chip)), gpu(std::move(gpu)), host(std::move(host)) {}

  FailureOr<LLVM::LLVMFuncOp> kernel(func::FuncOp kernel,
                                     ArrayRef<exec::DispatchChunksOp> dispatches) const override {
    return emulate(
        kernel, [&](gpu::GPUModuleOp code) { return addGpuChunkKernel(code, kernel, dispatches); });
  }
  FailureOr<LLVM::LLVMFuncOp>
  kernel(func::FuncOp kernel, ArrayRef<exec::DispatchParametersOp> dispatches) const override {
    return emulate(kernel, [&](gpu::GPUModuleOp code) {
      return addGpuParameterKernel(code, kernel, dispatches);
    });
  }

  int64_t chunkElements() const override { return host->chunkElements(); }
  // The order in which the GPU adds up. A processor without fused multiply-adds calls a function for each.
  exec::Accumulation accumulation(Type lhs, Type rhs) const override {
    return gpuAccumulation(gpu.tensorCores, lhs, rhs);
  }
  ProductTile productTile(int64_t m, int64_t n, int64_t,
                          exec::Accumulation accumulation) const override {
    return gpuProductTile(m, n, accumulation);
  }
  int64_t scratchBytesPerBlock(exec::ProductOp op) const override { return 0; }
  int64_t scratchBytesPerBlock(exec::ReduceOp op) const override {
    return host->scratchBytesPerBlock(op);
  }
  Kernels kernels(SymbolTable &symbols, exec::ProductOp op) const override {
    return emulate(symbols, op, addGpuProductKernels);
  }
  Kernels kernels(SymbolTable &symbols, exec::ReduceOp op) const override {
    return emulate(symbols, op, addGpuReduceKernels);
  }
  Kernels kernels(SymbolTable &symbols, exec::CopyOp op) const override {
    return emulate(symbols, op, addGpuCopyKernel);
  }
  Kernels kernels(SymbolTable &symbols, exec::SumOp op) const override {
    return emulate(symbols, op, addGpuSumKernel);
  }
  Kernels kernels(SymbolTable &symbols, exec::AdvanceStepsOp op) const override {
    return emulate(symbols, op, addGpuAdvanceKernel);
  }
  // For drivers that stand in for NVIDIA's. Its own device leaves messages to the host.
  Kernels kernels(SymbolTable &symbols, exec::StartOp op) const override {
    return emulate(symbols, op, addGpuSealKernel);
  }
  Kernels kernels(SymbolTable &symbols, exec::AwaitOp op) const override {
    return emulate(symbols, op, addGpuSealCheckKernel);
  }
  void addKernelPasses(OpPassManager &manager) const override { host->addKernelPasses(manager); }
  /// Its own device has no library. Its programs also run on drivers that stand in for NVIDIA's, with one.
  std::optional<int64_t> libraryChip() const override { return gpu.number(); }
  bool fuses() const override { return true; }
  bool convertsHalf() const override { return host->convertsHalf(); }

private:
  static OwningOpRef<gpu::GPUModuleOp> makeModule(ModuleOp module, Location loc) {
    OpBuilder builder(module.getBodyRegion());
    return gpu::GPUModuleOp::create(builder, loc, "emulated");
  }
  /// A block is an item.
  template <typename Command>
  Kernels emulate(SymbolTable &symbols, Command op,
                  GpuKernels (*add)(gpu::GPUModuleOp, Command)) const {
    auto module = cast<ModuleOp>(symbols.getOp());
    OwningOpRef<gpu::GPUModuleOp> code = makeModule(module, op.getLoc());
    Kernels kernels;
    for (auto [function, blocksPerSlot] : add(*code, op)) {
      LLVM::LLVMFuncOp known = findKernel(symbols, function.getName());
      if (!known) {
        FailureOr<LLVM::LLVMFuncOp> onHost = threadsOnHost(function, module, gpu.races);
        assert(succeeded(onHost) && "our own kernels keep to what is emulated");
        symbols.insert(known = *onHost);
      }
      kernels.push_back({known, blocksPerSlot});
    }
    return kernels;
  }
  /// The kernel that `add` makes, in a GPU's module that goes again.
  FailureOr<LLVM::LLVMFuncOp>
  emulate(func::FuncOp kernel,
          function_ref<FailureOr<gpu::GPUFuncOp>(gpu::GPUModuleOp)> add) const {
    auto module = kernel->getParentOfType<ModuleOp>();
    OwningOpRef<gpu::GPUModuleOp> code = makeModule(module, kernel.getLoc());
    FailureOr<gpu::GPUFuncOp> made = add(*code);
    if (failed(made))
      return failure();
    return threadsOnHost(*made, module, gpu.races);
  }

  GpuTarget gpu;
  std::unique_ptr<Target> host;
};

} // namespace

llvm::Expected<std::unique_ptr<Target>> makeEmulatedTarget(StringRef chip) {
  llvm::Expected<GpuTarget> gpu = emulatedTarget(chip);
  if (!gpu)
    return gpu.takeError();
  auto [cpu, features] = splitChip(chip);
  llvm::Expected<std::unique_ptr<Target>> host = makeCpuTarget(cpu + ";" + features);
  if (!host)
    return host.takeError();
  return std::make_unique<EmulatedTarget>(chip.str(), std::move(*gpu), std::move(*host));
}

} // namespace stepc::kernels
