//===- OptimAttrs.cpp - Placements, hops and strategies --------------------===//

#include "dialects/optim/Optim.h"
#include "dialects/optim/strategies/Factors.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

/// Parses `owned [<0, 1, 2>] replicated [<1, 1, 4>]`. An empty list is left out of the text.
static ParseResult parseFactors(AsmParser &parser, SmallVector<plan::Factor> &owned,
                                SmallVector<plan::Factor> &replicated) {
  for (auto [keyword, factors] :
       {std::pair("owned", &owned), std::pair("replicated", &replicated)}) {
    auto parseOne = [&, list = factors]() -> ParseResult {
      FailureOr<plan::Factor> factor = FieldParser<plan::Factor>::parse(parser);
      list->push_back(factor.value_or(plan::Factor()));
      return success(succeeded(factor));
    };
    if (succeeded(parser.parseOptionalKeyword(keyword)) &&
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
      return failure();
  }
  return success();
}

static void printFactors(AsmPrinter &printer, ArrayRef<plan::Factor> owned,
                         ArrayRef<plan::Factor> replicated) {
  const char *gap = "";
  for (auto [keyword, factors] : {std::pair("owned", owned), std::pair("replicated", replicated)})
    if (!factors.empty()) {
      printer << gap << keyword << " [";
      llvm::interleaveComma(factors, printer);
      printer << ']';
      gap = " ";
    }
}

#define GET_ATTRDEF_CLASSES
#include "dialects/optim/OptimAttrs.cpp.inc"

void OptimDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/optim/OptimAttrs.cpp.inc"
      >();
}

plan::Placement ReplicateAttr::lower() const { return {}; }
plan::Placement ShardAttr::lower() const { return {plan::PlacementKind::Shard, getDim()}; }
plan::Placement StridedShardAttr::lower() const {
  return {plan::PlacementKind::StridedShard, getDim(), getFactor()};
}
plan::Placement InterleavedShardAttr::lower() const {
  return {plan::PlacementKind::InterleavedShard, getDim(), getStripes()};
}
plan::Placement OwnedAttr::lower() const { return {plan::PlacementKind::Owned, 0, 1, getOwner()}; }
plan::Placement FlatAttr::lower() const {
  return {plan::PlacementKind::Flat, 0, 1, 0, getCuts().vec()};
}

plan::Placement PartialSumAttr::lower() const { return {plan::PlacementKind::PartialSum}; }
plan::Placement PartialAverageAttr::lower() const { return {plan::PlacementKind::PartialAverage}; }

BlocksAttr BlocksAttr::get(MLIRContext *context, const plan::Division &division) {
  SmallVector<DenseI64ArrayAttr> parts;
  for (const std::vector<plan::Span> &part : division.parts) {
    SmallVector<int64_t> numbers;
    for (const plan::Span &span : part)
      numbers.append({span.begin, span.end});
    parts.push_back(DenseI64ArrayAttr::get(context, numbers));
  }
  return get(context, division.axis, parts);
}

plan::Division BlocksAttr::toPlan() const {
  plan::Division division{getAxis(), {}};
  for (DenseI64ArrayAttr part : getParts()) {
    std::vector<plan::Span> &spans = division.parts.emplace_back();
    for (size_t i = 0, e = part.size(); i < e; i += 2)
      spans.push_back({part[i], part[i + 1]});
  }
  return division;
}

FailureOr<APFloat> optim::parseFigure(AsmParser &parser) {
  double value;
  if (failed(parser.parseFloat(value)))
    return failure();
  return APFloat(value);
}

/// Verifies that a number is finite and above 0. With `zero`, 0 is also right.
static LogicalResult checkFigure(function_ref<InFlightDiagnostic()> emitError, StringRef name,
                                 const APFloat &value, bool zero = false) {
  if (value.isFinite() && !value.isNegative() && (zero || !value.isZero()))
    return success();
  return emitError() << "expected " << name << (zero ? " of at least 0" : " above 0")
                     << " and finite, found " << value.convertToDouble();
}

LogicalResult ClusterLevelAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef,
                                       int64_t ranks, APFloat latency, APFloat gap,
                                       APFloat bandwidth) {
  if (ranks < 1)
    return emitError() << "expected at least one rank in a domain, found " << ranks;
  if (failed(checkFigure(emitError, "a latency", latency, /*zero=*/true)) ||
      failed(checkFigure(emitError, "a gap", gap, /*zero=*/true)) ||
      failed(checkFigure(emitError, "a bandwidth", bandwidth)))
    return failure();
  // With a larger gap, a message could arrive before the ports have carried it.
  if (gap > latency)
    return emitError() << "expected a gap of at most the latency, " << latency.convertToDouble()
                       << ", found " << gap.convertToDouble();
  return success();
}

LogicalResult DeviceAttr::verify(function_ref<InFlightDiagnostic()> emitError, APFloat flops,
                                 APFloat memory, APFloat capacity, APFloat launch, int64_t threads,
                                 bool, plan::ProductKernel) {
  if (threads < 1)
    return emitError() << "expected at least one thread, found " << threads;
  return success(succeeded(checkFigure(emitError, "flops", flops)) &&
                 succeeded(checkFigure(emitError, "memory", memory)) &&
                 succeeded(checkFigure(emitError, "a capacity", capacity)) &&
                 succeeded(checkFigure(emitError, "a launch", launch, /*zero=*/true)));
}

