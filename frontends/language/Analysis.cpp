//===- Analysis.cpp - Files, declarations and statements ------------------===//
#include "frontends/language/Analyzer.h"
#include "frontends/language/ForeignNames.h"
#include "frontends/language/Lexer.h"
#include "frontends/text/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace stepc::lang;
using llvm::StringRef;
using llvm::Twine;

void stepc::lang::hintNearest(Diagnostic &diagnostic, StringRef name,
                              llvm::ArrayRef<StringRef> candidates) {
  StringRef nearest = text::nearestName(name, candidates);
  if (!nearest.empty())
    diagnostic.withHint("did you mean '" + nearest + "'?");
}

namespace {

void checkRuleNames(const File &file, Diagnostics &diagnostics) {
  llvm::StringMap<const Rule *> seen;
  // Imported ones first, so that the error is about the file's own.
  std::vector<Rule *> rules = file.allRules();
  std::rotate(rules.begin(), rules.begin() + file.rules.size(), rules.end());
  for (const Rule *rule : rules) {
    if (rule->name.text.empty())
      continue;
    auto [it, isNew] = seen.try_emplace(rule->name.text, rule);
    if (!isNew)
      diagnostics.error(rule->name.range, "optimizer '" + rule->name.text + "' is declared twice")
          .withNote(it->second->name.range, "the first declaration is here");
  }
}

void warnUnused(const Statements &statements, Diagnostics &diagnostics) {
  auto warn = [&](const Name &name, const Usage &isUsed) {
    if (!*isUsed)
      diagnostics.warning(name.range, "'" + name.text + "' is never used");
  };
  for (const auto &statement : statements) {
    if (const auto *let = llvm::dyn_cast<LetStatement>(statement.get()))
      warn(let->target, let->isUsed);
    const auto *repeat = llvm::dyn_cast<RepeatStatement>(statement.get());
    if (!repeat)
      continue;
    for (const Parameter &each : repeat->names)
      warn(each.name, each.isUsed);
    warnUnused(repeat->statements, diagnostics);
  }
}

void warnUnused(const File &file, Diagnostics &diagnostics) {
  for (const auto &def : file.defs) {
    for (const Parameter &each : def->parameters)
      if (!*each.isUsed)
        diagnostics.warning(each.name.range, "argument '" + each.name.text + "' is never used");
    warnUnused(def->statements, diagnostics);
    // A file without a route may be there for others to import.
    if (file.route() && !def->isUsed)
      diagnostics.warning(def->name.range, "function '" + def->name.text + "' is never used");
  }
  for (const Body *body : file.bodies()) {
    for (const Hyperparameter &hyper : body->hyperparameters)
      if (!hyper.isUsed)
        diagnostics.warning(hyper.name.range,
                            "hyperparameter '" + hyper.name.text + "' is never used");
    for (const StateDeclaration &state : body->states) {
      if (!state.isAssigned && !state.isRead)
        diagnostics.warning(state.name.range, (state.isInput ? "input '" : "state '") +
                                                  state.name.text + "' is never used");
      else if (!state.isAssigned && !state.isInput && state.start == stepc::plan::Initial::Number)
        diagnostics.warning(state.name.range, "state '" + state.name.text + "' is never assigned")
            .withHint("if the trainer writes it, say so: '" + state.name.text + " = " +
                      state.name.text + "'");
      // A state of one number may be meant for the trainer to read. A tensor would only cost memory.
      else if (state.isAssigned && !state.isRead && state.shape != Shape::One)
        diagnostics.warning(state.name.range,
                            "state '" + state.name.text + "' is assigned and never read");
    }
    warnUnused(body->statements, diagnostics);
    if (llvm::isa<Rule>(body) && !body->usesGrad)
      diagnostics.warning(body->name.range,
                          "optimizer '" + body->name.text + "' never uses 'grad'");
  }
  if (!file.route())
    return;
  for (const auto &rule : file.rules) {
    bool isClaimed = llvm::any_of(file.route()->claims,
                                  [&](const Claim &claim) { return claim.rule == rule.get(); });
    if (!isClaimed)
      diagnostics.warning(rule->name.range, "no route uses optimizer '" + rule->name.text + "'");
  }
}

} // namespace

