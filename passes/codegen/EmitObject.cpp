//===- EmitObject.cpp - Object code for a chip -----------------------------===//

#include "passes/codegen/Codegen.h"
#include "passes/kernels/EmbedPlan.h"
#include "passes/kernels/TargetShape.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Instrumentation/AddressSanitizer.h"
#include "llvm/Transforms/Instrumentation/ThreadSanitizer.h"

using namespace mlir;

namespace stepc::codegen {
namespace {

std::unique_ptr<llvm::TargetMachine> makeMachine(StringRef chip, std::string &error) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  auto [cpu, features] = splitChip(chip);
  llvm::TargetOptions options;
  // A fused multiply-add only where the IR says so.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, cpu, features, options, llvm::Reloc::PIC_, std::nullopt,
                                  llvm::CodeGenOptLevel::Default));
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine, Sanitizer sanitizer) {
  llvm::PipelineTuningOptions tuning;
  // Kernels are vectorized already; what is scalar is so on purpose.
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = false;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  if (sanitizer != Sanitizer::None)
    builder.registerOptimizerLastEPCallback([sanitizer](llvm::ModulePassManager &manager,
                                                        llvm::OptimizationLevel,
                                                        llvm::ThinOrFullLTOPhase) {
      if (sanitizer == Sanitizer::Address)
        return manager.addPass(llvm::AddressSanitizerPass({}));
      manager.addPass(llvm::ModuleThreadSanitizerPass());
      manager.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::ThreadSanitizerPass()));
    });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

} // namespace

FailureOr<std::vector<char>> emitObject(ModuleOp module, const CodegenOptions &options) {
  FailureOr<plan::Plan> plan = kernels::embeddedPlan(module);
  if (failed(plan))
    return failure();
  // Asked for its error: LLVM itself only warns of an unknown cpu, and goes on.
  llvm::Expected<TargetShape> shape = shapeOfChip(plan->chip);
  if (!shape)
    return module.emitError(llvm::toString(shape.takeError()));
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = makeMachine(plan->chip, error);
  if (!machine)
    return module.emitError("expected code generation for this machine, ") << error;

  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context, plan->name);
  if (!code)
    return module.emitError("expected a module at level llvm that translates to LLVM IR");
  code->setSourceFileName(plan->name);
  code->setTargetTriple(machine->getTargetTriple());
  code->setDataLayout(machine->createDataLayout());
  code->setPICLevel(llvm::PICLevel::BigPIC);
  for (llvm::Function &function : *code) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine->getTargetCPU());
    function.addFnAttr("target-features", machine->getTargetFeatureString());
    function.addFnAttr(llvm::Attribute::NoUnwind);
    // Only functions with the attribute are instrumented.
    if (options.sanitizer != Sanitizer::None)
      function.addFnAttr(options.sanitizer == Sanitizer::Address ? llvm::Attribute::SanitizeAddress
                                                                 : llvm::Attribute::SanitizeThread);
  }
  optimize(*code, *machine, options.sanitizer);

  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  if (options.output == CodegenOptions::Output::LlvmIr) {
    code->print(os, nullptr);
    return std::vector<char>(bytes.begin(), bytes.end());
  }
  llvm::legacy::PassManager manager;
  auto type = options.output == CodegenOptions::Output::Assembly
                  ? llvm::CodeGenFileType::AssemblyFile
                  : llvm::CodeGenFileType::ObjectFile;
  if (machine->addPassesToEmitFile(manager, os, nullptr, type))
    return module.emitError("expected a target that emits object code");
  manager.run(*code);
  return std::vector<char>(bytes.begin(), bytes.end());
}

} // namespace stepc::codegen
