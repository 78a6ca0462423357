//===- CommOps.cpp - Segments, stages, copies, workspace -------------------===//

#include "dialects/comm/Comm.h"

#include "runtime/sums/Parts.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;

#define GET_OP_CLASSES
#include "dialects/comm/CommOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Symbols: verifiers look them up in one symbol table for all operations of the module. A search
// from each operation would make every verification quadratic in the number of groups.
//===----------------------------------------------------------------------===//

static optim::GroupOp findGroup(Operation *op, FlatSymbolRefAttr name,
                                SymbolTableCollection &symbols) {
  auto group = symbols.lookupNearestSymbolFrom<optim::GroupOp>(op, name);
  if (!group)
    op->emitOpError("expected a group, found no optim.group named ") << name;
  return group;
}

/// Verifies that `value`, if it is shards, is of the group of the operation's segment.
static LogicalResult verifyShards(Operation *op, Value value, SegmentOp segment) {
  auto type = dyn_cast<ShardsType>(value.getType());
  if (!type || type.getGroup() == segment.getGroupAttr())
    return success();
  auto diag = op->emitOpError("expected shards of group ")
              << segment.getGroupAttr() << ", found shards of group " << type.getGroup();
  diag.attachNote(value.getLoc()) << "the shards are here";
  return diag;
}

LogicalResult StageOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto segment = symbols.lookupNearestSymbolFrom<SegmentOp>(*this, getSegmentAttr());
  if (!segment)
    return emitOpError("expected a segment, found no comm.segment named ") << getSegmentAttr();
  for (Value value : getOperands())
    if (failed(verifyShards(*this, value, segment)))
      return failure();
  if (!getScalars() || placeOf(getScalars()).getSymbol() == segment.getGroupAttr())
    return success();
  return emitOpError("expected the scalars of group ")
         << segment.getGroupAttr() << ", found those of " << placeOf(getScalars()).getSymbol();
}

LogicalResult SegmentOp::verify() {
  if (getAll() == getBlocks().has_value())
    return emitOpError("expected either all or blocks");
  if (int64_t wave = getWave().value_or(0); wave < 0 || wave >= optim::kMostWaves)
    return emitOpError("expected a wave between 0 and ")
           << optim::kMostWaves - 1 << ", found " << wave;
  llvm::SmallDenseSet<int64_t> seen;
  for (int64_t block : getBlocks().value_or(ArrayRef<int64_t>()))
    if (!seen.insert(block).second)
      return emitOpError("expected distinct blocks, found ") << block << " twice";
  return success();
}

LogicalResult SegmentOp::verifySymbolUses(SymbolTableCollection &symbols) {
  optim::GroupOp group = findGroup(*this, getGroupAttr(), symbols);
  if (!group)
    return failure();
  if (!getBlocks())
    return success();
  int64_t count = group.getBlocksPerParameter() * int64_t(group.getParameters().size());
  ArrayRef<int64_t> blocks = *getBlocks();
  for (int64_t block : blocks)
    if (block < 0 || block >= count)
      return emitOpError("expected blocks below ") << count << ", found " << block;
  return success();
}

LogicalResult ShardsOp::verify() {
  if (getType().getGroup() != getGroupAttr())
    return emitOpError("expected shards of group ") << getGroupAttr() << ", found " << getType();
  if (getKind() != ShardsKind::Parameter && getKind() != ShardsKind::Gradient &&
      getKind() != ShardsKind::State)
    return emitOpError("expected shards that are bound: of the parameter, the gradient or a state, "
                       "found ")
           << plan::name(getKind());
  if (getState().has_value() != (getKind() == ShardsKind::State))
    return emitOpError("expected a state name for states only");
  return success();
}

LogicalResult ShardsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  optim::GroupOp group = findGroup(*this, getGroupAttr(), symbols);
  if (!group)
    return failure();
  auto rule = symbols.lookupNearestSymbolFrom<optim::RuleOp>(group, group.getRuleAttr());
  // If the group's rule is missing, the group's own verifier emits the error.
  if (!rule || !getState())
    return success();
  auto states = rule.getStates().getAsRange<optim::StateAttr>();
  auto state = llvm::find_if(
      states, [&](optim::StateAttr state) { return state.getName() == getStateAttr(); });
  if (state == states.end())
    return emitOpError("expected a state of group ")
           << getGroupAttr() << ", found " << getStateAttr();
  if ((*state).getType() != getType().getElementType())
    return emitOpError("expected shards of ")
           << getGroupAttr() << " and " << (*state).getType() << ", found " << getType();
  return success();
}