bool stepc::lang::analyze(File &file, Diagnostics &diagnostics, AnalysisOptions options) {
  if (file.isForeign)
    return false;
  diagnostics.dropWarningsFrom(file.part.end + 1);
  checkRuleNames(file, diagnostics);
  checkModel(file, diagnostics);
  std::vector<File *> files; // each behind its imports
  for (const auto &imported : file.imported)
    files.push_back(imported.get());
  files.push_back(&file);
  for (File *each : files) {
    checkDefs(*each, diagnostics);
    computeConstants(*each, diagnostics);
  }
  for (File *each : files)
    for (const auto &model : each->models) {
      model->lacksNames |= each->lacksNames;
      ModelAnalyzer(*model, *each, diagnostics).run();
    }
  // Rules read values of the model, so the models come first.
  for (File *each : files)
    for (const auto &rule : each->rules) {
      rule->lacksNames |= each->lacksNames;
      RuleAnalyzer(*rule, *each, file, diagnostics).run();
    }
  for (const BlocksStatement &blocks : file.blocks)
    analyzeBlocks(blocks, diagnostics);
  analyzeRoutes(file, diagnostics);
  uint32_t end = file.part.end;
  std::vector<Rule *> rules = file.allRules();
  if (!diagnostics.hasErrors()) {
    if (rules.empty() && (file.functions.empty() || options.requireRoute || file.route()))
      diagnostics.error({end, end}, "expected at least one optimizer, found none");
    else if (options.requireRoute && !file.route())
      diagnostics.error({end, end}, "expected a route, found none")
          .withHint("end the file with 'route { " + rules[0]->name.text + "(...) for rest }'");
  }
  // After an error, what looks unused may be used in the text that has the error.
  if (!diagnostics.hasErrors()) {
    warnUnused(file, diagnostics);
    warnHyperparameters(file, diagnostics);
  }
  return !diagnostics.hasErrors();
}

//===----------------------------------------------------------------------===//
// Declarations and statements
//===----------------------------------------------------------------------===//

/// How messages name a type: a value of shape One is of the parameter, or of all parameters.
std::string BodyAnalyzer::describe(Type type) const {
  return type.shape == Shape::One && !type.isCondition() ? words.one.str() : lang::describe(type);
}

void BodyAnalyzer::declare(const Name &name, Symbol symbol) {
  symbol.range = name.range;
  auto [it, isNew] = symbols.try_emplace(name.text, symbol);
  if (isNew)
    return;
  const Hyperparameter *first = it->second.hyperparameter;
  Diagnostic &error = diagnostics.error(name.range, "'" + Twine(name.text) + "' is declared twice");
  if (!first || !first->isImplicit) {
    error.withNote(it->second.range, "the first declaration is here");
    return;
  }
  error.withNote(it->second.range, "random numbers have the hyperparameter 'seed'")
      .withHint("take another name, or declare the hyperparameter: 'seed = 0'");
  if (symbol.state) // an assignment to it is no further error
    it->second = symbol;
}

void BodyAnalyzer::declareAll() {
  for (Hyperparameter &hyper : body.hyperparameters) {
    Symbol symbol; // visible in the whole body
    symbol.hyperparameter = &hyper;
    declare(hyper.name, symbol);
    // In a claim, a hyperparameter `missing_grad` would look like the setting.
    if (hyper.name.text == "missing_grad")
      diagnostics.error(hyper.name.range, "expected another name for the "
                                          "hyperparameter: 'missing_grad' is a "
                                          "setting of every route");
  }
  // States and lets are declared in the order of the text, so that the later of two equal names is reported.
  auto state = body.states.begin();
  auto declareStates = [&](uint32_t limit) {
    for (; state != body.states.end() && state->range.begin < limit; ++state) {
      Symbol symbol;
      symbol.state = &*state;
      symbol.visibleFrom = state->range.end;
      declare(state->name, symbol);
      if (state->initial)
        if (Loss loss = lossIn(state->element, state->initial->value); loss != Loss::None)
          diagnostics.error(state->initial->range,
                            "expected " + Twine(state->isInput ? "a default" : "an initial value") +
                                " that " + Twine(spell(state->element)) + " can hold, found " +
                                describeLoss(state->initial->value, loss));
      bool saysSizes = state->shape != Shape::Full || state->sizes.end > state->sizes.begin;
      if (state->element != ElementType::Invalid && saysSizes && state->shape.hasSeveral() &&
          !needMatrix(state->range, "state '" + Twine(state->name.text) + "' with " +
                                        lang::describe(state->shape)))
        state->element = ElementType::Invalid; // so that assignments to it are no errors as well
    }
  };
  for (const auto &statement : body.statements) {
    auto *let = llvm::dyn_cast<LetStatement>(statement.get());
    if (!let)
      continue;
    declareStates(let->range.begin);
    Symbol symbol;
    symbol.let = let;
    symbol.visibleFrom = let->range.end;
    declare(let->target, symbol);
  }
  declareStates(UINT32_MAX);
  // No statement reads a metric. So it may be called like a value, but not like a state, which is stored.
  llvm::StringMap<SourceRange> stored;
  for (const StateDeclaration &each : body.states)
    stored.try_emplace(each.name.text, each.name.range);
  for (const MetricStatement *metric : body.metrics()) {
    auto [it, isNew] = stored.try_emplace(metric->target.text, metric->target.range);
    if (!isNew)
      diagnostics
          .error(metric->target.range, "'" + Twine(metric->target.text) + "' is declared twice")
          .withNote(it->second, "the first declaration is here");
  }
}

