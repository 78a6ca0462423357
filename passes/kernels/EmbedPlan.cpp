//===- EmbedPlan.cpp - The plan as bytes -----------------------------------===//

#include "passes/kernels/EmbedPlan.h"
#include "passes/kernels/GpuChips.h"
#include "passes/kernels/KernelBuilder.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/TargetShape.h"
#include "passes/plan/PlanOfProgram.h"
#include "stepc/kernel_abi.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/raw_ostream.h"

namespace stepc::kernels {
#define GEN_PASS_DEF_EMBEDPLAN
#include "passes/kernels/Passes.h.inc"

using namespace mlir;

constexpr StringLiteral kPlan = "stepc_program_plan", kPlanBytes = "stepc_program_plan_bytes",
                        kAbiVersion = "stepc_program_abi_version",
                        kKernels = "stepc_program_kernels", kDevice = "stepc_program_device",
                        kLibrary = "stepc_rt_library";

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
  // Names of the interface itself, and those that C reserves, are no library's.
  if (name.empty() || !llvm::isAlpha(name.front()) ||
      StringRef(name).starts_with_insensitive("stepc"))
    name = (StringRef(name).starts_with("_") ? "optim" : "optim_") + name;
  return name;
}

std::string entryName(StringRef library) { return symbolPrefix(library) + "_library"; }

FailureOr<plan::Plan> embeddedPlan(ModuleOp module) {
  auto global = module.lookupSymbol<LLVM::GlobalOp>(kPlan);
  auto bytes = global ? dyn_cast_if_present<StringAttr>(global.getValueOrNull()) : StringAttr();
  if (!bytes)
    return module.emitError("expected a module at level llvm, found no constant named ") << kPlan;
  std::string error;
  auto plan = plan::deserialize(bytes.getValue().bytes_begin(), bytes.getValue().size(), error);
  if (!plan)
    return global.emitError("expected the bytes of a plan, ") << error;
  return std::move(*plan);
}

namespace {

/// FNV-1a of the code as text, which has no locations, and of the compiler that will lower it.
uint64_t hashOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().useLocalScope().printLargeElementsAttrWithHex(-1));
  os << LLVM_VERSION_STRING;
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text)
    hash = (hash ^ c) * 0x100000001b3;
  return hash;
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
    if (failed(checkKernels(module, *plan)))
      return signalPassFailure();
    plan->programHash = hashOf(module);
    embed(module, *plan);
  }

  static LogicalResult checkBatches(ModuleOp module) {
    WalkResult walk = module.walk([](Operation *op) -> WalkResult {
      if (!isa<exec::ProductOp, exec::ReduceOp>(op) || op->hasAttr("kernels"))
        return success();
      return op->emitOpError("expected kernels, which exec-lower-to-target makes, found none");
    });
    return failure(walk.wasInterrupted());
  }

  /// Commands call kernels by their address and know no other type.
  LogicalResult checkKernels(ModuleOp module, const plan::Plan &plan) {
    SymbolTable symbols(module);
    Type pointer = LLVM::LLVMPointerType::get(&getContext());
    Type i64 = IntegerType::get(&getContext(), 64);
    auto type =
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&getContext()), {pointer, i64, i64});
    for (const std::string &name : plan.kernels) {
      auto kernel = symbols.lookup<LLVM::LLVMFuncOp>(name);
      if (kernel && kernel.isExternal() && isCuda(plan.chip)) {
        // Its body is in the GPU's code, which knows it by name.
        kernel.erase();
        continue;
      }
      if (!kernel || kernel.isExternal() || kernel.getFunctionType() != type)
        return symbols.lookup(name)->emitOpError("expected a kernel, an llvm.func of type ")
               << type << " with a body";
    }
    return success();
  }

  void embed(ModuleOp module, const plan::Plan &plan) {
    KernelBuilder b(&getContext(), module.getLoc());
    b.setInsertionPointToStart(module.getBody());
    auto global = [&](StringRef name, Type type, Attribute value) {
      auto op = LLVM::GlobalOp::create(b, b.loc, type, /*isConstant=*/true, LLVM::Linkage::External,
                                       name, value);
      op.setVisibility_(LLVM::Visibility::Hidden);
      return op;
    };
    std::vector<uint8_t> bytes = plan::serialize(plan);
    StringRef text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    global(kAbiVersion, b.getI64Type(), b.getI64IntegerAttr(STEPC_KERNEL_ABI_VERSION));
    global(kPlanBytes, b.getI64Type(), b.getI64IntegerAttr(int64_t(bytes.size())));
    global(kPlan, LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size()), b.getStringAttr(text));
    // The runtime's: its type is not ours to know.
    StringRef device = isCuda(plan.chip)          ? "stepc_device_cuda"
                       : looksForRaces(plan.chip) ? "stepc_device_emulated_races"
                       : isEmulated(plan.chip)    ? "stepc_device_emulated"
                                                  : "stepc_device_cpu";
    global(device, LLVM::LLVMArrayType::get(b.getI8Type(), 0), Attribute());

    // Tables of addresses: of the device, and of the kernels in the plan's order.
    auto addresses = [&](StringRef name, ArrayRef<std::string> symbols, Type type) {
      OpBuilder::InsertionGuard guard(b);
      LLVM::GlobalOp table = global(name, type, Attribute());
      b.setInsertionPointToStart(b.createBlock(&table.getInitializerRegion()));
      Value all;
      if (isa<LLVM::LLVMArrayType>(type))
        all = symbols.empty() ? Value(LLVM::ZeroOp::create(b, b.loc, type))
                              : Value(LLVM::PoisonOp::create(b, b.loc, type));
      for (auto [index, symbol] : llvm::enumerate(symbols)) {
        Value address = LLVM::AddressOfOp::create(b, b.loc, b.pointer, symbol);
        all = all ? Value(LLVM::InsertValueOp::create(b, b.loc, all, address, int64_t(index)))
                  : address;
      }
      LLVM::ReturnOp::create(b, b.loc, all);
    };
    addresses(kDevice, {device.str()}, b.pointer);
    addresses(kKernels, isCuda(plan.chip) ? ArrayRef<std::string>() : ArrayRef(plan.kernels),
              LLVM::LLVMArrayType::get(b.pointer, plan.kernels.size()));

    // The one symbol that users see. What it calls is hidden, so each library answers for itself.
    auto library = declare(module, kLibrary, b.pointer, {});
    b.setInsertionPointToEnd(module.getBody());
    auto entry = LLVM::LLVMFuncOp::create(b, b.loc, entryName(plan.name),
                                          LLVM::LLVMFunctionType::get(b.pointer, {}));
    b.setInsertionPointToStart(entry.addEntryBlock(b));
    Value table = LLVM::CallOp::create(b, b.loc, library, ValueRange{}).getResult();
    LLVM::ReturnOp::create(b, b.loc, table);
  }
};

} // namespace
} // namespace stepc::kernels