/// Verifies that a view's dynamic size is a comm.extent of its place. (The proof compares bytes with tables.)
static LogicalResult verifyExtent(BufferOp buffer, Value view) {
  PlaceAttr place = placeOf(view);
  if (!place || place.isScalars())
    return success(); // the type of scalars fixes their size
  auto refuse = [&](const Twine &found, Operation *other, const char *note) {
    auto diag = buffer.emitOpError("expected the size of ") << place << ", found " << found.str();
    if (other)
      diag.attachNote(other->getLoc()) << note;
    return diag;
  };
  auto type = cast<MemRefType>(view.getType());
  if (type.getNumDynamicDims() != 1 || !type.isDynamicDim(0))
    return refuse("a type that fixes it", nullptr, "");
  Value size = buffer.getExtentsOf(view).front();
  auto extent = size.getDefiningOp<ExtentOp>();
  if (!extent)
    return refuse("a value that is no comm.extent", size.getDefiningOp(), "the value is here");
  PlaceAttr given = extent.getPlace();
  // All batches of a segment have one item per block that the rank computes, whatever their kind.
  if (given == place ||
      (given.isBatch() && place.isBatch() && given.getSymbol() == place.getSymbol()))
    return success();
  std::string found;
  llvm::raw_string_ostream(found) << "that of " << given;
  return refuse(found, extent, "the extent is here");
}

LogicalResult BufferOp::verify() {
  int64_t offset = getOffset(), bytes = getBytes();
  if (offset < 0 || offset % kAlignment || bytes < 1)
    return emitOpError("expected an offset that is a multiple of 64 and not negative, and at least "
                       "one byte, found ")
           << offset << " and " << bytes;
  if (getViews().empty())
    return emitOpError("expected a result, found none");
  int64_t dynamic = 0;
  for (Type each : getViews().getTypes()) {
    auto type = cast<MemRefType>(each);
    dynamic += type.getNumDynamicDims();
    PlaceAttr place = placeOf(each);
    if (isPool() && (!place || !place.isBatch() || type.getNumDynamicDims() != 1 ||
                     !type.isDynamicDim(0) || !type.getLayout().isIdentity()))
      return emitOpError("expected batches of blocks where several values share a buffer, found ")
             << each;
  }
  if (dynamic != int64_t(getExtents().size()))
    return emitOpError("expected one extent per dynamic dimension, ")
           << dynamic << ", found " << getExtents().size();
  for (Value view : getViews())
    if (failed(verifyExtent(*this, view)))
      return failure();
  return success();
}

ValueRange BufferOp::getExtentsOf(Value view) {
  int64_t first = 0;
  for (Value each : getViews()) {
    int64_t count = cast<MemRefType>(each.getType()).getNumDynamicDims();
    if (each == view)
      return getExtents().slice(first, count);
    first += count;
  }
  return {};
}

LogicalResult ScalarsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  optim::GroupOp group = findGroup(*this, getGroupAttr(), symbols);
  if (!group)
    return failure();
  auto rule = symbols.lookupNearestSymbolFrom<optim::RuleOp>(group, group.getRuleAttr());
  if (!rule)
    return success(); // the group's own verifier emits the error
  auto table = cast<ShapedType>(getInit().getType());
  if (table.getRank() != 2 || table.getDimSize(0) != int64_t(group.getParameters().size()))
    return emitOpError("expected a table with one row per parameter, ")
           << group.getParameters().size() << ", found " << table;
  Block &body = getBody().front();
  int64_t given = rule.getNumHyperparameters() + 4;
  for (Value numbers : getNumbers())
    given += countOf(numbers);
  if (body.getNumArguments() != given ||
      !llvm::all_of(body.getArgumentTypes(), [](Type t) { return t.isF64(); }))
    return emitOpError("expected ")
           << given << " arguments of f64, found " << body.getArgumentTypes();
  TypeRange yields = body.getTerminator()->getOperandTypes();
  if (int64_t(yields.size()) != table.getDimSize(1) ||
      !llvm::all_of(yields, [](Type t) { return t.isF64(); }))
    return emitOpError("expected one f64 per column, ")
           << table.getDimSize(1) << ", found " << yields;
  return success();
}

