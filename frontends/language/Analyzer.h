//===- Analyzer.h - Names and kinds of one rule -----------------*- C++ -*-===//
//
// Private to this folder. An expression with a reported error has an invalid
// type. Expressions that depend on it are not reported.
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
  RuleAnalyzer(Rule &rule, Diagnostics &diagnostics, const Source &source)
      : rule(rule), diagnostics(diagnostics), source(source) {}

  void run();

private:
  /// What a name of the rule stands for; exactly one pointer is set.
  struct Symbol {
    Hyperparameter *hyperparameter = nullptr;
    StateDeclaration *state = nullptr;
    LetStatement *let = nullptr;
    SourceRange range; ///< The name in its declaration.
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

  /// Sets Expr::depth from the depths of the operands. Reports a depth beyond maxDepth.
  void measureDepth(Expr &expr);

  // Constants, in AnalyzeConstants.cpp.
  void foldConstant(Expr &expr);
  /// Call it if a value of shape `result` is computed from `operand`. If `operand` is a scalar and `result`
  /// is not, the scalar is rounded to `element`. A constant that `element` cannot hold is an error.
  void meetTensor(const Expr &operand, Shape result, ElementType element = ElementType::F32);
  void warnNotFinite();

  // Calls, in AnalyzeCalls.cpp.
  Type analyzeCall(CallExpr &call);
  const FunctionInfo *findCallee(CallExpr &call);
  bool checkArgumentCount(CallExpr &call, const FunctionInfo &info);
  bool checkOptions(CallExpr &call, llvm::ArrayRef<llvm::StringRef> allowed);
  Type analyzeElementwise(CallExpr &call, llvm::ArrayRef<ExprPtr> operands);
  void warnElementwise(const CallExpr &call);
  Type analyzeSelect(CallExpr &call);
  Type analyzeCast(CallExpr &call);
  Type analyzeNamed(CallExpr &call, const FunctionInfo &info);
  Type analyzeReduction(CallExpr &call);
  Type analyzeOrthogonalize(CallExpr &call);
  bool resolveCoefficients(CallExpr &call, Orthogonalization &result);
  bool resolveForm(CallExpr &call, Orthogonalization &result);
  bool checkGrowth(CallExpr &call, const Orthogonalization &result);
  bool checkCoefficients(const CoefficientListExpr &list);
  void checkDecayFactor(const CallExpr &call);

  Rule &rule;
  Diagnostics &diagnostics;
  const Source &source;
  /// All declarations of the rule, later ones too, for messages about use before declaration.
  llvm::StringMap<Symbol> symbols;
  bool isParamMisspelt = false; ///< An assignment to a misspelt `param` was reported.
  const AssignStatement *paramAssignment = nullptr;
  /// Expressions at which constants become NaN or infinite, and divisions by a constant 0.
  std::vector<const Expr *> notFinite;
  /// Whether a depth beyond maxDepth was reported. It is reported once per rule, because each further
  /// link of a chain would repeat the error.
  bool toldDepth = false;
};

/// Warns of hyperparameters' values (defaults, and those in claims) that f32
/// cannot hold, if the hyperparameter meets a tensor.
void warnHyperparameters(const File &file, Diagnostics &diagnostics);

/// Reports texts that are no valid patterns.
void checkPatterns(const std::vector<StringLiteral> &patterns, Diagnostics &diagnostics);

/// Checks the patterns and numbers of a `blocks` statement. The sizes of parameters are not known here.
void analyzeBlocks(const BlocksStatement &blocks, Diagnostics &diagnostics);

/// Checks the route against the rules and fills the claims.
void analyzeRoutes(File &file, Diagnostics &diagnostics);

/// Adds the hint `did you mean 'x'?` if a candidate is near.
void hintNearest(Diagnostic &diagnostic, llvm::StringRef name,
                 llvm::ArrayRef<llvm::StringRef> candidates);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_ANALYZER_H
