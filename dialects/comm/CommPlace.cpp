//===- CommPlace.cpp - Where a staged value stands -------------------------===//

#include "dialects/comm/Comm.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;

/// The word in a place that holds scalars. Other places have the word of their kind of value instead.
static constexpr std::string_view kScalars = "scalars";

static std::string wordOf(Contents contents, ValueKind kind) {
  return contents == Contents::Scalars ? std::string(kScalars) : plan::name(kind);
}

static PlaceAttr make(FlatSymbolRefAttr symbol, Contents contents, plan::Place place) {
  return PlaceAttr::get(symbol.getContext(), symbol, contents, place);
}

PlaceAttr PlaceAttr::get(FlatSymbolRefAttr segment, const plan::Place &place) {
  return packed(segment, place.value, place.from, place.to, place.end);
}
PlaceAttr PlaceAttr::blocks(FlatSymbolRefAttr segment, ValueKind kind) {
  return packed(segment, kind, Distribution::Blocks, Distribution::Blocks, End::Rest);
}
PlaceAttr PlaceAttr::scalars(FlatSymbolRefAttr group) {
  return make(group, Contents::Scalars, blocks(group, ValueKind::Full).getPlace());
}
PlaceAttr PlaceAttr::packed(FlatSymbolRefAttr segment, ValueKind kind, Distribution from,
                            Distribution to, End end) {
  return make(segment, Contents::Values, {-1, kind, from, to, end});
}

plan::Place PlaceAttr::toPlan(int64_t segment) const {
  plan::Place place = getPlace();
  place.segment = segment;
  return place;
}

LogicalResult PlaceAttr::verify(function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr,
                                Contents contents, plan::Place place) {
  auto [segment, kind, from, to, end] = place;
  bool isValue = contents == Contents::Values, moves = place.isMoving();
  if (!moves && from != to)
    return emitError() << "expected what is at rest to stand in one distribution, found "
                       << plan::name(from) << " and " << plan::name(to);
  bool isRange = from == Distribution::Ranges;
  bool ofModel = from == Distribution::ModelParts;
  if ((ofModel || to == Distribution::ModelParts) &&
      (!isValue || kind != ValueKind::One || end != End::Kept))
    return emitError() << "expected parts of a model's number to be kept, found "
                       << wordOf(contents, kind) << " in " << plan::name(from) << " and "
                       << plan::name(to);
  if (end == End::Kept && !isRange && !ofModel &&
      (!from.isShards() || !isValue || !kind.isStored()))
    return emitError() << "expected values of shards to be kept, found " << wordOf(contents, kind)
                       << " in " << plan::name(from);
  if (end == End::Rest && from.kind == Distribution::Pieces)
    return emitError() << "expected what is at rest in shards or blocks, found "
                       << plan::name(from);
  if (moves && from == to)
    return emitError() << "expected a move between two distributions, found " << plan::name(from)
                       << " twice";
  bool rests = end == End::Rest && from == to;
  if (!rests && (from == Distribution::StateBlocks || to == Distribution::StateBlocks))
    return emitError()
           << "expected states that stay with blocks to be a !comm.shards, found a place in "
           << plan::name(Distribution::StateBlocks);
  bool isSummed = from.isSummed() || to.isSummed();
  bool adds = from == Distribution::Parts && to == Distribution::Ranges;
  bool fits =
      moves ? adds || (isRange && to == Distribution::Blocks) : isRange == (end == End::Kept);
  if (isSummed && ((kind != ValueKind::One && kind != ValueKind::Gram) || !fits))
    return emitError() << "expected parts of one or gram values, which are added up in ranges that "
                          "are kept and gathered in blocks, found "
                       << wordOf(contents, kind) << " in " << plan::name(from) << " and "
                       << plan::name(to);
  if (!kind.isStored() && !isSummed &&
      (moves || (from != Distribution::Blocks && from != Distribution::StateBlocks)))
    return emitError() << "expected " << plan::name(kind)
                       << " values in parts, ranges or blocks, found some in " << plan::name(from);
  bool isLineMove = from == Distribution::LineParts
                        ? to == Distribution::LineSums
                        : from == Distribution::LineSums && to.isShards() && !to.isOfLines();
  if ((from.isOfLines() || to.isOfLines()) &&
      (!kind.isLine() || !(moves ? isLineMove : end == End::Kept)))
    return emitError()
           << "expected rows, cols or one values, which are added up from line_parts to "
              "line_sums and move on to shards, found "
           << wordOf(contents, kind) << " in " << plan::name(from) << " and " << plan::name(to);
  if (moves && !isValue)
    return emitError() << "expected values of blocks to move, found " << wordOf(contents, kind);
  return success();
}

static FailureOr<Distribution> parseDistribution(AsmParser &parser) {
  auto kind = FieldParser<Distribution::Kind>::parse(parser);
  int64_t hop = 0;
  SMLoc at = parser.getCurrentLocation();
  if (failed(kind) || (*kind == Distribution::Pieces && parser.parseInteger(hop)))
    return failure();
  if (hop < 0)
    return parser.emitError(at, "expected the number of a hop, found ") << hop;
  return Distribution(*kind, hop);
}

