//===- Target.cpp - Targets by name ----------------------------------------===//

#include "passes/kernels/Target.h"

#include "passes/kernels/GpuChips.h"

using namespace mlir;

namespace stepc::kernels {

static llvm::Expected<std::unique_ptr<Target>> makeTarget(StringRef chip) {
  if (isCuda(chip))
    return makeCudaTarget(chip);
  if (isInterpreted(chip))
    return makeInterpretTarget(chip);
  return isEmulated(chip) ? makeEmulatedTarget(chip) : makeCpuTarget(chip);
}

llvm::Expected<std::unique_ptr<Target>> targetOfText(StringRef text) {
  llvm::Expected<std::string> chip = chipOfTarget(text);
  if (!chip)
    return chip.takeError();
  return makeTarget(*chip);
}

FailureOr<std::unique_ptr<Target>> targetOfModule(ModuleOp module) {
  auto chip = module->getAttrOfType<StringAttr>(kChipAttr);
  if (!chip)
    return module.emitError("expected the attribute ") << kChipAttr << " on the module, found none";
  llvm::Expected<std::unique_ptr<Target>> target = makeTarget(chip.getValue());
  if (!target)
    return module.emitError(llvm::toString(target.takeError()));
  return std::move(*target);
}

} // namespace stepc::kernels
