//===- OptimAttrs.cpp - Placements, hops and strategies --------------------===//

#include "dialects/optim/Optim.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

/// `owned [<0, 1, 2>] replicated [<1, 1, 4>]`; a list without factors is left out.
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

plan::Placement ReplicateAttr::lower() const { return {plan::PlacementKind::Replicate, 0, 1}; }
std::optional<int64_t> ReplicateAttr::shardedAxis() const { return std::nullopt; }
std::string ReplicateAttr::whyIllegal(int64_t, ArrayRef<Attribute>, int64_t,
                                      ArrayRef<int64_t>) const {
  return "";
}

/// Empty, or why axis `dim` cannot be split.
static std::string axisOutOfRange(int64_t dim, int64_t rank) {
  if (dim >= 0 && dim < rank)
    return "";
  return ("expected a tensor axis between 0 and " + Twine(rank - 1) + ", found " + Twine(dim))
      .str();
}

plan::Placement ShardAttr::lower() const { return {plan::PlacementKind::Shard, getDim(), 1}; }
std::optional<int64_t> ShardAttr::shardedAxis() const { return getDim(); }
std::string ShardAttr::whyIllegal(int64_t, ArrayRef<Attribute>, int64_t rank,
                                  ArrayRef<int64_t>) const {
  return axisOutOfRange(getDim(), rank);
}

plan::Placement StridedShardAttr::lower() const {
  return {plan::PlacementKind::StridedShard, getDim(), getFactor()};
}
std::optional<int64_t> StridedShardAttr::shardedAxis() const { return getDim(); }
std::string StridedShardAttr::whyIllegal(int64_t position, ArrayRef<Attribute> placements,
                                         int64_t rank, ArrayRef<int64_t> meshSizes) const {
  if (std::string why = axisOutOfRange(getDim(), rank); !why.empty())
    return why;
  // Later mesh axes that shard the same axis, in the order in which they cut it: each comes after
  // the first few whose sizes multiply to its own factor (docs/manifest.md).
  SmallVector<int64_t> cuts;
  auto firstFew = [&](int64_t factor) -> std::optional<size_t> {
    int64_t product = 1;
    size_t count = 0;
    while (product < factor && count < cuts.size())
      product *= cuts[count++];
    return product == factor ? std::optional<size_t>(count) : std::nullopt;
  };
  for (int64_t i = placements.size() - 1; i > position; --i) {
    auto later = cast<PlacementAttrInterface>(placements[i]);
    if (later.shardedAxis() != getDim())
      continue;
    // A wrong factor of a later axis is that placement's own error.
    std::optional<size_t> at = firstFew(later.lower().factor);
    cuts.insert(cuts.begin() + at.value_or(cuts.size()), meshSizes[i]);
  }
  if (firstFew(getFactor()))
    return "";
  int64_t all = 1;
  for (int64_t size : cuts)
    all *= size;
  return ("expected a split factor of " + Twine(all) +
          ", the number of shards of later mesh axes, found " + Twine(getFactor()))
      .str();
}

BlocksAttr BlocksAttr::get(MLIRContext *context, const plan::Division &division) {
  SmallVector<DenseI64ArrayAttr> parts;
  for (const std::vector<plan::Span> &part : division.parts) {
    SmallVector<int64_t> numbers;
    for (const plan::Span &span : part)
      numbers.append({span.begin, span.end});
    parts.push_back(DenseI64ArrayAttr::get(context, numbers));
  }
  return get(context, BlockAxis(division.axis), parts);
}

plan::Division BlocksAttr::toPlan() const {
  plan::Division division{plan::Division::Axis(getAxis()), {}};
  for (DenseI64ArrayAttr part : getParts()) {
    std::vector<plan::Span> &spans = division.parts.emplace_back();
    for (size_t i = 0, e = part.size(); i < e; i += 2)
      spans.push_back({part[i], part[i + 1]});
  }
  return division;
}

LogicalResult BlocksAttr::verify(function_ref<InFlightDiagnostic()> emitError, BlockAxis,
                                 ArrayRef<DenseI64ArrayAttr> parts) {
  for (DenseI64ArrayAttr part : parts)
    if (part.size() % 2)
      return emitError() << "expected an end for each begin of a part, found " << part.size()
                         << " numbers";
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
  }
  llvm_unreachable("unknown placement");
}

std::vector<plan::Placement> optim::toPlan(ArrayAttr placements) {
  std::vector<plan::Placement> result;
  for (Attribute placement : placements)
    result.push_back(cast<PlacementAttrInterface>(placement).lower());
  return result;
}

std::string optim::describe(const std::vector<plan::Placement> &placements) {
  std::string result = "[";
  for (const plan::Placement &placement : placements) {
    if (result.size() > 1)
      result += ", ";
    result += plan::toString(placement);
  }
  return result + "]";
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

SmallVector<StrategyAttrInterface> optim::strategies(MLIRContext *context) {
  SmallVector<StrategyAttrInterface> all;
  for (const StrategyListInterface &dialect :
       DialectInterfaceCollection<StrategyListInterface>(context))
    llvm::append_range(all, dialect.strategies());
  SmallVector<std::pair<StringRef, size_t>> order; // a dialect's own stay in its order
  for (auto [index, strategy] : llvm::enumerate(all))
    order.push_back({strategy.getDialect().getNamespace(), index});
  llvm::sort(order);
  return llvm::map_to_vector(order, [&](const auto &key) { return all[key.second]; });
}