ParseResult comm::parseStanding(AsmParser &parser, Distribution &distribution) {
  if (failed(parser.parseOptionalComma()))
    return success();
  FailureOr<Distribution> found = parseDistribution(parser);
  if (succeeded(found))
    distribution = *found;
  return success(succeeded(found));
}

void comm::printStanding(AsmPrinter &printer, const Distribution &distribution) {
  if (distribution != Distribution::Shards)
    printer << ", " << plan::name(distribution);
}

LogicalResult ShardsType::verify(function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr,
                                 Type, Distribution distribution) {
  if (distribution.isShards() && !distribution.isOfLines())
    return success();
  return emitError() << "expected shards to stand in shards, found " << plan::name(distribution);
}

Attribute PlaceAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr symbol;
  if (parser.parseLess() || parser.parseAttribute(symbol) || parser.parseComma())
    return {};
  ValueKind kind = ValueKind::Full;
  FailureOr<size_t> other = parseKind(parser, kind, kScalars);
  if (failed(other))
    return {};
  Contents contents = *other == 0 ? Contents::Scalars : Contents::Values;
  auto place = plan::Place::resting(-1, ValueKind::Full, Distribution::Blocks);
  if (contents == Contents::Values) {
    place.value = kind;
    FailureOr<Distribution> from, to;
    if (parser.parseComma() || failed(from = parseDistribution(parser)))
      return {};
    place.from = place.to = *from;
    if (succeeded(parser.parseOptionalKeyword("to"))) {
      End ends[] = {End::Sent, End::Received};
      FailureOr<size_t> end;
      if (failed(to = parseDistribution(parser)) || parser.parseComma() ||
          failed(end = parseOneOf(parser, {plan::name(ends[0]), plan::name(ends[1])})))
        return {};
      place.to = *to;
      place.end = ends[*end];
    } else if (succeeded(parser.parseOptionalComma())) {
      if (parser.parseKeyword(plan::name(End::Kept)))
        return {};
      place.end = End::Kept;
    }
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<PlaceAttr>(parser.getContext(), symbol, contents, place);
}

void PlaceAttr::print(AsmPrinter &printer) const {
  printer << '<' << getSymbol() << ", " << wordOf(getContents(), getValue());
  if (!isScalars())
    printer << ", " << plan::name(getFrom());
  if (isMoving())
    printer << " to " << plan::name(getTo());
  if (isPacked())
    printer << ", " << plan::name(getEnd());
  printer << '>';
}

PlaceAttr comm::placeOf(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return dyn_cast_or_null<PlaceAttr>(tensor.getEncoding());
  if (auto memref = dyn_cast<MemRefType>(type))
    return dyn_cast_or_null<PlaceAttr>(memref.getMemorySpace());
  return {};
}

FlatSymbolRefAttr comm::segmentOfBatch(Operation *op) {
  PlaceAttr place = op->getNumOperands() ? placeOf(op->getOperand(0)) : PlaceAttr();
  return place && place.isBatch() ? place.getSymbol() : FlatSymbolRefAttr();
}

/// The types of an operation's operands and results that are staged.
static SmallVector<ShapedType> stagedTypes(Operation *op) {
  SmallVector<ShapedType> types;
  for (TypeRange range : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : range)
      if (auto shaped = dyn_cast<ShapedType>(type))
        types.push_back(shaped);
  return types;
}

LogicalResult comm::detail::verifyPlaces(Operation *op) {
  for (ShapedType type : stagedTypes(op)) {
    PlaceAttr place = placeOf(type);
    if (!place)
      return op->emitOpError("expected a place in the type of each staged value, found ") << type;
    if (place.getEnd() == End::Rest && place.getFrom().isShards())
      return op->emitOpError("expected shards at rest to be a !comm.shards, found ") << type;
    if (type.getRank() != place.getBufferRank())
      return op->emitOpError("expected rank ")
             << place.getBufferRank() << " of what stands in " << place << ", found " << type;
  }
  return success();
}

static LogicalResult verifySymbol(Operation *op, PlaceAttr place, SymbolTableCollection &symbols) {
  if (place.isScalars()) {
    if (symbols.lookupNearestSymbolFrom<optim::GroupOp>(op, place.getSymbol()))
      return success();
    return op->emitOpError("expected a group, found no optim.group named ") << place.getSymbol();
  }
  if (symbols.lookupNearestSymbolFrom<SegmentOp>(op, place.getSymbol()))
    return success();
  return op->emitOpError("expected a segment, found no comm.segment named ") << place.getSymbol();
}

LogicalResult comm::detail::verifyPlaceSymbols(Operation *op, SymbolTableCollection &symbols) {
  if (auto extent = dyn_cast<ExtentOp>(op))
    return verifySymbol(op, extent.getPlace(), symbols);
  for (ShapedType type : stagedTypes(op))
    if (failed(verifySymbol(op, placeOf(type), symbols)))
      return failure();
  return success();
}
