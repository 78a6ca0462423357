//===- Analysis.cpp - Files, declarations and statements ------------------===//
#include "frontends/language/Analyzer.h"
#include "frontends/language/Lexer.h"

#include "llvm/ADT/APFloat.h"

using namespace stepc::lang;
using llvm::StringRef;
using llvm::Twine;

void stepc::lang::hintNearest(Diagnostic &diagnostic, StringRef name,
                              llvm::ArrayRef<StringRef> candidates) {
  StringRef nearest = nearestName(name, candidates);
  if (!nearest.empty())
    diagnostic.withHint("did you mean '" + nearest + "'?");
}

namespace {

/// Whether a number stays finite where it is rounded to a state's type.
bool holds(ElementType element, double value) {
  llvm::APFloat number(value);
  bool loses;
  if (element == ElementType::F32)
    number.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &loses);
  else if (element == ElementType::BF16)
    number.convert(llvm::APFloat::BFloat(), llvm::APFloat::rmNearestTiesToEven, &loses);
  else if (element == ElementType::F16)
    number.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven, &loses);
  return number.isFinite();
}

void checkRuleNames(const File &file, Diagnostics &diagnostics) {
  llvm::StringMap<const Rule *> seen;
  for (const auto &rule : file.rules) {
    if (rule->name.text.empty())
      continue;
    auto [it, isNew] = seen.try_emplace(rule->name.text, rule.get());
    if (!isNew)
      diagnostics.error(rule->name.range, "optimizer '" + rule->name.text + "' is declared twice")
          .withNote(it->second->name.range, "the first declaration is here");
  }
}

