//===- Analyzer.h - Names and kinds of one rule -----------------*- C++ -*-===//
//
// Private to this folder. An expression that was reported has an invalid type,
// and everything that depends on it stays silent.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_FRONTENDS_LANGUAGE_ANALYZER_H
#define STEPC_FRONTENDS_LANGUAGE_ANALYZER_H

#include "frontends/language/Builtins.h"
#include "frontends/language/Language.h"
#include "llvm/ADT/StringMap.h"

namespace stepc::lang {

class RuleAnalyzer {
public:
  RuleAnalyzer(Rule &rule, Diagnostics &diagnostics) : rule(rule), diagnostics(diagnostics) {}

  void run();

private:
  /// What a name of the rule stands for; exactly one pointer is set.
  struct Symbol {
    Hyperparameter *hyperparameter = nullptr;
    State *state = nullptr;
    LetStatement *let = nullptr;
    SourceRange range; ///< Of the name where it is declared.
  };

  // Declarations and statements, in Analysis.cpp.
  void declare(const Name &name, Symbol symbol);
  void declareAll();
  void analyzeLet(LetStatement &let);
  void analyzeAssign(AssignStatement &assign);
  void resolveTarget(AssignStatement &assign);
  void needMatrix(SourceRange range, const llvm::Twine &what);
  std::vector<llvm::StringRef> valueNames() const;

  // Expressions, in AnalyzeExpressions.cpp.
  Type analyzeExpr(Expr &expr);
  Type analyzeName(NameExpr &name);
  bool resolveBuiltin(NameExpr &name);
  void unknownName(llvm::StringRef name, SourceRange range);
  Type analyzeUnary(UnaryExpr &unary);
  Type analyzeBinary(BinaryExpr &binary);
  /// The type of an operand that must be a number; invalid after an error.
  Type analyzeNumber(Expr &expr);
  Type analyzeCondition(Expr &expr);
  Type analyzeTensor(Expr &expr);

  // Calls, in AnalyzeCalls.cpp.
  Type analyzeCall(CallExpr &call);
  const FunctionInfo *findCallee(CallExpr &call);
  bool checkArgumentCount(CallExpr &call, const FunctionInfo &info);
  bool checkOptions(CallExpr &call, llvm::ArrayRef<llvm::StringRef> allowed);
  Type analyzeElementwise(CallExpr &call, llvm::ArrayRef<ExprPtr> operands);
  Type analyzeSelect(CallExpr &call);
  Type analyzeCast(CallExpr &call);
  Type analyzeNamed(CallExpr &call, const FunctionInfo &info);
  Type analyzeReduction(CallExpr &call);
  Type analyzeOrthogonalize(CallExpr &call);
  bool resolveCoefficients(CallExpr &call, Orthogonalization &result);

  Rule &rule;
  Diagnostics &diagnostics;
  /// Everything the rule declares anywhere, for "used before" messages.
  llvm::StringMap<Symbol> symbols;
  const AssignStatement *paramAssignment = nullptr;
};

/// Checks the route against the rules and fills the claims.
void analyzeRoutes(File &file, Diagnostics &diagnostics);

/// `did you mean 'x'?` if a candidate is near.
void hintNearest(Diagnostic &diagnostic, llvm::StringRef name,
                 llvm::ArrayRef<llvm::StringRef> candidates);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_ANALYZER_H
