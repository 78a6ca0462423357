//===- KernelsToGpu.cpp - Kernels of level 5 in a gpu.module ---------------===//

#include "passes/kernels/BlockKernels.h"
#include "passes/kernels/Expansions.h"
#include "passes/kernels/ForEachKernel.h"
#include "passes/kernels/ParameterKernel.h"
#include "passes/kernels/Passes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace stepc::kernels {
#define GEN_PASS_DEF_KERNELSTOGPU
#include "passes/kernels/Passes.h.inc"

static constexpr StringLiteral kModule = "kernels";

gpu::GPUModuleOp makeGpuModule(ModuleOp module, StringRef chip, StringRef features) {
  OpBuilder b(module.getBodyRegion());
  auto target = NVVM::NVVMTargetAttr::get(module.getContext(), /*optLevel=*/3,
                                          "nvptx64-nvidia-cuda", chip, features);
  // A user's optimizer may have the same name.
  std::string name = kModule.str();
  while (module.lookupSymbol(name))
    name += '_';
  return gpu::GPUModuleOp::create(b, module.getLoc(), name, b.getArrayAttr(target));
}

gpu::GPUFuncOp beginGpuKernel(gpu::GPUModuleOp code, StringRef name, ArrayRef<Type> arguments,
                              KernelBuilder &b, plan::LaunchShape launch) {
  b.setInsertionPointToEnd(code.getBody());
  auto function =
      gpu::GPUFuncOp::create(b, b.loc, name, FunctionType::get(b.getContext(), arguments, {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  function.setKnownBlockSize(ArrayRef<int32_t>{int32_t(launch.threads), 1, 1});
  if (launch.cluster > 1)
    function.setKnownClusterSize(ArrayRef<int32_t>{int32_t(launch.cluster), 1, 1});
  function->setAttr(exec::kLaunchAttr, exec::LaunchAttr::get(b.getContext(), std::move(launch)));
  // Without this attribute, ptxas uses fewer registers than a GPU block may have, and spills.
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), b.getI32IntegerAttr(1));
  b.setInsertionPointToEnd(&function.getBody().front());
  b.setInsertionPoint(gpu::ReturnOp::create(b, b.loc));
  return function;
}

int64_t bytesOfMemory(BlockArgument attribution) {
  auto type = cast<MemRefType>(attribution.getType());
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

plan::LaunchShape launchOf(gpu::GPUFuncOp kernel) {
  plan::LaunchShape launch{.threads = kThreads};
  if (auto given = kernel->getAttrOfType<exec::LaunchAttr>(exec::kLaunchAttr))
    launch = given.getValue();
  for (BlockArgument memory : kernel.getWorkgroupAttributions())
    launch.staticBytes += bytesOfMemory(memory);
  return launch;
}

void moveLaunch(gpu::GPUFuncOp kernel, Operation *named) {
  if (named->hasAttr(exec::kLaunchAttr))
    return;
  named->setAttr(exec::kLaunchAttr, exec::LaunchAttr::get(kernel.getContext(), launchOf(kernel)));
  kernel->removeAttr(exec::kLaunchAttr);
}

static Value wide(KernelBuilder &b, Value index) {
  return arith::IndexCastOp::create(b, b.loc, b.getI64Type(), index);
}

Value blockIndex(KernelBuilder &b) {
  return wide(b, gpu::BlockIdOp::create(b, b.loc, gpu::Dimension::x));
}

Value threadIndex(KernelBuilder &b) {
  return wide(b, gpu::ThreadIdOp::create(b, b.loc, gpu::Dimension::x));
}

void ifActive(KernelBuilder &b, Value records, Value parameter, function_ref<void()> body) {
  Value record = recordOf(b, records, parameter);
  Value flag = b.load(b.getI64Type(), fieldOf(b, record, offsetof(stepc_parameter_record, active)));
  Value isActive = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::ne, flag, b.constant(0));
  auto guard = scf::IfOp::create(b, b.loc, isActive, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard keep(b);
  b.setInsertionPointToStart(guard.thenBlock());
  body();
}

GpuKernels addGpuKernels(gpu::GPUModuleOp code, Operation *command) {
  return llvm::TypeSwitch<Operation *, GpuKernels>(command)
      .Case([&](exec::ProductOp op) { return addGpuProductKernels(code, op); })
      .Case([&](exec::ApplyOp op) { return blockKernels(op).onGpu(code, op); })
      .Case([&](exec::CopyOp op) { return addGpuCopyKernel(code, op); })
      .Case([&](exec::SumOp op) { return addGpuSumKernel(code, op); })
      .Case([&](exec::CollectOp op) { return addGpuCollectKernel(code, op); })
      .Case([&](exec::SkipOp op) { return addGpuSkipKernel(code, op); })
      .Case([&](exec::AdvanceStepsOp op) { return addGpuAdvanceKernel(code, op); })
      .Case([&](exec::StartOp op) { return addGpuSealKernel(code, op); })
      .Case([&](exec::AwaitOp op) { return addGpuSealCheckKernel(code, op); })
      .Default(GpuKernels());
}

int64_t gpuScratchBytesPerBlock(exec::BatchOpInterface command) {
  auto apply = dyn_cast<exec::ApplyOp>(*command);
  return apply ? blockKernels(apply).scratchBytesPerBlock(apply) : 0;
}

namespace {

struct KernelsToGpu : impl::KernelsToGpuBase<KernelsToGpu> {
  using KernelsToGpuBase::KernelsToGpuBase;

  LogicalResult run(ModuleOp module) {
    SymbolTable symbols(module);
    gpu::GPUModuleOp code = makeGpuModule(module, chip, features);
    auto addChunks = [&](func::FuncOp kernel, ArrayRef<exec::DispatchChunksOp> dispatches) {
      return LogicalResult(addGpuChunkKernel(code, kernel, dispatches));
    };
    auto addParameters = [&](func::FuncOp kernel, ArrayRef<exec::DispatchParametersOp> dispatches) {
      return LogicalResult(addGpuParameterKernel(code, kernel, dispatches));
    };
    if (failed(forEachKernel<exec::DispatchParametersOp>(module, symbols, addParameters)) ||
        failed(forEachKernel<exec::DispatchChunksOp>(module, symbols, addChunks)))
      return failure();
    for (auto program : module.getOps<exec::ProgramOp>())
      for (Operation &op : program.getBody().front()) {
        auto product = dyn_cast<exec::ProductOp>(op);
        if (product && product.getAccumulation() == exec::Accumulation::RoundedChain)
          return product.emitOpError("expected a product of the accumulation fused_chain or "
                                     "tensorcore, which a GPU has, found rounded_chain");
        if (auto apply = dyn_cast<exec::ApplyOp>(op); apply && failed(checkBlockKernels(apply)))
          return failure();
        addGpuKernels(code, &op);
      }
    SmallVector<Operation *> made(code.getOps<gpu::GPUFuncOp>());
    return expandNumerics(made, /*fuses=*/true, /*convertsHalf=*/true);
  }

  void runOnOperation() override {
    if (failed(run(getOperation())))
      signalPassFailure();
  }
};

} // namespace
} // namespace stepc::kernels
