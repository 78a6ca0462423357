//===- Analyzer.h - Names and kinds of one rule -----------------*- C++ -*-===//
//
// Private to this folder. An expression that was reported has an invalid type,
// and everything that depends on it stays silent.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_FRONTENDS_LANGUAGE_ANALYZER_H
#define STEPC_FRONTENDS_LANGUAGE_ANALYZER_H

#include "frontends/language/Builtins.h"
#include "frontends/language/Constants.h"
#include "frontends/language/Language.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace stepc::lang {

class RuleAnalyzer {
public:
  RuleAnalyzer(Rule &rule, Diagnostics &diagnostics) : rule(rule), diagnostics(diagnostics) {}

  void run();

private:
  /// What a name of the rule stands for; exactly one pointer is set.
  struct Symbol {
    Hyperparameter *hyperparameter = nullptr;
    StateDeclaration *state = nullptr;
    LetStatement *let = nullptr;
    SourceRange range; ///< The name's, where it is declared.
  };

  // Declarations and statements, in Analysis.cpp.
  void declare(const Name &name, Symbol symbol);
  void declareAll();
  void analyzeLet(LetStatement &let);
  void analyzeAssign(AssignStatement &assign);
  void resolveTarget(AssignStatement &assign);
  void hintShape(Diagnostic &error, const AssignStatement &assign, Type found) const;
  void needMatrix(SourceRange range, const llvm::Twine &what);
  std::vector<llvm::StringRef> valueNames(uint32_t before) const;
  bool isFirstMention(llvm::StringRef name);

  // Expressions, in AnalyzeExpressions.cpp.
  Type analyzeExpr(Expr &expr);
  Type analyzeName(NameExpr &name);
  bool resolveBuiltin(NameExpr &name);
  void unknownName(llvm::StringRef name, SourceRange range);
  Type analyzeUnary(UnaryExpr &unary);
  Type analyzeBinary(BinaryExpr &binary);
  Type analyzeLink(BinaryExpr &link);
  /// The type of an operand that must be a number; invalid after an error.
  Type analyzeNumber(Expr &expr) { return checkNumber(expr, analyzeExpr(expr)); }
  Type analyzeCondition(Expr &expr) { return checkCondition(expr, analyzeExpr(expr)); }
  Type analyzeTensor(Expr &expr);
  Type checkNumber(const Expr &expr, Type type);
  Type checkCondition(const Expr &expr, Type type);

  /// Fills in the depth of an expression whose operands have theirs.
  void measureDepth(Expr &expr);

  // Constants, in AnalyzeConstants.cpp.
  void foldConstant(Expr &expr);
  /// Called where a value of shape `result` is computed from `operand`. There a scalar is rounded to
  /// `element`, and a constant that does not survive that is an error.
  void meetTensor(const Expr &operand, Shape result, ElementType element = ElementType::F32);
  void warnNotFinite();

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
  bool checkCoefficients(const CoefficientListExpr &list);
  void checkDecayFactor(const CallExpr &call);

  Rule &rule;
  Diagnostics &diagnostics;
  /// Everything the rule declares anywhere, for "used before" messages.
  llvm::StringMap<Symbol> symbols;
  bool isParamMisspelt = false; ///< In an assignment, which was reported.
  const AssignStatement *paramAssignment = nullptr;
  /// Where constants become NaN or infinite, and divisions by a constant 0.
  std::vector<const Expr *> notFinite;
  /// Whether the rule has been told that too much follows from one another: each further part of a
  /// chain would say the same.
  bool toldDepth = false;
};

/// Warns of values of hyperparameters, defaults and those of claims, that f32
/// cannot hold where they meet a tensor.
void warnHyperparameters(const File &file, Diagnostics &diagnostics);

/// Reports patterns that are none.
void checkPatterns(const std::vector<StringLiteral> &patterns, Diagnostics &diagnostics);

/// Checks what is known of blocks without a parameter.
void analyzeBlocks(const BlocksStatement &blocks, Diagnostics &diagnostics);

/// Checks the route against the rules and fills the claims.
void analyzeRoutes(File &file, Diagnostics &diagnostics);

/// `did you mean 'x'?` if a candidate is near.
void hintNearest(Diagnostic &diagnostic, llvm::StringRef name,
                 llvm::ArrayRef<llvm::StringRef> candidates);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_ANALYZER_H
