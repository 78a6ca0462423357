//===- AnalyzeExpressions.cpp - Names, operators and kinds ----------------===//
#include "frontends/language/Analyzer.h"
#include "frontends/language/ForeignNames.h"
#include "frontends/text/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"

#include <utility>

using namespace stepc::lang;
using llvm::StringRef;
using llvm::Twine;

/// The type of an arithmetic result: f64 if all operands are scalars, f32 if one of them is a tensor.
static Type arithmetic(Shape shape) {
  return {shape, shape.isTensor ? ElementType::F32 : ElementType::F64};
}

std::optional<Shape> BodyAnalyzer::join(Shape a, Shape b, SourceRange place) {
  std::optional<Shape> shape = broadcast(a, b);
  if (!shape)
    diagnostics.error(place, "expected values of equal sizes, found " +
                                 describe(Type{a, ElementType::F32}) + " and " +
                                 describe(Type{b, ElementType::F32}));
  return shape;
}

bool BodyAnalyzer::joinInto(Shape &shape, Type type, SourceRange place) {
  std::optional<Shape> joined = type.isValid() ? join(shape, type.shape, place) : std::nullopt;
  shape = joined.value_or(shape);
  return joined.has_value();
}

Type BodyAnalyzer::analyzeExpr(Expr &expr) {
  llvm::SaveAndRestore nested(nesting, nesting + 1);
  Type type;
  switch (expr.kind) {
  case Expr::Kind::Error:
    break;
  case Expr::Kind::Number:
    type = arithmetic(Shape::Scalar);
    break;
  case Expr::Kind::Name:
    type = analyzeName(llvm::cast<NameExpr>(expr));
    break;
  case Expr::Kind::Unary:
    type = analyzeUnary(llvm::cast<UnaryExpr>(expr));
    break;
  case Expr::Kind::Binary:
    type = analyzeBinary(llvm::cast<BinaryExpr>(expr));
    break;
  case Expr::Kind::Call:
    type = analyzeCall(llvm::cast<CallExpr>(expr));
    break;
  case Expr::Kind::ModelValue:
    type = analyzeModelValue(llvm::cast<ModelValueExpr>(expr));
    break;
  case Expr::Kind::CoefficientList:
  case Expr::Kind::NumberList:
    diagnostics.error(expr.range, "expected a value, found a list").withHint(listHint);
    break;
  }
  // analyzeBinary has already done this for each link of a chain.
  if (!llvm::isa<BinaryExpr>(expr)) {
    expr.type = type;
    followOperands(expr);
    foldConstant(expr);
  }
  return type;
}

void BodyAnalyzer::followOperands(Expr &expr) {
  // How many operations, at most, convert an operand's type and shape, and follow from one function.
  constexpr uint32_t conversion = 2, function = 10;
  auto below = [&](const Expr &operand) {
    expr.readsStep |= operand.readsStep;
    bool same = operand.type == expr.type;
    return operand.depth + (same ? 0 : conversion);
  };
  const auto *call = llvm::dyn_cast<CallExpr>(&expr);
  if (call && call->inlined) {
    expr.depth = call->inlined->result->depth;
    expr.readsStep = call->inlined->result->readsStep;
  } else if (const auto *name = llvm::dyn_cast<NameExpr>(&expr)) {
    expr.readsStep =
        name->symbol == NameExpr::Symbol::Step || (name->let && name->let->value->readsStep);
    if (name->let)
      expr.depth = name->let->value->depth;
    else if (name->state)
      expr.depth = name->state->depth;
    else if (name->symbol == NameExpr::Symbol::Grad)
      expr.depth = gradDepth;
  } else if (const auto *unary = llvm::dyn_cast<UnaryExpr>(&expr)) {
    expr.depth = below(*unary->operand) + (unary->op == UnaryOp::Not ? function : 1);
  } else if (const auto *binary = llvm::dyn_cast<BinaryExpr>(&expr)) {
    expr.depth = std::max(below(*binary->lhs), below(*binary->rhs)) +
                 (binary->op == BinaryOp::Power ? function : 1);
  } else if (call) {
    expr.depth = call->arguments.empty() ? function : 0;
    for (const ExprPtr &argument : call->arguments)
      expr.depth = std::max(expr.depth, below(*argument) + function);
  }
  checkDepth(expr.depth, expr.range);
}

