//===- Terms.cpp - What a value is computed from ---------------------------===//

#include "passes/verify/Terms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;

Term Terms::add(StringRef what, Attribute detail, Type element, ArrayRef<Term> operands,
                bool symmetric) {
  what = StringAttr::get(context, what).getValue();
  size_t hash = llvm::hash_combine(what.data(), detail, element,
                                   llvm::hash_combine_range(operands.begin(), operands.end()));
  SmallVector<Term, 1> &same = byHash[hash];
  for (Term term : same) {
    const Node &node = nodes[term];
    if (node.what.data() == what.data() && node.detail == detail && node.element == element &&
        ArrayRef<Term>(node.operands) == operands)
      return term;
  }
  same.push_back(Term(nodes.size()));
  nodes.push_back({what, detail, element, SmallVector<Term, 3>(operands), symmetric});
  return same.back();
}

Term Terms::leaf(StringRef name, Type element) {
  return add("leaf", StringAttr::get(context, name), element, {});
}

Term Terms::withValue(Term term, std::optional<double> value) {
  nodes[term].value = value;
  return term;
}

Term Terms::size(StringRef name, double value) {
  std::string text = ("the scalar '" + name + "' of " + Twine(int64_t(value))).str();
  return withValue(leaf(text, Float64Type::get(context)), value);
}

Term Terms::unknown(Type element) {
  return add("unknown", Builder(context).getI64IntegerAttr(int64_t(nodes.size())), element, {});
}

Term Terms::constant(Attribute value) {
  if (auto splat = dyn_cast<SplatElementsAttr>(value))
    value = splat.getSplatValue<Attribute>();
  auto typed = dyn_cast<TypedAttr>(value);
  if (!typed || !typed.getType().isIntOrFloat())
    return unknown(NoneType::get(context));
  Term term = add("constant", value, typed.getType(), {});
  if (auto number = dyn_cast<FloatAttr>(value))
    return withValue(term, number.getValueAsDouble());
  auto truth = dyn_cast<BoolAttr>(value);
  return truth ? withValue(term, truth.getValue()) : term;
}

/// Rounds to nearest, ties to even, as the passes round constants.
static FloatAttr roundTo(FloatAttr value, Type type) {
  APFloat rounded = value.getValue();
  bool losesInfo;
  rounded.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
  return FloatAttr::get(type, rounded);
}

Term Terms::sum(Term contribution, int64_t divisor) {
  return add("comm.sum", IntegerAttr::get(IntegerType::get(context, 64), divisor),
             elementOf(contribution), contribution, isSymmetric(contribution));
}

Term Terms::padded(Term slab) { return add("zeros behind", {}, elementOf(slab), slab); }

Term Terms::convert(Term value, Type element) {
  Type from = elementOf(value);
  if (from == element)
    return value;
  const Node &node = nodes[value];
  if (node.what == "constant" && isa<FloatAttr>(node.detail))
    return constant(roundTo(cast<FloatAttr>(node.detail), element));
  unsigned width = from.getIntOrFloatBitWidth(), wanted = element.getIntOrFloatBitWidth();
  if (width < wanted)
    return add("arith.extf", {}, element, value, isSymmetric(value));
  if (width == wanted) // bf16 and f16: f32 holds both
    return convert(convert(value, Float32Type::get(context)), element);
  if (node.what == "arith.extf" && elementOf(node.operands[0]) == element)
    return node.operands[0];
  Term term = add("arith.truncf", {}, element, value, isSymmetric(value));
  if (std::optional<double> wide = nodes[value].value; wide && element.isF32())
    return withValue(term, double(float(*wide)));
  return term;
}

Term Terms::beforeStochastic(Term value) const {
  if (nodes[value].what != "arith.extf")
    return value;
  const Node &rounded = nodes[nodes[value].operands[0]];
  auto detail = dyn_cast_if_present<DictionaryAttr>(rounded.detail);
  bool isOfParameter =
      rounded.what == "optim.stochastic" && detail && detail.contains("ofParameter");
  return isOfParameter ? rounded.operands[0] : value;
}

/// The attributes of an operation, except its space and empty fast-math flags, which change no result.
static DictionaryAttr detailOf(Operation *op) {
  SmallVector<NamedAttribute> kept;
  for (NamedAttribute each : op->getAttrDictionary()) {
    auto flags = dyn_cast<arith::FastMathFlagsAttr>(each.getValue());
    if (each.getName() != optim::kSpaceAttr &&
        !(flags && flags.getValue() == arith::FastMathFlags::none))
      kept.push_back(each);
  }
  return kept.empty() ? DictionaryAttr() : DictionaryAttr::get(op->getContext(), kept);
}

