//===- CommDialect.cpp - Registration and types -----------------===//

#include "dialects/comm/Comm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;

#include "dialects/comm/CommDialect.cpp.inc"
#include "dialects/comm/CommInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/comm/CommAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/comm/CommTypes.cpp.inc"

void CommDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/comm/CommAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/comm/CommTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/comm/CommOps.cpp.inc"
      >();
}

StringAttr comm::levelOf(ModuleOp module) { return module->getAttrOfType<StringAttr>(kLevelAttr); }

void comm::setLevel(ModuleOp module, StringRef level) {
  module->setAttr(kLevelAttr, StringAttr::get(module.getContext(), level));
}

InFlightDiagnostic comm::blameInput(InFlightDiagnostic diagnostic) {
  diagnostic.getUnderlyingDiagnostic()->getMetadata().emplace_back(StringRef(kInputErrorMark));
  return diagnostic;
}

/// Stands before the bytes in the metadata of a diagnostic.
constexpr llvm::StringLiteral kNeededMark = "workspace bytes";

InFlightDiagnostic comm::blameWorkspace(InFlightDiagnostic diagnostic, int64_t bytes) {
  auto &metadata = diagnostic.getUnderlyingDiagnostic()->getMetadata();
  metadata.emplace_back(StringRef(kNeededMark));
  metadata.emplace_back(bytes);
  return blameInput(std::move(diagnostic));
}

int64_t comm::neededBytes(Diagnostic &diagnostic) {
  ArrayRef<DiagnosticArgument> metadata = diagnostic.getMetadata();
  for (size_t i = 0; i + 1 < metadata.size(); ++i)
    if (metadata[i].getKind() == DiagnosticArgument::DiagnosticArgumentKind::String &&
        metadata[i].getAsString() == kNeededMark)
      return metadata[i + 1].getAsInteger();
  return 0;
}

LogicalResult CommDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == kSideBySideAttr || name == kReducesAgainAttr || name == kOfModelAttr)
    return isa<UnitAttr>(attribute.getValue()) ? success()
                                               : op->emitOpError("expected ")
                                                     << name << " without a value, found "
                                                     << attribute.getValue();
  if (!llvm::is_contained({kArenaAttr, kLimitAttr, kOffsetAttr, kBytesAttr, kPoolAttr}, name))
    return op->emitOpError("expected an attribute of the dialect comm, found ") << name;
  auto number = dyn_cast<IntegerAttr>(attribute.getValue());
  bool aligned = name == kOffsetAttr;
  if (!number || !number.getType().isInteger(64) || number.getInt() < 0 ||
      (aligned && number.getInt() % kAlignment))
    return op->emitOpError("expected ")
           << name << " to be an i64 that is not negative"
           << (aligned ? " and a multiple of 64" : "") << ", found " << attribute.getValue();
  return success();
}