void warnUnused(const File &file, Diagnostics &diagnostics) {
  for (const auto &rule : file.rules) {
    for (const Hyperparameter &hyper : rule->hyperparameters)
      if (!hyper.isUsed)
        diagnostics.warning(hyper.name.range,
                            "hyperparameter '" + hyper.name.text + "' is never used");
    for (const State &state : rule->states)
      if (!state.isAssigned)
        diagnostics.warning(state.name.range, "state '" + state.name.text + "' is never assigned");
    for (const auto &statement : rule->statements)
      if (const auto *let = llvm::dyn_cast<LetStatement>(statement.get()))
        if (!let->isUsed)
          diagnostics.warning(let->target.range, "'" + let->target.text + "' is never used");
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
  checkRuleNames(file, diagnostics);
  for (const auto &rule : file.rules)
    RuleAnalyzer(*rule, diagnostics).run();
  analyzeRoutes(file, diagnostics);
  uint32_t end = static_cast<uint32_t>(file.source->text().size());
  if (!diagnostics.hasErrors()) {
    if (file.rules.empty())
      diagnostics.error({end, end}, "expected at least one optimizer, found none");
    else if (options.requireRoute && !file.route())
      diagnostics.error({end, end}, "expected a route, found none")
          .withHint("end the file with 'route { " + file.rules[0]->name.text + "(...) for rest }'");
  }
  // What is unused after an error may well be used where the error is.
  if (!diagnostics.hasErrors())
    warnUnused(file, diagnostics);
  return !diagnostics.hasErrors();
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

void RuleAnalyzer::declare(const Name &name, Symbol symbol) {
  symbol.range = name.range;
  auto [it, isNew] = symbols.try_emplace(name.text, symbol);
  if (!isNew)
    diagnostics.error(name.range, "'" + Twine(name.text) + "' is declared twice")
        .withNote(it->second.range, "the first declaration is here");
}

void RuleAnalyzer::declareAll() {
  for (Hyperparameter &hyper : rule.hyperparameters) {
    Symbol symbol;
    symbol.hyperparameter = &hyper;
    declare(hyper.name, symbol);
    // In a claim it could not be told from the setting.
    if (hyper.name.text == "missing_grad")
      diagnostics.error(hyper.name.range, "expected another name for the "
                                          "hyperparameter: 'missing_grad' is a "
                                          "setting of every route");
  }
  // In the order of the text, so that the later of two equal names is reported.
  auto state = rule.states.begin();
  auto declareStates = [&](uint32_t limit) {
    for (; state != rule.states.end() && state->range.begin < limit; ++state) {
      Symbol symbol;
      symbol.state = &*state;
      declare(state->name, symbol);
      if (state->initial && !holds(state->element, state->initial->value))
        diagnostics.error(state->initial->range,
                          "expected an initial value that " + Twine(spell(state->element)) +
                              " can hold, found one that rounds to infinity");
      if (state->element != ElementType::Invalid &&
          (state->shape == Shape::Rows || state->shape == Shape::Cols))
        needMatrix(state->range,
                   "state '" + Twine(state->name.text) + "' with " + describe(state->shape));
    }
  };
  for (const auto &statement : rule.statements) {
    auto *let = llvm::dyn_cast<LetStatement>(statement.get());
    if (!let)
      continue;
    declareStates(let->range.begin);
    Symbol symbol;
    symbol.let = let;
    declare(let->target, symbol);
  }
  declareStates(UINT32_MAX);
}

void RuleAnalyzer::run() {
  declareAll();
  for (SourceRange range : rule.furtherMasters)
    diagnostics.error(range, "expected one 'master' in an optimizer, found another")
        .withNote(rule.master->range, "the first is here");
  for (const auto &statement : rule.statements) {
    if (auto *let = llvm::dyn_cast<LetStatement>(statement.get()))
      analyzeLet(*let);
    else
      analyzeAssign(*llvm::cast<AssignStatement>(statement.get()));
  }
  if (!paramAssignment && !rule.hasSyntaxErrors)
    diagnostics
        .error(rule.name.range, "expected an assignment to 'param' in optimizer '" +
                                    Twine(rule.name.text) + "', found none")
        .withHint("a step ends with 'param = ...'");
}

void RuleAnalyzer::analyzeLet(LetStatement &let) { analyzeExpr(*let.value); }

void RuleAnalyzer::analyzeAssign(AssignStatement &assign) {
  Type type = analyzeExpr(*assign.value);
  resolveTarget(assign);
  Shape wanted = Shape::Full;
  if (assign.state) {
    if (assign.state->element == ElementType::Invalid)
      return;
    wanted = assign.state->shape;
  } else if (!assign.isParam()) {
    return;
  }
  if (!type.isValid())
    return;
  // No silent broadcast: a state is as large as it says.
  bool fits =
      !type.isCondition() && (type.shape == wanted || (type.isScalar() && wanted == Shape::One));
  if (fits)
    return;
  Diagnostic &error =
      diagnostics.error(assign.value->range, "expected " + describe(wanted) + " for '" +
                                                 assign.target.text + "', found " + describe(type));
  if (assign.state)
    error.withNote(assign.state->range, "the state is declared here");
}

void RuleAnalyzer::resolveTarget(AssignStatement &assign) {
  const Name &target = assign.target;
  if (assign.isParam()) {
    if (paramAssignment)
      diagnostics.error(target.range, "'param' is assigned twice")
          .withNote(paramAssignment->target.range, "the first assignment is here")
          .withHint("name what is between with 'let'");
    else
      paramAssignment = &assign;
    return;
  }
  auto it = symbols.find(target.text);
  if (it == symbols.end()) {
    if (llvm::is_contained({"grad", "step", "rows", "cols", "numel"}, target.text)) {
      diagnostics.error(target.range, "expected a state or 'param' to assign "
                                      "to, found '" +
                                          Twine(target.text) + "'");
      return;
    }
    std::vector<StringRef> candidates{"param"};
    for (const State &state : rule.states)
      candidates.push_back(state.name.text);
    Diagnostic &error =
        diagnostics.error(target.range, "unknown state '" + Twine(target.text) + "'");
    StringRef nearest = nearestName(target.text, candidates);
    if (nearest.empty())
      error.withHint("declare it: 'state " + Twine(target.text) + " : f32', or 'let " +
                     target.text + " = ...'");
    else
      error.withHint("did you mean '" + nearest + "'?");
    return;
  }
  Symbol &symbol = it->second;
  if (!symbol.state) {
    StringRef what = symbol.let ? "'let'" : "hyperparameter";
    diagnostics
        .error(target.range, "expected a state or 'param' to assign to, found "
                             "the " +
                                 what + " '" + target.text + "'")
        .withNote(symbol.range, "it is declared here");
    return;
  }
  symbol.state->isAssigned = true;
  assign.state = symbol.state;
  if (symbol.range.begin > target.range.begin)
    diagnostics.error(target.range, "'" + Twine(target.text) + "' is used before it is declared")
        .withNote(symbol.range, "the declaration is here");
}

void RuleAnalyzer::needMatrix(SourceRange range, const Twine &what) {
  if (!rule.needsMatrix)
    rule.needsMatrix = MatrixNeed{range, what.str()};
}

std::vector<StringRef> RuleAnalyzer::valueNames() const {
  std::vector<StringRef> names;
  for (StringRef name : {"param", "grad", "step", "rows", "cols", "numel"})
    names.push_back(name);
  for (const auto &entry : symbols)
    names.push_back(entry.getKey());
  // A map's order is no order: of two equally near names always the same.
  llvm::sort(names);
  return names;
}
