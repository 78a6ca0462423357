//===- ParseExpressions.cpp -----------------------------------------------===//
#include "frontends/language/Builtins.h"
#include "frontends/language/Parser.h"
#include "llvm/ADT/STLExtras.h"

using namespace stepc::lang;
using llvm::StringRef;

namespace {

enum Level : unsigned { OrLevel, AndLevel, CompareLevel, SumLevel, ProductLevel };

struct Operator {
  BinaryOp op;
  Level level;
};

std::optional<Operator> binaryOperator(TokenKind kind) {
  switch (kind) {
  case TokenKind::KwOr:
    return {{BinaryOp::Or, OrLevel}};
  case TokenKind::KwAnd:
    return {{BinaryOp::And, AndLevel}};
  case TokenKind::Less:
    return {{BinaryOp::Less, CompareLevel}};
  case TokenKind::LessEqual:
    return {{BinaryOp::LessEqual, CompareLevel}};
  case TokenKind::Greater:
    return {{BinaryOp::Greater, CompareLevel}};
  case TokenKind::GreaterEqual:
    return {{BinaryOp::GreaterEqual, CompareLevel}};
  case TokenKind::EqualEqual:
    return {{BinaryOp::Equal, CompareLevel}};
  case TokenKind::NotEqual:
    return {{BinaryOp::NotEqual, CompareLevel}};
  case TokenKind::Plus:
    return {{BinaryOp::Add, SumLevel}};
  case TokenKind::Minus:
    return {{BinaryOp::Subtract, SumLevel}};
  case TokenKind::Star:
    return {{BinaryOp::Multiply, ProductLevel}};
  case TokenKind::Slash:
    return {{BinaryOp::Divide, ProductLevel}};
  case TokenKind::At:
    return {{BinaryOp::Product, ProductLevel}};
  default:
    return std::nullopt;
  }
}

/// Adds one to the depth of nesting while the object lives.
struct Nesting {
  explicit Nesting(unsigned &depth) : depth(depth) { ++depth; }
  ~Nesting() { --depth; }
  unsigned &depth;
};

ExprPtr makeUnary(const Token &op, UnaryOp kind, ExprPtr operand) {
  SourceRange range = op.range.to(operand->range);
  uint16_t height = operand->height + 1;
  auto expr = std::make_unique<UnaryExpr>(range, kind, std::move(operand));
  expr->height = height;
  return expr;
}

ExprPtr makeBinary(BinaryOp op, SourceRange opRange, ExprPtr lhs, ExprPtr rhs) {
  // A further link makes a chain no higher; see Expr::height.
  uint16_t left = lhs->height + !llvm::isa<BinaryExpr>(*lhs);
  uint16_t height = std::max<uint16_t>(left, rhs->height + 1);
  auto expr = std::make_unique<BinaryExpr>(op, opRange, std::move(lhs), std::move(rhs));
  expr->height = height;
  return expr;
}

} // namespace

bool Parser::tooDeep(SourceRange where) {
  if (depth <= maxNesting)
    return false;
  errorAt(where,
          "expected at most " + llvm::Twine(maxNesting) + " levels of nesting in an expression")
      .withHint("name a part of it with 'let'");
  return true;
}

/// Returns `expr`; null, after an error, if the tree is too high. One level of
/// the parser's recursion can be several levels of the tree, as in
/// `a + b * c ^ (...)`, so both are bounded.
ExprPtr Parser::limitHeight(ExprPtr expr, SourceRange where) {
  if (expr->height <= maxNesting)
    return expr;
  errorAt(where,
          "expected at most " + llvm::Twine(maxNesting) + " levels of nesting in an expression")
      .withHint("name a part of it with 'let'");
  return nullptr;
}

ExprPtr Parser::parseBinary(unsigned minLevel) {
  ExprPtr lhs = at(TokenKind::KwNot) ? parseNot(minLevel) : parseUnary();
  while (lhs) {
    std::optional<Operator> found = binaryOperator(current().kind);
    if (!found || found->level < minLevel)
      return lhs;
    SourceRange opRange = consume().range;
    ExprPtr rhs = parseBinary(found->level + 1);
    if (!rhs)
      return nullptr;
    lhs = limitHeight(makeBinary(found->op, opRange, std::move(lhs), std::move(rhs)), opRange);
    std::optional<Operator> following = binaryOperator(current().kind);
    if (lhs && found->level == CompareLevel && following && following->level == CompareLevel) {
      errorAt(current().range, "comparisons cannot be chained").withHint("write 'a < b and b < c'");
      return nullptr;
    }
  }
  return nullptr;
}

ExprPtr Parser::parseNot(unsigned minLevel) {
  if (minLevel > CompareLevel) {
    expected("a value").withHint("put parentheses around 'not ...'");
    return nullptr;
  }
  Nesting nesting(depth);
  Token op = consume();
  if (tooDeep(op.range))
    return nullptr;
  ExprPtr operand = parseBinary(CompareLevel);
  if (!operand)
    return nullptr;
  return limitHeight(makeUnary(op, UnaryOp::Not, std::move(operand)), op.range);
}

