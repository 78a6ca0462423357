//===- OptimOps.cpp - Operations inside rules and on batches of blocks -----===//

#include "dialects/optim/Optim.h"

#include "runtime/random/Philox.h"

#include <cmath>

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

/// Prints all digits of each value, and the bits of a NaN. The printer of DenseF64ArrayAttr loses both.
static void printDefaults(OpAsmPrinter &printer, Operation *, DenseF64ArrayAttr defaults) {
  printer << '[';
  llvm::interleaveComma(defaults.asArrayRef(), printer,
                        [&](double value) { printer.printFloat(APFloat(value)); });
  printer << ']';
}
static ParseResult parseDefaults(OpAsmParser &parser, DenseF64ArrayAttr &defaults) {
  SmallVector<double> values;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     [&] { return parser.parseFloat(values.emplace_back()); }))
    return failure();
  defaults = parser.getBuilder().getDenseF64ArrayAttr(values);
  return success();
}

/// Prints one type if source and result have the same type, and `SOURCE to RESULT` otherwise.
static void printSourceAndResult(OpAsmPrinter &printer, Operation *, Type source, Type result) {
  printer << source;
  if (source != result)
    printer << " to " << result;
}
static ParseResult parseSourceAndResult(OpAsmParser &parser, Type &source, Type &result) {
  if (parser.parseType(source))
    return failure();
  result = source;
  return succeeded(parser.parseOptionalKeyword("to")) ? parser.parseType(result) : success();
}

#define GET_OP_CLASSES
#include "dialects/optim/OptimOps.cpp.inc"

bool optim::hasSpace(Operation *op) {
  if (op->getNumResults() != 1 || isa<SplatOp, RandomOp>(op))
    return false;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || type.getElementType().isInteger(1))
    return false;
  bool isElementwise = !isa<BroadcastOp, PositionOp, arith::ExtFOp>(op);
  return isa<MatrixOpInterface>(op) || (isElementwise && !kindOf(type)->isLine());
}

std::optional<Space> optim::spaceOf(Operation *op) {
  auto space = op ? op->getAttrOfType<SpaceAttr>(kSpaceAttr) : SpaceAttr();
  return space ? std::optional(space.getValue()) : std::nullopt;
}

Writes optim::writesOf(RuleOp rule) {
  Writes result;
  if (auto writes = rule.getBody().front().getTerminator()->getAttrOfType<ArrayAttr>(kWritesAttr))
    for (Attribute write : writes) {
      auto space = dyn_cast<SpaceAttr>(write);
      result.push_back(space ? std::optional(space.getValue()) : std::nullopt);
    }
  return result;
}

static void collectPlaced(Value value, const llvm::DenseSet<Value> &placed,
                          llvm::DenseSet<Value> &seen, SmallVectorImpl<Value> &found) {
  if (!isa<RankedTensorType>(value.getType()) || !seen.insert(value).second)
    return;
  Operation *op = value.getDefiningOp();
  if (!op || hasSpace(op) || placed.contains(value))
    found.push_back(value);
  else
    for (Value operand : op->getOperands())
      collectPlaced(operand, placed, seen, found);
}

SmallVector<Value> optim::placedOperands(Operation *op, const llvm::DenseSet<Value> &placed) {
  llvm::DenseSet<Value> seen;
  SmallVector<Value> found;
  for (Value operand : op->getOperands())
    collectPlaced(operand, placed, seen, found);
  return found;
}

SmallVector<Value> optim::placedOperands(Value operand, const llvm::DenseSet<Value> &placed) {
  llvm::DenseSet<Value> seen;
  SmallVector<Value> found;
  collectPlaced(operand, placed, seen, found);
  return found;
}

SmallVector<int64_t> optim::extentsOf(ShapedType type) {
  if (type.getRank() != 2)
    return SmallVector<int64_t>(type.getShape());
  ValueKind kind = *kindOf(type);
  return {kind.rows, kind.cols};
}

LogicalResult BroadcastOp::verify() {
  auto from = cast<ShapedType>(getSource().getType()), to = cast<ShapedType>(getResult().getType());
  if (from.getElementType() != to.getElementType() || from.getRank() != to.getRank())
    return emitOpError("expected equal element types and ranks, found ") << from << " and " << to;
  for (auto [a, b] : llvm::zip(extentsOf(from), extentsOf(to)))
    if (a != b && a != 1)
      return emitOpError("expected axes that are equal or 1 in the source, found ")
             << from << " and " << to;
  return success();
}

LogicalResult PositionOp::verify() {
  auto tensor = dyn_cast<RankedTensorType>(getType());
  bool ofRows = getAxis() == plan::Division::Rows;
  if (!tensor)
    return success();
  std::optional<ValueKind> kind = kindOf(tensor);
  int64_t counted = kind ? (ofRows ? kind->rows : kind->cols) : 1;
  int64_t other = kind ? (ofRows ? kind->cols : kind->rows) : 1;
  if (tensor.getRank() == 2 && counted != 1 && other == 1)
    return success();
  return emitOpError("expected one value per ")
         << (ofRows ? "row" : "column") << ", found " << tensor;
}