void BodyAnalyzer::checkDepth(uint32_t &depth, SourceRange range) {
  if (depth <= maxDepth)
    return;
  depth = 0; // values that are computed from it get no error for its depth
  if (std::exchange(toldDepth, true))
    return;
  diagnostics
      .error(range, "expected at most " + Twine(maxDepth) +
                        " operations that follow from one another, found more")
      .withHint("add in groups, '(a + b) + (c + d)', rather than one after the other");
}

bool BodyAnalyzer::resolveBuiltin(NameExpr &name) {
  using Symbol = NameExpr::Symbol;
  static constexpr struct {
    StringRef name;
    Symbol symbol;
  } builtins[] = {{"param", Symbol::Param}, {"grad", Symbol::Grad}, {"step", Symbol::Step},
                  {"rows", Symbol::Rows},   {"cols", Symbol::Cols}, {"numel", Symbol::Numel}};
  for (const auto &builtin : builtins)
    if (name.name == builtin.name) {
      name.symbol = builtin.symbol;
      return true;
    }
  return false;
}

bool BodyAnalyzer::resolvePosition(NameExpr &name) {
  // Text that could not be read may declare the name. A metric has it, and no statement reads a metric.
  const auto *rule = llvm::dyn_cast<Rule>(&body);
  bool isTransposed = name.name == "transposed" && rule && rule->wide;
  if ((name.name != "row" && name.name != "col" && !isTransposed) || body.lacksNames ||
      body.unread.contains(name.name) || body.findMetric(name.name))
    return false;
  name.symbol = isTransposed         ? NameExpr::Symbol::Transposed
                : name.name == "row" ? NameExpr::Symbol::Row
                                     : NameExpr::Symbol::Col;
  return true;
}

Type BodyAnalyzer::analyzeName(NameExpr &name) {
  // A turn of a `repeat` may declare `row` later.
  auto other = outOfScope.find(name.name);
  bool isDeclared = symbols.contains(name.name) ||
                    (other != outOfScope.end() && other->second.begin > name.range.begin);
  if (resolveBuiltin(name) || (!isDeclared && resolvePosition(name))) {
    switch (name.symbol) {
    case NameExpr::Symbol::Param:
    case NameExpr::Symbol::Grad:
      // The manifest, not the rule, gives the type to which `param` is rounded when it is stored. So a read
      // of the new value would mean something else for every parameter. The model's new gradient is for
      // the rules alone.
      if (resultAssignment && name.name == words.result) {
        diagnostics.error(name.range, "'" + words.result + "' is read after it was assigned")
            .withNote(resultAssignment->target.range, "the assignment is here")
            .withHint("name the new value with 'let' before assigning it");
        return {};
      }
      body.usesGrad |= name.symbol == NameExpr::Symbol::Grad;
      return arithmetic(Shape::Full);
    case NameExpr::Symbol::Rows:
    case NameExpr::Symbol::Cols:
      if (!needMatrix(name.range, "'" + Twine(name.name) + "'"))
        return {};
      return arithmetic(Shape::Scalar);
    case NameExpr::Symbol::Row:
    case NameExpr::Symbol::Col:
      if (!needMatrix(name.range, "'" + Twine(name.name) + "'"))
        return {};
      return arithmetic(name.symbol == NameExpr::Symbol::Row ? Shape::Rows : Shape::Cols);
    case NameExpr::Symbol::Transposed:
      return {Shape::Scalar, ElementType::Condition};
    case NameExpr::Symbol::Numel:
      if (!needParameter(name.range, "'numel'"))
        return {};
      [[fallthrough]];
    default:
      return arithmetic(Shape::Scalar);
    }
  }
  auto it = symbols.find(name.name);
  if (it == symbols.end()) {
    unknownName(name.name, name.range);
    return {};
  }
  Symbol &symbol = it->second;
  if (name.range.begin < symbol.visibleFrom) {
    diagnostics.error(name.range, "'" + Twine(name.name) + "' is used before it is declared")
        .withNote(symbol.range, "the declaration is here");
    return {};
  }
  if (symbol.hyperparameter) {
    symbol.hyperparameter->isUsed = true;
    name.symbol = NameExpr::Symbol::Hyperparameter;
    name.hyperparameter = symbol.hyperparameter;
    return arithmetic(Shape::Scalar);
  }
  if (symbol.state) {
    symbol.state->isRead = true;
    name.symbol = NameExpr::Symbol::State;
    name.state = symbol.state;
    return {symbol.state->shape, symbol.state->element};
  }
  *symbol.let->isUsed = true;
  name.symbol = NameExpr::Symbol::Let;
  name.let = symbol.let;
  return symbol.let->value->type;
}

