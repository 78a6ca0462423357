//===- AnalyzeFunctions.cpp - Functions and repeats as inlined text -------===//
//
// A function has no code of its own: each call gets a copy of its statements, and so does each turn of a
// `repeat`. The copies are analyzed like text of the body, because kinds follow from the arguments.
//
//===----------------------------------------------------------------------===//
#include "frontends/language/Analyzer.h"
#include "runtime/text/Plural.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"
#include <cmath>

using namespace stepc::lang;
using llvm::StringRef;
using llvm::Twine;

/// Whether one of the statements assigns to the name.
static bool assigns(const Statements &statements, StringRef name) {
  return llvm::any_of(statements, [&](const auto &statement) {
    if (const auto *repeat = llvm::dyn_cast<RepeatStatement>(statement.get()))
      return assigns(repeat->statements, name);
    return llvm::isa<AssignStatement>(*statement) && statement->target.text == name;
  });
}

bool BodyAnalyzer::countOperation() {
  if (!isInlining())
    return true;
  if (isTooLarge || ++operations <= maxInlined)
    return !isTooLarge;
  isTooLarge = true;
  diagnostics
      .error(expansions.front(),
             "expected at most " + Twine(maxInlined) +
                 " operations after functions and repeats are inlined, found more")
      .calls.clear(); // the place is the outermost call
  return false;
}

//===----------------------------------------------------------------------===//
// Names within inlined text
//===----------------------------------------------------------------------===//

LetStatement &BodyAnalyzer::bind(const Parameter &parameter, ExprPtr value, Statements &into) {
  auto let = std::make_unique<LetStatement>(value->range, parameter.name, std::move(value));
  let->isUsed = parameter.isUsed;
  finishLet(*let);
  into.push_back(std::move(let));
  return llvm::cast<LetStatement>(*into.back());
}

void BodyAnalyzer::declareParameter(const Parameter &parameter, LetStatement *value) {
  Symbol symbol;
  symbol.let = value;
  declare(parameter.name, symbol);
}

void BodyAnalyzer::inlineStatement(const Statement &statement, const Literals &literals,
                                   Statements &into) {
  std::unique_ptr<Statement> made = copyOf(statement, literals);
  const std::string &name = made->target.text;
  auto known = symbols.find(name);
  if (llvm::isa<AssignStatement>(*made) && known != symbols.end() && known->second.let) {
    if (made->range.begin < known->second.visibleFrom) {
      diagnostics.error(made->target.range, "'" + Twine(name) + "' is used before it is declared")
          .withNote(known->second.range, "the declaration is here");
      return;
    }
    auto let = std::make_unique<LetStatement>(made->range, made->target, std::move(made->value));
    into.push_back(std::move(let));
    assignAgain(llvm::cast<LetStatement>(*into.back()), known->second);
    return;
  }
  analyzeStatement(*made);
  if (auto *let = llvm::dyn_cast<LetStatement>(made.get())) {
    outOfScope.erase(name);
    Symbol symbol;
    symbol.let = let;
    symbol.visibleFrom = let->range.end;
    declare(let->target, symbol);
  }
  into.push_back(std::move(made));
}

/// Analyzes `let`, a further value of the name that `symbol` declares.
void BodyAnalyzer::assignAgain(LetStatement &let, Symbol &symbol) {
  LetStatement &before = *symbol.let;
  let.isUsed = before.isUsed;
  analyzeStatement(let);
  let.declared = before.declared;
  let.isLocal = let.declared->isLocal;
  Type old = before.value->type, type = let.value->type;
  if (!type.isValid() || !old.isValid())
    return;
  if (type != old) {
    bool isRounded = type.shape == old.shape && !type.isCondition() && !old.isCondition();
    auto kindOf = [&](Type of) {
      bool both = type.isCondition() && old.isCondition();
      return both ? "a condition of kind '" + lang::describe(of.shape) + "'" : describe(of);
    };
    Diagnostic &error = diagnostics.error(
        let.value->range, "expected " + (isRounded ? spell(old.element).str() : kindOf(old)) +
                              " for '" + let.target.text + "', found " +
                              (isRounded ? spell(type.element).str() : kindOf(type)));
    error.withNote(symbol.range, "it is declared here");
    if (isRounded)
      error.withHint("write 'cast(" + source.text(let.value->range) + ", " + spell(old.element) +
                     ")'");
    else
      error.withHint("a name keeps its sizes and its type from turn to turn");
    return;
  }
  let.declared->last = &let;
  symbol.let = &let;
}

//===----------------------------------------------------------------------===//
// Calls of functions
//===----------------------------------------------------------------------===//

bool stepc::lang::checkArguments(const CallExpr &call, const Def &def, Diagnostics &diagnostics) {
  if (!call.options.empty()) {
    diagnostics
        .error(call.options[0].name.range,
               "unknown argument '" + call.options[0].name.text + "' of '" + call.callee.text + "'")
        .withNote(def.name.range, "the function is declared here")
        .withHint("'" + Twine(call.callee.text) + "' takes its arguments by position");
    return false;
  }
  if (call.arguments.size() == def.parameters.size())
    return true;
  diagnostics
      .error(call.range, "expected " + plural(int64_t(def.parameters.size()), "argument") +
                             " of '" + call.callee.text + "', found " +
                             Twine(call.arguments.size()))
      .withNote(def.name.range, "the function is declared here");
  return false;
}

