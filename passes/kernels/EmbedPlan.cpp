//===- EmbedPlan.cpp - The plan as bytes -----------------------------------===//

#include "passes/kernels/EmbedPlan.h"
#include "passes/kernels/GpuChips.h"
#include "passes/kernels/KernelBuilder.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/TargetShape.h"
#include "passes/kernels/interpret/Records.h"
#include "passes/plan/PlanOfProgram.h"
#include "runtime/plan/Fnv1a.h"
#include "runtime/plan/Tables.h"
#include "stepc/kernel_abi.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/raw_ostream.h"

namespace stepc::kernels {
#define GEN_PASS_DEF_EMBEDPLAN
#include "passes/kernels/Passes.h.inc"

using namespace mlir;

constexpr StringLiteral kPlan = "stepc_program_plan", kKernels = "stepc_program_kernels",
                        kTarget = "stepc_program_target";

std::string symbolPrefix(StringRef library) {
  std::string name;
  const llvm::UTF8 *at = library.bytes_begin(), *end = library.bytes_end();
  while (at != end) {
    llvm::UTF32 point = *at;
    if (point < 0x80 ||
        llvm::convertUTF8Sequence(&at, end, &point, llvm::strictConversion) != llvm::conversionOK) {
      name += llvm::isAlnum(char(*at)) ? char(*at) : '_';
      ++at;
      continue;
    }
    name += "u" + llvm::utohexstr(point, /*LowerCase=*/true);
  }
  // A library must not have names of the interface itself, or names that C reserves.
  if (name.empty() || !llvm::isAlpha(name.front()) ||
      StringRef(name).starts_with_insensitive("stepc"))
    name = (StringRef(name).starts_with("_") ? "optim" : "optim_") + name;
  return name;
}

std::string entryName(StringRef library) { return symbolPrefix(library) + "_library"; }

std::string programName(StringRef chip) {
  std::string name = "stepc_program_" + programKey(chip);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

FailureOr<plan::Plan> embeddedPlan(ModuleOp module) {
  auto global = module.lookupSymbol<LLVM::GlobalOp>(kPlan);
  auto bytes = global ? dyn_cast_if_present<StringAttr>(global.getValueOrNull()) : StringAttr();
  if (!bytes)
    return module.emitError("expected a module at level llvm, found no constant named ") << kPlan;
  std::string error;
  auto plan = plan::deserialize(bytes.getValue().bytes_begin(), bytes.getValue().size(), error);
  if (!plan)
    return global.emitError("expected the bytes of a plan, ") << error;
  // The text of level 6 may have been edited since the program was proven at level 5.
  error = plan::validate(*plan);
  if (error.empty())
    error = plan::validateProgram(*plan);
  if (!error.empty())
    return global.emitError("expected a consistent plan, ") << error;
  return std::move(*plan);
}

namespace {

/// FNV-1a of the code as text, which has no locations, and of the compiler that will lower it.
uint64_t hashOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().useLocalScope().printLargeElementsAttrWithHex(-1));
  os << LLVM_VERSION_STRING;
  plan::Fnv1a hash;
  hash.bytes(text);
  return hash.state;
}

struct EmbedPlan : impl::EmbedPlanBase<EmbedPlan> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<plan::Plan> plan = planOfProgram(module);
    if (failed(plan) || failed(checkBatches(module)))
      return signalPassFailure();
    if (auto chip = module->getAttrOfType<StringAttr>(kChipAttr))
      plan->chip = chip.str();
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (isa_and_nonnull<optim::OptimDialect, comm::CommDialect, exec::ExecDialect>(
              op.getDialect()))
        op.erase();
    if (failed(checkLaunches(module, *plan)) ||
        failed(isInterpreted(plan->chip) ? embedRecords(module, *plan)
                                         : checkKernels(module, *plan)))
      return signalPassFailure();
    plan->programHash = hashOf(module);
    embed(module, *plan);
  }

  static LogicalResult checkBatches(ModuleOp module) {
    WalkResult walk = module.walk([](exec::BatchOpInterface op) -> WalkResult {
      if (op.getKernelsAttr())
        return success();
      return op->emitOpError("expected kernels, which exec-lower-to-target makes, found none");
    });
    return failure(walk.wasInterrupted());
  }

  /// Checks that the chip has what the launch of each kernel needs. Drops the attribute, because the plan has
  /// it now.
  static LogicalResult checkLaunches(ModuleOp module, const plan::Plan &plan) {
    SymbolTable symbols(module);
    llvm::Expected<GpuTarget> target =
        isCuda(plan.chip) ? cudaTarget(plan.chip) : llvm::Expected<GpuTarget>(GpuTarget());
    if (!target)
      return module.emitError(llvm::toString(target.takeError()));
    for (const plan::Kernel &kernel : plan.kernels) {
      Operation *made = symbols.lookup(kernel.name);
      made->removeAttr(exec::kLaunchAttr);
      if (!kernel.launch && isCuda(plan.chip))
        return made->emitOpError("expected exec.launch on a kernel for GPUs, found none");
      if (!kernel.launch || !isCuda(plan.chip))
        continue;
      if (std::string wrong = checkLimits(*kernel.launch, limitsOf(target->chip)); !wrong.empty())
        return made->emitOpError("on ") << target->chip.name << ": expected " << wrong;
    }
    return success();
  }

  /// Checks the kernels' type: the runtime calls all kernels by their address, as functions of one type.
  LogicalResult checkKernels(ModuleOp module, const plan::Plan &plan) {
    SymbolTable symbols(module);
    Type pointer = LLVM::LLVMPointerType::get(&getContext());
    Type i64 = IntegerType::get(&getContext(), 64);
    auto type =
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&getContext()), {pointer, i64, i64});
    for (const auto &[name, launch] : plan.kernels) {
      auto kernel = symbols.lookup<LLVM::LLVMFuncOp>(name);
      if (kernel && kernel.isExternal() && isCuda(plan.chip)) {
        // The kernel's body is in the GPU's code, where the device finds it by name.
        kernel.erase();
        continue;
      }
      if (!kernel || kernel.isExternal() || kernel.getFunctionType() != type)
        return symbols.lookup(name)->emitOpError("expected a kernel, an llvm.func of type ")
               << type << " with a body";
    }
    return success();
  }

  /// Adds constants of the types in kernel_abi.h. Only the constant of the type stepc_program is visible
  /// outside of its object.
  void embed(ModuleOp module, const plan::Plan &plan) {
    KernelBuilder b(&getContext(), module.getLoc());
    b.setInsertionPointToStart(module.getBody());
    auto constant = [&](StringRef name, Type type, Attribute value = {},
                        LLVM::Linkage linkage = LLVM::Linkage::Internal) {
      auto op = LLVM::GlobalOp::create(b, b.loc, type, /*isConstant=*/true, linkage, name, value);
      if (linkage == LLVM::Linkage::External)
        op.setVisibility_(LLVM::Visibility::Hidden);
      return op;
    };
    auto bytes = [&](StringRef name, StringRef text) {
      constant(name, LLVM::LLVMArrayType::get(b.getI8Type(), text.size()), b.getStringAttr(text));
    };
    // A constant that another object defines. Its type does not matter here.
    auto elsewhere = [&](StringRef name) {
      constant(name, LLVM::LLVMArrayType::get(b.getI8Type(), 0), {}, LLVM::Linkage::External);
      return name;
    };
    /// Initializes a constant with `fields`, one after another.
    auto fill = [&](LLVM::GlobalOp global, llvm::function_ref<SmallVector<Value>()> fields) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(b.createBlock(&global.getInitializerRegion()));
      Value all = LLVM::PoisonOp::create(b, b.loc, global.getType());
      for (auto [index, field] : llvm::enumerate(fields()))
        all = LLVM::InsertValueOp::create(b, b.loc, all, field, int64_t(index));
      LLVM::ReturnOp::create(b, b.loc, all);
    };
    auto address = [&](StringRef name) -> Value {
      return LLVM::AddressOfOp::create(b, b.loc, b.pointer, name);
    };

    std::vector<uint8_t> serialized = plan::serialize(plan);
    bytes(kPlan, StringRef(reinterpret_cast<const char *>(serialized.data()), serialized.size()));
    bytes(kTarget, kindOfChip(plan.chip).str() + std::string(1, '\0'));
    // The runtime defines the devices.
    StringRef device = elsewhere(isCuda(plan.chip)          ? "stepc_device_cuda"
                                 : looksForRaces(plan.chip) ? "stepc_device_emulated_races"
                                 : isEmulated(plan.chip)    ? "stepc_device_emulated"
                                 : isInterpreted(plan.chip) ? "stepc_device_interpret"
                                                            : "stepc_device_cpu");
    StringRef kernels, images;
    if (isCuda(plan.chip)) {
      images = elsewhere(kImages); // gpu-assemble makes them
    } else if (isInterpreted(plan.chip)) {
      images = kImages;
    } else if (!plan.kernels.empty()) {
      kernels = kKernels;
      auto type = LLVM::LLVMArrayType::get(b.pointer, plan.kernels.size());
      fill(constant(kKernels, type), [&] {
        return llvm::map_to_vector(plan.kernels,
                                   [&](const plan::Kernel &k) { return address(k.name); });
      });
    }
    Type i64 = b.getI64Type();
    auto type =
        LLVM::LLVMStructType::getLiteral(b.getContext(), {i64, b.pointer, b.pointer, i64, i64, i64,
                                                          b.pointer, b.pointer, b.pointer});
    fill(constant(programName(plan.chip), type, {}, LLVM::Linkage::External), [&] {
      auto number = [&](int64_t n) -> Value {
        return LLVM::ConstantOp::create(b, b.loc, i64, b.getI64IntegerAttr(n));
      };
      auto orNull = [&](StringRef name) -> Value {
        return name.empty() ? Value(LLVM::ZeroOp::create(b, b.loc, b.pointer)) : address(name);
      };
      auto planBytes = int64_t(serialized.size());
      uint64_t planHash = plan::fnv1a({}, serialized.data(), planBytes);
      return SmallVector<Value>{number(STEPC_KERNEL_ABI_VERSION),
                                address(kTarget),
                                address(kPlan),
                                number(planBytes),
                                number(int64_t(planHash)),
                                number(int64_t(plan::fnv1a({uint64_t(planBytes), planHash}))),
                                orNull(kernels),
                                orNull(images),
                                address(device)};
    });
  }
};

} // namespace
} // namespace stepc::kernels