/// `-x ^ 2` is `-(x ^ 2)`, and the exponent may have a sign: `x ^ -2`.
ExprPtr Parser::parseUnary() {
  Nesting nesting(depth);
  if (tooDeep(current().range))
    return nullptr;
  if (at(TokenKind::Minus)) {
    Token op = consume();
    ExprPtr operand = parseUnary();
    if (!operand)
      return nullptr;
    return limitHeight(makeUnary(op, UnaryOp::Negate, std::move(operand)), op.range);
  }
  ExprPtr base = parsePrimary();
  if (!base || !at(TokenKind::Caret))
    return base;
  SourceRange opRange = consume().range;
  ExprPtr exponent = parseUnary();
  if (!exponent)
    return nullptr;
  return limitHeight(makeBinary(BinaryOp::Power, opRange, std::move(base), std::move(exponent)),
                     opRange);
}

ExprPtr Parser::parsePrimary() {
  // If `let x =` stands above `m = ...`, the value is missing at the end of the first line.
  if (current().startsLine && atStatement()) {
    uint32_t end = previousRange().end;
    errorAt({end, end}, "expected a value, found the end of the line");
    openParens = 0;
    return nullptr;
  }
  if (at(TokenKind::Number)) {
    std::optional<Constant> number = parseConstant();
    return std::make_unique<NumberExpr>(number->range, number->value);
  }
  if (at(TokenKind::LeftParen))
    return parseParentheses();
  if (at(TokenKind::Name) || isBuiltinValue(current().kind)) {
    Token token = consume();
    bool mayBeCalled = token.kind == TokenKind::Name || token.kind == TokenKind::KwRows ||
                       token.kind == TokenKind::KwCols;
    if (mayBeCalled && at(TokenKind::LeftParen))
      return parseCall(token);
    if (at(TokenKind::Dot))
      return parseModelValue(token);
    return std::make_unique<NameExpr>(token.range, spelling(token).str());
  }
  hintValue(expected("a value"));
  return nullptr;
}

/// Adds a hint what was probably meant by a token in place of a value.
void Parser::hintValue(Diagnostic &error) const {
  bool touches = previousRange().end == current().range.begin;
  StringRef before = position ? spelling(stream.tokens[position - 1]) : StringRef();
  if (at(TokenKind::Plus))
    error.withHint("a number needs no sign '+'");
  else if (at(TokenKind::Star) && touches && before == "*")
    error.withHint("a power is written 'x ^ y'");
  else if (at(TokenKind::Greater) && touches && before == "<")
    error.withHint("'not equal' is written 'a != b'");
  else if (at(TokenKind::Equal) && touches && before == "==")
    error.withHint("equality is written 'a == b'");
  else if (at(TokenKind::String))
    error.withHint("words of the language stand without quotes: write " +
                   spelling(current()).trim('"'));
  else if (at(TokenKind::KwFor))
    error.withHint(kLoopHint);
  else if (at(TokenKind::LeftBracket))
    error.withHint(listHint);
}

/// Adds a hint what was probably meant by a token that follows a whole expression.
void Parser::hintAfterValue(Diagnostic &error) const {
  if (at(TokenKind::Equal))
    error.withHint("equality is written 'a == b'");
  else if (at(TokenKind::LeftBracket))
    error.withHint("a value has no parts: each number has a name of its own, as beta1 and beta2");
  else if (atName("else"))
    error.withHint("a choice is written 'select(condition, value, otherwise)'");
}

ExprPtr Parser::parseParentheses() {
  SourceRange open = consume().range;
  ExprPtr inner = parseExpression();
  if (!inner)
    return nullptr;
  if (!at(TokenKind::RightParen)) {
    hintAfterValue(expected("')'").withNote(open, "to match this '('"));
    if (current().startsLine && atStatement())
      openParens = 0;
    return nullptr;
  }
  consume();
  inner->parenthesized = true;
  return inner;
}

ExprPtr Parser::parseCall(const Token &callee) {
  auto call = std::make_unique<CallExpr>(callee.range, Name{spelling(callee).str(), callee.range});
  if (!parseList(TokenKind::LeftParen, TokenKind::RightParen, [&] { return parseArgument(*call); }))
    return nullptr;
  call->range = callee.range.to(previousRange());
  return limitHeight(std::move(call), callee.range);
}

ExprPtr Parser::parseModelValue(const Token &model) {
  consume();
  std::optional<Name> name = parseName("the name of a value of the model");
  if (!name)
    return nullptr;
  SourceRange range = model.range.to(name->range);
  return std::make_unique<ModelValueExpr>(range, std::move(*name));
}

