//===- AnalyzeRoute.cpp - Claims against rules ----------------------------===//
#include "dialects/optim/NamePattern.h"
#include "frontends/language/Analyzer.h"
#include "frontends/language/ForeignNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace stepc;
using namespace stepc::lang;
using llvm::StringRef;
using llvm::Twine;

namespace {

class RouteAnalyzer {
public:
  RouteAnalyzer(File &file, Diagnostics &diagnostics) : file(file), diagnostics(diagnostics) {}

  void run(Route &route) {
    const Claim *rest = nullptr;
    for (Claim &claim : route.claims) {
      analyzeClaim(claim);
      if (!claim.isRest)
        continue;
      if (rest)
        diagnostics.error(claim.selectorRange, "'rest' is claimed twice")
            .withNote(rest->selectorRange, "the first claim is here");
      rest = &claim;
    }
    nameRoutes(route);
    if (route.claims.empty() && !diagnostics.hasErrors())
      diagnostics.error(route.range, "expected at least one claim in the route, "
                                     "found none");
  }

private:
  void analyzeClaim(Claim &claim) {
    checkPatterns(claim.globs, diagnostics);
    checkPatterns(claim.except, diagnostics);
    checkIfPresent(claim);
    if (claim.where)
      analyzeWhere(*claim.where, file, diagnostics);
    claim.rule = findRule(claim.ruleName.text);
    checkDuplicates(claim);
    if (!claim.rule && (file.lacksRules || !unknownRules.insert(claim.ruleName.text).second))
      return;
    if (!claim.rule) {
      Diagnostic &error = diagnostics.error(claim.ruleName.range,
                                            "unknown optimizer '" + claim.ruleName.text + "'");
      std::vector<StringRef> names;
      for (const Rule *rule : file.allRules())
        names.push_back(rule->name.text);
      if (file.model() && claim.ruleName.text == "model")
        error.withHint(
            "a route gives no values to the model: they are its defaults, or the trainer's");
      else
        hintNearest(error, claim.ruleName.text, names);
      return;
    }
    for (const Setting &setting : claim.settings)
      if (!setting.word && !setting.number)
        continue; // was reported
      else if (setting.name.text == "missing_grad")
        setMissingGrad(claim, setting);
      else
        checkHyperparameter(claim, setting);
    collectValues(claim);
  }

  void checkDuplicates(const Claim &claim) {
    llvm::StringMap<SourceRange> seen;
    for (const Setting &setting : claim.settings) {
      auto [it, isNew] = seen.try_emplace(setting.name.text, setting.name.range);
      if (!isNew)
        diagnostics.error(setting.name.range, "'" + setting.name.text + "' is given twice")
            .withNote(it->second, "the first is here");
    }
  }

  void setMissingGrad(Claim &claim, const Setting &setting) {
    if (setting.word)
      if (std::optional<MissingGrad> value = plan::parse<MissingGrad>(setting.word->text)) {
        claim.missingGrad = *value;
        return;
      }
    SourceRange range = setting.word ? setting.word->range : setting.number->range;
    diagnostics.error(
        range, "expected " + plan::oneOf(plan::kNames<MissingGrad>) + ", found " +
                   (setting.word ? "'" + Twine(setting.word->text) + "'" : Twine("a number")));
  }

  void checkHyperparameter(Claim &claim, const Setting &setting) {
    std::vector<StringRef> names;
    for (const Hyperparameter &hyper : claim.rule->hyperparameters)
      names.push_back(hyper.name.text);
    if (!llvm::is_contained(names, setting.name.text)) {
      claim.lacksSettings = true; // any hyperparameter may be meant
      if (claim.rule->lacksNames || claim.rule->unread.contains(setting.name.text))
        return;
      names.push_back("missing_grad");
      Diagnostic &error =
          diagnostics.error(setting.name.range, "unknown hyperparameter '" + setting.name.text +
                                                    "' of '" + claim.rule->name.text + "'");
      error.withNote(claim.rule->name.range, "the optimizer is declared here");
      hintNearest(error, setting.name.text, names);
      if (error.hint.empty() && names.size() > 1)
        error.withHint("its hyperparameters are " +
                       llvm::join(llvm::ArrayRef(names).drop_back(), ", "));
    } else if (setting.word) {
      diagnostics
          .error(setting.word->range, "expected a number, found '" + setting.word->text + "'")
          .withHint(foreignConstantHint(setting.word->text));
    }
  }

