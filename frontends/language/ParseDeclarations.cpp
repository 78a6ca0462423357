//===- ParseDeclarations.cpp - Rules, statements and routes ---------------===//
#include "frontends/language/Builtins.h"
#include "frontends/language/Parser.h"
#include "frontends/text/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace stepc::lang;
using llvm::StringRef;

std::unique_ptr<File> Parser::parseFile() {
  auto file = std::make_unique<File>();
  file->source = &source;
  while (!at(TokenKind::End) && !diagnostics.isFull()) {
    logicalLines.push_back(current().range.begin);
    if (at(TokenKind::KwOptimizer)) {
      file->rules.push_back(parseRule());
    } else if (at(TokenKind::KwRoute)) {
      file->routes.push_back(parseRoute());
    } else if (atName("blocks")) {
      if (std::optional<BlocksStatement> blocks = parseBlocks())
        file->blocks.push_back(std::move(*blocks));
      else
        skipToDeclaration();
    } else {
      if (at(TokenKind::KwInput) || at(TokenKind::KwMetric))
        unsupported(current());
      else
        hintDeclaration(expected("'optimizer', 'blocks' or 'route'"));
      consume();
      skipToDeclaration();
    }
  }
  return file;
}

void Parser::hintDeclaration(Diagnostic &error) const {
  static constexpr StringRef words[] = {"optimizer", "blocks", "route"};
  StringRef nearest = at(TokenKind::Name) ? text::nearestName(spelling(current()), words) : "";
  if (!nearest.empty())
    error.withHint("did you mean '" + nearest + "'?");
}

