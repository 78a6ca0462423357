//===- EmbedPlan.cpp - The plan as bytes -----------------------------------===//

#include "passes/kernels/EmbedPlan.h"
#include "passes/kernels/KernelBuilder.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/PlanAttributes.h"
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
                        kAbiVersion = "stepc_program_abi_version", kLibrary = "stepc_rt_library";

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
    FailureOr<plan::Plan> plan = planOfKernels(module);
    if (failed(plan))
      return signalPassFailure();
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (isa_and_nonnull<optim::OptimDialect, comm::CommDialect>(op.getDialect()))
        op.erase();
    auto step = module.lookupSymbol<LLVM::LLVMFuncOp>(kStepFunction);
    if (!step) {
      module.emitError("expected an llvm.func named ") << kStepFunction;
      return signalPassFailure();
    }
    for (NamedAttribute attribute : llvm::to_vector(step->getDiscardableAttrs()))
      step->removeDiscardableAttr(attribute.getName());
    step.setVisibility_(LLVM::Visibility::Hidden);
    plan->programHash = hashOf(module);

    KernelBuilder b(&getContext(), module.getLoc());
    b.setInsertionPointToStart(module.getBody());
    auto global = [&](StringRef name, Type type, Attribute value) {
      auto op = LLVM::GlobalOp::create(b, b.loc, type, /*isConstant=*/true, LLVM::Linkage::External,
                                       name, value);
      op.setVisibility_(LLVM::Visibility::Hidden);
    };
    std::vector<uint8_t> bytes = plan::serialize(*plan);
    StringRef text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    global(kAbiVersion, b.getI64Type(), b.getI64IntegerAttr(STEPC_KERNEL_ABI_VERSION));
    global(kPlanBytes, b.getI64Type(), b.getI64IntegerAttr(int64_t(bytes.size())));
    global(kPlan, LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size()), b.getStringAttr(text));

    // The one symbol that users see. What it calls is hidden, so each library answers for itself.
    auto library = declare(module, kLibrary, b.pointer, {});
    b.setInsertionPointToEnd(module.getBody());
    auto entry = LLVM::LLVMFuncOp::create(b, b.loc, entryName(plan->name),
                                          LLVM::LLVMFunctionType::get(b.pointer, {}));
    b.setInsertionPointToStart(entry.addEntryBlock(b));
    Value table = LLVM::CallOp::create(b, b.loc, library, ValueRange{}).getResult();
    LLVM::ReturnOp::create(b, b.loc, table);
  }
};

} // namespace
} // namespace stepc::kernels
