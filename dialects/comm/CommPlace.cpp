//===- CommPlace.cpp - Where a staged value stands -------------------------===//

#include "dialects/comm/Comm.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;

static_assert(int64_t(Holds::Full) == int64_t(ValueKind::Full) &&
              int64_t(Holds::Rows) == int64_t(ValueKind::Rows) &&
              int64_t(Holds::Cols) == int64_t(ValueKind::Cols) &&
              int64_t(Holds::One) == int64_t(ValueKind::One) &&
              int64_t(Holds::Gram) == int64_t(plan::ValueKind::Gram));
static_assert(int64_t(End::Rest) == int64_t(plan::End::Rest) &&
              int64_t(End::Sent) == int64_t(plan::End::Sent) &&
              int64_t(End::Received) == int64_t(plan::End::Received) &&
              int64_t(End::Kept) == int64_t(plan::End::Kept));
static_assert(int64_t(Iteration::Shards) == Distribution::Shards &&
              int64_t(Iteration::Blocks) == Distribution::Blocks &&
              int64_t(Iteration::GradientShards) == Distribution::GradientShards &&
              int64_t(Iteration::StateShards) == Distribution::StateShards &&
              int64_t(Iteration::ReducedShards) == Distribution::ReducedShards);
static_assert(int64_t(CollectiveKind::Exchange) == int64_t(plan::CollectiveKind::Exchange) &&
              int64_t(CollectiveKind::AllGather) == int64_t(plan::CollectiveKind::AllGather));

PlaceAttr PlaceAttr::blocks(FlatSymbolRefAttr segment, ValueKind kind) {
  return get(segment.getContext(), segment, Holds(kind), Distribution::Blocks, Distribution::Blocks,
             End::Rest);
}
PlaceAttr PlaceAttr::partial(FlatSymbolRefAttr segment) {
  return get(segment.getContext(), segment, Holds::Partial, Distribution::Blocks,
             Distribution::Blocks, End::Rest);
}
PlaceAttr PlaceAttr::scalars(FlatSymbolRefAttr group) {
  return get(group.getContext(), group, Holds::Scalars, Distribution::Blocks, Distribution::Blocks,
             End::Rest);
}
PlaceAttr PlaceAttr::packed(FlatSymbolRefAttr segment, ValueKind kind, Distribution from,
                            Distribution to, End end) {
  return get(segment.getContext(), segment, Holds(kind), from, to, end);
}

PlaceAttr PlaceAttr::get(FlatSymbolRefAttr segment, const plan::Place &place) {
  return packed(segment, ValueKind(place.value), place.from, place.to, End(place.end));
}

plan::Place PlaceAttr::toPlan(int64_t segment) const {
  return {segment, isPartial() ? plan::ValueKind::Full : plan::ValueKind(getHolds()), getFrom(),
          getTo(), plan::End(getEnd())};
}

LogicalResult PlaceAttr::verify(function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr,
                                Holds holds, Distribution from, Distribution to, End end) {
  bool moves = end == End::Sent || end == End::Received;
  if (!moves && from != to)
    return emitError() << "expected what is at rest to stand in one distribution, found "
                       << plan::name(from) << " and " << plan::name(to);
  bool isRange = from == Distribution::Ranges;
  if (end == End::Kept && !isRange && (!from.isShards() || holds > Holds::One))
    return emitError() << "expected values of shards to be kept, found " << stringifyHolds(holds)
                       << " in " << plan::name(from);
  if (end == End::Rest && from.kind == Distribution::Pieces)
    return emitError() << "expected what is at rest in shards or blocks, found "
                       << plan::name(from);
  if (moves && from == to)
    return emitError() << "expected a move between two distributions, found " << plan::name(from)
                       << " twice";
  bool isSummed = from.isSummed() || to.isSummed();
  bool adds = from == Distribution::Parts && to == Distribution::Ranges;
  bool fits =
      moves ? adds || (isRange && to == Distribution::Blocks) : isRange == (end == End::Kept);
  if (isSummed && ((holds != Holds::One && holds != Holds::Gram) || !fits))
    return emitError() << "expected parts of one or gram values, which are added up in ranges that "
                          "are kept and gathered in blocks, found "
                       << stringifyHolds(holds) << " in " << plan::name(from) << " and "
                       << plan::name(to);
  if (holds == Holds::Gram && !isSummed && (moves || from != Distribution::Blocks))
    return emitError() << "expected gram values in parts, ranges or blocks, found some in "
                       << plan::name(from);
  if (moves && (holds == Holds::Partial || holds == Holds::Scalars))
    return emitError() << "expected values of blocks to move, found " << stringifyHolds(holds);
  return success();
}

