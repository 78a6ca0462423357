//===- ExecAttrs.cpp - Tables, and what commands read and write ------------===//

#include "dialects/exec/Exec.h"
#include "runtime/plan/Pinned.h"

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

/// Verifies a part of the workspace: its size in units of `what` is at least 1, its offset a multiple of 64.
static LogicalResult verifyPart(EmitError emitError, int64_t offset, int64_t size, StringRef what) {
  if (size < 1)
    return emitError() << "expected at least one " << what << ", found " << size;
  if (offset >= 0 && offset % comm::kAlignment == 0)
    return success();
  return emitError() << "expected an offset that is not negative and a multiple of "
                     << comm::kAlignment << ", found " << offset;
}

LogicalResult TableAttr::verify(EmitError emitError, TableKind kind, comm::PlaceAttr from,
                                comm::PlaceAttr, int64_t bytes) {
  std::string wrong = plan::expectedBytes(kind, from.getFrom(), bytes);
  if (wrong.empty())
    return success();
  return emitError() << "expected " << wrong << " bytes per element of " << plan::name(kind)
                     << ", found " << bytes;
}

LogicalResult WorkspaceAttr::verify(EmitError emitError, int64_t offset, int64_t bytes,
                                    std::optional<int64_t> start, int64_t traveller,
                                    std::optional<int64_t> pool, int64_t member) {
  for (int64_t number : {start.value_or(0), traveller, pool.value_or(0), member})
    if (number < 0)
      return emitError() << "expected numbers of 0 or more, found " << number;
  if (start && pool)
    return emitError() << "expected a start or a pool, found both";
  return verifyPart(emitError, offset, bytes, "byte");
}

LogicalResult BatchAttr::verify(EmitError emitError, int64_t offset, int64_t bytes,
                                RankedTensorType block, std::optional<int64_t> pool,
                                int64_t member) {
  Type type = block.getElementType();
  if (block.getRank() != 2 || !block.hasStaticShape() || block.getNumElements() == 0 ||
      !(type.isF32() || type.isBF16() || type.isF16()))
    return emitError()
           << "expected a block of two static axes that are not empty, of f32, bf16 or f16, found "
           << block;
  return WorkspaceAttr::verify(emitError, offset, bytes, std::nullopt, 0, pool, member);
}

LogicalResult MemberAttr::verify(EmitError emitError, FlatSymbolRefAttr, int64_t bytes) {
  return verifyPart(emitError, /*offset=*/0, bytes, "byte per block");
}

LogicalResult PoolAttr::verify(EmitError emitError, int64_t offset, int64_t bytes,
                               ArrayRef<MemberAttr>) {
  return verifyPart(emitError, offset, bytes, "byte");
}

LogicalResult KernelAttr::verify(EmitError emitError, FlatSymbolRefAttr, int64_t items) {
  if (items >= 1)
    return success();
  return emitError() << "expected at least one item per block, found " << items;
}

LogicalResult PinnedAlgorithmAttr::verify(EmitError emitError, plan::PinnedAlgorithm algorithm) {
  std::string wrong = plan::checkAlgorithm(algorithm);
  return wrong.empty() ? success() : LogicalResult(emitError() << wrong);
}

LogicalResult LaunchAttr::verify(EmitError emitError, plan::LaunchShape launch) {
  std::string wrong = plan::checkLaunch(launch);
  return wrong.empty() ? success() : LogicalResult(emitError() << wrong);
}

