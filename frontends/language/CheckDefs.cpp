//===- CheckDefs.cpp - Names and calls within functions -------------------===//
//
// A function sees its arguments alone. So its names are checked once, where it is declared, and not for each
// call. Kinds depend on the arguments: BodyAnalyzer::analyzeInlined checks them.
//
//===----------------------------------------------------------------------===//
#include "frontends/language/Analyzer.h"
#include "frontends/language/ForeignNames.h"
#include "frontends/text/Text.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace stepc::lang;
using llvm::StringRef;
using llvm::Twine;

namespace {

class DefChecker {
public:
  DefChecker(const File &file, Diagnostics &diagnostics) : file(file), diagnostics(diagnostics) {}

  /// The functions that it calls, and where.
  using Calls = llvm::MapVector<Def *, SourceRange>;

  Calls check(Def &checked) {
    def = &checked;
    names.clear();
    ended.clear();
    calls.clear();
    told = {checked.unread.begin(), checked.unread.end()};
    unsigned errors = diagnostics.errorCount();
    for (const Parameter &parameter : checked.parameters)
      declare(parameter.name, parameter.isUsed);
    check(checked.statements, /*inRepeat=*/false);
    checked.isBroken = checked.hasSyntaxErrors || diagnostics.errorCount() != errors;
    return calls;
  }

private:
  struct Known {
    SourceRange range;
    Usage isUsed;
  };

  void declare(const Name &name, const Usage &isUsed) {
    auto [it, isNew] = names.try_emplace(name.text, Known{name.range, isUsed});
    if (!isNew)
      diagnostics.error(name.range, "'" + Twine(name.text) + "' is declared twice")
          .withNote(it->second.range, "the first declaration is here");
  }

  void check(const Statements &statements, bool inRepeat) {
    for (const auto &statement : statements) {
      if (const auto *repeat = llvm::dyn_cast<RepeatStatement>(statement.get())) {
        check(*repeat);
        continue;
      }
      check(*statement->value);
      if (const auto *let = llvm::dyn_cast<LetStatement>(statement.get()))
        declare(let->target, let->isUsed);
      else if (llvm::isa<AssignStatement>(*statement))
        checkTarget(statement->target, inRepeat);
    }
  }

  void check(const RepeatStatement &repeat) {
    llvm::StringMap<Known> before = names;
    if (repeat.value)
      check(*repeat.value);
    for (const auto &entry : repeat.entries)
      for (const ExprPtr &value : entry)
        check(*value);
    for (const Parameter &parameter : repeat.names)
      declare(parameter.name, parameter.isUsed);
    check(repeat.statements, /*inRepeat=*/true);
    for (const auto &each : names)
      if (!before.contains(each.getKey()))
        ended[each.getKey()] = each.second.range;
    names = std::move(before);
  }

  void checkTarget(const Name &target, bool inRepeat) {
    auto known = names.find(target.text);
    if (known == names.end()) {
      if (isFirst(target.text))
        diagnostics
            .error(target.range,
                   "expected a name of 'let' to assign to, found '" + Twine(target.text) + "'")
            .withHint("write 'let " + Twine(target.text) + " = ...'" +
                      (inRepeat ? ", above the 'repeat' if it lasts from turn to turn" : ""));
    } else if (!inRepeat) {
      diagnostics
          .error(target.range,
                 "expected 'let', 'repeat' or 'return' in a function, found an assignment")
          .withNote(known->second.range, "'" + target.text + "' is declared here")
          .withHint("only a 'repeat' assigns again to what 'let' declares");
    }
  }

