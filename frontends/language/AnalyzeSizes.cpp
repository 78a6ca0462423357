//===- AnalyzeSizes.cpp - How many rows and columns values have ----------===//
//
// A size is rows, cols, a number, or a `let` that follows from these. Such `let`s are known for each
// parameter before the first step.
//
//===----------------------------------------------------------------------===//
#include "frontends/language/Analyzer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <utility>

using namespace stepc::lang;
using llvm::StringRef;
using llvm::Twine;

const Expr *BodyAnalyzer::unknownIn(const Expr &expr) const {
  if (const auto *name = llvm::dyn_cast<NameExpr>(&expr)) {
    using Symbol = NameExpr::Symbol;
    bool isKnown = name->let
                       ? !name->let->unknown
                       : name->symbol == Symbol::Rows || name->symbol == Symbol::Cols ||
                             name->symbol == Symbol::Numel || name->symbol == Symbol::Transposed;
    return isKnown ? nullptr : &expr;
  }
  if (const auto *unary = llvm::dyn_cast<UnaryExpr>(&expr))
    return unknownIn(*unary->operand);
  if (const auto *top = llvm::dyn_cast<BinaryExpr>(&expr)) {
    std::vector<const BinaryExpr *> links = chain(*top);
    if (const Expr *unknown = unknownIn(*links.front()->lhs))
      return unknown;
    for (const BinaryExpr *link : links) {
      if (const Expr *unknown = unknownIn(*link->rhs))
        return unknown;
      if (link->op == BinaryOp::Product ||
          (link->op == BinaryOp::Power && !isRoundedAlike(literalExponent(*link->rhs))))
        return link;
    }
    return nullptr;
  }
  if (const auto *call = llvm::dyn_cast<CallExpr>(&expr); call && call->inlined)
    return unknownIn(*call->inlined->result);
  if (const auto *call = llvm::dyn_cast<CallExpr>(&expr); call && call->function) {
    if (*call->function == Function::RowsOf || *call->function == Function::ColsOf)
      return nullptr;
    const FunctionInfo *info = findFunction(call->callee.text);
    if (!info || !info->fold || !isRoundedAlike(info->function))
      return &expr;
    for (const ExprPtr &argument : call->arguments)
      if (const Expr *unknown = unknownIn(*argument))
        return unknown;
    return nullptr;
  }
  return llvm::isa<NumberExpr>(expr) ? nullptr : &expr;
}

std::optional<Size> BodyAnalyzer::sizeOf(const Expr &expr) {
  std::optional<double> value = expr.constant;
  if (value && *value == std::floor(*value) && *value >= 1 && *value <= double(Size::most))
    return Size{Size::Of::Number, static_cast<int64_t>(*value)};
  if (const auto *name = llvm::dyn_cast<NameExpr>(&expr)) {
    if (name->symbol == NameExpr::Symbol::Rows)
      return Size::Rows;
    if (name->symbol == NameExpr::Symbol::Cols)
      return Size::Cols;
    if (!name->let || value)
      return std::nullopt;
    LetStatement &let = name->let->same ? *name->let->same : *name->let;
    if (!let.value->type.isScalar() || let.value->type.isCondition())
      return std::nullopt;
    if (std::optional<Size> same = sizeOf(*let.value))
      return same;
    return let.unknown ? std::nullopt : std::optional(declareSize(let));
  }
  const auto *call = llvm::dyn_cast<CallExpr>(&expr);
  if (call && call->inlined)
    return sizeOf(*call->inlined->result);
  if (call && (call->function == Function::RowsOf || call->function == Function::ColsOf)) {
    const Shape &shape = call->arguments[0]->type.shape;
    return call->function == Function::RowsOf ? shape.rows : shape.cols;
  }
  return std::nullopt;
}

std::string BodyAnalyzer::formulaOf(const Expr &expr) {
  if (expr.constant)
    return llvm::formatv("{0:e17}", *expr.constant);
  if (const auto *name = llvm::dyn_cast<NameExpr>(&expr))
    return name->let ? formulaOf(*name->let) : name->name;
  if (const auto *unary = llvm::dyn_cast<UnaryExpr>(&expr))
    return (unary->op == UnaryOp::Not ? "(not " : "(- ") + formulaOf(*unary->operand) + ")";
  if (const auto *top = llvm::dyn_cast<BinaryExpr>(&expr)) {
    std::vector<const BinaryExpr *> links = chain(*top);
    std::string formula = formulaOf(*links.front()->lhs);
    for (const BinaryExpr *link : links)
      formula = "(" + formula + " " + spell(link->op).str() + " " + formulaOf(*link->rhs) + ")";
    return formula;
  }
  const auto &call = llvm::cast<CallExpr>(expr);
  if (call.inlined)
    return formulaOf(*call.inlined->result);
  if (std::optional<Size> size = sizeOf(call)) {
    for (const LetStatement *let : body.sizes)
      if (*size == Size{Size::Of::Let, 0, let->sizeName})
        return formulaOf(*let);
    return spell(*size);
  }
  std::string formula = call.callee.text + "(";
  for (const ExprPtr &argument : call.arguments)
    formula += formulaOf(*argument) + ",";
  return formula + ")";
}