LogicalResult ProductEntryAttr::verify(EmitError emitError, int64_t m, int64_t n, int64_t k,
                                       Type lhs, Type rhs, Type addend, Type out, bool transposeLhs,
                                       bool transposeRhs, ArrayRef<int64_t> leading,
                                       PinnedAlgorithmAttr) {
  if (m < 1 || n < 1 || k < 1)
    return emitError() << "expected extents of at least 1, found " << m << " x " << n << " x " << k;
  std::optional<plan::DType> types[4];
  for (auto [type, made] : llvm::zip(std::array{lhs, rhs, addend, out}, types))
    if (type && !(made = optim::toPlan(type)))
      return emitError() << "expected f32, bf16 or f16, found " << type;
  if (std::string wrong = plan::checkMultiplies(*types[0], *types[1], types[2], *types[3],
                                                /*isSymmetric=*/false);
      !wrong.empty())
    return emitError() << "expected what cuBLASLt multiplies, found " << wrong;
  std::vector<int64_t> least =
      plan::denseLeading(m, n, k, transposeLhs, transposeRhs, bool(addend));
  if (leading.size() != least.size())
    return emitError() << "expected " << least.size()
                       << " leading dimensions, one per operand, found " << leading.size();
  for (auto [found, needed] : llvm::zip(leading, least))
    if (found < needed)
      return emitError() << "expected a leading dimension of at least " << needed
                         << ", a row of the operand, found " << found;
  return success();
}

LogicalResult ScalarsAttr::verify(EmitError emitError, int64_t offset, int64_t columns) {
  // Far more than any rule has, and few enough that their bytes fit an int64_t.
  constexpr int64_t kMostColumns = 1 << 20;
  if (columns > kMostColumns)
    return emitError() << "expected at most " << kMostColumns << " columns, found " << columns;
  return verifyPart(emitError, offset, columns, "column");
}

LogicalResult LineAttr::verify(EmitError emitError, int64_t offset, int64_t bytes) {
  return verifyPart(emitError, offset, bytes, "byte");
}

LogicalResult ShardsAttr::verify(EmitError emitError, plan::ShardsKind kind, StringAttr state) {
  if (kind != plan::ShardsKind::Parameter && kind != plan::ShardsKind::Gradient &&
      kind != plan::ShardsKind::State)
    return emitError() << "expected shards that are bound, found " << plan::name(kind);
  if ((kind == plan::ShardsKind::State) == bool(state))
    return success();
  return emitError()
         << "expected the name of a state for the shards of a state, and for these only";
}

FailureOr<plan::Operand> WorkspaceAttr::lower(Operation *, const plan::Plan &, int64_t) const {
  plan::Operand made{plan::OperandKind::Workspace, getOffset(), getBytes(), getStart().value_or(-1),
                     getTraveller()};
  made.pool = getPool().value_or(-1);
  made.member = getMember();
  return made;
}

plan::Operand BatchAttr::toPlan() const {
  plan::Operand made{plan::OperandKind::Batch, getOffset(), getBytes()};
  made.rows = getRows();
  made.cols = getCols();
  made.type = *optim::toPlan(getType());
  made.pool = getPool().value_or(-1);
  made.member = getMember();
  return made;
}

FailureOr<plan::Operand> BatchAttr::lower(Operation *, const plan::Plan &, int64_t) const {
  return toPlan();
}

FailureOr<plan::Operand> ScalarsAttr::lower(Operation *, const plan::Plan &, int64_t) const {
  return plan::Operand{plan::OperandKind::Scalars, getOffset(),
                       getColumns() * int64_t(sizeof(float))};
}

FailureOr<plan::Operand> LineAttr::lower(Operation *, const plan::Plan &, int64_t) const {
  return plan::Operand{plan::OperandKind::Line, getOffset(), getBytes()};
}

FailureOr<plan::Operand> ShardsAttr::lower(Operation *op, const plan::Plan &plan,
                                           int64_t group) const {
  if (getKind() == plan::ShardsKind::Parameter)
    return plan::Operand{plan::OperandKind::Parameters};
  if (getKind() == plan::ShardsKind::Gradient)
    return plan::Operand{plan::OperandKind::Gradients};
  const plan::Rule &rule = plan.rules[plan.groups[group].rule];
  for (auto [index, state] : llvm::enumerate(rule.states))
    if (state.name == getState().getValue())
      return plan::Operand{plan::OperandKind::State, int64_t(index)};
  return op->emitOpError("expected a state of rule '")
         << rule.name << "', found '" << getState().getValue() << "'";
}