bool Parser::parseArgument(CallExpr &call) {
  std::optional<Name> option;
  // `rows = ...` is parsed as an option, too. The analysis refuses it, and hints what was meant.
  if ((at(TokenKind::Name) || isBuiltinValue(current().kind)) && next().kind == TokenKind::Equal) {
    Token name = consume();
    option = Name{spelling(name).str(), name.range};
    consume();
  }
  if (option && hintList(option->text))
    return false;
  ExprPtr value =
      at(TokenKind::LeftBracket) ? parseListOf(option ? &*option : nullptr) : parseExpression();
  if (!value)
    return false;
  call.height = std::max<uint16_t>(call.height, value->height + 1);
  if (option) {
    call.options.push_back({std::move(*option), std::move(value)});
    return true;
  }
  // If neither ',' nor ')' follows, parseList reports an error instead of this one.
  if (!call.options.empty() && (at(TokenKind::Comma) || at(TokenKind::RightParen))) {
    const Name &first = call.options[0].name;
    Diagnostic &error = errorAt(value->range, "expected arguments by position before those by name")
                            .withNote(first.range, "the first by name is here");
    if (!llvm::is_contained(optionsOf(FunctionClass::Reduction), first.text) &&
        !llvm::is_contained(optionsOf(FunctionClass::Orthogonalize), first.text))
      error.withHint("equality is written '" + first.text + " == ...'");
  }
  call.arguments.push_back(std::move(value));
  return true;
}

/// Reports numbers whose brackets are not those of the option's list: `coefficients = (a, b, c)` and
/// `coefficients = [a, b, c]`, `restarts = (1, 2)`. The hint says how the list is written. Returns false for
/// other texts.
bool Parser::hintList(llvm::StringRef option) {
  bool isRestarts = option == "restarts", isCoefficients = option == "coefficients";
  if (!(at(TokenKind::LeftParen) && (isRestarts || isCoefficients)) &&
      !(at(TokenKind::LeftBracket) && isCoefficients))
    return false;
  std::string numbers;
  unsigned count = 0;
  size_t at = position;
  TokenKind kind;
  do {
    bool negative = stream.tokens[++at].kind == TokenKind::Minus;
    at += negative;
    if (stream.tokens[at].kind != TokenKind::Number)
      return false;
    numbers += (count++ ? ", " : "") + std::string(negative ? "-" : "") +
               spelling(stream.tokens[at]).str();
    kind = stream.tokens[++at].kind;
  } while (kind == TokenKind::Comma);
  if (kind != TokenKind::RightParen && kind != TokenKind::RightBracket)
    return false;
  SourceRange range = current().range.to(stream.tokens[at].range);
  const char *wanted = isRestarts ? "a list of restarts" : "a list of steps or the name of a set";
  errorAt(range, "expected " + llvm::Twine(wanted) + ", found '" + source.text(range) + "'")
      .withHint(isRestarts   ? "a list stands in brackets: [" + numbers + "]"
                : count == 3 ? "a list has a triple for each step: [(" + numbers + ")]"
                             : "a list has a triple for each step: [(a, b, c), ...]");
  while (position <= at)
    skip();
  return true;
}

/// The list that an argument is: numbers, or the triples of coefficients. Where no list belongs, its first
/// word tells which of them to read, and the analysis refuses it.
ExprPtr Parser::parseListOf(const Name *option) {
  TokenKind first = next().kind;
  if (option && option->text == "coefficients")
    return parseCoefficientList();
  if (option && option->text == "restarts")
    return parseNumberList();
  if (first == TokenKind::LeftParen || first == TokenKind::RightBracket)
    return parseCoefficientList();
  if (first == TokenKind::Number || first == TokenKind::Minus)
    return parseNumberList();
  (option ? errorAt(current().range, "expected a value of '" + option->text + "', found '['")
          : expected("a value"))
      .withHint(listHint);
  return nullptr;
}

ExprPtr Parser::parseNumberList() {
  auto list = std::make_unique<NumberListExpr>(current().range);
  auto parseNumber = [&] {
    if (!at(TokenKind::Number) && !at(TokenKind::Minus)) {
      expected("a number").withHint("restarts are numbers of steps: [1, 3]");
      return false;
    }
    std::optional<Constant> number = parseConstant();
    if (number)
      list->numbers.push_back(*number);
    return number.has_value();
  };
  if (!parseList(TokenKind::LeftBracket, TokenKind::RightBracket, parseNumber))
    return nullptr;
  list->range = list->range.to(previousRange());
  return list;
}

ExprPtr Parser::parseCoefficientList() {
  auto list = std::make_unique<CoefficientListExpr>(current().range);
  auto parseStep = [&] {
    std::vector<Constant> step;
    SourceRange open = current().range;
    if (!at(TokenKind::LeftParen)) {
      expected("'('").withHint("the triple of a step stands in parentheses: [(a, b, c), ...]");
      return false;
    }
    if (!parseList(TokenKind::LeftParen, TokenKind::RightParen, [&] {
          std::optional<Constant> number = parseConstant();
          if (number)
            step.push_back(*number);
          return number.has_value();
        }))
      return false;
    if (step.size() != 3)
      errorAt(open.to(previousRange()),
              "expected three coefficients (a, b, c) per step, found " + llvm::Twine(step.size()));
    step.resize(3);
    list->steps.push_back({step[0], step[1], step[2]});
    return true;
  };
  if (!parseList(TokenKind::LeftBracket, TokenKind::RightBracket, parseStep))
    return nullptr;
  list->range = list->range.to(previousRange());
  return list;
}