LogicalResult BlocksAttr::verify(function_ref<InFlightDiagnostic()> emitError, plan::Division::Axis,
                                 ArrayRef<DenseI64ArrayAttr> parts) {
  for (DenseI64ArrayAttr part : parts)
    if (part.size() % 2)
      return emitError() << "expected an end for each begin of a part, found " << part.size()
                         << " numbers";
  return success();
}

LogicalResult KindAttr::verify(function_ref<InFlightDiagnostic()> emitError, ValueKind kind) {
  if (!kind.isStored())
    return success();
  return emitError() << "expected other extents than the type tells, found " << plan::name(kind);
}

LogicalResult StateAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr, Type type,
                                ValueKind kind, FloatAttr, bool master, plan::Initial start,
                                bool metric, bool input) {
  if (metric && (kind != ValueKind::One || !type.isF32() || master))
    return emitError() << "expected a metric that is an f32 of kind one and no master, found "
                       << (master ? "a master of " : "") << type << " of " << plan::name(kind);
  bool isMatrix = kind.rows != 1 && kind.cols != 1;
  bool fits = start == plan::Initial::Param ? kind == ValueKind::Full : isMatrix;
  if (start != plan::Initial::Number && (!fits || master))
    return emitError() << "expected a full state to start at " << plan::name(start) << ", found "
                       << (master ? "a master" : plan::name(kind));
  if (input && !kind.isStored())
    return emitError() << "expected an input of full, rows, cols or one, found "
                       << plan::name(kind);
  if (input && (master || metric || start != plan::Initial::Number))
    return emitError() << "expected an input that starts at a number, found "
                       << (master   ? "a master"
                           : metric ? "a metric"
                                    : plan::name(start));
  return success();
}

Attribute optim::toAttribute(MLIRContext *context, const plan::Placement &placement) {
  switch (placement.kind) {
  case plan::PlacementKind::Replicate:
    return ReplicateAttr::get(context);
  case plan::PlacementKind::Shard:
    return ShardAttr::get(context, placement.dim);
  case plan::PlacementKind::StridedShard:
    return StridedShardAttr::get(context, placement.dim, placement.factor);
  case plan::PlacementKind::InterleavedShard:
    return InterleavedShardAttr::get(context, placement.dim, placement.factor);
  case plan::PlacementKind::Owned:
    return OwnedAttr::get(context, placement.owner);
  case plan::PlacementKind::PartialSum:
    return PartialSumAttr::get(context);
  case plan::PlacementKind::PartialAverage:
    return PartialAverageAttr::get(context);
  case plan::PlacementKind::Flat:
    return FlatAttr::get(context, placement.cuts);
  }
  llvm_unreachable("unknown placement");
}

std::vector<plan::Placement> optim::toPlan(ArrayAttr placements) {
  std::vector<plan::Placement> result;
  for (Attribute placement : placements)
    result.push_back(cast<PlacementAttrInterface>(placement).lower());
  return result;
}

//===----------------------------------------------------------------------===//
// Hops and strategies
//===----------------------------------------------------------------------===//

AsmPrinter &plan::operator<<(AsmPrinter &printer, const Factor &factor) {
  printer << '<' << factor.axis << ", " << factor.stride << ", " << factor.size << '>';
  return printer;
}

FailureOr<plan::Factor> FieldParser<plan::Factor>::parse(AsmParser &parser) {
  plan::Factor factor;
  if (parser.parseLess() || parser.parseInteger(factor.axis) || parser.parseComma() ||
      parser.parseInteger(factor.stride) || parser.parseComma() ||
      parser.parseInteger(factor.size) || parser.parseGreater())
    return failure();
  return factor;
}

HopAttr HopAttr::get(MLIRContext *context, const plan::Hop &hop) {
  return get(context, hop.owned, hop.replicated, hop.base);
}

plan::Hop HopAttr::toPlan() const {
  return {getOwned().vec(), getReplicated().vec(), getBase().vec()};
}

LogicalResult HopAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              ArrayRef<plan::Factor> owned, ArrayRef<plan::Factor>,
                              ArrayRef<int64_t> base) {
  if (!owned.empty() || base.empty())
    return success();
  return emitError() << "expected no base without owned factors, found " << base.size();
}

bool StrategyQuery::areWhole(const std::vector<plan::Factor> &resolved) const {
  return geometry::blocksAreWhole(group, mesh, resolved, home, states, &held);
}

bool optim::isFast(ModuleOp module) {
  auto numerics = module->getAttrOfType<StringAttr>(kNumericsAttr);
  return numerics && numerics.getValue() == "fast";
}

SlabShapeAttr SlabShapeAttr::get(MLIRContext *context, const plan::Slabs &slabs) {
  return get(context, slabs.axis, slabs.factors, slabs.shortest, slabs.longest);
}

plan::Slabs SlabShapeAttr::toPlan() const {
  return {getAxis(), getFactors().vec(), getShortest(), getLongest()};
}

SmallVector<StrategyAttrInterface> optim::strategies(MLIRContext *context) {
  SmallVector<StrategyAttrInterface> all;
  for (const StrategyListInterface &dialect :
       DialectInterfaceCollection<StrategyListInterface>(context))
    llvm::append_range(all, dialect.strategies());
  SmallVector<std::pair<StringRef, size_t>> order; // keeps the order within a dialect
  for (auto [index, strategy] : llvm::enumerate(all))
    order.push_back({strategy.getDialect().getNamespace(), index});
  llvm::sort(order);
  return llvm::map_to_vector(order, [&](const auto &key) { return all[key.second]; });
}