Type comm::elementOf(Type type) {
  if (auto shards = dyn_cast<ShardsType>(type))
    return shards.getElementType();
  return cast<ShapedType>(type).getElementType();
}

Type comm::lineSumsType(MLIRContext *context, plan::Reduction reduction, int64_t count) {
  return IntegerType::get(context, unsigned(8 * count * sums::bytesOf(reduction)));
}

int64_t comm::lineSumsIn(Type type, plan::Reduction reduction) {
  int64_t bits = 8 * sums::bytesOf(reduction);
  bool fits = isa<IntegerType>(type) && type.getIntOrFloatBitWidth() % bits == 0;
  return fits ? type.getIntOrFloatBitWidth() / bits : 0;
}

bool comm::areLineSums(Type type) { return lineSumsIn(type, plan::Reduction::Max) > 0; }

LogicalResult ExtentOp::verify() {
  if (!getPlace().isScalars())
    return success();
  return emitOpError("expected a place whose size differs between ranks, found ") << getPlace();
}

LogicalResult ScalarsOp::verify() {
  if (PlaceAttr place = placeOf(getInit()); !place.isScalars())
    return emitOpError("expected a place of scalars, found ") << place;
  for (Value numbers : getNumbers()) {
    auto type = cast<ShapedType>(numbers.getType());
    PlaceAttr place = placeOf(numbers);
    bool isTable = place.isScalars() && type.getDimSize(0) == 1;
    bool isLine = !place.isScalars() && place.getValue() == ValueKind::One &&
                  place.getEnd() == End::Kept && place.getFrom() == Distribution::Shards;
    if ((!isTable && !isLine) || !type.getElementType().isF32())
      return emitOpError(
                 "expected numbers of the model, a table of one row or a line of one value, found ")
             << type;
  }
  return success();
}

int64_t ScalarsOp::countOf(Value numbers) {
  return placeOf(numbers).isScalars() ? cast<ShapedType>(numbers.getType()).getDimSize(1) : 1;
}

SmallVector<Value> StageOp::getStaged() {
  SmallVector<Value> staged;
  for (Value value :
       llvm::concat<Value>(SmallVector<Value>(getIns()), SmallVector<Value>(getOuts())))
    if (!isa<ShardsType>(value.getType()) && !isLine(value))
      staged.push_back(value);
  return staged;
}

bool StageOp::isLine(Value operand) {
  PlaceAttr place = placeOf(operand);
  return place && getVisited().isShards() && !place.isScalars() && place.getEnd() == End::Kept &&
         place.getValue() != ValueKind::Full && place.getValue() != getKind() &&
         llvm::is_contained(getReduction() ? getOperands() : getIns(), operand);
}

/// Verifies a stage that reduces: what it writes is one line, of f32 or of exact sums.
static LogicalResult verifyReduction(StageOp op) {
  auto refuse = [&](const Twine &expected) {
    return op.emitOpError("expected a stage that reduces to ") << expected.str() << ", found ";
  };
  if (!op.getVisited().isShards())
    return refuse("run over shards") << plan::name(op.getIteration());
  if (op.getWalked())
    return refuse("visit full values") << plan::name(op.getKind());
  if (!op.getWrites().empty())
    return refuse("write no shards") << op.getWrites().front().getType();
  PlaceAttr out = op.getOuts().size() == 1 ? placeOf(op.getOuts()[0]) : PlaceAttr();
  if (out && out.getFrom() == Distribution::ModelParts) {
    if (lineSumsIn(elementOf(op.getOuts()[0]), *op.getReduction()) != 1)
      return refuse("have an exact sum or maximum as each part of the model's number")
             << op.getOuts().getTypes();
  } else if (out && out.getFrom() == Distribution::LineParts) {
    if (lineSumsIn(elementOf(op.getOuts()[0]), *op.getReduction()) == 0)
      return refuse("have exact sums or maxima as the parts of lines") << op.getOuts().getTypes();
  } else if (!out || (out.getValue() != ValueKind::Rows && out.getValue() != ValueKind::Cols) ||
             !elementOf(op.getOuts()[0]).isF32())
    return refuse("have one out, of f32, with a number per row or column")
           << op.getOuts().getTypes();
  // Lines do not say how many terms there are.
  if (llvm::all_of(op.getIns(), [&](Value in) { return op.isLine(in); }))
    return refuse("read full values") << "none";
  return success();
}