std::string BodyAnalyzer::formulaOf(const LetStatement &let) {
  const LetStatement &named = let.same ? *let.same : let;
  const auto *name = llvm::dyn_cast<NameExpr>(named.value.get());
  if (named.value->constant || (name && !name->let))
    return formulaOf(*named.value);
  // A number in the place of the text, which would grow with each `let`.
  auto [it, isNew] = formulaNumbers.try_emplace(&let, 0);
  if (isNew) {
    std::string formula = formulaOf(*let.value);
    formulaNumbers[&let] = knownFormulas.try_emplace(formula, knownFormulas.size()).first->second;
  }
  return "#" + std::to_string(formulaNumbers.lookup(&let));
}

Size BodyAnalyzer::declareSize(LetStatement &let) {
  LetStatement *&first = formulas[formulaOf(let)];
  if (!first) {
    constexpr size_t most = stepc::plan::ValueKind::kMostSizes;
    if (body.sizes.size() == most) {
      if (std::exchange(toldSizes, true))
        return Size{Size::Of::Let, 0, source.text(let.target.range)};
      diagnostics.error(let.target.range, "expected at most " + Twine(most) +
                                              " sizes of values in a rule, found more");
      return Size{Size::Of::Let, 0, source.text(let.target.range)};
    }
    first = &let;
    auto isTaken = [&](const std::string &name) {
      return llvm::is_contained(body.sizeNames, name);
    };
    // Several calls of a function may have sizes of one name.
    std::string name = let.target.text;
    for (unsigned number = 2; isTaken(name); ++number)
      name = let.target.text + std::to_string(number);
    let.sizeName = body.sizeNames.emplace_back(std::move(name));
    body.sizes.push_back(&let);
    llvm::sort(body.sizes,
               [](const LetStatement *a, const LetStatement *b) { return a->order < b->order; });
  }
  return Size{Size::Of::Let, 0, first->sizeName};
}

void BodyAnalyzer::resolveSizes(StateDeclaration &state) {
  for (Size *size : {&state.shape.rows, &state.shape.cols}) {
    if (size->of == Size::Of::Number && size->number < 1) {
      diagnostics.error(state.sizes, "expected whole numbers from 1 to 2^20 as sizes, found " +
                                         source.text(state.sizes));
      state.element = ElementType::Invalid;
    }
    if (size->of != Size::Of::Let)
      continue;
    NameExpr name(state.sizes, size->name.str());
    auto refuse = [&](const Twine &found) {
      if (state.element != ElementType::Invalid)
        diagnostics
            .error(state.sizes,
                   "expected sizes that follow from rows, cols, numel and numbers alone, found " +
                       found)
            .withHint(
                "a size is a number of 'let', above the state: 'let r = max(1, floor(rows / 4))'");
      state.element = ElementType::Invalid; // so that assignments to it are no errors as well
    };
    auto found = symbols.find(size->name);
    if (found == symbols.end()) {
      if (isFirstMention(size->name))
        refuse("the unknown name '" + size->name + "'");
      state.element = ElementType::Invalid;
      continue;
    }
    LetStatement *let = found->second.let;
    if (!let) {
      refuse((found->second.state ? "the state '" : "the hyperparameter '") + size->name + "'");
      continue;
    }
    if (let->range.end > state.range.begin) {
      diagnostics.error(state.sizes, "'" + size->name + "' is used before it is declared")
          .withNote(let->target.range, "the declaration is here");
      state.element = ElementType::Invalid;
      continue;
    }
    *let->isUsed = true;
    name.symbol = NameExpr::Symbol::Let;
    name.let = let;
    name.type = let->value->type;
    name.constant = let->value->constant;
    if (!name.type.isValid()) {
      state.element = ElementType::Invalid;
      continue;
    }
    if (std::optional<Size> known = sizeOf(name)) {
      *size = *known;
      continue;
    }
    const Expr *unknown = name.type.isScalar() ? let->unknown : nullptr;
    refuse(name.constant ? "'" + size->name + "', which is " + spellNumber(*name.constant)
           : unknown     ? "'" + size->name + "', which reads '" + source.text(unknown->range) + "'"
                         : "'" + size->name + "', " + describe(name.type));
  }
  if (state.element != ElementType::Invalid)
    checkStart(state);
}