  void check(const Expr &expr) {
    switch (expr.kind) {
    case Expr::Kind::Name:
      return checkName(llvm::cast<NameExpr>(expr));
    case Expr::Kind::Unary:
      return check(*llvm::cast<UnaryExpr>(expr).operand);
    case Expr::Kind::Binary: {
      std::vector<const BinaryExpr *> links = chain(llvm::cast<BinaryExpr>(expr));
      check(*links.front()->lhs);
      for (const BinaryExpr *link : links)
        check(*link->rhs);
      return;
    }
    case Expr::Kind::Call:
      return checkCall(llvm::cast<CallExpr>(expr));
    case Expr::Kind::ModelValue:
      diagnostics
          .error(expr.range, "expected a value that '" + Twine(def->name.text) +
                                 "' is given, found a value of the model")
          .withHint(onlyArguments);
      return;
    case Expr::Kind::Error:
    case Expr::Kind::Number:
    case Expr::Kind::CoefficientList:
    case Expr::Kind::NumberList:
      return;
    }
  }

  bool isFirst(StringRef name) { return told.insert(name.str()).second; }

  void checkName(const NameExpr &name) {
    if (auto known = names.find(name.name); known != names.end()) {
      *known->second.isUsed = true;
      return;
    }
    if (!isFirst(name.name))
      return;
    if (auto past = ended.find(name.name); past != ended.end()) {
      reportOutOfScope(name.name, name.range, past->second, diagnostics);
      return;
    }
    bool isOfBody = llvm::is_contained(
        {"param", "grad", "step", "rows", "cols", "numel", "row", "col", "transposed"}, name.name);
    if (isOfBody) {
      diagnostics
          .error(name.range, "expected a value that '" + Twine(def->name.text) +
                                 "' is given, found '" + name.name + "'")
          .withHint(name.name == "rows" || name.name == "cols"
                        ? "'" + name.name + "(x)' says how many x has"
                        : Twine(onlyArguments));
      return;
    }
    Diagnostic &error = diagnostics.error(
        name.range, "unknown name '" + name.name + "' in the function '" + def->name.text + "'");
    std::vector<StringRef> known;
    for (const auto &each : names)
      known.push_back(each.getKey());
    llvm::sort(known);
    hintNearest(error, name.name, known);
    if (error.hint.empty())
      error.withHint(onlyArguments);
  }

  void checkCall(const CallExpr &call) {
    StringRef name = call.callee.text;
    Def *called = file.findDef(name);
    const FunctionInfo *info = called ? nullptr : findFunction(name);
    def->draws |= drawsNumbers(call, file);
    if (called) {
      if (called->range.begin >= file.part.begin && called->range.begin <= file.part.end)
        calls.insert({called, call.callee.range}); // no import calls back
      if (!called->hasSyntaxErrors)
        checkArguments(call, *called, diagnostics);
    } else if (!info && !file.lacksNames) {
      unknownFunction(call);
    }
    for (const auto &[index, argument] : llvm::enumerate(call.arguments))
      if (!(info && info->functionClass == FunctionClass::Cast && index == 1)) // a dtype
        check(*argument);
    for (const CallExpr::Option &option : call.options)
      if (!isWordOption(option.name.text))
        check(*option.value);
  }

  void unknownFunction(const CallExpr &call) {
    StringRef name = call.callee.text;
    if (!isFirst(name))
      return;
    Diagnostic &error = reportUnknownFunction(call.callee, &file, diagnostics);
    if (names.contains(name))
      error.withHint("a product is written '" + name + " * (...)'");
  }