bool Parser::expectClosingBrace(SourceRange openRange) {
  if (at(TokenKind::RightBrace)) {
    logicalLines.push_back(current().range.begin);
    consume();
    return true;
  }
  expected("'}'").withNote(openRange, "to match this '{'");
  return false;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

std::unique_ptr<Rule> Parser::parseRule() {
  auto rule = std::make_unique<Rule>();
  SourceRange begin = consume().range;
  openParens = 0;
  std::optional<Name> name = parseName("the optimizer's name");
  if (name)
    rule->name = std::move(*name);
  bool parsed = false;
  if (name && at(TokenKind::LeftBrace))
    expected("'('").withHint("one without hyperparameters is 'optimizer " + rule->name.text +
                             "() { ... }'");
  else if (name)
    parsed = parseList(TokenKind::LeftParen, TokenKind::RightParen,
                       [&] { return parseHyperparameter(*rule); });
  if (!parsed) {
    rule->hasSyntaxErrors = true;
    while (!at(TokenKind::LeftBrace) && !at(TokenKind::RightBrace) && !at(TokenKind::End) &&
           !atDeclaration())
      consume();
  }
  if (at(TokenKind::LeftBrace)) {
    parseBody(*rule);
  } else {
    if (!rule->hasSyntaxErrors)
      expected("'{'");
    rule->hasSyntaxErrors = true;
    skipToDeclaration();
  }
  rule->range = begin.to(previousRange());
  return rule;
}

bool Parser::parseHyperparameter(Rule &rule) {
  std::optional<Name> name = parseName("a hyperparameter's name");
  if (!name)
    return false;
  Hyperparameter &hyper = rule.hyperparameters.emplace_back();
  hyper.name = std::move(*name);
  if (consumeIf(TokenKind::Equal)) {
    hyper.defaultValue = parseConstant();
    if (!hyper.defaultValue)
      return false;
  }
  hyper.range = hyper.name.range.to(previousRange());
  return true;
}

void Parser::parseBody(Rule &rule) {
  SourceRange open = consume().range;
  llvm::SaveAndRestore inside(inRule, true);
  while (!at(TokenKind::RightBrace) && !at(TokenKind::End) && !atDeclaration() &&
         !diagnostics.isFull()) {
    size_t before = position;
    openParens = 0;
    depth = 0;
    if (parseStatement(rule))
      continue;
    rule.hasSyntaxErrors = true;
    // Always move on, but never past the start of the next statement.
    if (position == before)
      consume();
    skipTo([&] {
      return openParens == 0
                 ? atStatement()
                 : isKeyword(current().kind) && !isBuiltinValue(current().kind) && atStatement();
    });
  }
  if (!diagnostics.isFull() && !expectClosingBrace(open))
    rule.hasSyntaxErrors = true;
}

bool Parser::parseStatement(Rule &rule) {
  if (!checkStartsLine("an operator or the end of the line"))
    return false;
  logicalLines.push_back(current().range.begin);
  switch (current().kind) {
  case TokenKind::KwState:
    return parseState(rule);
  case TokenKind::KwMaster:
    return parseMaster(rule);
  case TokenKind::KwLet:
    return parseBinding(rule, /*isLet=*/true);
  case TokenKind::KwInput:
  case TokenKind::KwMetric:
    unsupported(current());
    return false;
  default:
    break;
  }
  bool isName = at(TokenKind::Name) || isBuiltinValue(current().kind);
  if (isName && next().kind != TokenKind::Equal &&
      llvm::is_contained(plannedStatements(), spelling(current()))) {
    unsupported(current());
    return false;
  }
  if (isName)
    return parseBinding(rule, /*isLet=*/false);
  expected("a statement");
  return false;
}

bool Parser::parseState(Rule &rule) {
  SourceRange begin = consume().range;
  std::optional<Name> name = parseName("the state's name");
  if (!name)
    return false;
  // Declared even if the rest is wrong, so that its uses are no errors.
  State &state = rule.states.emplace_back();
  state.name = std::move(*name);
  state.range = begin.to(state.name.range);
  if (!expect(TokenKind::Colon))
    return false;
  std::optional<ElementType> element = parseDtype();
  if (!element)
    return false;
  if (consumeIf(TokenKind::LeftBracket)) {
    if (consumeIf(TokenKind::KwRows)) {
      state.shape = Shape::Rows;
    } else if (consumeIf(TokenKind::KwCols)) {
      state.shape = Shape::Cols;
    } else if (at(TokenKind::RightBracket)) {
      state.shape = Shape::One;
    } else {
      Diagnostic &error = expected("'rows', 'cols' or ']'");
      if (atName("columns") || atName("col") || atName("column"))
        error.withHint("did you mean 'cols'?");
      else if (atName("row"))
        error.withHint("did you mean 'rows'?");
      return false;
    }
    if (!expect(TokenKind::RightBracket))
      return false;
  }
  if (consumeIf(TokenKind::Equal)) {
    if (!at(TokenKind::Number) && !at(TokenKind::Minus)) {
      expected("a number").withHint("the initial value of a state is a constant");
      return false;
    }
    state.initial = parseConstant();
    if (!state.initial)
      return false;
  }
  state.element = *element;
  state.range = begin.to(previousRange());
  return true;
}

bool Parser::parseMaster(Rule &rule) {
  SourceRange begin = consume().range;
  if (!expect(TokenKind::Colon))
    return false;
  if (!atName("f32")) {
    expected("f32").withHint("a master copy keeps full precision");
    return false;
  }
  consume();
  SourceRange range = begin.to(previousRange());
  if (rule.master)
    rule.furtherMasters.push_back(range);
  else
    rule.master = Master{ElementType::F32, range};
  return true;
}

bool Parser::parseBinding(Rule &rule, bool isLet) {
  SourceRange begin = current().range;
  Name target;
  if (isLet) {
    consume();
    std::optional<Name> name = parseName("a name");
    if (!name)
      return false;
    target = std::move(*name);
  } else {
    Token token = consume();
    target = {spelling(token).str(), token.range};
  }
  bool hasEqual = at(TokenKind::Equal);
  ExprPtr value;
  if (!hasEqual)
    hintBinding(expected("'=' after '" + target.text + "'"), target.text, isLet);
  else if (consume(); true)
    value = parseExpression();
  bool parsed = value != nullptr;
  if (!parsed)
    value = std::make_unique<ErrorExpr>(current().range);
  SourceRange range = begin.to(previousRange());
  if (isLet)
    rule.statements.push_back(
        std::make_unique<LetStatement>(range, std::move(target), std::move(value)));
  else if (hasEqual)
    rule.statements.push_back(
        std::make_unique<AssignStatement>(range, std::move(target), std::move(value)));
  return parsed;
}

/// What was probably meant where a statement's name is followed by no '='.
void Parser::hintBinding(Diagnostic &error, StringRef name, bool isLet) const {
  if (isLet)
    return;
  if (atUpdate(position))
    error.withHint("write '" + name + " = " + name + " " + spelling(current()) + " ...'");
  else if (at(TokenKind::EqualEqual))
    error.withHint("assign with one '='");
  else if (name == "else" || name == "elif")
    error.withHint("a choice is written 'select(condition, value, otherwise)'");
  else if (name == "while")
    error.withHint("there are no loops: a tensor's operations are of all its elements");
  else if (name == "return")
    error.withHint("a step ends with 'param = ...'");
  else if (at(TokenKind::Name) || at(TokenKind::Colon)) {
    // `sate m : f32`, `var x = 1`: a word in front of what is declared.
    static constexpr StringRef words[] = {"state", "master", "let"};
    StringRef nearest = text::nearestName(name, words);
    if (!nearest.empty())
      error.withHint("did you mean '" + nearest + "'?");
    else if (at(TokenKind::Name) && next().kind == TokenKind::Equal)
      error.withHint("a value is named by 'let " + spelling(current()) + " = ...'");
  }
}

//===----------------------------------------------------------------------===//
// Routes
//===----------------------------------------------------------------------===//

Route Parser::parseRoute() {
  Route route;
  SourceRange begin = consume().range;
  SourceRange open = current().range;
  if (!expect(TokenKind::LeftBrace)) {
    skipToDeclaration();
    route.range = begin;
    return route;
  }
  while (!at(TokenKind::RightBrace) && !at(TokenKind::End) && !atDeclaration() &&
         !diagnostics.isFull()) {
    size_t before = position;
    openParens = 0;
    if (parseClaim(route))
      continue;
    if (position == before)
      consume();
    skipTo([&] { return atClaim(); });
  }
  if (!diagnostics.isFull())
    expectClosingBrace(open);
  route.range = begin.to(previousRange());
  return route;
}

bool Parser::parseClaim(Route &route) {
  if (!checkStartsLine("'except' or the end of the line"))
    return false;
  logicalLines.push_back(current().range.begin);
  std::optional<Name> name = parseName("an optimizer's name");
  if (!name)
    return false;
  Claim claim;
  claim.range = name->range;
  claim.ruleName = std::move(*name);
  if (at(TokenKind::KwFor)) {
    expected("'('").withHint("values of hyperparameters stand in parentheses: '" +
                             claim.ruleName.text + "(...) for'");
    return false;
  }
  if (!parseList(TokenKind::LeftParen, TokenKind::RightParen, [&] { return parseSetting(claim); }))
    return false;
  if (consumeIf(TokenKind::KwAs)) {
    claim.routeName = parseName("the route's name");
    if (!claim.routeName)
      return false;
  }
  if (!expect(TokenKind::KwFor) || !parseSelector(claim) ||
      !parseIfPresent(claim.ifPresent, "a claim"))
    return false;
  if (consumeIf(TokenKind::KwExcept) && !parseStrings(claim.except))
    return false;
  if (at(TokenKind::KwIf)) {
    expected("the end of the line").withHint("'if present' stands before 'except'");
    return false;
  }
  claim.range = claim.range.to(previousRange());
  route.claims.push_back(std::move(claim));
  return true;
}

bool Parser::parseSetting(Claim &claim) {
  std::optional<Name> name = parseName("a hyperparameter's name");
  if (!name || !expect(TokenKind::Equal))
    return false;
  Setting &setting = claim.settings.emplace_back();
  setting.name = std::move(*name);
  if (at(TokenKind::Name)) {
    Token word = consume();
    setting.word = Name{spelling(word).str(), word.range};
    return true;
  }
  setting.number = parseConstant();
  return setting.number.has_value();
}

bool Parser::parseSelector(Claim &claim) {
  SourceRange begin = current().range;
  bool parsed = true;
  if (consumeIf(TokenKind::KwRest)) {
    claim.isRest = true;
  } else if (consumeIf(TokenKind::KwMatrix)) {
    claim.isMatrix = true;
    if (at(TokenKind::String))
      parsed = parseStrings(claim.globs);
  } else if (at(TokenKind::String)) {
    parsed = parseStrings(claim.globs);
  } else {
    Diagnostic &error = expected("'matrix', 'rest' or a pattern in quotes");
    if (atName("vector") || atName("vectors"))
      error.withHint(
          "vectors are claimed by their names, or by 'rest' beside a claim for 'matrix'");
    else if (at(TokenKind::Name)) {
      static constexpr StringRef words[] = {"matrix", "rest"};
      StringRef nearest = text::nearestName(spelling(current()), words);
      if (nearest.empty())
        error.withHint("patterns stand in quotes: \"" + spelling(current()) + "\"");
      else
        error.withHint("did you mean '" + nearest + "'?");
    }
    return false;
  }
  claim.selectorRange = begin.to(previousRange());
  return parsed;
}