/// Verifies a stage over blocks: operands broadcast to the extents that the stage runs over, outs have these.
static LogicalResult verifyBroadcast(StageOp op) {
  for (int64_t axis : {1, 2}) {
    int64_t walked = 1;
    for (Value value : op.getStaged()) {
      int64_t size = cast<ShapedType>(value.getType()).getDimSize(axis);
      if (size != 1 && walked != 1 && size != walked)
        return op.emitOpError("expected operands of ")
               << walked << " or 1 along axis " << axis
               << ", because that is what the stage runs over, found " << value.getType();
      walked = size == 1 ? walked : size;
    }
    for (Value out : op.getOuts())
      if (cast<ShapedType>(out.getType()).getDimSize(axis) != walked)
        return op.emitOpError("expected outs of ")
               << walked << " along axis " << axis
               << ", because that is what the stage runs over, found " << out.getType();
  }
  return success();
}

/// Verifies that an operation has active flags exactly if it works on shards: it then leaves out parameters
/// that a step skips.
static LogicalResult verifyActive(Operation *op, Value active, bool onShards) {
  if (bool(active) == onShards)
    return success();
  if (onShards)
    return op->emitOpError("expected active flags, because shards of parameters that a step skips "
                           "are left out, found none");
  return op->emitOpError("expected no active flags where no shards are visited, found some");
}

LogicalResult StageOp::verify() {
  bool blocks = getIteration() == Distribution::Blocks;
  if (!blocks && (!getVisited().isShards() || getVisited().isOfLines()))
    return emitOpError("expected to run over shards or blocks, found ")
           << plan::name(getIteration());
  if (failed(verifyActive(*this, getActive(), !blocks)))
    return failure();
  if (getWalked() && (blocks || !getKind().isLine()))
    return emitOpError("expected to visit rows, cols or one values of shards, found ")
           << plan::name(getKind()) << " values of " << plan::name(getIteration());
  if (getReduction() && failed(verifyReduction(*this)))
    return failure();
  auto walked = plan::Place::resting(0, getKind(), getVisited());
  for (Value value : getOperands())
    if (auto shards = dyn_cast<ShardsType>(value.getType())) {
      if (blocks)
        return emitOpError("expected no shards over blocks, found ") << shards;
      if (shards.getDistribution() != getVisited())
        return emitOpError("expected shards that stand in ")
               << plan::name(getIteration()) << ", found " << shards;
    }
  for (Value value : getOperands())
    if (PlaceAttr place = placeOf(value);
        isLine(value) && (place.getSymbol() != getSegmentAttr() ||
                          (place.getFrom() != getVisited() && !isReduced(value))))
      return emitOpError("expected lines of segment ")
             << getSegmentAttr() << " that stand in " << plan::name(getVisited())
             << ", found one in " << place;
  for (Value value : getStaged()) {
    PlaceAttr place = placeOf(value);
    if (place.isScalars() || place.getSymbol() != getSegmentAttr() ||
        !place.toPlan(0).isAddressableFrom(walked))
      return emitOpError("expected values of segment ")
             << getSegmentAttr() << " that " << plan::name(getIteration())
             << " lead to, found one in " << place;
  }
  if (getScalars() && !placeOf(getScalars()).isScalars())
    return emitOpError("expected a place of scalars, found ") << placeOf(getScalars());
  int64_t tensors =
      llvm::count_if(getOuts(), [](Value v) { return isa<RankedTensorType>(v.getType()); });
  if (tensors != int64_t(getResults().size()))
    return emitOpError("expected one result per out tensor, ")
           << tensors << ", found " << getResults().size();
  return blocks ? verifyBroadcast(*this) : success();
}