bool optim::dependsOnPlace(Operation *op) { return isa<PositionOp, RandomOp>(op); }

LogicalResult RandomOp::verify() {
  constexpr int64_t kMost = random::kMostCalls - 1;
  if (int64_t call = int64_t(getCall()); call < 0 || call > kMost)
    return emitOpError("expected a call from 0 to ") << kMost << ", found " << call;
  auto tensor = dyn_cast<RankedTensorType>(getType());
  if (tensor && (tensor.getRank() != 2 || kindOf(tensor)->isLine()))
    return emitOpError(
               "expected a value for each element of a block, or of a matrix of other sizes, "
               "found ")
           << tensor;
  SmallVector<Type> types{getHigh().getType()};
  if (getCondition())
    types.push_back(getCondition().getType());
  for (Type type : types) {
    auto one = dyn_cast<RankedTensorType>(type);
    if (bool(one) != bool(tensor) || (one && kindOf(one) != ValueKind::One))
      return emitOpError("expected a seed, a step and a condition of one value, found ") << type;
  }
  return success();
}

/// A type of bf16 with the extents of another.
static Type narrowed(Type type) {
  Type narrow = BFloat16Type::get(type.getContext());
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.clone(narrow) : narrow;
}

void StochasticOp::build(OpBuilder &builder, OperationState &state, Value source, Value uniform) {
  build(builder, state, narrowed(source.getType()), source, uniform, /*ofParameter=*/false);
}

LogicalResult StochasticOp::verify() {
  if (getType() == narrowed(getSource().getType()))
    return success();
  return emitOpError("expected a result of the source's extents, found ")
         << getType() << " of " << getSource().getType();
}

LogicalResult ReduceOp::verify() {
  auto from = cast<ShapedType>(getSource().getType()), to = cast<ShapedType>(getType());
  if (from.getRank() != to.getRank())
    return emitOpError("expected equal ranks, found ") << from << " and " << to;
  for (auto [a, b] : llvm::zip(extentsOf(from), extentsOf(to)))
    if (a != b && b != 1)
      return emitOpError("expected axes that are equal or 1 in the result, found ")
             << from << " and " << to;
  return success();
}

std::array<int64_t, 3> ProductOp::getSizes() {
  auto lhs = cast<ShapedType>(getLhs().getType()), rhs = cast<ShapedType>(getRhs().getType());
  int64_t m = lhs.getDimSize(getTransposeLhs() ? 2 : 1),
          k = lhs.getDimSize(getTransposeLhs() ? 1 : 2);
  int64_t n = rhs.getDimSize(getTransposeRhs() ? 1 : 2);
  return {m, n, k};
}

LogicalResult ProductOp::verify() {
  for (Value value : getOperands())
    if (cast<ShapedType>(value.getType()).getRank() != 3)
      return emitOpError("expected operands of rank 3, found ") << value.getType();
  auto [m, n, k] = getSizes();
  auto rhs = cast<ShapedType>(getRhs().getType());
  int64_t rhsK = rhs.getDimSize(getTransposeRhs() ? 2 : 1);
  if (rhsK != k)
    return emitOpError("expected equal inner extents, found ") << k << " and " << rhsK;
  auto isResult = [m = m, n = n](Value value) {
    auto type = cast<ShapedType>(value.getType());
    return type.getDimSize(1) == m && type.getDimSize(2) == n;
  };
  if (!isResult(getInit()) || (getAddend() && !isResult(getAddend())))
    return emitOpError("expected addend and out of ") << m << " x " << n;
  if (getSymmetric() && m != n)
    return emitOpError("expected a square result for symmetric, found ") << m << " x " << n;
  return checkShift(*this);
}

static RankedTensorType blockOf(Value batch) {
  auto type = cast<ShapedType>(batch.getType());
  return RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
}
SmallVector<RankedTensorType> ApplyOp::getSourceBlocks() {
  return llvm::map_to_vector(getSources(), blockOf);
}
RankedTensorType ApplyOp::getOutBlock() { return blockOf(getInit()); }

LogicalResult ApplyOp::verify() {
  for (Value value : getOperands())
    if (cast<ShapedType>(value.getType()).getRank() != 3)
      return emitOpError("expected operands of rank 3, found ") << value.getType();
  return getFunction().verifyBlocks([&] { return emitOpError(); }, getSourceBlocks(),
                                    getOutBlock());
}

/// Adds a write of the memref `init`, and reads of all other memrefs. Tensors are values and have no effects.
static void addEffects(Operation *op, Value init,
                       SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    if (operand.get() != init)
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
    else
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}
void ProductOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addEffects(*this, getInit(), effects);
}
void ApplyOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addEffects(*this, getInit(), effects);
}