  void collectValues(Claim &claim) {
    for (const Hyperparameter &hyper : claim.rule->hyperparameters) {
      std::optional<Constant> value = hyper.defaultValue;
      bool isGiven = false;
      for (const Setting &setting : claim.settings)
        if (setting.name.text == hyper.name.text) {
          isGiven = true;
          if (setting.number)
            value = setting.number;
        }
      claim.values.push_back(value ? value->value : 0);
      if (!value && !isGiven && !hyper.isBroken && !claim.lacksSettings)
        diagnostics
            .error(claim.ruleName.range, "expected a value for '" + hyper.name.text + "' of '" +
                                             claim.rule->name.text + "', found none")
            .withNote(hyper.range, "it has no default")
            .withHint("write '" + claim.rule->name.text + "(" + hyper.name.text + " = ...)'");
    }
  }

  void checkIfPresent(const Claim &claim) {
    if (claim.ifPresent && claim.globs.empty())
      diagnostics
          .error(*claim.ifPresent, "expected 'if present' after patterns, found it after '" +
                                       Twine(claim.isRest ? "rest" : "matrix") + "'")
          .withHint("leave it out: without patterns a claim may take no parameter at all");
  }

  /// Gives each claim its name (Claim::name). Trainers and checkpoints know routes by these names. So no two
  /// routes may have one name, and no route may have the name of another rule.
  void nameRoutes(Route &route) {
    llvm::StringMap<unsigned> unnamed, index;
    for (const Claim &claim : route.claims)
      unnamed[claim.ruleName.text] += !claim.routeName;
    llvm::StringMap<const Claim *> seen;
    for (Claim &claim : route.claims) {
      claim.name = claim.routeName ? claim.routeName->text : claim.ruleName.text;
      if (!claim.routeName && unnamed[claim.name] > 1)
        claim.name += "." + std::to_string(++index[claim.ruleName.text]);
      SourceRange range = claim.routeName ? claim.routeName->range : claim.ruleName.range;
      const Rule *other = claim.routeName ? findRule(claim.name) : nullptr;
      if (other && claim.name != claim.ruleName.text) {
        diagnostics
            .error(range, "expected a route's name that no other optimizer has, found '" +
                              claim.name + "'")
            .withNote(other->name.range, "the optimizer is declared here");
        continue;
      }
      auto [it, isNew] = seen.try_emplace(claim.name, &claim);
      if (isNew)
        continue;
      const Claim &first = *it->second;
      diagnostics
          .error(range, "expected routes of different names, found another '" + claim.name + "'")
          .withNote(first.routeName ? first.routeName->range : first.ruleName.range,
                    "the first is here")
          .withHint("'as NAME' before 'for' names a route");
    }
  }

  const Rule *findRule(StringRef name) const {
    for (const Rule *rule : file.allRules())
      if (rule->name.text == name)
        return rule;
    return nullptr;
  }

  File &file;
  Diagnostics &diagnostics;
  llvm::StringSet<> unknownRules; ///< Names of unknown rules that were reported.
};

} // namespace

void stepc::lang::checkPatterns(const std::vector<StringLiteral> &patterns,
                                Diagnostics &diagnostics) {
  for (const StringLiteral &pattern : patterns) {
    NamePatternError error;
    if (!NamePattern::parse(pattern.value, error))
      diagnostics.error(pattern.range, error.message).withHint(error.hint);
  }
}

void stepc::lang::analyzeRoutes(File &file, Diagnostics &diagnostics) {
  // Errors point at the word `route`, not at the whole text of the route.
  auto word = [](const Route &route) {
    return SourceRange{route.range.begin, route.range.begin + 5};
  };
  for (size_t i = 1; i < file.routes.size(); ++i)
    diagnostics.error(word(file.routes[i]), "expected one route in a file, found another")
        .withNote(word(file.routes[0]), "the first is here");
  for (Route &route : file.routes)
    RouteAnalyzer(file, diagnostics).run(route);
}
