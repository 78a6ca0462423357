//===- CommPlace.cpp - Where a staged value stands -------------------------===//

#include "dialects/comm/Comm.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;

static_assert(int64_t(Holds::Full) == int64_t(ValueKind::Full) &&
              int64_t(Holds::Rows) == int64_t(ValueKind::Rows) &&
              int64_t(Holds::Cols) == int64_t(ValueKind::Cols) &&
              int64_t(Holds::One) == int64_t(ValueKind::One));
static_assert(int64_t(Distribution::Shards) == int64_t(plan::Distribution::Shards) &&
              int64_t(Distribution::Blocks) == int64_t(plan::Distribution::Blocks));
static_assert(int64_t(End::Rest) == int64_t(plan::End::Rest) &&
              int64_t(End::Sent) == int64_t(plan::End::Sent) &&
              int64_t(End::Received) == int64_t(plan::End::Received));
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
  return packed(segment, ValueKind(place.value), Distribution(place.from), Distribution(place.to),
                End(place.end));
}

plan::Place PlaceAttr::toPlan(int64_t segment) const {
  return {segment, isPartial() ? plan::ValueKind::Full : plan::ValueKind(getHolds()),
          plan::Distribution(getFrom()), plan::Distribution(getTo()), plan::End(getEnd())};
}

LogicalResult PlaceAttr::verify(function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr,
                                Holds holds, Distribution from, Distribution to, End end) {
  if (end == End::Rest && from != to)
    return emitError() << "expected what is at rest to stand in one distribution, found "
                       << stringifyDistribution(from) << " and " << stringifyDistribution(to);
  if (end != End::Rest && from == to)
    return emitError() << "expected a move between two distributions, found "
                       << stringifyDistribution(from) << " twice";
  if (end != End::Rest && (holds == Holds::Partial || holds == Holds::Scalars))
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

static std::optional<End> symbolizeMoved(StringRef word) {
  std::optional<End> end = symbolizeEnd(word);
  return end == End::Rest ? std::nullopt : end;
}

Attribute PlaceAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr symbol;
  if (parser.parseLess() || parser.parseAttribute(symbol) || parser.parseComma())
    return {};
  auto holds =
      parseWord<Holds>(parser, "full, rows, cols, one, partial or scalars", symbolizeHolds);
  if (failed(holds))
    return {};
  auto distribution = [&] {
    return parseWord<Distribution>(parser, "shards or blocks", symbolizeDistribution);
  };
  FailureOr<Distribution> from = Distribution::Blocks, to = from;
  FailureOr<End> end = End::Rest;
  if (*holds != Holds::Partial && *holds != Holds::Scalars) {
    if (parser.parseComma() || failed(from = distribution()))
      return {};
    to = from;
    if (succeeded(parser.parseOptionalKeyword("to")) &&
        (failed(to = distribution()) || parser.parseComma() ||
         failed(end = parseWord<End>(parser, "sent or received", symbolizeMoved))))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<PlaceAttr>(parser.getContext(), symbol, *holds, *from, *to, *end);
}

void PlaceAttr::print(AsmPrinter &printer) const {
  printer << '<' << getSymbol() << ", " << stringifyHolds(getHolds());
  if (!isPartial() && !isScalars())
    printer << ", " << stringifyDistribution(getFrom());
  if (isPacked())
    printer << " to " << stringifyDistribution(getTo()) << ", " << stringifyEnd(getEnd());
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
    if (!place.isPacked() && place.getFrom() == Distribution::Shards)
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
