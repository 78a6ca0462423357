//===- AnalyzeModel.cpp - The model, and what rules read of it ------------===//
#include "frontends/language/Analyzer.h"
#include "frontends/text/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace stepc::lang;
using llvm::StringRef;
using llvm::Twine;

void stepc::lang::checkModel(const File &file, Diagnostics &diagnostics) {
  const Model *first = file.model();
  if (!first)
    return;
  auto another = [&](const Model &model) {
    if (&model != first)
      diagnostics.error(model.name.range, "expected one model in a file, found another")
          .withNote(first->name.range, "the first is here");
  };
  for (const auto &model : file.models)
    another(*model);
  for (const auto &import : file.imported)
    for (const auto &model : import->models)
      another(*model);
  auto checkName = [&](const Name &name, StringRef what) {
    if (name.text == "model")
      diagnostics
          .error(name.range,
                 "expected another name for the " + what + ", found 'model', as the model has")
          .withNote(first->name.range, "the model is here")
          .withHint("in a checkpoint 'model' is the entry of the model");
  };
  for (const Rule *rule : file.allRules()) {
    checkName(rule->name, "optimizer");
    for (const MetricStatement *metric : rule->metrics())
      if (const MetricStatement *other = first->findMetric(metric->target.text))
        diagnostics
            .error(metric->target.range, "expected another name for the metric, found '" +
                                             Twine(metric->target.text) +
                                             "', as a metric of the model has")
            .withNote(other->target.range, "the model's is here");
  }
  for (const Route &route : file.routes)
    for (const Claim &claim : route.claims)
      if (claim.routeName)
        checkName(*claim.routeName, "route");
}

//===----------------------------------------------------------------------===//
// The model itself
//===----------------------------------------------------------------------===//

static constexpr StringRef namesOfModels[] = {"param", "grad", "step"};

ModelAnalyzer::ModelAnalyzer(Model &model, const File &file, Diagnostics &diagnostics)
    : BodyAnalyzer(model,
                   {.result = "grad",
                    .targets = "a state or 'grad'",
                    .target = "state",
                    .known = namesOfModels,
                    .one = "one value of all parameters"},
                   diagnostics, *file.source, &file) {}

bool ModelAnalyzer::needMatrix(SourceRange range, const Twine &what) {
  return needParameter(range, what);
}

bool ModelAnalyzer::needParameter(SourceRange range, const Twine &what) {
  diagnostics.error(range, "expected no " + what + " in a model")
      .withHint("all parameters of a model count as one vector, without rows and columns");
  return false;
}

Type ModelAnalyzer::analyzeModelValue(ModelValueExpr &value) {
  diagnostics
      .error(value.range,
             "expected 'model." + value.member.text + "' in an optimizer, found it in the model")
      .withHint("write '" + value.member.text + "'");
  return {};
}

std::string ModelAnalyzer::hintDeclaration(StringRef name) const {
  return ("declare it: 'state " + name + " : f32[]', or 'let " + name + " = ...'").str();
}

void ModelAnalyzer::finish() {
  for (const StateDeclaration &state : body.states)
    if (state.element != ElementType::Invalid && state.element != ElementType::F32)
      diagnostics
          .error(state.range,
                 "expected an f32 as a state of the model, found " + spell(state.element))
          .withHint("a state of the model is one number, for which a narrow type saves nothing");
}

//===----------------------------------------------------------------------===//
// Values of the model in rules
//===----------------------------------------------------------------------===//

static Hyperparameter *findHyperparameter(Model &model, StringRef name) {
  for (Hyperparameter &hyper : model.hyperparameters)
    if (hyper.name.text == name)
      return &hyper;
  return nullptr;
}

static StateDeclaration *findState(Model &model, StringRef name) {
  for (StateDeclaration &state : model.states)
    if (state.name.text == name)
      return &state;
  return nullptr;
}

