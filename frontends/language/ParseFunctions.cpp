//===- ParseFunctions.cpp - Imports, functions and repeated statements ----===//
#include "frontends/language/Parser.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace stepc::lang;

/// Whether `import "FILE"` begins at the token with index `at`. An import starts a line, so that
/// programs can find it without this parser (frontends/python/stepc/_inputs.py).
bool Parser::beginsImport(size_t at) const {
  const Token &token = stream.tokens[at];
  return token.kind == TokenKind::Name && spelling(token) == "import" &&
         stream.tokens[at + 1].kind == TokenKind::String && token.startsLine;
}

ImportStatement Parser::parseImport() {
  SourceRange word = consume().range;
  Token token = consume();
  return {{stringValue(spelling(token)), token.range}, word.to(token.range)};
}

/// Whether `def NAME(` begins at the token with index `at`.
bool Parser::beginsDef(size_t at) const {
  auto kind = [&](size_t offset) { return tokenAt(at + offset).kind; };
  return kind(0) == TokenKind::Name && spelling(stream.tokens[at]) == "def" &&
         kind(1) == TokenKind::Name && kind(2) == TokenKind::LeftParen;
}

std::unique_ptr<Def> Parser::parseDef() {
  auto def = std::make_unique<Def>();
  SourceRange begin = consume().range;
  openParens = 0;
  depth = 0;
  bool parsed = false;
  if (std::optional<Name> name = parseName("the function's name")) {
    def->name = std::move(*name);
    parsed = parseList(TokenKind::LeftParen, TokenKind::RightParen, [&] {
      std::optional<Name> argument = parseName("the name of an argument");
      if (argument)
        def->parameters.push_back({std::move(*argument)});
      return argument.has_value();
    });
  }
  if (parsed && consumeIf(TokenKind::Equal)) {
    llvm::SaveAndRestore inside(inBody, true);
    ExprPtr value = parseExpression();
    parsed = value != nullptr;
    if (value)
      def->statements.push_back(std::make_unique<ReturnStatement>(
          value->range, Name{"return", def->name.range}, std::move(value)));
  } else if (parsed && at(TokenKind::LeftBrace)) {
    parseBody(*def);
    bool ends = !def->statements.empty() && llvm::isa<ReturnStatement>(*def->statements.back());
    if (!def->hasSyntaxErrors && !ends) {
      errorAt(previousRange(),
              "expected 'return' at the end of '" + def->name.text + "', found '}'");
      def->hasSyntaxErrors = true;
    }
  } else if (parsed) {
    expected("'=' or '{' after the arguments of '" + def->name.text + "'")
        .withHint("a function is 'def f(x) = x * x', or 'def f(x) { ... return x * x }'");
    parsed = false;
  }
  def->hasSyntaxErrors |= !parsed;
  if (!parsed)
    skipToDeclaration();
  def->range = begin.to(previousRange());
  return def;
}

/// Whether a statement `return VALUE` begins here. `return = ...` assigns to a name.
bool Parser::atReturn() const { return atName("return") && next().kind != TokenKind::Equal; }

/// Whether a statement `repeat ...` begins here. `repeat = ...` assigns to a name.
bool Parser::atRepeat() const { return atName("repeat") && next().kind != TokenKind::Equal; }

/// Parses `return value`, after which the function must end.
bool Parser::parseReturn(Body &body) {
  SourceRange word = consumeWord().range;
  ExprPtr value = parseExpression();
  if (!value)
    return false;
  SourceRange range = word.to(previousRange());
  body.statements.push_back(
      std::make_unique<ReturnStatement>(range, Name{"return", word}, std::move(value)));
  if (at(TokenKind::RightBrace) || at(TokenKind::End))
    return true;
  if (checkStartsLine("an operator or the end of the line"))
    expected("'}' after 'return'").withHint("a function has one 'return', which ends it");
  return false;
}

/// Parses `repeat COUNT {` or `repeat NAMES in [...] {`, and the statements up to the `}`.
bool Parser::parseRepeat(Body &body) {
  constexpr unsigned most = 20;
  Token word = consumeWord();
  auto repeat = std::make_unique<RepeatStatement>(word.range, Name{"repeat", word.range});
  if (repeats >= most) {
    errorAt(word.range, "expected at most " + llvm::Twine(most) + " levels of 'repeat'");
    return false;
  }
  if (beginsNames()) {
    if (!parseNames(*repeat) || !parseEntries(*repeat))
      return false;
  } else if (at(TokenKind::LeftBrace)) {
    expected("a number of turns")
        .withHint("it is written 'repeat 5 { ... }', or 'repeat x in [1, 2] { ... }'");
    return false;
  } else if (!(repeat->value = parseExpression())) {
    return false;
  }
  if (!at(TokenKind::LeftBrace)) {
    expected("'{'");
    return false;
  }
  Statements before = std::exchange(body.statements, {});
  {
    llvm::SaveAndRestore inside(repeats, repeats + 1);
    parseBody(body);
  }
  repeat->statements = std::exchange(body.statements, std::move(before));
  repeat->range = word.range.to(previousRange());
  body.statements.push_back(std::move(repeat));
  return true;
}

/// Whether the names of a list come next: `x in`, or `(x, y) in`.
bool Parser::beginsNames() const {
  auto token = [&](size_t offset) -> const Token & { return tokenAt(position + offset); };
  auto isIn = [&](const Token &each) {
    return each.kind == TokenKind::Name && spelling(each) == "in";
  };
  if (at(TokenKind::Name))
    return isIn(next());
  if (!at(TokenKind::LeftParen))
    return false;
  size_t offset = 1;
  while (token(offset).kind == TokenKind::Name || token(offset).kind == TokenKind::Comma)
    ++offset;
  return token(offset).kind == TokenKind::RightParen && isIn(token(offset + 1));
}

bool Parser::parseNames(RepeatStatement &repeat) {
  auto parseOne = [&] {
    std::optional<Name> name = parseName("a name");
    if (name)
      repeat.names.push_back({std::move(*name)});
    return name.has_value();
  };
  SourceRange open = current().range;
  if (!at(TokenKind::LeftParen))
    return parseOne();
  if (!parseList(TokenKind::LeftParen, TokenKind::RightParen, parseOne))
    return false;
  if (!repeat.names.empty())
    return true;
  errorAt(open.to(previousRange()), "expected names, found none");
  return false;
}

/// Parses the entries of the list. If the names are in parentheses, the values of an entry are, as well.
bool Parser::parseEntries(RepeatStatement &repeat) {
  bool isTuple = stream.tokens[position - 1].kind == TokenKind::RightParen;
  consumeWord(); // `in`
  SourceRange open = current().range;
  auto parseValue = [&] {
    ExprPtr value = parseExpression();
    bool parsed = value != nullptr;
    if (parsed)
      repeat.entries.back().push_back(std::move(value));
    return parsed;
  };
  auto parseEntry = [&] {
    repeat.entries.emplace_back();
    SourceRange begin = current().range;
    if (!isTuple)
      return parseValue();
    if (!parseList(TokenKind::LeftParen, TokenKind::RightParen, parseValue))
      return false;
    if (repeat.entries.back().empty())
      errorAt(begin.to(previousRange()), "expected a value for each name, found none");
    return !repeat.entries.back().empty();
  };
  if (!parseList(TokenKind::LeftBracket, TokenKind::RightBracket, parseEntry))
    return false;
  if (repeat.entries.empty())
    errorAt(open.to(previousRange()), "expected a list of values, found an empty one");
  return !repeat.entries.empty();
}