Term Terms::elementwise(Operation *op, ArrayRef<Term> operands) {
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (auto literal = dyn_cast<arith::ConstantOp>(op))
    return constant(literal.getValue());
  if (op->getNumRegions() || op->getNumResults() != 1)
    return unknown(element);
  DictionaryAttr detail = detailOf(op);
  if (isa<arith::ExtFOp, arith::TruncFOp>(op) && !detail)
    return convert(operands[0], element);
  // Attributes may change results: fast-math flags, or how an operation rounds.
  bool isPlain = !detail || (isa<arith::CmpFOp>(op) && detail.size() == 1);
  if (std::optional<Term> chosen = isPlain ? chosenOf(op, operands) : std::nullopt)
    return *chosen;
  SmallVector<Term> sorted(operands);
  if (op->hasTrait<OpTrait::IsCommutative>())
    llvm::sort(sorted);
  Term term = add(op->getName().getStringRef(), detail, element, sorted);
  return isPlain ? withValue(term, valueOf(op, operands)) : term;
}

Term Terms::apply(optim::BlockFunctionAttrInterface function, ArrayRef<Term> sources,
                  ArrayRef<Extents> from, Extents to, Type element) {
  SmallVector<int64_t> extents = {to.rows, to.cols};
  for (Extents each : from)
    extents.append({each.rows, each.cols});
  SmallVector<Term> wide;
  for (Term source : sources)
    wide.push_back(convert(source, Float32Type::get(context)));
  Attribute detail = ArrayAttr::get(context, {function, DenseI64ArrayAttr::get(context, extents)});
  return add("apply", detail, element, wide);
}

Term Terms::linePart(optim::Reduction kind, Term source, Extents from, Extents to, Type element) {
  Attribute detail = ArrayAttr::get(
      context, {optim::BlockReduceAttr::get(context, kind, /*exponent=*/0),
                DenseI64ArrayAttr::get(context, {from.rows, from.cols, to.rows, to.cols})});
  return add("parts of lines", detail, element, convert(source, Float32Type::get(context)));
}

Term Terms::modelPart(optim::Reduction kind, Term source, Type element) {
  return add("a part of the model's number",
             optim::BlockReduceAttr::get(context, kind, /*exponent=*/0), element,
             convert(source, Float32Type::get(context)));
}

Term Terms::collected(optim::Reduction kind, ArrayRef<std::pair<int64_t, Term>> parts,
                      Type element) {
  auto reduction = optim::BlockReduceAttr::get(context, kind, /*exponent=*/0);
  SmallVector<std::pair<int64_t, Term>> sorted(parts);
  llvm::sort(sorted);
  SmallVector<int64_t> segments;
  SmallVector<Term> sources;
  for (auto [segment, part] : sorted) {
    const Node &node = nodes[part];
    if (node.what != "a part of the model's number" || node.detail != reduction)
      return unknown(element);
    segments.push_back(segment);
    sources.push_back(node.operands[0]);
  }
  Attribute detail =
      ArrayAttr::get(context, {reduction, DenseI64ArrayAttr::get(context, segments)});
  return add("collected parts", detail, element, sources);
}

Term Terms::modelNumber(optim::Reduction kind, ArrayRef<int64_t> segments, ArrayRef<Term> sources,
                        int64_t terms) {
  Type f32 = Float32Type::get(context);
  SmallVector<Term> wide;
  for (Term source : sources)
    wide.push_back(convert(source, f32));
  Attribute detail =
      ArrayAttr::get(context, {optim::BlockReduceAttr::get(context, kind, /*exponent=*/0),
                               DenseI64ArrayAttr::get(context, segments),
                               Builder(context).getI64IntegerAttr(terms)});
  return add("a number of the model", detail, f32, wide);
}

Term Terms::finish(Term part, optim::Reduction kind, int64_t terms) {
  const Node &node = nodes[part];
  Type f32 = Float32Type::get(context);
  if (node.what == "collected parts") {
    auto detail = cast<ArrayAttr>(node.detail);
    if (detail[0] != optim::BlockReduceAttr::get(context, kind, /*exponent=*/0))
      return unknown(f32);
    SmallVector<Term> sources(node.operands.begin(), node.operands.end());
    return modelNumber(kind, cast<DenseI64ArrayAttr>(detail[1]).asArrayRef(), sources, terms);
  }
  if (node.what != "parts of lines")
    return unknown(f32);
  auto detail = cast<ArrayAttr>(node.detail);
  ArrayRef<int64_t> extents = cast<DenseI64ArrayAttr>(detail[1]);
  Extents from{extents[0], extents[1]}, to{extents[2], extents[3]};
  if (detail[0] != optim::BlockReduceAttr::get(context, kind, /*exponent=*/0) ||
      terms * to.rows * to.cols != from.rows * from.cols)
    return unknown(f32);
  return reduce(kind, node.operands[0], from, to);
}