void BodyAnalyzer::run() {
  declareAll();
  auto state = body.states.begin();
  auto resolveUntil = [&](uint32_t limit) {
    for (; state != body.states.end() && state->range.begin < limit; ++state)
      resolveSizes(*state);
  };
  for (const auto &statement : body.statements) {
    resolveUntil(statement->range.begin);
    analyzeStatement(*statement);
  }
  resolveUntil(UINT32_MAX);
  finish();
  if (!diagnostics.hasErrors())
    warnNotFinite();
}

void BodyAnalyzer::analyzeStatement(Statement &statement) {
  if (!countOperation())
    return;
  switch (statement.kind) {
  case Statement::Kind::Let:
    return analyzeLet(llvm::cast<LetStatement>(statement));
  case Statement::Kind::Assign:
    return analyzeAssign(llvm::cast<AssignStatement>(statement));
  case Statement::Kind::Skip:
    return analyzeSkip(llvm::cast<SkipStatement>(statement));
  case Statement::Kind::Metric:
    return analyzeMetric(llvm::cast<MetricStatement>(statement));
  case Statement::Kind::Repeat:
    return analyzeRepeat(llvm::cast<RepeatStatement>(statement));
  case Statement::Kind::Return: // of a function: analyzeInlined takes its value
    break;
  }
}

void BodyAnalyzer::analyzeLet(LetStatement &let) {
  analyzeExpr(*let.value);
  finishLet(let);
}

void BodyAnalyzer::finishLet(LetStatement &let) {
  let.order = letCount++;
  let.isLocal |= isInlining();
  const auto *name = llvm::dyn_cast<NameExpr>(let.value.get());
  if (name && name->let)
    let.same = name->let->same ? name->let->same : name->let;
  let.unknown = unknownIn(*let.value);
}

void BodyAnalyzer::analyzeAssign(AssignStatement &assign) {
  if (repeats && assign.target.text == words.result) {
    diagnostics
        .error(assign.target.range, "expected an assignment to '" + Twine(words.result) +
                                        "' outside of 'repeat', found it inside")
        .withHint("it is assigned once: name what the turns compute with 'let'");
    isResultMisspelt = true;
    return;
  }
  // A second assignment is an error by itself, whatever it reads.
  const AssignStatement *before = resultAssignment;
  if (assign.target.text == words.result)
    resultAssignment = nullptr;
  llvm::SaveAndRestore right(assigned, static_cast<const Expr *>(assign.value.get()));
  Type type = analyzeExpr(*assign.value);
  resultAssignment = before;
  resolveTarget(assign);
  Shape wanted = Shape::Full;
  if (assign.state) {
    if (assign.state->element == ElementType::Invalid)
      return;
    wanted = assign.state->shape;
  } else if (assign.target.text != words.result) {
    return;
  }
  if (!type.isValid() || (assign.roundsByChance() && !checkStochastic(assign)))
    return;
  // Values are not broadcast to the target's shape, except a scalar to a state of one value.
  bool fits =
      !type.isCondition() && (type.shape == wanted || (type.isScalar() && wanted == Shape::One));
  if (fits) {
    meetTensor(*assign.value, wanted, assign.state ? assign.state->element : ElementType::F32);
    return;
  }
  Diagnostic &error = diagnostics.error(
      assign.value->range, "expected " + describe(Type{wanted, ElementType::F32}) + " for '" +
                               assign.target.text + "', found " + describe(type));
  if (assign.state)
    error.withNote(assign.state->range, "the state is declared here");
  hintShape(error, assign, type);
}

