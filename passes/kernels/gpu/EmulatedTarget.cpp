//===- EmulatedTarget.cpp - A GPU's kernels on this machine ----------------===//
//
// This machine runs the kernels that exec-kernels-to-gpu makes: thread after thread or, if threads wait for
// each other, in turns. Only the lowering to machine code is the CPU's.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/GpuChips.h"
#include "passes/kernels/Target.h"
#include "passes/kernels/gpu/GpuKernels.h"
#include "passes/kernels/gpu/WarpgroupProduct.h"
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
  // The order in which the GPU adds up. A CPU without fused multiply-adds calls a function for each of them.
  exec::Accumulation accumulation(Type lhs, Type rhs) const override {
    return gpuAccumulation(gpu.tensorCores, lhs, rhs);
  }
  ProductTile productTile(const cost::BlockProduct &product,
                          exec::Accumulation accumulation) const override {
    return gpuProductTile(gpu, product, accumulation);
  }
  int64_t scratchBytesPerBlock(exec::BatchOpInterface command) const override {
    return gpuScratchBytesPerBlock(command);
  }
  /// Kernels of seals are for drivers that stand in for NVIDIA's. The device `emulated` leaves messages to
  /// the host.
  Kernels kernels(SymbolTable &symbols, Operation *command) const override {
    auto module = cast<ModuleOp>(symbols.getOp());
    if (auto product = dyn_cast<exec::ProductOp>(command); product && gpu.hasWarpgroups())
      if (std::optional<WarpgroupForm> form = warpgroupForm(product))
        return {{warpgroupsOnHost(symbols, *form, product.getLoc()), 1}};
    OwningOpRef<gpu::GPUModuleOp> code = makeModule(module, command->getLoc());
    Kernels kernels;
    for (auto [function, blocksPerSlot] : addGpuKernels(*code, command)) {
      LLVM::LLVMFuncOp known = findKernel(symbols, function.getName());
      if (!known) {
        FailureOr<LLVM::LLVMFuncOp> onHost = threadsOnHost(function, module, gpu.races);
        assert(succeeded(onHost) && "our own kernels keep to what is emulated");
        symbols.insert(known = *onHost);
      }
      kernels.push_back({known, blocksPerSlot}); // a GPU block is an item
    }
    return kernels;
  }
  bool canJoin(exec::ProductOp one, exec::ProductOp other) const override {
    return gpu.hasWarpgroups() && areOfOneWarpgroupForm(one, other);
  }
  void addKernelPasses(OpPassManager &manager) const override { host->addKernelPasses(manager); }
  /// The device `emulated` has no library. But its programs also run on drivers that stand in for NVIDIA's,
  /// which have one.
  std::optional<int64_t> libraryChip() const override { return gpu.number(); }
  bool fuses() const override { return true; }
  bool convertsHalf() const override { return host->convertsHalf(); }

private:
  /// The kernel of a form of products, which the runtime carries out.
  static LLVM::LLVMFuncOp warpgroupsOnHost(SymbolTable &symbols, const WarpgroupForm &form,
                                           Location loc) {
    if (LLVM::LLVMFuncOp known = findKernel(symbols, form.name()))
      return known;
    VectorBuilder b(symbols.getOp()->getContext(), loc);
    LLVM::LLVMFuncOp made =
        startKernel(symbols, form.name(), {b.pointer, b.getI64Type(), b.getI64Type()}, b);
    SmallVector<Value> arguments(made.getArguments());
    arguments.push_back(arith::ConstantIntOp::create(b, loc, plan::tileBits(form.product), 32));
    LLVM::LLVMFuncOp carryOut = declare(cast<ModuleOp>(symbols.getOp()), "stepc_rt_emulated_tiles",
                                        LLVM::LLVMVoidType::get(b.getContext()),
                                        llvm::to_vector(ValueRange(arguments).getTypes()));
    LLVM::CallOp::create(b, loc, carryOut, arguments);
    made->setAttr(exec::kLaunchAttr, exec::LaunchAttr::get(b.getContext(), warpgroupLaunch(form)));
    return made;
  }
  static OwningOpRef<gpu::GPUModuleOp> makeModule(ModuleOp module, Location loc) {
    OpBuilder builder(module.getBodyRegion());
    return gpu::GPUModuleOp::create(builder, loc, "emulated");
  }
  /// Makes a kernel by `add` in a temporary gpu.module, and turns it into a function for this machine.
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
  llvm::Expected<GpuTarget> gpu = gpuOnHost(chip);
  if (!gpu)
    return gpu.takeError();
  llvm::Expected<StringRef> cpu = hostOfChip(chip);
  if (!cpu)
    return cpu.takeError();
  llvm::Expected<std::unique_ptr<Target>> host = makeCpuTarget(*cpu);
  if (!host)
    return host.takeError();
  return std::make_unique<EmulatedTarget>(chip.str(), std::move(*gpu), std::move(*host));
}

} // namespace stepc::kernels