void stepc::lang::reportOutOfScope(StringRef name, SourceRange use, SourceRange declaration,
                                   Diagnostics &diagnostics) {
  bool isLater = declaration.begin > use.begin;
  diagnostics
      .error(use, "'" + name + "' is used " +
                      (isLater ? "before it is declared" : "outside of its 'repeat'"))
      .withNote(declaration, "the declaration is here")
      .withHint("what lasts beyond a turn is declared above the 'repeat', and assigned in it");
}

/// Whether a hint names a size that the body does not have.
bool BodyAnalyzer::isOfMatrix(StringRef hint) const {
  return llvm::any_of(
      std::initializer_list<StringRef>{"rows", "cols", "numel"}, [&](StringRef size) {
        return hint.contains(("'" + size + "'").str()) && !llvm::is_contained(words.known, size);
      });
}

void BodyAnalyzer::unknownName(StringRef name, SourceRange range) {
  if (!isFirstMention(name))
    return;
  if (auto known = outOfScope.find(name); known != outOfScope.end()) {
    reportOutOfScope(name, range, known->second, diagnostics);
    return;
  }
  Diagnostic &error = diagnostics.error(range, "unknown name '" + name + "'");
  if (body.findMetric(name)) {
    error.withHint("no statement reads a metric: name the value with 'let'");
    return;
  }
  if (std::string hint = hintUnknown(name); !hint.empty()) {
    error.withHint(hint);
    return;
  }
  StringRef near = text::nearestName(name, valueNames(range.begin));
  std::vector<StringRef> functionNames;
  for (const FunctionInfo &info : functions())
    if (info.functionClass != FunctionClass::SizeOf) // `rows` is a value, too
      functionNames.push_back(info.name);
  // A function's name may be meant as a state whose declaration is misspelt.
  if (findFunction(name) && !near.empty())
    error.withHint("did you mean '" + near + "'? '" + name + "' is a function: " + name + "(...)");
  else if (findFunction(name))
    error.withHint("'" + name + "' is a function: " + name + "(...)");
  else if (std::optional<StringRef> hint = foreignValueHint(name); hint && !isOfMatrix(*hint))
    error.withHint(*hint);
  else if (!near.empty())
    error.withHint("did you mean '" + near + "'?");
  else if (StringRef function = text::nearestName(name, functionNames); !function.empty())
    error.withHint("did you mean the function '" + function + "(...)'?");
}

Type BodyAnalyzer::checkNumber(const Expr &expr, Type type) {
  if (!type.isCondition())
    return type;
  diagnostics.error(expr.range, "expected a number, found a condition")
      .withHint("choose numbers with 'select(condition, a, b)'");
  return {};
}

