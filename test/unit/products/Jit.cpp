//===- Jit.cpp - Kernels of one operation as functions in memory -----------===//

#include "test/unit/products/Jit.h"

#include "passes/kernels/BlockKernels.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/gpu/GpuKernels.h"
#include "passes/kernels/products/Products.h"
#include "test/unit/products/Random.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <cstdio>
#include <functional>
#include <numeric>

using namespace mlir;

namespace stepc::test {
namespace {

struct Jit {
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

std::pair<std::string, std::string> cpuOf(const TargetShape &target) {
  if (target.vectorBits == 512)
    return {"x86-64-v4", ""};
  if (target.vectorBits == 256)
    return {"x86-64-v3", target.fma ? "" : "-fma"};
  return {"x86-64-v2", ""};
}

std::unique_ptr<llvm::TargetMachine> machineOf(const TargetShape &target) {
  llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string error;
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  auto [cpu, features] = cpuOf(target);
  // As passes/codegen does: what is fused is so in the kernels already.
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(
      found->createTargetMachine(triple, cpu, features, options, llvm::Reloc::PIC_, std::nullopt,
                                 llvm::CodeGenOptLevel::Default, /*JIT=*/true));
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = false;
  llvm::PassBuilder passes(&machine, tuning);
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(graph);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, graph, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

void print(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream os(text);
  llvm::legacy::PassManager passes;
  machine.addPassesToEmitFile(passes, os, nullptr, llvm::CodeGenFileType::AssemblyFile);
  passes.run(module);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

} // namespace

std::string chipName(const TargetShape &target) {
  auto features = llvm::sys::getHostCPUFeatures();
  if (target.vectorBits == 512 && !features.lookup("avx512vl"))
    return "";
  if (target.vectorBits == 256 && !features.lookup("avx2"))
    return "";
  return cpuOf(target).first + cpuOf(target).second;
}

static void load(MLIRContext &context) {
  DialectRegistry registry;
  registry
      .insert<optim::OptimDialect, exec::ExecDialect, arith::ArithDialect, cf::ControlFlowDialect,
              func::FuncDialect, gpu::GPUDialect, LLVM::LLVMDialect, math::MathDialect,
              memref::MemRefDialect, NVVM::NVVMDialect, scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

static Code lower(Code code, ModuleOp module, const std::vector<std::string> &names,
                  const TargetShape &target, bool assembly);

Code compileKernels(const std::string &text, const std::vector<std::string> &names, int buffers,
                    const TargetShape &target) {
  Code code;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  load(context);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module) {
    code.error = "expected a module that parses\n" + text;
    return code;
  }
  auto [cpu, features] = cpuOf(target);
  (*module)->setAttr(kChipAttr, StringAttr::get(&context, cpu + ";" + features));
  PassManager passes(&context);
  passes.addPass(kernels::createExpandNumerics());
  if (failed(passes.run(*module))) {
    code.error = "expected numerics that are spelled out";
    return code;
  }
  std::vector<int> all(buffers);
  std::iota(all.begin(), all.end(), 0);
  code.launches.assign(names.size(), CompiledLaunch{nullptr, all, 1});
  return lower(std::move(code), *module, names, target, /*assembly=*/false);
}

namespace {

/// Gives an operation of level 5 its kernels, and says what scratch they need.
struct Emitter {
  std::function<std::pair<kernels::Kernels, int64_t>(SymbolTable &, exec::ProductOp)> product;
  std::function<std::pair<kernels::Kernels, int64_t>(SymbolTable &, exec::ApplyOp)> apply;
};

} // namespace

static Code compileWith(const Emitter &emitter, const std::string &operation,
                        const std::vector<std::string> &argumentTypes, const TargetShape &target,
                        bool assembly, bool tensorCores = false) {
  Code code;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  load(context);
  std::string text = "func.func @f(";
  for (size_t i = 0; i < argumentTypes.size(); ++i)
    text += (i ? ", %" : "%") + std::to_string(i) + ": " + argumentTypes[i];
  text += ") {\n  " + operation + "\n  return\n}\n";
  auto fail = [&](const std::string &why) {
    code.error = why + "\n" + text;
    return code;
  };
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return fail("expected a module that parses");
  auto function = cast<func::FuncOp>(module->lookupSymbol("f"));
  Operation &op = function.front().front();
  SymbolTable symbols(*module);
  std::vector<int> buffers = {-1};
  for (Value operand : op.getOperands())
    buffers.push_back(int(cast<BlockArgument>(operand).getArgNumber()));
  std::vector<std::string> names;
  std::optional<stepc_factors> factors;
  float shift = 0;
  auto emit = [&](auto command, auto &emitKernels) {
    auto [made, scratch] = emitKernels(symbols, command);
    code.scratchBytesPerBlock = scratch;
    for (kernels::Kernel kernel : made) {
      // Internal functions could not be looked up.
      kernel.function.setLinkage(LLVM::Linkage::External);
      names.push_back(kernel.function.getSymName().str());
      code.launches.push_back({nullptr, buffers, kernel.itemsPerBlock, factors, shift});
    }
    command.erase();
  };
  OpBuilder b(&op);
  auto batch = [&](Value value) {
    auto type = value ? cast<MemRefType>(value.getType()) : MemRefType();
    return type ? exec::BatchAttr::get(
                      &context, 0, 0,
                      RankedTensorType::get(type.getShape().drop_front(), type.getElementType()),
                      -1, 0)
                : exec::BatchAttr();
  };
  if (auto product = dyn_cast<optim::ProductOp>(op)) {
    exec::BatchAttr lhs = batch(product.getLhs()), rhs = batch(product.getRhs());
    factors = {float(product.getAlpha().convertToDouble()),
               float(product.getBeta().convertToDouble())};
    shift = float(product.getShift().convertToDouble());
    exec::Accumulation order = kernels::gpuAccumulation(tensorCores, lhs.getType(), rhs.getType());
    if (!tensorCores && !target.fma)
      order = exec::Accumulation::RoundedChain;
    emit(exec::ProductOp::create(
             b, op.getLoc(), exec::AccumulationAttr::get(&context, order), lhs, rhs,
             batch(product.getAddend()), batch(product.getInit()), product.getAlphaAttr(),
             product.getBetaAttr(), product.getTransposeLhsAttr(), product.getTransposeRhsAttr(),
             product.getSymmetricAttr(), product.getShiftAttr(), /*joins=*/UnitAttr(),
             /*pinned=*/ArrayAttr(), exec::TableAttr(), b.getI64IntegerAttr(0), ArrayAttr()),
         emitter.product);
  } else if (auto apply = dyn_cast<optim::ApplyOp>(op)) {
    SmallVector<Attribute> sources;
    for (Value source : apply.getSources())
      sources.push_back(batch(source));
    emit(exec::ApplyOp::create(b, op.getLoc(), apply.getFunction(), b.getArrayAttr(sources),
                               batch(apply.getInit()), exec::TableAttr(), b.getI64IntegerAttr(0),
                               ArrayAttr()),
         emitter.apply);
  }
  function.erase();
  return lower(std::move(code), *module, names, target, assembly);
}

Code compile(const std::string &operation, const std::vector<std::string> &argumentTypes,
             const TargetShape &target, bool assembly) {
  auto product = [&](SymbolTable &symbols, exec::ProductOp op) {
    return std::pair(kernels::emit(symbols, op, target), kernels::scratchBytesPerBlock(op, target));
  };
  auto apply = [&](SymbolTable &symbols, exec::ApplyOp op) {
    const kernels::BlockKernels &all = kernels::blockKernels(op);
    return std::pair(all.onCpu(symbols, op), all.scratchBytesPerBlock(op));
  };
  return compileWith({product, apply}, operation, argumentTypes, target, assembly);
}

static void plant(Fault fault, gpu::GPUFuncOp kernel) {
  kernel.walk([&](Operation *op) {
    IntegerAttr bound;
    if ((fault == Fault::NoBarriers && isa<gpu::BarrierOp>(op)) ||
        (fault == Fault::NoWaits && isa<NVVM::CpAsyncWaitGroupOp>(op)))
      return op->erase();
    if (auto wait = dyn_cast<NVVM::CpAsyncWaitGroupOp>(op); wait && fault == Fault::EarlyWaits)
      wait.setN(wait.getN() + 1);
    if (auto number = dyn_cast<gpu::BlockIdOp>(op); number && fault == Fault::SameBlocks) {
      OpBuilder b(op->getContext());
      b.setInsertionPointAfter(op);
      Value one = arith::ConstantIndexOp::create(b, op->getLoc(), 1);
      Value half = arith::ShRUIOp::create(b, op->getLoc(), number, one);
      Value even = arith::ShLIOp::create(b, op->getLoc(), half, one);
      number.getResult().replaceAllUsesExcept(even, half.getDefiningOp());
    }
    if (fault != Fault::OneMore || !isa<arith::CmpIOp, arith::MinSIOp>(op) ||
        !matchPattern(op->getOperand(1), m_Constant(&bound)))
      return;
    OpBuilder b(op);
    auto more = b.getIntegerAttr(bound.getType(), bound.getInt() + 1);
    op->setOperand(1, arith::ConstantOp::create(b, op->getLoc(), more));
  });
}

Code compileEmulated(const std::string &operation, const std::vector<std::string> &argumentTypes,
                     Fault fault, bool tensorCores, bool races) {
  TargetShape target = targetsOfThisMachine().front();
  auto onHost = [&](SymbolTable &symbols, Operation *op) {
    auto module = cast<ModuleOp>(symbols.getOp());
    OpBuilder b(module.getBodyRegion());
    OwningOpRef<gpu::GPUModuleOp> code = gpu::GPUModuleOp::create(b, op->getLoc(), "emulated");
    kernels::Kernels made;
    for (kernels::GpuKernel kernel : kernels::addGpuKernels(*code, op)) {
      plant(fault, kernel.function);
      made.push_back(
          {*kernels::threadsOnHost(kernel.function, module, races), kernel.blocksPerSlot});
    }
    return std::pair(made, kernels::gpuScratchBytesPerBlock(cast<exec::BatchOpInterface>(op)));
  };
  return compileWith({onHost, onHost}, operation, argumentTypes, target, /*assembly=*/false,
                     tensorCores);
}

static Code lower(Code code, ModuleOp module, const std::vector<std::string> &names,
                  const TargetShape &target, bool assembly) {
  auto fail = [&](const std::string &why) {
    code.error = why;
    return code;
  };
  PassManager passes(module.getContext());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  if (failed(passes.run(module)))
    return fail("expected kernels that lower");
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  auto llvmModule = translateModuleToLLVMIR(module, *llvmContext);
  if (!llvmModule)
    return fail("expected kernels that translate");
  auto machine = machineOf(target);
  llvmModule->setDataLayout(machine->createDataLayout());
  llvmModule->setTargetTriple(machine->getTargetTriple());
  optimize(*llvmModule, *machine);
  if (assembly)
    print(*llvm::CloneModule(*llvmModule), *machine);
  llvm::orc::JITTargetMachineBuilder builder(machine->getTargetTriple());
  auto [cpu, features] = cpuOf(target);
  builder.setCPU(cpu).setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  builder.getOptions() = machine->Options;
  if (!features.empty())
    builder.addFeatures({features});
  auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(builder)).create();
  if (!jit)
    return fail(llvm::toString(jit.takeError()));
  llvm::orc::ThreadSafeModule safe(std::move(llvmModule), std::move(llvmContext));
  if (auto error = (*jit)->addIRModule(std::move(safe)))
    return fail(llvm::toString(std::move(error)));
  llvm::orc::SymbolMap runtime;
  auto give = [&](const char *name, auto *function) {
    runtime[(*jit)->mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(function),
                                              llvm::JITSymbolFlags::Exported};
  };
  give("stepc_rt_reduce", stepc_rt_reduce);
  give("stepc_rt_emulate", stepc_rt_emulate);
  give("stepc_rt_emulated_barrier", stepc_rt_emulated_barrier);
  give("stepc_rt_emulated_shuffle", stepc_rt_emulated_shuffle);
  give("stepc_rt_emulated_load_matrices", stepc_rt_emulated_load_matrices);
  give("stepc_rt_emulated_multiply_matrices", stepc_rt_emulated_multiply_matrices);
  give("stepc_rt_emulated_copy_async", stepc_rt_emulated_copy_async);
  give("stepc_rt_emulated_commit_group", stepc_rt_emulated_commit_group);
  give("stepc_rt_emulated_wait_group", stepc_rt_emulated_wait_group);
  give("stepc_rt_emulated_access", stepc_rt_emulated_access);
  if (auto error = (*jit)->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(runtime))))
    return fail(llvm::toString(std::move(error)));
  for (size_t i = 0; i < names.size(); ++i) {
    auto address = (*jit)->lookup(names[i]);
    if (!address)
      return fail(llvm::toString(address.takeError()));
    code.launches[i].kernel = address->toPtr<KernelFunction>();
  }
  auto holder = std::make_shared<Jit>();
  holder->jit = std::move(*jit);
  code.jit = holder;
  return code;
}

} // namespace stepc::test