  static constexpr const char *onlyArguments =
      "a function sees its arguments alone: make it one of them";
  const File &file;
  Diagnostics &diagnostics;
  Def *def = nullptr;
  llvm::StringMap<Known> names;
  llvm::StringMap<SourceRange> ended; ///< Names that were declared in a `repeat` which has ended.
  Calls calls;
  std::set<std::string> told; ///< Unknown names that were reported.
};

/// Reports functions that call themselves, by way of others too. All that depends on them is broken.
using CallsOf = llvm::MapVector<Def *, DefChecker::Calls>;
void checkRecursion(const CallsOf &callsOf, Diagnostics &diagnostics) {
  // Functions whose calls all end are taken away, until only those are left that reach a cycle.
  llvm::DenseMap<Def *, unsigned> open;
  llvm::DenseMap<Def *, std::vector<Def *>> callers;
  std::vector<Def *> ended;
  for (const auto &[def, calls] : callsOf) {
    open[def] = unsigned(calls.size());
    for (const auto &[called, range] : calls)
      callers[called].push_back(def);
    if (calls.empty())
      ended.push_back(def);
  }
  while (!ended.empty()) {
    Def *def = ended.back();
    ended.pop_back();
    open.erase(def);
    for (Def *caller : callers[def]) {
      caller->draws |= def->draws;
      if (--open[caller] == 0)
        ended.push_back(caller);
    }
  }
  // From each that is left, calls lead to a cycle.
  std::set<Def *> visited;
  for (const auto &[first, calls] : callsOf) {
    if (!open.contains(first))
      continue;
    std::vector<std::pair<Def *, SourceRange>> path; // with the call of the next
    Def *def = first;
    while (visited.insert(def).second) {
      def->isBroken = true;
      auto next = llvm::find_if(callsOf.find(def)->second,
                                [&](auto &call) { return open.contains(call.first); });
      path.push_back({def, next->second});
      def = next->first;
    }
    auto begin = llvm::find_if(path, [&](auto &one) { return one.first == def; });
    if (begin == path.end()) // it leads to a cycle that was reported
      continue;
    Diagnostic &error =
        diagnostics.error(begin->second, "expected functions that end, found '" + def->name.text +
                                             "', which calls itself");
    constexpr size_t most = 8; // notes
    for (auto &[each, call] :
         llvm::ArrayRef(path).drop_front(begin - path.begin() + 1).take_front(most))
      error.withNote(call, "by way of '" + each->name.text + "'");
    error.withHint("'repeat 5 { ... }' repeats statements");
  }
}

} // namespace

bool stepc::lang::drawsNumbers(const CallExpr &call, const File &file) {
  if (const Def *def = file.findDef(call.callee.text))
    return def->draws;
  const FunctionInfo *info = findFunction(call.callee.text);
  return info && (info->functionClass == FunctionClass::Uniform ||
                  info->functionClass == FunctionClass::Stochastic);
}

std::vector<StringRef> stepc::lang::callableNames(const File *file) {
  std::vector<StringRef> names;
  for (const FunctionInfo &info : functions())
    names.push_back(info.name);
  if (file)
    for (const auto &entry : file->functions)
      names.push_back(entry.getKey());
  llvm::sort(names); // a StringMap has no fixed order
  return names;
}

/// Fills File::functions from the imports, whose functions must be there, and from the file's own.
static void linkFunctions(File &file, Diagnostics &diagnostics) {
  auto twice = [&](SourceRange place, const Def &def, const Def &other) {
    Diagnostic &error =
        diagnostics.error(place, "function '" + def.name.text + "' is declared twice");
    error.withNote(other.name.range, "the first declaration is here");
    if (place != def.name.range)
      error.withNote(def.name.range, "another is here");
  };
  for (const ImportStatement &import : file.imports) {
    if (!import.file)
      continue;
    for (const auto &entry : import.file->functions) {
      auto [known, isNew] = file.functions.try_emplace(entry.getKey(), entry.second);
      if (known->second != entry.second)
        twice(import.path.range, *entry.second, *known->second);
      else if (isNew && findFunction(entry.getKey()))
        diagnostics
            .warning(import.path.range,
                     "this import hides the language's function '" + entry.getKey() + "'")
            .withNote(entry.second->name.range, "it is declared here");
    }
  }
  for (const auto &def : file.defs)
    if (Def *known = file.functions.try_emplace(def->name.text, def.get()).first->second;
        known != def.get() && !def->name.text.empty())
      twice(def->name.range, *def, *known);
}

void stepc::lang::checkDefs(File &file, Diagnostics &diagnostics) {
  linkFunctions(file, diagnostics);
  CallsOf calls;
  DefChecker checker(file, diagnostics);
  for (const auto &def : file.defs)
    calls[def.get()] = checker.check(*def);
  checkRecursion(calls, diagnostics);
}