Type BodyAnalyzer::checkCondition(const Expr &expr, Type type) {
  if (!type.isValid() || type.isCondition())
    return type;
  diagnostics.error(expr.range, "expected a condition, found " + describe(type))
      .withHint("compare it: 'x != 0'");
  return {};
}

Type BodyAnalyzer::analyzeTensor(Expr &expr) {
  Type type = analyzeNumber(expr);
  if (!type.isValid() || !type.isScalar())
    return type;
  diagnostics.error(expr.range, "expected a tensor, found a scalar");
  return {};
}

Type BodyAnalyzer::analyzeUnary(UnaryExpr &unary) {
  if (!countOperation())
    return {};
  if (unary.op == UnaryOp::Not)
    return analyzeCondition(*unary.operand);
  Type type = analyzeNumber(*unary.operand);
  return type.isValid() ? arithmetic(type.shape) : Type();
}

Type BodyAnalyzer::analyzeBinary(BinaryExpr &binary) {
  std::vector<BinaryExpr *> links = chain(binary);
  analyzeExpr(*links.front()->lhs);
  for (BinaryExpr *link : links) {
    if (!countOperation())
      return {};
    link->type = analyzeLink(*link);
    followOperands(*link);
    foldConstant(*link);
  }
  return binary.type;
}

/// Analyzes one operation of a chain. Its left operand must have been analyzed.
Type BodyAnalyzer::analyzeLink(BinaryExpr &link) {
  if (link.op == BinaryOp::Product)
    return analyzeProduct(link);
  bool logical = isLogical(link.op);
  Type lhs =
      logical ? checkCondition(*link.lhs, link.lhs->type) : checkNumber(*link.lhs, link.lhs->type);
  Type rhs = logical ? analyzeCondition(*link.rhs) : analyzeNumber(*link.rhs);
  if (!lhs.isValid() || !rhs.isValid())
    return {};
  std::optional<Shape> joined = join(lhs.shape, rhs.shape, link.range);
  if (!joined)
    return {};
  Shape shape = *joined;
  meetTensor(*link.lhs, shape);
  // An exponent that becomes multiplications or a square root is never rounded to f32.
  double exponent = link.op == BinaryOp::Power ? literalExponent(*link.rhs) : 0;
  if (!isRoundedAlike(exponent))
    meetTensor(*link.rhs, shape);
  if (logical || isComparison(link.op))
    return {shape, ElementType::Condition};
  return arithmetic(shape);
}

Type BodyAnalyzer::analyzeProduct(BinaryExpr &link) {
  bool valid = needMatrix(link.opRange, "'@'");
  Type lhs = checkNumber(*link.lhs, link.lhs->type), rhs = analyzeNumber(*link.rhs);
  if (!valid || !lhs.isValid() || !rhs.isValid())
    return {};
  for (const Expr *factor : {link.lhs.get(), link.rhs.get()})
    if (factor->type.isScalar()) {
      diagnostics.error(factor->range, "expected a matrix as a factor of '@', found a scalar")
          .withHint("a scalar multiplies each element: 'x * y'");
      return {};
    }
  if (lhs.shape.cols != rhs.shape.rows) {
    diagnostics.error(
        link.range,
        "expected the columns of the left factor to be the rows of the right one, found " +
            spell(lhs.shape.cols) + " and " + spell(rhs.shape.rows));
    return {};
  }
  if (lhs.element != rhs.element) {
    bool isLeft = lhs.element == ElementType::F32;
    const Expr &wide = isLeft ? *link.lhs : *link.rhs;
    diagnostics
        .error(link.range, "expected factors of one type, found " + spell(lhs.element) + " and " +
                               spell(rhs.element))
        .withHint("round one of them: 'cast(" + source.text(wide.range) + ", " +
                  spell(isLeft ? rhs.element : lhs.element) + ")'");
    return {};
  }
  return {Shape::of(lhs.shape.rows, rhs.shape.cols), ElementType::F32};
}
