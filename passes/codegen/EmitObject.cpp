//===- EmitObject.cpp - Object code for a chip -----------------------------===//

#include "passes/codegen/Codegen.h"
#include "passes/kernels/EmbedPlan.h"
#include "passes/kernels/TargetShape.h"
#include "stepc/kernel_abi.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/IPO/Internalize.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Instrumentation/AddressSanitizer.h"
#include "llvm/Transforms/Instrumentation/ThreadSanitizer.h"

using namespace mlir;

namespace stepc::codegen {
namespace {

std::unique_ptr<llvm::TargetMachine> makeMachine(StringRef chip, std::string &error,
                                                 bool isQuick = false) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  auto [cpu, features] = splitChip(chip);
  llvm::TargetOptions options;
  // LLVM may not fuse a multiply and an add. Fused multiply-adds are only those of the IR.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, cpu, features, options, llvm::Reloc::PIC_, std::nullopt,
      isQuick ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default));
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine, const CodegenOptions &options) {
  llvm::PipelineTuningOptions tuning;
  // Kernels are vectorized already. Scalar code in them is scalar on purpose.
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = false;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  if (Sanitizer sanitizer = options.sanitizer; sanitizer != Sanitizer::None)
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
  if (!options.isQuick)
    return (void)builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2)
        .run(module, modules);
  for (llvm::Function &function : module) // one function serves all shapes
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction))
        call->removeFnAttr(llvm::Attribute::AlwaysInline);
  // Instructions are combined first, but not for speed: casts of bits to 16-bit floats and back would
  // otherwise become calls of conversion functions.
  builder.registerPipelineStartEPCallback(
      [](llvm::ModulePassManager &manager, llvm::OptimizationLevel) {
        manager.addPass(llvm::createModuleToFunctionPassAdaptor(
            llvm::InstCombinePass(llvm::InstCombineOptions().setVerifyFixpoint(false))));
      });
  builder.buildO0DefaultPipeline(llvm::OptimizationLevel::O0).run(module, modules);
}

/// Sets the name, target, data layout and position independence (for a shared library) of a module.
void prepare(llvm::Module &module, const llvm::TargetMachine &machine, StringRef name) {
  module.setSourceFileName(name);
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
}

std::optional<std::vector<char>> emit(llvm::Module &module, llvm::TargetMachine &machine,
                                      llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  llvm::legacy::PassManager manager;
  if (machine.addPassesToEmitFile(manager, os, nullptr, type))
    return std::nullopt;
  manager.run(module);
  return std::vector<char>(bytes.begin(), bytes.end());
}

} // namespace

FailureOr<std::vector<char>> emitObject(ModuleOp module, const CodegenOptions &options) {
  FailureOr<plan::Plan> plan = kernels::embeddedPlan(module);
  if (failed(plan))
    return failure();
  // Called only for its error: LLVM itself would only warn of an unknown CPU and go on.
  llvm::Expected<TargetShape> shape = shapeOfChip(plan->chip);
  if (!shape)
    return module.emitError(llvm::toString(shape.takeError()));
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = makeMachine(plan->chip, error, options.isQuick);
  if (!machine)
    return module.emitError("expected code generation for this machine, ") << error;

  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context, plan->name);
  if (!code)
    return module.emitError("expected a module at level llvm that translates to LLVM IR");
  prepare(*code, *machine, plan->name);
  // Only the program's symbol stays visible, because programs of other targets have kernels with the same
  // names.
  std::string program = kernels::programName(plan->chip);
  if (!code->getNamedGlobal(program))
    return module.emitError("expected a module at level llvm with the constant ")
           << program << ", as its plan is for chip '" << plan->chip << "', found none";
  llvm::internalizeModule(
      *code, [&](const llvm::GlobalValue &value) { return value.getName() == program; });
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
  optimize(*code, *machine, options);

  if (options.output == CodegenOptions::Output::LlvmIr) {
    std::string text;
    llvm::raw_string_ostream os(text);
    code->print(os, nullptr);
    return std::vector<char>(text.begin(), text.end());
  }
  auto bytes =
      emit(*code, *machine,
           options.output == CodegenOptions::Output::Assembly ? llvm::CodeGenFileType::AssemblyFile
                                                              : llvm::CodeGenFileType::ObjectFile);
  if (!bytes)
    return module.emitError("expected a target that emits object code");
  return std::move(*bytes);
}

llvm::Expected<std::vector<char>> emitTable(llvm::ArrayRef<Program> programs) {
  auto fail = [](const llvm::Twine &text) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
  };
  llvm::StringSet<> symbols;
  for (const Program &program : programs)
    if (!symbols.insert(kernels::programName(program.plan.chip)).second)
      return fail("expected different targets in a library, found two for " +
                  programKey(program.plan.chip));
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = makeMachine(programs[0].plan.chip, error);
  if (!machine)
    return fail("expected code generation for this machine, " + error);
  llvm::LLVMContext context;
  const std::string &name = programs[0].plan.name;
  llvm::Module module(name, context);
  prepare(module, *machine, name);
  auto *pointer = llvm::PointerType::getUnqual(context);
  llvm::SmallVector<llvm::Constant *> fields;
  for (const Program &program : programs)
    fields.push_back(module.getOrInsertGlobal(kernels::programName(program.plan.chip),
                                              llvm::Type::getInt8Ty(context)));
  fields.resize(STEPC_MOST_PROGRAMS, llvm::ConstantPointerNull::get(pointer));
  auto *type = llvm::ArrayType::get(pointer, fields.size());
  auto *table = new llvm::GlobalVariable(module, type, /*isConstant=*/true,
                                         llvm::GlobalValue::ExternalLinkage,
                                         llvm::ConstantArray::get(type, fields), "stepc_programs");
  table->setVisibility(llvm::GlobalValue::HiddenVisibility);
  // The function that the library's header declares. It calls a hidden function, so each library calls its
  // own.
  auto *function = llvm::FunctionType::get(pointer, /*isVarArg=*/false);
  auto *entry = llvm::Function::Create(function, llvm::GlobalValue::ExternalLinkage,
                                       kernels::entryName(name), module);
  // A trainer under UndefinedBehaviorSanitizer reads 8 bytes before each function that it calls by its
  // address. The entry may be the first function of its page.
  entry->setPrefixData(llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), 0));
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", entry));
  builder.CreateRet(builder.CreateCall(module.getOrInsertFunction("stepc_rt_library", function)));
  auto bytes = emit(module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (!bytes)
    return fail("expected a target that emits object code");
  return std::move(*bytes);
}

} // namespace stepc::codegen