void BodyAnalyzer::analyzeSkip(SkipStatement &skip) {
  const Expr &condition = *skip.value;
  Type type = analyzeCondition(*skip.value);
  if (!type.isValid())
    return;
  skipDepth = std::max(skipDepth, condition.depth) + 3;
  checkDepth(skipDepth, skip.range);
  if (type.shape.hasSeveral())
    diagnostics
        .error(condition.range,
               "expected one condition for the whole step, found one for each element")
        .withHint(
            "a reduction such as 'norm(grad)' gives one value, which a condition can be about");
  else if (condition.constant)
    diagnostics.warning(skip.range, *condition.constant != 0 ? "this skips every step"
                                                             : "this never skips a step");
  else if (type.isScalar() && condition.readsStep)
    diagnostics
        .warning(skip.range,
                 "once this skips a step, it may skip all further ones: a skipped step does "
                 "not count, so 'step' stays")
        .withHint("a state can count the steps: 'seen = seen + 1' above the statement");
}

void BodyAnalyzer::analyzeMetric(MetricStatement &metric) {
  Type type = analyzeExpr(*metric.value);
  if (!type.isValid())
    return;
  if (!type.isCondition() && !type.shape.hasSeveral()) {
    meetTensor(*metric.value, Shape::One);
    return;
  }
  Diagnostic &error =
      diagnostics.error(metric.value->range, "expected one number for the metric '" +
                                                 metric.target.text + "', found " + describe(type));
  if (type.isCondition())
    error.withHint("make a number of it: 'select(condition, 1, 0)'");
  else
    error.withHint("a reduction such as 'rms(x)' gives one number");
}

/// Adds a hint: how a value of the shape that was found can get the shape of the target.
void BodyAnalyzer::hintShape(Diagnostic &error, const AssignStatement &assign, Type found) const {
  Shape wanted = assign.state ? assign.state->shape : Shape::Full;
  if (found.isCondition())
    error.withHint("make numbers of it: 'select(condition, 1, 0)'");
  else if (wanted == Shape::Rows && (found.shape == Shape::Cols || found.shape == Shape::Full))
    error.withHint("a reduction of a full tensor with 'over = columns' gives one value per row");
  else if (wanted == Shape::Cols && (found.shape == Shape::Rows || found.shape == Shape::Full))
    error.withHint("a reduction of a full tensor with 'over = rows' gives one value per column");
  else if (wanted == Shape::One)
    error.withHint("a reduction such as 'mean(x)' gives one value");
  else if (found.shape == wanted.transposed())
    error.withHint("'transpose(x)' exchanges rows and columns");
  else if (assign.state && wanted == Shape::Full && found.shape.isOfParameter())
    error.withHint("a state that is smaller is declared so: '" + spell(assign.state->element) +
                   (found.shape == Shape::Rows   ? "[rows]'"
                    : found.shape == Shape::Cols ? "[cols]'"
                                                 : "[]'"));
}