/// A keyword of an enumeration.
template <typename Enum>
static FailureOr<Enum> parseWord(AsmParser &parser, const char *what,
                                 std::optional<Enum> (*symbolize)(StringRef)) {
  StringRef word;
  SMLoc at = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  if (std::optional<Enum> found = symbolize(word))
    return *found;
  parser.emitError(at, "expected ") << what << ", found " << word;
  return failure();
}

static FailureOr<Distribution> parseDistribution(AsmParser &parser) {
  auto symbolize = +[](StringRef word) -> std::optional<Distribution::Kind> {
    for (auto kind : {Distribution::Shards, Distribution::Blocks, Distribution::Pieces,
                      Distribution::GradientShards, Distribution::StateShards,
                      Distribution::ReducedShards, Distribution::Parts, Distribution::Ranges})
      if (StringRef(plan::name(kind)).split(' ').first == word)
        return kind;
    return std::nullopt;
  };
  auto kind = parseWord<Distribution::Kind>(
      parser, "shards, gradient_shards, state_shards, reduced_shards, parts, ranges, blocks or hop",
      symbolize);
  int64_t hop = 0;
  SMLoc at = parser.getCurrentLocation();
  if (failed(kind) || (*kind == Distribution::Pieces && parser.parseInteger(hop)))
    return failure();
  if (hop < 0)
    return parser.emitError(at, "expected the number of a hop, found ") << hop;
  return Distribution(*kind, hop);
}

static std::optional<End> symbolizeMoved(StringRef word) {
  std::optional<End> end = symbolizeEnd(word);
  return end == End::Rest || end == End::Kept ? std::nullopt : end;
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
  if (distribution.isShards())
    return success();
  return emitError() << "expected shards to stand in shards, found " << plan::name(distribution);
}

Attribute PlaceAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr symbol;
  if (parser.parseLess() || parser.parseAttribute(symbol) || parser.parseComma())
    return {};
  auto holds =
      parseWord<Holds>(parser, "full, rows, cols, one, gram, partial or scalars", symbolizeHolds);
  if (failed(holds))
    return {};
  FailureOr<Distribution> from = Distribution(Distribution::Blocks), to = from;
  FailureOr<End> end = End::Rest;
  if (*holds != Holds::Partial && *holds != Holds::Scalars) {
    if (parser.parseComma() || failed(from = parseDistribution(parser)))
      return {};
    to = from;
    if (succeeded(parser.parseOptionalKeyword("to")) &&
        (failed(to = parseDistribution(parser)) || parser.parseComma() ||
         failed(end = parseWord<End>(parser, "sent or received", symbolizeMoved))))
      return {};
    if (*end == End::Rest && succeeded(parser.parseOptionalComma())) {
      if (parser.parseKeyword("kept"))
        return {};
      end = End::Kept;
    }
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<PlaceAttr>(parser.getContext(), symbol, *holds, *from, *to, *end);
}

void PlaceAttr::print(AsmPrinter &printer) const {
  printer << '<' << getSymbol() << ", " << stringifyHolds(getHolds());
  if (!isPartial() && !isScalars())
    printer << ", " << plan::name(getFrom());
  if (isMoving())
    printer << " to " << plan::name(getTo());
  if (isPacked())
    printer << ", " << stringifyEnd(getEnd());
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
