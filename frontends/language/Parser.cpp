//===- Parser.cpp - Tokens, pieces and recovery ---------------------------===//
#include "frontends/language/Parser.h"
#include "frontends/language/ForeignNames.h"
#include "frontends/language/NumberForms.h"
#include "frontends/text/Text.h"
#include "llvm/ADT/StringExtras.h"

using namespace stepc::lang;
using llvm::StringRef;
using llvm::Twine;

std::unique_ptr<File> stepc::lang::parse(const Source &source, Diagnostics &diagnostics) {
  return Parser(source, source.first(), diagnostics).parseFile();
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

const Token &Parser::tokenAt(size_t index) const {
  return stream.tokens[std::min(index, stream.tokens.size() - 1)];
}

bool Parser::atName(StringRef name) const {
  return at(TokenKind::Name) && spelling(current()) == name;
}

SourceRange Parser::previousRange() const {
  return position ? stream.tokens[position - 1].range : SourceRange();
}

void Parser::report(const Token &token) {
  if (token.error < 0)
    return;
  diagnostics.add(stream.errors[size_t(token.error)]);
  stream.tokens[size_t(&token - stream.tokens.data())].error = -1;
}

Token Parser::consume() {
  report(current());
  return skip();
}

Token Parser::skip() {
  Token token = current();
  if (token.kind == TokenKind::LeftParen || token.kind == TokenKind::LeftBracket)
    ++openParens;
  if ((token.kind == TokenKind::RightParen || token.kind == TokenKind::RightBracket) && openParens)
    --openParens;
  // The End token stays, so that every lookahead finds it.
  if (token.kind != TokenKind::End)
    ++position;
  return token;
}

Token Parser::consumeWord() {
  wordBegins.push_back(current().range.begin);
  return consume();
}

bool Parser::consumeIf(TokenKind kind) {
  if (!at(kind))
    return false;
  consume();
  return true;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

std::string Parser::describeCurrent() const {
  StringRef text = spelling(current());
  if (at(TokenKind::End))
    return "end of file";
  if (at(TokenKind::String))
    return text.str();
  return ("'" + text + "'").str();
}

Diagnostic &Parser::expected(const Twine &what) {
  if (at(TokenKind::Invalid)) {
    report(current());
    return silenced;
  }
  Diagnostic &error =
      diagnostics.error(current().range, "expected " + what + ", found " + describeCurrent());
  if (inBody && at(TokenKind::KwIf))
    error.withHint("a choice is written 'select(condition, value, otherwise)'");
  return error;
}

Diagnostic &Parser::errorAt(SourceRange range, const Twine &message) {
  return diagnostics.error(range, message);
}

bool Parser::expect(TokenKind kind) {
  if (consumeIf(kind))
    return true;
  expected(describe(kind));
  return false;
}

void Parser::unsupported(const Token &construct) {
  errorAt(construct.range, "'" + spelling(construct) + "' is not supported yet");
}

/// Reports a token that should start a line and does not; returns false then. Two statements on one line
/// are nearly always one statement in which an operator is missing.
bool Parser::checkStartsLine(StringRef alternatives) {
  if (current().startsLine || position == 0 ||
      stream.tokens[position - 1].kind == TokenKind::LeftBrace)
    return true;
  Diagnostic &error = expected(alternatives);
  hintAfterValue(error);
  if (error.hint.empty())
    hintGroupedDigits(error, stream.tokens[position - 1]);
  if (error.hint.empty() && (atStatement() || atClaim()))
    error.withHint("each statement and each claim starts a line");
  return false;
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

std::optional<Name> Parser::parseName(StringRef what, Diagnostic **said) {
  if (at(TokenKind::Name)) {
    Token token = consume();
    return Name{spelling(token).str(), token.range};
  }
  Diagnostic &error = expected(what);
  if (isKeyword(current().kind))
    error.withHint(describe(current().kind) + " is a word of the language");
  if (said)
    *said = &error;
  return std::nullopt;
}

std::optional<Constant> Parser::parseConstant(StringRef what, StringRef name) {
  SourceRange begin = current().range;
  bool negative = at(TokenKind::Minus);
  if (negative)
    consume();
  if (!at(TokenKind::Number)) {
    hintConstant(expected(what), name);
    return std::nullopt;
  }
  Token token = consume();
  return Constant{negative ? -token.value : token.value, begin.to(token.range)};
}

std::optional<Constant> Parser::parseComputed(StringRef name) {
  // Lists such as (0.9, 0.95) and numbers such as +1 have hints of their own.
  const Token &following = tokenAt(position + 2);
  bool isTuple = at(TokenKind::LeftParen) && following.kind == TokenKind::Comma;
  if (isTuple || !(at(TokenKind::Number) || at(TokenKind::Minus) || at(TokenKind::LeftParen) ||
                   at(TokenKind::Name) || at(TokenKind::KwNot) || isBuiltinValue(current().kind)))
    return parseConstant("a number", name);
  depth = 0;
  ExprPtr value = parseExpression();
  if (!value)
    return std::nullopt;
  std::optional<double> literal = literalValue(*value);
  Constant constant{literal.value_or(0), value->range, nullptr};
  if (!literal)
    constant.computed = std::move(value);
  // If more follows, an error is said of it, and the value is not what was meant.
  bool isWhole = current().startsLine || at(TokenKind::Comma) || at(TokenKind::RightParen) ||
                 at(TokenKind::RightBrace) || at(TokenKind::End);
  if (constant.computed && !isWhole)
    constant.computed = std::make_shared<ErrorExpr>(constant.range);
  return constant;
}

/// Adds a hint what was probably meant by a token in place of a number.
void Parser::hintConstant(Diagnostic &error, StringRef name) const {
  if (at(TokenKind::Plus) && next().kind == TokenKind::Number) {
    error.withHint("write " + spelling(next()));
  } else if (at(TokenKind::String)) {
    std::string inner = stringValue(spelling(current()));
    if (isNumber(inner))
      error.withHint("write " + inner);
    else if (std::optional<std::string> right = rightNumber(inner))
      error.withHint("write " + *right);
  } else if (at(TokenKind::LeftParen) || at(TokenKind::LeftBracket)) {
    // For `betas = (0.9, 0.95)` the hint has one name for each number.
    StringRef stem = name.ends_with("s") ? name.drop_back() : name;
    std::string each;
    unsigned count = 0;
    for (size_t at = position + 1; at + 1 < stream.tokens.size(); at += 2) {
      const Token &token = stream.tokens[at];
      if (token.kind != TokenKind::Number)
        break;
      each += (count ? ", " : "") + stem.str() + std::to_string(count + 1) + " = " +
              std::string(isNumber(spelling(token))
                              ? spelling(token)
                              : StringRef(rightNumber(spelling(token)).value_or("...")));
      ++count;
      if (stream.tokens[at + 1].kind != TokenKind::Comma)
        break;
    }
    if (count == 1)
      error.withHint("a hyperparameter is one number, without parentheses");
    else if (count > 1 && !name.empty())
      error.withHint("a hyperparameter is one number: write '" + each + "'");
  } else if (at(TokenKind::Name)) {
    error.withHint(foreignConstantHint(spelling(current())));
  }
}

/// Adds a hint for digits in groups: `1,000` and `1 000`.
void Parser::hintGroupedDigits(Diagnostic &error, const Token &before) const {
  StringRef digits = spelling(current());
  if (before.kind == TokenKind::Number && at(TokenKind::Number) && digits.size() == 3 &&
      llvm::all_of(digits, llvm::isDigit) && isNumber(spelling(before)))
    error.withHint("digits are not grouped: write " + spelling(before) + digits);
}

std::optional<ElementType> Parser::parseDtype() {
  if (at(TokenKind::Name))
    if (auto element = parseElementType(spelling(current()))) {
      consume();
      return element;
    }
  Diagnostic &error = expected("f32, bf16 or f16");
  if (std::optional<StringRef> hint = foreignDtypeHint(spelling(current())))
    error.withHint(*hint);
  return std::nullopt;
}

bool Parser::parseStrings(std::vector<StringLiteral> &strings) {
  do {
    if (!at(TokenKind::String)) {
      expected("a pattern in quotes");
      return false;
    }
    Token token = consume();
    strings.push_back({stringValue(spelling(token)), token.range});
  } while (consumeIf(TokenKind::Comma));
  return true;
}

/// Skips to the comma after an item, or to the list's end. Returns false if there is neither.
bool Parser::skipItem(TokenKind close) {
  unsigned open = 0;
  while (!at(TokenKind::End) && !at(TokenKind::LeftBrace) && !at(TokenKind::RightBrace) &&
         !at(TokenKind::KwFor) && !(current().startsLine && atDeclaration())) {
    if (open == 0 && (at(TokenKind::Comma) || at(close)))
      return true;
    if (at(TokenKind::LeftParen) || at(TokenKind::LeftBracket))
      ++open;
    if ((at(TokenKind::RightParen) || at(TokenKind::RightBracket)) && open-- == 0)
      return false;
    skip();
  }
  return false;
}

bool Parser::parseList(TokenKind open, TokenKind close, llvm::function_ref<bool()> parseItem,
                       bool goOn) {
  SourceRange openRange = current().range;
  if (!expect(open))
    return false;
  bool parsed = true;
  while (!at(close)) {
    if (!parseItem()) {
      parsed = false;
      if (!goOn || !skipItem(close))
        return false;
    }
    if (consumeIf(TokenKind::Comma) || at(close))
      continue;
    Diagnostic &error = expected("',' or " + describe(close));
    error.withNote(openRange, "to match this " + describe(open));
    hintAfterValue(error);
    if (goOn && error.hint.empty())
      hintGroupedDigits(error, stream.tokens[position - 1]);
    // At the start of a statement the bracket was most likely forgotten.
    if (current().startsLine && atStatement())
      openParens = 0;
    parsed = false;
    // If only a comma was forgotten, the next item is parsed.
    if (goOn && at(TokenKind::Name) && !current().startsLine && next().kind == TokenKind::Equal)
      continue;
    if (!goOn || !skipItem(close))
      return false;
    consumeIf(TokenKind::Comma);
  }
  consume();
  return parsed;
}

//===----------------------------------------------------------------------===//
// Recovery
//===----------------------------------------------------------------------===//

/// Whether the token with index `at` is most likely a misspelt `word`.
bool Parser::isMisspelt(size_t at, StringRef word) const {
  const Token &token = stream.tokens[at];
  return token.kind == TokenKind::Name && spelling(token) != word &&
         !text::nearestName(spelling(token), word).empty();
}

/// Whether a declaration begins at the token with index `at`, perhaps with a misspelt keyword.
bool Parser::beginsDeclaration(size_t at) const {
  auto kind = [&](size_t offset) { return tokenAt(at + offset).kind; };
  // `optimizer = ...` and `optimizer.step()` are of other languages.
  bool isWord = !llvm::is_contained({TokenKind::Equal, TokenKind::Invalid, TokenKind::Comma,
                                     TokenKind::Colon, TokenKind::RightParen, TokenKind::Minus,
                                     TokenKind::LeftParen, TokenKind::LeftBracket},
                                    kind(1));
  switch (kind(0)) {
  case TokenKind::KwOptimizer:
  case TokenKind::KwRoute:
    return isWord;
  case TokenKind::KwInput:
  case TokenKind::KwMetric:
    return kind(1) == TokenKind::Name;
  case TokenKind::Name:
    if (beginsDef(at)) {
      // In Python a ':' follows.
      size_t close = closing(at + 2);
      return close && (stream.tokens[close + 1].kind == TokenKind::Equal ||
                       stream.tokens[close + 1].kind == TokenKind::LeftBrace);
    }
    return (spelling(stream.tokens[at]) == "blocks" && isWord) || beginsModel(at) ||
           beginsImport(at) || (isMisspelt(at, "blocks") && kind(1) == TokenKind::String) ||
           (isMisspelt(at, "route") && kind(1) == TokenKind::LeftBrace) ||
           (isMisspelt(at, "optimizer") && kind(1) == TokenKind::Name &&
            (kind(2) == TokenKind::LeftParen || kind(2) == TokenKind::LeftBrace));
  default:
    return false;
  }
}

/// Whether the text has tokens, and no declaration of this language begins at the start of a line or after a
/// `}`.
bool Parser::looksForeign() const {
  for (size_t at = 0; at + 1 < stream.tokens.size(); ++at)
    if ((stream.tokens[at].startsLine || at == 0 ||
         stream.tokens[at - 1].kind == TokenKind::RightBrace) &&
        beginsDeclaration(at))
      return false;
  return !at(TokenKind::End);
}

bool Parser::atDeclaration() const {
  return at(TokenKind::KwOptimizer) || at(TokenKind::KwRoute) || atBlocks() ||
         (atName("model") && beginsModel(position)) || beginsDef(position) ||
         beginsImport(position);
}

/// Whether a `blocks` statement begins here. Without a string after it, `blocks` is an ordinary name.
bool Parser::atBlocks() const { return atName("blocks") && next().kind == TokenKind::String; }

/// The token that closes the parenthesis `open`. 0 if none does before a brace or the end of the text.
size_t Parser::closing(size_t open) const {
  if (closings.empty()) {
    // All at once, because a look ahead for each parenthesis would take quadratic time.
    closings.resize(stream.tokens.size());
    std::vector<size_t> opened;
    for (const auto &[index, token] : llvm::enumerate(stream.tokens)) {
      if (token.kind == TokenKind::LeftParen)
        opened.push_back(index);
      else if (token.kind == TokenKind::LeftBrace || token.kind == TokenKind::RightBrace)
        opened.clear();
      else if (token.kind == TokenKind::RightParen && !opened.empty()) {
        closings[opened.back()] = uint32_t(index);
        opened.pop_back();
      }
    }
  }
  return closings[open];
}

/// Whether `model(...) {`, perhaps misspelt, begins at the token with index `at`. A claim of an optimizer
/// that is called `model` has no brace.
bool Parser::beginsModel(size_t at) const {
  const Token &word = stream.tokens[at];
  if (word.kind != TokenKind::Name || (spelling(word) != "model" && !isMisspelt(at, "model")))
    return false;
  if (stream.tokens[at + 1].kind == TokenKind::LeftBrace)
    return true;
  if (stream.tokens[at + 1].kind != TokenKind::LeftParen)
    return false;
  if (size_t close = closing(at + 1);
      close && stream.tokens[close + 1].kind == TokenKind::LeftBrace)
    return true;
  // The list has an error, so that its end is unknown.
  for (const Token &token : llvm::ArrayRef(stream.tokens).drop_front(at + 2)) {
    if (token.kind == TokenKind::LeftBrace)
      return true;
    // Each look ends at the next '(', so that all looks together take linear time.
    if (token.kind == TokenKind::LeftParen || token.kind == TokenKind::RightBrace ||
        token.kind == TokenKind::KwAs || token.kind == TokenKind::KwFor ||
        token.kind == TokenKind::KwOptimizer || token.kind == TokenKind::KwRoute)
      return false;
  }
  return false;
}

/// Whether a statement `skip when ...` begins here. Before the end of a line, `skip` is an ordinary name.
bool Parser::atSkip() const {
  return atName("skip") && !next().startsLine &&
         (next().kind == TokenKind::Name || next().kind == TokenKind::KwIf);
}

bool Parser::atStatement() const {
  switch (current().kind) {
  case TokenKind::KwState:
  case TokenKind::KwMaster:
  case TokenKind::KwLet:
  case TokenKind::KwInput:
  case TokenKind::KwMetric:
    return true;
  default:
    return atSkip() || atPlannedStatement() ||
           (atName("return") && current().startsLine && inBody) ||
           (atName("repeat") &&
            (next().kind == TokenKind::Number || next().kind == TokenKind::Name ||
             next().kind == TokenKind::LeftParen)) ||
           ((at(TokenKind::Name) || isBuiltinValue(current().kind)) &&
            (next().kind == TokenKind::Equal || atUpdate(position + 1)));
  }
}

/// Whether the token with index `at` is the operator of `m += ...`. The language lacks this statement, but
/// a statement is meant.
bool Parser::atUpdate(size_t at) const {
  if (at + 1 >= stream.tokens.size() || stream.tokens[at + 1].kind != TokenKind::Equal)
    return false;
  TokenKind kind = stream.tokens[at].kind;
  return kind >= TokenKind::Plus && kind <= TokenKind::Caret;
}

bool Parser::atClaim() const {
  return at(TokenKind::Name) &&
         (next().kind == TokenKind::LeftParen || next().kind == TokenKind::KwFor);
}

void Parser::skipTo(llvm::function_ref<bool()> stop) {
  unsigned braces = 0;
  while (!at(TokenKind::End) && !(current().startsLine && atDeclaration())) {
    if (braces == 0 && (at(TokenKind::RightBrace) || (current().startsLine && stop())))
      return;
    if (at(TokenKind::LeftBrace))
      ++braces;
    if (at(TokenKind::RightBrace))
      --braces;
    skip();
  }
}

void Parser::skipToDeclaration() {
  while (!at(TokenKind::End) &&
         !(current().startsLine &&
           (atDeclaration() || beginsDeclaration(position) || atPlannedStatement())))
    skip();
}