Type BodyAnalyzer::analyzeInlined(CallExpr &call, Def &def) {
  def.isUsed = true;
  bool valid = def.isBroken || checkArguments(call, def, diagnostics);
  for (ExprPtr &argument : call.arguments)
    valid &= analyzeExpr(*argument).isValid();
  if (!valid || def.isBroken || isTooLarge)
    return {};
  if (nesting > maxNesting) {
    diagnostics.error(call.range, "expected at most " + Twine(maxNesting) +
                                      " levels of nesting in an expression and the functions that "
                                      "it calls");
    return {};
  }

  // The function sees its arguments alone.
  Symbols symbolsOutside = std::exchange(symbols, {});
  auto scopesOutside = std::exchange(outOfScope, {});
  unsigned repeatsOutside = std::exchange(repeats, 0);
  expansions.push_back(call.range);
  diagnostics.enter({call.callee.range, "in this call of '" + call.callee.text + "'"});

  call.inlined = std::make_unique<InlinedCall>();
  Statements &statements = call.inlined->statements;
  std::vector<ExprPtr> literalArguments;
  Literals literals;
  for (auto [parameter, argument] : llvm::zip(def.parameters, call.arguments)) {
    if (literalValue(*argument) && !assigns(def.statements, parameter.name.text)) {
      literals[parameter.name.text] = {argument.get(), parameter.isUsed};
      literalArguments.push_back(std::move(argument));
    } else {
      declareParameter(parameter, &bind(parameter, std::move(argument), statements));
    }
  }
  call.arguments = std::move(literalArguments);
  for (const auto &statement : llvm::drop_end(def.statements))
    inlineStatement(*statement, literals, statements);
  call.inlined->result = copyOf(def.result(), literals);
  Type type = analyzeExpr(*call.inlined->result);

  diagnostics.leave();
  expansions.pop_back();
  repeats = repeatsOutside;
  outOfScope = std::move(scopesOutside);
  symbols = std::move(symbolsOutside);
  return isTooLarge ? Type() : type;
}

//===----------------------------------------------------------------------===//
// Repeats
//===----------------------------------------------------------------------===//

/// How many turns there are. Nothing after an error.
std::optional<unsigned> BodyAnalyzer::countTurns(RepeatStatement &repeat) {
  constexpr unsigned most = 100;
  auto refuse = [&](SourceRange range, const Twine &found) -> Diagnostic & {
    return diagnostics.error(range, "expected a whole number of turns from 1 to " + Twine(most) +
                                        ", found " + found);
  };
  if (!repeat.value) {
    for (const auto &entry : repeat.entries)
      if (entry.size() != repeat.names.size()) {
        diagnostics.error(entry.front()->range.to(entry.back()->range),
                          "expected " + plural(int64_t(repeat.names.size()), "value") +
                              ", one for each name, found " + Twine(entry.size()));
        return std::nullopt;
      }
    if (repeat.entries.size() <= most)
      return unsigned(repeat.entries.size());
    refuse(repeat.entries[most].front()->range, Twine(repeat.entries.size()));
    return std::nullopt;
  }
  Type type = analyzeNumber(*repeat.value);
  std::optional<double> count = repeat.value->constant;
  if (!type.isValid())
    return std::nullopt;
  if (!count) {
    refuse(repeat.value->range,
           type.isScalar() ? "one that is not known when compiling" : describe(type))
        .withHint("the turns are written out by the compiler, so that literals give their number");
    return std::nullopt;
  }
  if (*count == std::floor(*count) && *count >= 1 && *count <= most)
    return unsigned(*count);
  refuse(repeat.value->range, spellNumber(*count));
  return std::nullopt;
}

void BodyAnalyzer::analyzeRepeat(RepeatStatement &repeat) {
  std::optional<unsigned> turns = countTurns(repeat);
  if (!turns)
    return;
  llvm::SaveAndRestore inside(repeats, repeats + 1), nested(nesting, nesting + 1);
  expansions.push_back(repeat.target.range);
  // A turn with an error is the last one: the next turns would repeat the error.
  unsigned errors = diagnostics.errorCount();
  // All values of the list are those before the first turn. Null for literals.
  std::vector<std::vector<LetStatement *>> values(repeat.entries.size());
  for (auto [entry, lets] : llvm::zip(repeat.entries, values))
    for (auto [parameter, value] : llvm::zip(repeat.names, entry)) {
      analyzeExpr(*value);
      bool isPlain = literalValue(*value) && !assigns(repeat.statements, parameter.name.text);
      lets.push_back(isPlain ? nullptr : &bind(parameter, std::move(value), repeat.turns));
    }
  for (unsigned turn = 0; turn < *turns && diagnostics.errorCount() == errors && !isTooLarge;
       ++turn)
    analyzeTurn(repeat, turn, values.empty() ? std::vector<LetStatement *>() : values[turn]);
  expansions.pop_back();
}

void BodyAnalyzer::analyzeTurn(RepeatStatement &repeat, unsigned turn,
                               const std::vector<LetStatement *> &values) {
  std::vector<Name> declared;
  for (const Parameter &parameter : repeat.names)
    declared.push_back(parameter.name);
  for (const auto &statement : repeat.statements)
    if (llvm::isa<LetStatement>(*statement)) {
      declared.push_back(statement->target);
      outOfScope[statement->target.text] = statement->target.range;
    }

  Literals literals;
  for (auto [index, parameter, value] : llvm::enumerate(repeat.names, values)) {
    if (!value)
      literals[parameter.name.text] = {repeat.entries[turn][index].get(), parameter.isUsed};
    declareParameter(parameter, value);
  }
  for (const auto &statement : repeat.statements)
    inlineStatement(*statement, literals, repeat.turns);

  for (const Name &name : declared) {
    auto symbol = symbols.find(name.text);
    if (symbol != symbols.end() && symbol->second.range == name.range)
      symbols.erase(symbol);
    outOfScope[name.text] = name.range;
  }
}