Term Terms::product(const Product &p, Type element) {
  SmallVector<Term, 3> operands = {p.lhs, p.rhs};
  if (p.addend)
    operands.push_back(*p.addend);
  Builder builder(context);
  auto factor = [&](double value) { return builder.getF32FloatAttr(float(value)); };
  // A product reads the same elements of a symmetric operand as of its transpose.
  bool transposeLhs = p.transposeLhs && !isSymmetric(p.lhs),
       transposeRhs = p.transposeRhs && !isSymmetric(p.rhs);

  // Elements (i, j) and (j, i) of a matrix times its transpose add the same products in the same order, so
  // mirroring changes nothing.
  bool symmetric = p.lhs == p.rhs && p.rows == p.cols &&
                   (p.transposeLhs != p.transposeRhs || isSymmetric(p.lhs)) &&
                   (!p.addend || isSymmetric(*p.addend));
  bool isMirrored = p.isMirrored && !symmetric;
  Attribute detail =
      builder.getArrayAttr({builder.getDenseI64ArrayAttr(
                                {transposeLhs, transposeRhs, p.rows, p.cols, p.inner, isMirrored}),
                            factor(p.alpha), factor(p.addend ? p.beta : 0.0), factor(p.shift)});
  return add("product", detail, element, operands, symmetric || isMirrored);
}

std::pair<Term, Term> Terms::findDifference(Term a, Term b) const {
  while (true) {
    const Node &x = nodes[a], &y = nodes[b];
    if (x.what.data() != y.what.data() || x.detail != y.detail || x.element != y.element ||
        x.operands.size() != y.operands.size())
      return {a, b};
    // Commutative operands are sorted by number, so equal operands may stand at different indices. The search
    // goes on in operands that only one side has.
    auto surplus = [](ArrayRef<Term> of, ArrayRef<Term> over) {
      auto more = [&](Term each) { return llvm::count(of, each) > llvm::count(over, each); };
      auto found = llvm::find_if(of, more);
      return found == of.end() ? std::nullopt : std::optional(*found);
    };
    std::optional<Term> left = surplus(x.operands, y.operands),
                        right = surplus(y.operands, x.operands);
    if (left && right) {
      a = *left;
      b = *right;
      continue;
    }
    size_t at = 0; // both sides have the same operands in another order
    while (x.operands[at] == y.operands[at])
      ++at;
    a = x.operands[at];
    b = y.operands[at];
  }
}

/// Prints a number without its type, with enough digits to tell it from any other.
static void describeLiteral(raw_ostream &os, Attribute value) {
  os << "the number ";
  value.print(os, /*elideType=*/true);
}

std::string Terms::describe(Term term) const {
  const Node &node = nodes[term];
  std::string text;
  llvm::raw_string_ostream os(text);
  if (node.what == "leaf")
    os << cast<StringAttr>(node.detail).getValue();
  else if (node.what == "constant")
    describeLiteral(os, node.detail);
  else if (node.what == "unknown")
    os << "what is no elementwise operation";
  else if (node.what == "product") {
    os << "the result of a product times ";
    auto detail = cast<ArrayAttr>(node.detail);
    describeLiteral(os, detail[1]);
    if (node.operands.size() > 2) {
      os << " plus another times ";
      describeLiteral(os, detail[2]);
    }
    if (!cast<FloatAttr>(detail[3]).getValue().isZero()) {
      os << " shifted by ";
      describeLiteral(os, detail[3]);
    }
    if (cast<DenseI64ArrayAttr>(detail[0]).asArrayRef().back())
      os << ", mirrored";
  } else if (node.what == "apply") {
    auto function = cast<optim::BlockFunctionAttrInterface>(cast<ArrayAttr>(node.detail)[0]);
    os << "the result of a " << function.describe();
  } else if (node.what == "optim.position") {
    auto axis = cast<DictionaryAttr>(node.detail).getAs<optim::BlockAxisAttr>("axis");
    os << "the number of the "
       << (axis && axis.getValue() == plan::Division::Rows ? "row" : "column");
  } else if (node.what == "optim.random") {
    auto detail = cast<DictionaryAttr>(node.detail);
    auto call = detail.getAs<IntegerAttr>("call");
    if (auto draw = detail.getAs<optim::DrawAttr>("draw"))
      os << "the " << plan::name(draw.getValue()) << " numbers of call "
         << (call ? call.getInt() : -1);
  } else if (node.what == "comm.sum")
    os << "the result of comm.sum by " << cast<IntegerAttr>(node.detail).getInt();
  else
    os << "the result of " << node.what;
  return text;
}