LogicalResult StageOp::verifyRegions() {
  SmallVector<Type> arguments, yields;
  for (Value value : getIns())
    arguments.push_back(elementOf(value));
  if (getScalars())
    arguments.append(cast<ShapedType>(getScalars().getType()).getDimSize(1),
                     Float32Type::get(getContext()));
  for (Value value : getWrites())
    yields.push_back(elementOf(value));
  for (Value value : getOuts()) // a stage that reduces yields terms
    yields.push_back(getReduction() ? Float32Type::get(getContext()) : elementOf(value));
  Block &body = getBody().front();
  if (TypeRange(body.getArgumentTypes()) != TypeRange(arguments))
    return emitOpError("expected region arguments ")
           << arguments << ", found " << body.getArgumentTypes();
  if (TypeRange(body.getTerminator()->getOperandTypes()) != TypeRange(yields))
    return emitOpError("expected yields ")
           << yields << ", found " << body.getTerminator()->getOperandTypes();
  return success();
}

PlaceAttr CopyOp::getPlace() {
  PlaceAttr source = placeOf(getSource());
  return source ? source : placeOf(getDestination());
}

std::pair<plan::Place, plan::Place> CopyOp::getPlaces(int64_t segment) {
  auto of = [&](Value value) {
    if (PlaceAttr place = placeOf(value))
      return place.toPlan(segment);
    // Shards have no kind in their type. They hold values of the same kind as the copy's other side.
    return plan::Place::resting(segment, getPlace().getValue(),
                                cast<ShardsType>(value.getType()).getDistribution());
  };
  return {of(getSource()), of(getDestination())};
}

LogicalResult CopyOp::verify() {
  if (bool(getTarget()) == bool(getInit()))
    return emitOpError("expected either written shards or an out");
  PlaceAttr from = placeOf(getSource()), to = placeOf(getDestination());
  if (!from && !to)
    return emitOpError("expected one side with a place, found shards on both");
  for (PlaceAttr place : {from, to})
    if (place && place.isScalars())
      return emitOpError("expected values of blocks, found ") << place;
  if (failed(verifyActive(*this, getActive(), !from || !to)))
    return failure();
  auto [source, target] = getPlaces(0);
  if ((from && to && from.getSymbol() != to.getSymbol()) || !source.copiesTo(target)) {
    auto diag = emitOpError("expected places of one value between which a rank can copy, found ");
    from ? diag << from : diag << "shards";
    return to ? diag << " and " << to : diag << " and shards";
  }
  if (elementOf(getSource()) != elementOf(getDestination()))
    return emitOpError("expected equal element types, found ")
           << elementOf(getSource()) << " and " << elementOf(getDestination());
  return success();
}

LogicalResult SumOp::verify() {
  PlaceAttr from = placeOf(getSource()), to = placeOf(getInit());
  bool ofLines = from && from.getFrom() == Distribution::LineParts;
  bool fits =
      from && to && from.getSymbol() == to.getSymbol() && from.getEnd() == End::Received &&
      from.getTo() == to.getFrom() && to.getEnd() == End::Kept &&
      from.getValue() == to.getValue() &&
      (from.getFrom() == Distribution::Parts || ofLines || from.getValue() == ValueKind::Full);
  if (!fits)
    return emitOpError("expected full values of one segment that were received, and where they are "
                       "kept, or parts that were received, and a range of sums, found ")
           << getSource().getType() << " and " << getInit().getType();
  if (getReduction().has_value() != ofLines)
    return emitOpError("expected a reduction where parts of lines are added up, and there alone");
  if (ofLines) {
    if (!lineSumsIn(elementOf(getSource()), *getReduction()) || !elementOf(getInit()).isF32())
      return emitOpError("expected exact sums or maxima to become f32, found ")
             << elementOf(getSource()) << " and " << elementOf(getInit());
  } else if (elementOf(getSource()) != elementOf(getInit()))
    return emitOpError("expected equal element types, found ")
           << elementOf(getSource()) << " and " << elementOf(getInit());
  if (int64_t(getDivisor()) < 1)
    return emitOpError("expected a divisor of 1 or more, found ") << getDivisor();
  return success();
}

/// Whether a value of kind one is kept in a distribution.
static bool isOneKept(Value value, Distribution in) {
  PlaceAttr place = placeOf(value);
  return place && !place.isScalars() && place.getValue() == ValueKind::One &&
         place.getEnd() == End::Kept && place.getFrom() == in;
}

