//===- ExecAttrs.cpp - Tables, and what commands read and write ------------===//

#include "dialects/exec/Exec.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::exec;

#include "dialects/exec/ExecAttrInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/exec/ExecAttrs.cpp.inc"

void ExecDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/exec/ExecAttrs.cpp.inc"
      >();
}

bool exec::areAlike(Attribute operand, Attribute other) {
  return operand == other ||
         (!isa<ShardsAttr>(operand) && operand.getTypeID() == other.getTypeID());
}

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

static LogicalResult verifyOffset(EmitError emitError, int64_t offset) {
  if (offset >= 0 && offset % comm::kAlignment == 0)
    return success();
  return emitError() << "expected an offset that is not negative and a multiple of "
                     << comm::kAlignment << ", found " << offset;
}

LogicalResult WorkspaceAttr::verify(EmitError emitError, int64_t offset, int64_t bytes, int64_t,
                                    int64_t, int64_t, int64_t) {
  if (bytes < 0)
    return emitError() << "expected bytes of 0 or more, found " << bytes;
  return verifyOffset(emitError, offset);
}

LogicalResult BatchAttr::verify(EmitError emitError, int64_t offset, int64_t bytes,
                                RankedTensorType block, int64_t, int64_t) {
  Type type = block.getElementType();
  if (block.getRank() != 2 || !block.hasStaticShape() ||
      !(type.isF32() || type.isBF16() || type.isF16()))
    return emitError() << "expected a block of two static axes, of f32, bf16 or f16, found "
                       << block;
  return WorkspaceAttr::verify(emitError, offset, bytes, -1, 0, -1, 0);
}

LogicalResult MemberAttr::verify(EmitError emitError, FlatSymbolRefAttr, int64_t bytes) {
  if (bytes >= 0)
    return success();
  return emitError() << "expected bytes of 0 or more, found " << bytes;
}

LogicalResult PoolAttr::verify(EmitError emitError, int64_t offset, int64_t bytes,
                               ArrayRef<MemberAttr>) {
  return WorkspaceAttr::verify(emitError, offset, bytes, -1, 0, -1, 0);
}

LogicalResult KernelAttr::verify(EmitError emitError, FlatSymbolRefAttr, int64_t items) {
  if (items >= 1)
    return success();
  return emitError() << "expected at least one item per block, found " << items;
}

LogicalResult ScalarsAttr::verify(EmitError emitError, int64_t offset, int64_t columns) {
  if (columns < 0)
    return emitError() << "expected columns of 0 or more, found " << columns;
  return verifyOffset(emitError, offset);
}

LogicalResult ShardsAttr::verify(EmitError emitError, comm::ShardsKind kind, StringAttr state) {
  if ((kind == comm::ShardsKind::State) == bool(state))
    return success();
  return emitError()
         << "expected the name of a state for the shards of a state, and for these only";
}

FailureOr<plan::Operand> WorkspaceAttr::lower(Operation *, const plan::Plan &, int64_t) const {
  plan::Operand made{plan::OperandKind::Workspace, getOffset(), getBytes(), getStart(),
                     getTraveller()};
  made.pool = getPool();
  made.member = getMember();
  return made;
}

FailureOr<plan::Operand> BatchAttr::lower(Operation *, const plan::Plan &, int64_t) const {
  return plan::Operand{
      plan::OperandKind::Batch,  getOffset(), getBytes(), -1, 0, getRows(), getCols(),
      *optim::toPlan(getType()), getPool(),   getMember()};
}

FailureOr<plan::Operand> ScalarsAttr::lower(Operation *, const plan::Plan &, int64_t) const {
  return plan::Operand{plan::OperandKind::Scalars, getOffset(),
                       getColumns() * int64_t(sizeof(float))};
}

FailureOr<plan::Operand> BlockRowsAttr::lower(Operation *, const plan::Plan &, int64_t) const {
  return plan::Operand{plan::OperandKind::BlockRows};
}

FailureOr<plan::Operand> ShardsAttr::lower(Operation *op, const plan::Plan &plan,
                                           int64_t group) const {
  if (getKind() == comm::ShardsKind::Parameter)
    return plan::Operand{plan::OperandKind::Parameters};
  if (getKind() == comm::ShardsKind::Gradient)
    return plan::Operand{plan::OperandKind::Gradients};
  const plan::Rule &rule = plan.rules[plan.groups[group].rule];
  for (auto [index, state] : llvm::enumerate(rule.states))
    if (state.name == getState().getValue())
      return plan::Operand{plan::OperandKind::State, int64_t(index)};
  return op->emitOpError("expected a state of rule '")
         << rule.name << "', found '" << getState().getValue() << "'";
}
