//===- Parser.cpp - Tokens, pieces and recovery ---------------------------===//
#include "frontends/language/Parser.h"
#include "frontends/language/ForeignNames.h"
#include "llvm/ADT/StringExtras.h"

using namespace stepc::lang;
using llvm::StringRef;
using llvm::Twine;

std::unique_ptr<File> stepc::lang::parse(const Source &source, Diagnostics &diagnostics) {
  return Parser(source, diagnostics).parseFile();
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

const Token &Parser::next() const {
  return stream.tokens[std::min(position + 1, stream.tokens.size() - 1)];
}

bool Parser::atName(StringRef name) const {
  return at(TokenKind::Name) && spelling(current()) == name;
}

SourceRange Parser::previousRange() const {
  return position ? stream.tokens[position - 1].range : SourceRange();
}

Token Parser::consume() {
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
  if (at(TokenKind::Invalid))
    return silenced;
  Diagnostic &error =
      diagnostics.error(current().range, "expected " + what + ", found " + describeCurrent());
  if (inRule && at(TokenKind::KwIf))
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

/// Two statements on one line are nearly always one with an operator missing.
bool Parser::checkStartsLine(StringRef alternatives) {
  if (current().startsLine || position == 0 ||
      stream.tokens[position - 1].kind == TokenKind::LeftBrace)
    return true;
  hintAfterValue(expected(alternatives));
  return false;
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

std::optional<Name> Parser::parseName(StringRef what) {
  if (at(TokenKind::Name)) {
    Token token = consume();
    return Name{spelling(token).str(), token.range};
  }
  Diagnostic &error = expected(what);
  if (isKeyword(current().kind))
    error.withHint(describe(current().kind) + " is a word of the language");
  return std::nullopt;
}

std::optional<Constant> Parser::parseConstant(StringRef what) {
  SourceRange begin = current().range;
  bool negative = at(TokenKind::Minus) && next().kind == TokenKind::Number;
  if (negative)
    consume();
  if (!at(TokenKind::Number)) {
    expected(what);
    return std::nullopt;
  }
  Token token = consume();
  double value = 0;
  spelling(token).getAsDouble(value, /*AllowInexact=*/true);
  return Constant{negative ? -value : value, begin.to(token.range)};
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

bool Parser::parseList(TokenKind open, TokenKind close, llvm::function_ref<bool()> parseItem) {
  SourceRange openRange = current().range;
  if (!expect(open))
    return false;
  while (!at(close)) {
    if (!parseItem())
      return false;
    if (consumeIf(TokenKind::Comma) || at(close))
      continue;
    Diagnostic &error = expected("',' or " + describe(close));
    error.withNote(openRange, "to match this " + describe(open));
    hintAfterValue(error);
    // At the start of a statement the bracket was most likely forgotten.
    if (current().startsLine && atStatement())
      openParens = 0;
    return false;
  }
  consume();
  return true;
}

//===----------------------------------------------------------------------===//
// Recovery
//===----------------------------------------------------------------------===//

bool Parser::atDeclaration() const {
  return at(TokenKind::KwOptimizer) || at(TokenKind::KwRoute) || atBlocks();
}

/// Elsewhere `blocks` is a name as any other.
bool Parser::atBlocks() const { return atName("blocks") && next().kind == TokenKind::String; }

bool Parser::atStatement() const {
  switch (current().kind) {
  case TokenKind::KwState:
  case TokenKind::KwMaster:
  case TokenKind::KwLet:
  case TokenKind::KwInput:
  case TokenKind::KwMetric:
    return true;
  default:
    return (at(TokenKind::Name) || isBuiltinValue(current().kind)) &&
           (next().kind == TokenKind::Equal || atUpdate(position + 1));
  }
}

/// At the operator of `m += ...`, which is no statement but stands where one begins.
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
    consume();
  }
}

void Parser::skipToDeclaration() {
  while (!at(TokenKind::End) && !(current().startsLine && atDeclaration()))
    consume();
}