LogicalResult CollectOp::verify() {
  auto stands = [&](Value value, Distribution in) {
    return isOneKept(value, in) && lineSumsIn(elementOf(value), getReduction()) == 1;
  };
  for (Value source : getSources())
    if (!stands(source, Distribution::ModelParts))
      return emitOpError("expected exact sums or maxima that are kept in model_parts, found ")
             << source.getType();
  if (stands(getInit(), Distribution::LineParts))
    return success();
  return emitOpError("expected an out that is kept in line_parts, found ") << getInit().getType();
}

LogicalResult SkipOp::verify() {
  if (isOneKept(getValue(), Distribution::Shards) && elementOf(getValue()).isF32())
    return success();
  return emitOpError("expected a value of f32 and kind one that is kept in shards, found ")
         << getValue().getType();
}

//===----------------------------------------------------------------------===//
// Effects: operations read and write the memory behind shards, memrefs and handles of the instance
// (hyperparameters, step counts, flags). Tensors are values, so they have no effects.
//===----------------------------------------------------------------------===//

using Effects = SmallVectorImpl<MemoryEffects::EffectInstance>;

static void addEffect(OpOperand &operand, bool write, Effects &effects) {
  if (!isa<ShardsType, MemRefType, HyperparametersType, StepsType, ActiveType>(
          operand.get().getType()))
    return;
  if (write)
    effects.emplace_back(MemoryEffects::Write::get(), &operand);
  else
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
}

static void addEffects(MutableOperandRange operands, bool write, Effects &effects) {
  for (OpOperand &operand : operands)
    addEffect(operand, write, effects);
}

void SkipOp::getEffects(Effects &effects) {
  addEffect(getValueMutable(), false, effects);
  addEffect(getActiveMutable(), false, effects);
  addEffect(getActiveMutable(), true, effects);
}

void AdvanceStepsOp::getEffects(Effects &effects) {
  addEffect(getActiveMutable(), false, effects);
  addEffect(getStepsMutable(), false, effects);
  addEffect(getStepsMutable(), true, effects);
}

void ScalarsOp::getEffects(Effects &effects) {
  for (OpOperand *read : {&getHyperparametersMutable(), &getStepsMutable(), &getActiveMutable()})
    addEffect(*read, false, effects);
  addEffects(getNumbersMutable(), false, effects);
  addEffect(getInitMutable(), true, effects);
}

void StageOp::getEffects(Effects &effects) {
  addEffects(getInsMutable(), false, effects);
  addEffects(getScalarsMutable(), false, effects);
  addEffects(getActiveMutable(), false, effects);
  addEffects(getWritesMutable(), true, effects);
  addEffects(getOutsMutable(), true, effects);
}

void CopyOp::getEffects(Effects &effects) {
  addEffect(getSourceMutable(), false, effects);
  addEffects(getActiveMutable(), false, effects);
  addEffects(getTargetMutable(), true, effects);
  addEffects(getInitMutable(), true, effects);
}

void SumOp::getEffects(Effects &effects) {
  addEffect(getSourceMutable(), false, effects);
  addEffect(getInitMutable(), true, effects);
}

void CollectOp::getEffects(Effects &effects) {
  addEffect(getActiveMutable(), false, effects);
  addEffects(getSourcesMutable(), false, effects);
  addEffect(getInitMutable(), true, effects);
}

void ExchangeOp::getEffects(Effects &effects) {
  addEffects(getSendsMutable(), false, effects);
  addEffects(getReceivesMutable(), true, effects);
}
void AllGatherOp::getEffects(Effects &effects) {
  addEffects(getSendsMutable(), false, effects);
  addEffects(getReceivesMutable(), true, effects);
}
void StartOp::getEffects(Effects &effects) {
  addEffects(getSendsMutable(), false, effects);
  addEffects(getReceivesMutable(), true, effects);
  // A write to unnamed memory, because ranks meet here: MLIR must not move, merge or drop the operation.
  effects.emplace_back(MemoryEffects::Write::get());
}
void WaitOp::getEffects(Effects &effects) { effects.emplace_back(MemoryEffects::Write::get()); }