void BodyAnalyzer::resolveTarget(AssignStatement &assign) {
  const Name &target = assign.target;
  if (target.text == words.result) {
    if (resultAssignment)
      diagnostics.error(target.range, "'" + Twine(target.text) + "' is assigned twice")
          .withNote(resultAssignment->target.range, "the first assignment is here")
          .withHint("name what is between with 'let'");
    else
      resultAssignment = &assign;
    return;
  }
  auto it = symbols.find(target.text);
  if (it == symbols.end()) {
    if (llvm::is_contained({"param", "grad", "step", "rows", "cols", "numel"}, target.text)) {
      diagnostics.error(target.range, "expected " + words.targets + " to assign to, found '" +
                                          Twine(target.text) + "'");
      return;
    }
    if (!isFirstMention(target.text))
      return;
    std::vector<StringRef> candidates{words.result};
    for (const StateDeclaration &state : body.states)
      candidates.push_back(state.name.text);
    Diagnostic &error = diagnostics.error(target.range, "unknown " + words.target + " '" +
                                                            Twine(target.text) + "'");
    StringRef nearest = text::nearestName(target.text, candidates);
    if (std::optional<StringRef> foreign = foreignValueHint(target.text);
        foreign && foreign->contains(("'" + words.result + "'").str()))
      error.withHint(*foreign);
    else if (nearest.empty())
      error.withHint(hintDeclaration(target.text));
    else
      error.withHint("did you mean '" + nearest + "'?");
    isResultMisspelt |= nearest == words.result;
    return;
  }
  Symbol &symbol = it->second;
  if (!symbol.state || symbol.state->isInput) {
    StringRef what = symbol.let ? "'let'" : symbol.state ? "input" : "hyperparameter";
    Diagnostic &error =
        diagnostics
            .error(target.range, "expected " + words.targets + " to assign to, found the " + what +
                                     " '" + target.text + "'")
            .withNote(symbol.range, "it is declared here");
    if (symbol.let)
      error.withHint("only a 'repeat' assigns again to what 'let' declares");
    return;
  }
  symbol.state->isAssigned = true;
  uint32_t &depth = symbol.state->depth;
  if (llvm::isa<Model>(body)) {
    // The conditions so far that skip the step choose the old or the new value.
    depth = std::max({assign.value->depth, skipDepth, depth}) + 3;
    checkDepth(depth, assign.range);
  } else {
    // Two more operations: rounded to the state's type here, and extended when it is read.
    depth = assign.value->depth + 2;
  }
  assign.state = symbol.state;
  if (symbol.range.begin > target.range.begin)
    diagnostics.error(target.range, "'" + Twine(target.text) + "' is used before it is declared")
        .withNote(symbol.range, "the declaration is here");
}

/// Whether an unknown name must be reported, which is then noted. False if the name was reported before, as
/// every name outside ASCII was, or if text that could not be parsed may declare it.
bool BodyAnalyzer::isFirstMention(StringRef name) {
  return !body.lacksNames && llvm::isASCII(name) && body.unread.emplace(name).second;
}

/// The names of values that are known at the offset `before` of the text.
std::vector<StringRef> BodyAnalyzer::valueNames(uint32_t before) const {
  std::vector<StringRef> names(words.known.begin(), words.known.end());
  for (const auto &entry : symbols)
    if (entry.second.range.end <= before)
      names.push_back(entry.getKey());
  // Sorted, because a StringMap has no fixed order: one of two equally near names is always suggested.
  llvm::sort(names);
  return names;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

static constexpr StringRef namesOfRules[] = {"param", "grad",  "step", "rows",
                                             "cols",  "numel", "row",  "col"};

RuleAnalyzer::RuleAnalyzer(Rule &rule, const File &file, const File &main, Diagnostics &diagnostics)
    : BodyAnalyzer(rule,
                   {.result = "param",
                    .targets = "a state or 'param'",
                    .target = "state",
                    .known = namesOfRules},
                   diagnostics, *file.source, &file),
      rule(rule), main(main) {
  if (rule.wide)
    rule.needsMatrix = MatrixNeed{*rule.wide, "'wide'"};
  // The operations of the model's new gradient come before those of the rule.
  if (const Model *model = main.model())
    for (const auto &statement : model->statements)
      if (llvm::isa<AssignStatement>(*statement) && statement->target.text == "grad")
        gradDepth = statement->value->depth + 2;
}

bool RuleAnalyzer::needMatrix(SourceRange range, const Twine &what) {
  if (!rule.needsMatrix)
    rule.needsMatrix = MatrixNeed{range, what.str()};
  return true;
}

std::string RuleAnalyzer::hintDeclaration(StringRef name) const {
  return ("declare it: 'state " + name + " : f32', or 'let " + name + " = ...'").str();
}

void RuleAnalyzer::finish() {
  for (SourceRange range : rule.furtherMasters)
    diagnostics.error(range, "expected one 'master' in an optimizer, found another")
        .withNote(rule.master->range, "the first is here");
  if (!resultAssignment && !isResultMisspelt && !rule.hasSyntaxErrors)
    diagnostics
        .error(rule.name.range, "expected an assignment to 'param' in optimizer '" +
                                    Twine(rule.name.text) + "', found none")
        .withHint("a step ends with 'param = ...'");
}
