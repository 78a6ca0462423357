//===- ParseDeclarations.cpp - Rules, statements and routes ---------------===//
#include "frontends/language/Builtins.h"
#include "frontends/language/ForeignNames.h"
#include "frontends/language/Parser.h"
#include "frontends/text/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"

#include <cmath>

using namespace stepc::lang;
using llvm::StringRef;

/// Keeps only the first errors of a text in another language, and adds a hint that says so.
static void reportForeign(File &file, Diagnostics &diagnostics) {
  constexpr unsigned most = 3;
  file.isForeign = true;
  StringRef kind = foreignTextKind(file.source->text(file.part));
  diagnostics.keepFirst(most, llvm::Twine("this does not look like a definition") +
                                  (kind.empty() ? "" : ", but like ") + kind +
                                  "; a definition has 'optimizer NAME(...) { ... }' and "
                                  "'route { ... }'");
}

static constexpr const char *kDeclarations =
    "'optimizer', 'model', 'def', 'import', 'blocks' or 'route'";

std::unique_ptr<File> Parser::parseFile() {
  auto file = std::make_unique<File>();
  file->source = &source;
  file->part = part;
  if (looksForeign()) {
    expected(kDeclarations);
    for (const Token &token : stream.tokens)
      report(token);
    reportForeign(*file, diagnostics);
    return file;
  }
  while (!at(TokenKind::End) && !diagnostics.isFull()) {
    logicalLines.push_back(current().range.begin);
    if (at(TokenKind::KwOptimizer)) {
      file->rules.push_back(parseRule());
    } else if (atName("model") && next().kind == TokenKind::Name && !next().startsLine) {
      skip();
      expected("'(' after 'model'").withHint("a file has one model, which has no name");
      file->models.push_back(parseModel());
    } else if (atName("model")) {
      file->models.push_back(parseModel());
    } else if (at(TokenKind::KwRoute)) {
      file->routes.push_back(parseRoute());
    } else if (beginsImport(position)) {
      file->imports.push_back(parseImport());
    } else if (atName("def") && next().kind == TokenKind::Name) {
      file->defs.push_back(parseDef());
    } else if (atName("blocks")) {
      if (std::optional<BlocksStatement> blocks = parseBlocks())
        file->blocks.push_back(std::move(*blocks));
      else
        skipToDeclaration();
    } else if (at(TokenKind::KwInput) || at(TokenKind::KwMetric) || atPlannedStatement()) {
      if (at(TokenKind::KwMetric))
        expected(kDeclarations).withHint("a metric is a statement of an optimizer or of the model");
      else if (at(TokenKind::KwInput))
        expected(kDeclarations).withHint("an input is declared in the optimizer that reads it");
      else
        unsupported(current());
      skip();
      skipToDeclaration();
    } else {
      static constexpr StringRef words[] = {"optimizer", "model",  "def",
                                            "import",    "blocks", "route"};
      Diagnostic &error = expected(kDeclarations);
      StringRef meant = at(TokenKind::Name) ? text::nearestName(spelling(current()), words) : "";
      if (atName("import"))
        error.withHint("a file is imported as 'import \"file.optim\"'");
      else if (atName("def"))
        error.withHint("a function is 'def f(x) = x * x', or 'def f(x) { ... return x * x }'");
      else if (!meant.empty())
        error.withHint("did you mean '" + meant + "'?");
      // A misspelt declaration is parsed as what was probably meant, so that its names are known.
      bool begins = beginsDeclaration(position);
      file->lacksRules |= !begins;
      if (begins && meant == "optimizer") {
        file->rules.push_back(parseRule());
      } else if (begins && meant == "model") {
        file->models.push_back(parseModel());
      } else if (begins && meant == "route") {
        file->routes.push_back(parseRoute());
      } else {
        skip();
        skipToDeclaration();
      }
    }
  }
  for (const auto &rule : file->rules)
    file->lacksRules |=
        rule->name.text.empty() || (rule->lacksNames && rule->hyperparameters.empty());
  return file;
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
// Rules and the model
//===----------------------------------------------------------------------===//

std::unique_ptr<Rule> Parser::parseRule() {
  auto rule = std::make_unique<Rule>();
  SourceRange begin = consume().range;
  if (std::optional<Name> name = parseName("the optimizer's name"))
    rule->name = std::move(*name);
  parseDefinition(*rule, begin, "optimizer " + rule->name.text);
  return rule;
}

std::unique_ptr<Model> Parser::parseModel() {
  auto model = std::make_unique<Model>();
  SourceRange begin = consume().range;
  model->name = {"model", begin};
  parseDefinition(*model, begin, "model");
  return model;
}

/// Parses hyperparameters and statements. `form` is how the definition begins, for a hint. A body without a
/// name has an error that was reported.
void Parser::parseDefinition(Body &body, SourceRange begin, const llvm::Twine &form) {
  openParens = 0;
  bool parsed = false, hasName = !body.name.text.empty();
  size_t header = position;
  if (hasName && at(TokenKind::LeftBrace))
    expected("'('").withHint("one without hyperparameters is '" + form + "() { ... }'");
  else if (hasName)
    parsed = parseList(
        TokenKind::LeftParen, TokenKind::RightParen, [&] { return parseHyperparameter(body); },
        /*goOn=*/true);
  if (!parsed) {
    body.hasSyntaxErrors = true;
    rememberUnread(body, header);
    // If parsing stopped before the '{', hyperparameters may be missing.
    body.lacksNames |= !at(TokenKind::LeftBrace);
    while (!at(TokenKind::LeftBrace) && !at(TokenKind::RightBrace) && !at(TokenKind::End) &&
           !atDeclaration())
      skip();
  }
  if (auto *rule = llvm::dyn_cast<Rule>(&body); rule && parsed && atName("wide"))
    rule->wide = consumeWord().range;
  if (at(TokenKind::LeftBrace)) {
    parseBody(body);
  } else {
    if (!body.hasSyntaxErrors) {
      Diagnostic &error = expected("'{'");
      if (llvm::isa<Rule>(body) && isMisspelt(position, "wide"))
        error.withHint("did you mean 'wide'?");
    }
    body.hasSyntaxErrors = true;
    skipToDeclaration();
  }
  body.range = begin.to(previousRange());
}

void Parser::rememberUnread(Body &body, size_t from) const {
  for (; from < position; ++from)
    if (stream.tokens[from].kind == TokenKind::Name)
      body.unread.emplace(spelling(stream.tokens[from]));
}

bool Parser::parseHyperparameter(Body &body) {
  Diagnostic *error = nullptr;
  std::optional<Name> name = parseName("a hyperparameter's name", &error);
  if (!name) {
    if (position >= 2)
      hintGroupedDigits(*error, stream.tokens[position - 2]);
    body.lacksNames |= !at(TokenKind::Number) && !isKeyword(current().kind);
    return false;
  }
  Hyperparameter &hyper = body.hyperparameters.emplace_back();
  hyper.name = std::move(*name);
  if (consumeIf(TokenKind::Equal)) {
    hyper.defaultValue = parseComputed(hyper.name.text);
    hyper.isBroken = !hyper.defaultValue;
    if (!hyper.defaultValue)
      return false;
  } else {
    // A default without '=', as in `lr 0.1`, counts as unreadable.
    hyper.isBroken = !at(TokenKind::Comma) && !at(TokenKind::RightParen);
  }
  hyper.range = hyper.name.range.to(previousRange());
  return true;
}

void Parser::parseBody(Body &body) {
  SourceRange open = consume().range;
  llvm::SaveAndRestore inside(inBody, true);
  while (!at(TokenKind::RightBrace) && !at(TokenKind::End) && !atDeclaration() &&
         !diagnostics.isFull()) {
    size_t before = position;
    openParens = 0;
    depth = 0;
    if (parseStatement(body))
      continue;
    body.hasSyntaxErrors = true;
    // Always move on, but never past the start of the next statement.
    if (position == before)
      skip();
    skipTo([&] {
      return openParens == 0
                 ? atStatement()
                 : isKeyword(current().kind) && !isBuiltinValue(current().kind) && atStatement();
    });
    rememberUnread(body, before);
  }
  // A wrong token in the brace's place was reported already.
  bool isReplaced = stream.tokens[position - 1].kind == TokenKind::Invalid;
  if (isReplaced && !at(TokenKind::RightBrace))
    body.hasSyntaxErrors = true;
  else if (!diagnostics.isFull() && !expectClosingBrace(open))
    body.hasSyntaxErrors = true;
}

static constexpr const char *kSkipHint =
    "a model skips steps: 'model() { skip when not finite(norm(grad)) }'";

bool Parser::parseStatement(Body &body) {
  if (!checkStartsLine("an operator or the end of the line")) {
    // The previous statement's value goes on in this text, so it counts as an error.
    if (!body.statements.empty() && body.statements.back()->range.end == previousRange().end)
      body.statements.back()->value = std::make_unique<ErrorExpr>(previousRange());
    return false;
  }
  logicalLines.push_back(current().range.begin);
  if (atRepeat())
    return parseRepeat(body);
  if ((repeats || llvm::isa<Def>(body)) && !at(TokenKind::KwLet))
    return parseWork(body);
  auto *rule = llvm::dyn_cast<Rule>(&body);
  switch (current().kind) {
  case TokenKind::KwState:
    return parseState(body);
  case TokenKind::KwMaster:
    if (rule)
      return parseMaster(*rule);
    expected("'state', 'let', 'metric', 'skip when' or an assignment in a model")
        .withHint("the master copy of a parameter is declared in its optimizer");
    return false;
  case TokenKind::KwLet:
    return parseBinding(body, Statement::Kind::Let);
  case TokenKind::KwMetric:
    return parseBinding(body, Statement::Kind::Metric);
  case TokenKind::KwInput:
    if (rule)
      return parseState(body);
    expected("'state', 'let', 'metric', 'skip when' or an assignment in a model")
        .withHint("an input is given for each parameter: it is declared in an optimizer");
    return false;
  default:
    break;
  }
  if (atSkip() && (!rule || spelling(next()) == "when"))
    return parseSkip(body);
  bool isName = at(TokenKind::Name) || isBuiltinValue(current().kind);
  if (atPlannedStatement()) {
    unsupported(current());
    if (atName("every"))
      diagnostics.last().withHint(foreignFunctionHint("mod").value_or(""));
    return false;
  }
  if (isName && next().kind != TokenKind::Equal &&
      llvm::is_contained(plannedStatements(), spelling(current()))) {
    unsupported(current());
    if (atName("clip_grad_norm"))
      diagnostics.last().withHint("a model clips: 'model(max_norm = 1) { grad = min(1, max_norm / "
                                  "(norm(grad) + 1e-6)) * grad }'");
    else if (atName("skip_non_finite"))
      diagnostics.last().withHint(kSkipHint);
    return false;
  }
  if (isName)
    return parseBinding(body, Statement::Kind::Assign);
  hintValue(expected("a statement"));
  return false;
}

/// Parses an assignment or `return`. Functions and `repeat` have no other statements beside `let`.
bool Parser::parseWork(Body &body) {
  bool isDef = llvm::isa<Def>(body), isReturn = atReturn();
  if (isDef && isReturn && !repeats)
    return parseReturn(body);
  bool isName = at(TokenKind::Name) || isBuiltinValue(current().kind);
  if (isName && !isReturn && !atSkip() && !atPlannedStatement())
    return parseBinding(body, Statement::Kind::Assign);
  Diagnostic &error = expected(repeats ? "'let', 'repeat' or an assignment inside 'repeat'"
                                       : "'let', 'repeat' or 'return' in a function");
  if (isReturn && isDef)
    error.withHint("a function has one 'return', at its end");
  else if (at(TokenKind::KwState) || at(TokenKind::KwMaster) || at(TokenKind::KwInput))
    error.withHint("what lasts from step to step is declared in the optimizer itself");
  else if (at(TokenKind::KwMetric))
    error.withHint("a metric stands in the optimizer itself, outside of 'repeat'");
  else
    hintValue(error);
  return false;
}

/// Parses `skip when CONDITION`.
bool Parser::parseSkip(Body &body) {
  Token word = consume();
  if (!atName("when")) {
    expected("'when' after 'skip'").withHint("a step is skipped by 'skip when CONDITION'");
    return false;
  }
  if (llvm::isa<Rule>(body)) {
    errorAt(word.range.to(current().range),
            "expected a statement of an optimizer, found 'skip when'")
        .withHint(kSkipHint);
    return false;
  }
  consumeWord();
  ExprPtr value = parseExpression();
  bool parsed = value != nullptr;
  if (!parsed)
    value = std::make_unique<ErrorExpr>(current().range);
  body.statements.push_back(std::make_unique<SkipStatement>(
      word.range.to(previousRange()), Name{"skip", word.range}, std::move(value)));
  return parsed;
}

/// Whether a statement such as `every 6 steps { ... }` begins here, which is planned.
bool Parser::atPlannedStatement() const {
  if (!atName("every") || (next().kind != TokenKind::Number && next().kind != TokenKind::Name))
    return false;
  const Token &unit = tokenAt(position + 2);
  return unit.kind == TokenKind::LeftBrace || unit.kind == TokenKind::KwStep ||
         spelling(unit) == "steps";
}

/// Parses one or two sizes, or none, and the `]` after the dtype. The caller has consumed the '['.
bool Parser::parseStateKind(StateDeclaration &state) {
  SourceRange open = previousRange();
  if (consumeIf(TokenKind::RightBracket)) {
    state.shape = Shape::One;
    return true;
  }
  SourceRange firstRange = current().range;
  std::optional<Size> first = parseSize();
  if (!first)
    return false;
  // Other languages write two axes as `[rows * rows]` or `[rows][rows]`.
  size_t second = position;
  if (at(TokenKind::RightBracket) && next().kind == TokenKind::LeftBracket)
    second += 2;
  else if (at(TokenKind::Star) || atName("x"))
    second += 1;
  TokenKind kind = tokenAt(second).kind;
  if (second != position && (kind == TokenKind::KwRows || kind == TokenKind::KwCols)) {
    while (position <= second)
      skip();
    SourceRange range = open.to(at(TokenKind::RightBracket) ? skip().range : previousRange());
    errorAt(range, "expected two sizes as [rows, cols], found " + source.text(range));
    return false;
  }
  if (consumeIf(TokenKind::Comma)) {
    std::optional<Size> cols = parseSize();
    if (!cols)
      return false;
    state.shape = Shape::of(*first, *cols);
    return expect(TokenKind::RightBracket);
  }
  if (*first == Size::Rows || *first == Size::Cols) {
    state.shape = *first == Size::Rows ? Shape::Rows : Shape::Cols;
    return expect(TokenKind::RightBracket);
  }
  Diagnostic &error =
      errorAt(firstRange, "expected 'rows', 'cols', ']' or two sizes, found " + spell(*first));
  if (*first == Size::One)
    error.withHint("one value is declared with []");
  return false;
}

/// Parses `rows`, `cols`, a whole number or the name of a `let`.
std::optional<Size> Parser::parseSize() {
  if (consumeIf(TokenKind::KwRows))
    return Size::Rows;
  if (consumeIf(TokenKind::KwCols))
    return Size::Cols;
  if (at(TokenKind::Number)) {
    double value = consume().value;
    bool isSize = value == std::floor(value) && value >= 1 && value <= double(Size::most);
    return Size{Size::Of::Number, isSize ? static_cast<int64_t>(value) : 0}; // 0 is refused later
  }
  StringRef meant = atName("columns") || atName("col") || atName("column") ? "cols"
                    : atName("row")                                        ? "rows"
                                                                           : "";
  if (at(TokenKind::Name) && meant.empty())
    return Size{Size::Of::Let, 0, source.text(consume().range)};
  Diagnostic &error = expected("'rows', 'cols', a whole number or the name of a size");
  if (!meant.empty())
    error.withHint("did you mean '" + meant + "'?");
  return std::nullopt;
}

bool Parser::parseState(Body &body) {
  bool isInput = at(TokenKind::KwInput);
  std::string what = isInput ? "input" : "state";
  SourceRange begin = consume().range;
  std::optional<Name> name = parseName("the " + what + "'s name");
  if (!name) {
    body.lacksNames |= !isKeyword(current().kind);
    return false;
  }
  // The state is declared even if the rest has errors, so that its uses are no errors.
  StateDeclaration &state = body.states.emplace_back();
  state.isInput = isInput;
  if (llvm::isa<Model>(body))
    state.shape = Shape::One;
  state.name = std::move(*name);
  state.range = begin.to(state.name.range);
  if (!at(TokenKind::Colon)) {
    std::string hint = (isInput ? "an input" : "a state") + (" has a type: write '" + what) + " " +
                       state.name.text + " : f32'";
    if (current().startsLine && !at(TokenKind::Invalid)) {
      uint32_t end = previousRange().end;
      errorAt({end, end}, "expected ':', found the end of the line").withHint(hint);
    } else {
      expected(describe(TokenKind::Colon))
          .withHint(hint + (at(TokenKind::Equal) && !isInput ? ", which starts at 0" : ""));
    }
    return false;
  }
  consume();
  std::optional<ElementType> element = parseDtype();
  if (!element)
    return false;
  if (consumeIf(TokenKind::LeftBracket)) {
    SourceRange open = previousRange();
    if (!parseStateKind(state))
      return false;
    state.sizes = open.to(previousRange());
  }
  if (consumeIf(TokenKind::Equal)) {
    state.initial = parseComputed("");
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

/// Parses `let NAME = value`, `metric NAME = value` or `NAME = value`.
bool Parser::parseBinding(Body &body, Statement::Kind kind) {
  SourceRange begin = current().range;
  Name target;
  bool isLet = kind == Statement::Kind::Let, isMetric = kind == Statement::Kind::Metric;
  if (isLet || isMetric) {
    consume();
    std::optional<Name> name = parseName(isMetric ? "the metric's name" : "a name");
    if (!name) {
      body.lacksNames |= isLet && !isKeyword(current().kind);
      return false;
    }
    target = std::move(*name);
  } else {
    Token token = consume();
    target = {spelling(token).str(), token.range};
  }
  bool hasEqual = at(TokenKind::Equal);
  ExprPtr value;
  if (!hasEqual)
    hintBinding(expected("'=' after '" + target.text + "'"), body, target.text, kind);
  else if (consume(); true)
    value = parseExpression();
  bool parsed = value != nullptr;
  if (!parsed)
    value = std::make_unique<ErrorExpr>(current().range);
  SourceRange range = begin.to(previousRange());
  if (isLet)
    body.statements.push_back(
        std::make_unique<LetStatement>(range, std::move(target), std::move(value)));
  else if (isMetric)
    body.statements.push_back(
        std::make_unique<MetricStatement>(range, std::move(target), std::move(value)));
  else if (hasEqual)
    body.statements.push_back(
        std::make_unique<AssignStatement>(range, std::move(target), std::move(value)));
  return parsed;
}

/// Adds a hint for a statement whose name is not followed by '='.
void Parser::hintBinding(Diagnostic &error, const Body &body, StringRef name,
                         Statement::Kind kind) const {
  if (kind == Statement::Kind::Metric && at(TokenKind::Colon))
    error.withHint("a metric is always an f32, so it has no type");
  if (kind != Statement::Kind::Assign)
    return;
  if (at(TokenKind::Dot))
    error.withHint("a value of the model is computed in the 'model' block alone");
  else if (atUpdate(position))
    error.withHint("write '" + name + " = " + name + " " + spelling(current()) + " ...'");
  else if (at(TokenKind::EqualEqual))
    error.withHint("assign with one '='");
  else if (name == "else" || name == "elif")
    error.withHint("a choice is written 'select(condition, value, otherwise)'");
  else if (name == "while")
    error.withHint(kLoopHint);
  else if (name == "return")
    error.withHint(llvm::isa<Model>(body) ? "a model ends with 'grad = ...'"
                                          : "a step ends with 'param = ...'");
  else if (at(TokenKind::Name) || at(TokenKind::Colon)) {
    // In `sate m : f32` and `var x = 1` the name is a wrong keyword.
    static constexpr StringRef words[] = {"state", "master", "let", "metric"};
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
      skip();
    skipTo([&] { return atClaim(); });
  }
  bool isReplaced = stream.tokens[position - 1].kind == TokenKind::Invalid;
  if (!diagnostics.isFull() && (!isReplaced || at(TokenKind::RightBrace)))
    expectClosingBrace(open);
  route.range = begin.to(previousRange());
  return route;
}

bool Parser::parseClaim(Route &route) {
  if (!checkStartsLine("'except' or the end of the line"))
    return false;
  logicalLines.push_back(current().range.begin);
  if (atName("where") && next().kind != TokenKind::LeftParen && next().kind != TokenKind::KwFor) {
    expected("a claim").withHint("'where' stands on the line of its 'matrix'");
    return false;
  }
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
  // Errors in the list were reported. The rest of the claim is parsed all the same.
  if (!parseList(
          TokenKind::LeftParen, TokenKind::RightParen, [&] { return parseSetting(claim); },
          /*goOn=*/true)) {
    claim.lacksSettings = true;
    if (!at(TokenKind::KwAs) && !at(TokenKind::KwFor))
      return false;
  }
  if (consumeIf(TokenKind::KwAs)) {
    claim.routeName = parseName("the route's name");
    if (!claim.routeName)
      return false;
  }
  if (!expect(TokenKind::KwFor) || !parseSelector(claim) || !parseWhere(claim) ||
      !parseIfPresent(claim.ifPresent, "a claim"))
    return false;
  if (consumeIf(TokenKind::KwExcept) && !parseStrings(claim.except))
    return false;
  if (at(TokenKind::KwIf)) {
    expected("the end of the line").withHint("'if present' stands before 'except'");
    return false;
  }
  if (atName("where") && !current().startsLine) {
    expected("the end of the line")
        .withHint(claim.where ? "a claim has one 'where': join its conditions with 'and'"
                              : "'where' stands behind 'matrix' and its patterns, before 'if "
                                "present' and 'except'");
    return false;
  }
  claim.range = claim.range.to(previousRange());
  route.claims.push_back(std::move(claim));
  return true;
}

/// Parses `where CONDITION` behind a selector, if it is there.
bool Parser::parseWhere(Claim &claim) {
  if (!at(TokenKind::Name) || current().startsLine)
    return true;
  if (!atName("where")) {
    StringRef word = spelling(current());
    if (claim.isMatrix && (word == "when" || !text::nearestName(word, {"where"}).empty())) {
      expected("'where', 'if present', 'except' or the end of the line")
          .withHint("sizes are asked for by 'where': 'matrix where rows <= 4096'");
      return false;
    }
    return true;
  }
  if (!claim.isMatrix) {
    expected("'if present', 'except' or the end of the line")
        .withHint(claim.isRest ? "'rest' takes what no other claim takes, whatever its size"
                               : "matrices have sizes: write 'for matrix " +
                                     source.text(claim.selectorRange) + " where ...'");
    return false;
  }
  consumeWord();
  depth = 0;
  claim.where = parseExpression();
  if (claim.where && at(TokenKind::Equal)) {
    bool isLess = next().kind == TokenKind::Less, isGreater = next().kind == TokenKind::Greater;
    expected("a comparison")
        .withHint(isLess      ? "at most is written 'a <= b'"
                  : isGreater ? "at least is written 'a >= b'"
                              : "equality is written 'a == b'");
    return false;
  }
  return claim.where != nullptr;
}

bool Parser::parseSetting(Claim &claim) {
  Diagnostic *error = nullptr;
  std::optional<Name> name = parseName("a hyperparameter's name", &error);
  if (!name && position >= 2)
    hintGroupedDigits(*error, stream.tokens[position - 2]);
  if (!name || !expect(TokenKind::Equal))
    return false;
  Setting &setting = claim.settings.emplace_back();
  setting.name = std::move(*name);
  // A word is a value only if it stands alone. A word that has an error causes no further one.
  if (at(TokenKind::Name) &&
      (next().kind == TokenKind::Comma || next().kind == TokenKind::RightParen)) {
    bool isWrong = current().error >= 0;
    Token word = consume();
    if (isWrong)
      return false;
    setting.word = Name{spelling(word).str(), word.range};
    return true;
  }
  setting.number = parseComputed(setting.name.text);
  return setting.number.has_value();
}

/// Whether a condition on a parameter's axes begins here, as in `for ndim >= 2` and `for param.ndim >= 2`.
bool Parser::asksForAxes() const {
  static constexpr StringRef words[] = {"ndim", "ndims", "dim",  "dims",  "rank", "shape",
                                        "size", "len",   "axes", "numel", "rows", "cols"};
  bool isCondition = next().kind >= TokenKind::Less && next().kind <= TokenKind::NotEqual;
  bool isCall = next().kind == TokenKind::LeftParen || next().kind == TokenKind::Invalid;
  return isCondition || isCall || llvm::is_contained(words, spelling(current()));
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
    else if (at(TokenKind::KwNot))
      error.withHint("'except' behind the patterns takes parameters out: 'for rest except \"a*\"'");
    else if (asksForAxes())
      error.withHint(
          "'matrix' takes parameters of two axes and declared stacks of matrices, 'rest' all "
          "that no other claim takes; sizes are asked for by 'matrix where rows <= 4096'");
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