static LetStatement *findLet(const Model &model, StringRef name) {
  for (const auto &statement : model.statements)
    if (auto *let = llvm::dyn_cast<LetStatement>(statement.get()); let && let->target.text == name)
      return let;
  return nullptr;
}

Type RuleAnalyzer::analyzeModelValue(ModelValueExpr &value) {
  const Name &member = value.member;
  Model *model = main.model();
  if (auto it = symbols.find("model"); it != symbols.end()) {
    StringRef what = it->second.hyperparameter ? "hyperparameter"
                     : it->second.state        ? "state"
                                               : "'let'";
    Diagnostic &error =
        diagnostics
            .error(value.range, "expected a value of the model, found the " + what + " 'model'")
            .withNote(it->second.range, "it is declared here");
    if (model)
      error.withHint("give it another name, because it hides the model");
    return {};
  }
  if (!model) {
    if (!main.lacksRules && isFirstMention("model"))
      diagnostics.error(value.range, "unknown value 'model." + member.text +
                                         "', because the file has no 'model' block");
    return {};
  }
  constexpr Type one{Shape::One, ElementType::F32};
  if (Hyperparameter *hyper = findHyperparameter(*model, member.text)) {
    hyper->isUsed = true;
    if (!hyper->meetsTensor)
      hyper->meetsTensor = value.range;
    rule.modelValues.insert(member.text);
    return one;
  }
  if (StateDeclaration *state = findState(*model, member.text)) {
    state->isRead = true;
    value.depth = state->depth + 2;
    rule.modelValues.insert(member.text);
    return one;
  }
  LetStatement *let = findLet(*model, member.text);
  if (!let) {
    unknownModelValue(value, *model);
    return {};
  }
  *let->isUsed = true;
  const Expr &computed = *let->last->value;
  if (!computed.type.isValid())
    return {};
  if (computed.type.isCondition() || computed.type.shape.hasSeveral()) {
    Diagnostic &error = diagnostics
                            .error(value.range, "expected one number of the model, found " +
                                                    describe(computed.type))
                            .withNote(let->target.range, "it is declared here");
    if (computed.type.shape.hasSeveral())
      error.withHint("a reduction such as 'mean(x)' gives one number");
    else
      error.withHint("make a number of it: 'select(condition, 1, 0)'");
    return {};
  }
  if (computed.type.isScalar())
    roundScalar(computed, value.range, ElementType::F32);
  // Two more operations: a scalar is rounded to f32, and what the rule computes of it begins behind that.
  value.depth = computed.depth + 2;
  rule.modelValues.insert(member.text);
  return one;
}

std::string RuleAnalyzer::hintUnknown(StringRef name) const {
  if (name == "transposed")
    return "only an optimizer that is wide may transpose: 'optimizer NAME(...) wide {'";
  return name == "model" && main.model() ? "a value of the model is read as 'model.NAME'" : "";
}

void RuleAnalyzer::unknownModelValue(const ModelValueExpr &value, Model &model) {
  StringRef name = value.member.text;
  // An unknown name is told once, and not at all where text that could not be parsed may declare it.
  if (model.lacksNames || !llvm::isASCII(name) || !model.unread.emplace(name).second)
    return;
  std::vector<StringRef> names;
  for (const Hyperparameter &hyper : model.hyperparameters)
    names.push_back(hyper.name.text);
  for (const StateDeclaration &state : model.states)
    names.push_back(state.name.text);
  for (const auto &statement : model.statements)
    if (llvm::isa<LetStatement>(*statement))
      names.push_back(statement->target.text);
  Diagnostic &error = diagnostics.error(value.range, "unknown value 'model." + name + "'");
  error.withNote(model.name.range, "the model is here");
  if (model.findMetric(name)) {
    error.withHint("nothing reads a metric: name the value with 'let'");
    return;
  }
  hintNearest(error, name, names);
  if (error.hint.empty() && !names.empty())
    error.withHint("the model has " + llvm::join(names, ", "));
}
