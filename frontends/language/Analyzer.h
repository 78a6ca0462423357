//===- Analyzer.h - Names and kinds of rules and the model ------*- C++ -*-===//
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
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace stepc::lang {

/// Analyzes the declarations and statements that rules and the model have in common.
class BodyAnalyzer {
public:
  virtual ~BodyAnalyzer() = default;
  void run();

protected:
  /// The words in which messages speak of a body.
  struct Words {
    llvm::StringRef result;                ///< The name of the value that the body assigns.
    llvm::StringRef targets;               ///< All that it may assign.
    llvm::StringRef target;                ///< What an unknown name on the left should be.
    llvm::ArrayRef<llvm::StringRef> known; ///< The names that every body of the kind has.
    llvm::StringRef one = "one value of the whole parameter"; ///< A value of shape One.
  };

  /// `file` has the functions that the body may call. Null if it may call none.
  BodyAnalyzer(Body &body, const Words &words, Diagnostics &diagnostics, const Source &source,
               const File *file)
      : body(body), words(words), diagnostics(diagnostics), source(source), file(file) {}

  // The differences between rules and models, in Analysis.cpp and AnalyzeModel.cpp.
  /// Says that the body is for matrices alone, because of `what`. False, after an error, if it cannot be.
  virtual bool needMatrix(SourceRange range, const llvm::Twine &what) = 0;
  /// Says that the body is about one parameter, because of `what`. False, after an error, if it cannot be.
  virtual bool needParameter(SourceRange range, const llvm::Twine &what) = 0;
  virtual Type analyzeModelValue(ModelValueExpr &value) = 0;
  /// The hint for an unknown name that means something elsewhere; empty for others.
  virtual std::string hintUnknown(llvm::StringRef) const { return {}; }
  /// The hint for an unknown name on the left of a '='.
  virtual std::string hintDeclaration(llvm::StringRef name) const = 0;
  /// Checks what the statements together must do.
  virtual void finish() = 0;

  /// The declaration of a name in the body: exactly one pointer is set.
  struct Symbol {
    Hyperparameter *hyperparameter = nullptr;
    StateDeclaration *state = nullptr;
    LetStatement *let = nullptr; ///< In a `repeat`, the one that has the value now.
    SourceRange range;           ///< The name in its declaration.
    uint32_t visibleFrom = 0;    ///< Uses stand behind this offset of the text.
  };
  using Symbols = llvm::StringMap<Symbol>;

  // Declarations and statements, in Analysis.cpp.
  std::string describe(Type type) const;
  void analyzeStatement(Statement &statement);
  void declare(const Name &name, Symbol symbol);
  void declareAll();
  void analyzeLet(LetStatement &let);
  /// Sets what the `let` takes from its value, which must have been analyzed: whether it is known before a
  /// step, and its depth.
  void finishLet(LetStatement &let);
  void analyzeAssign(AssignStatement &assign);
  void analyzeSkip(SkipStatement &skip);
  void analyzeMetric(MetricStatement &metric);
  void resolveTarget(AssignStatement &assign);
  void hintShape(Diagnostic &error, const AssignStatement &assign, Type found) const;
  std::vector<llvm::StringRef> valueNames(uint32_t before) const;
  bool isFirstMention(llvm::StringRef name);

  // Expressions, in AnalyzeExpressions.cpp.
  Type analyzeExpr(Expr &expr);
  Type analyzeName(NameExpr &name);
  bool resolveBuiltin(NameExpr &name);
  /// Resolves `row` and `col`, which a declaration hides, and in rules that are wide `transposed`.
  bool resolvePosition(NameExpr &name);
  bool isOfMatrix(llvm::StringRef hint) const;
  void unknownName(llvm::StringRef name, SourceRange range);
  Type analyzeUnary(UnaryExpr &unary);
  Type analyzeBinary(BinaryExpr &binary);
  Type analyzeLink(BinaryExpr &link);
  Type analyzeProduct(BinaryExpr &link);
  /// The shape of values that meet at `place`. Reports sizes that differ.
  std::optional<Shape> join(Shape a, Shape b, SourceRange place);
  /// Joins the shape with that of a further operand. False if the operand is invalid or does not fit.
  bool joinInto(Shape &shape, Type type, SourceRange place);
  /// The type of an operand that must be a number; invalid after an error.
  Type analyzeNumber(Expr &expr) { return checkNumber(expr, analyzeExpr(expr)); }
  Type analyzeCondition(Expr &expr) { return checkCondition(expr, analyzeExpr(expr)); }
  Type analyzeTensor(Expr &expr);
  Type checkNumber(const Expr &expr, Type type);
  Type checkCondition(const Expr &expr, Type type);

  /// Sets Expr::depth and Expr::readsStep from those of the operands. Reports a depth beyond maxDepth.
  void followOperands(Expr &expr);
  /// Reports a depth beyond maxDepth, and sets it to 0.
  void checkDepth(uint32_t &depth, SourceRange range);

  // Functions and repeated statements, in AnalyzeFunctions.cpp.
  Type analyzeInlined(CallExpr &call, Def &def);
  void analyzeRepeat(RepeatStatement &repeat);
  std::optional<unsigned> countTurns(RepeatStatement &repeat);
  /// `values` are those of the turn's entry. Null for literals, which stand in the text.
  void analyzeTurn(RepeatStatement &repeat, unsigned turn,
                   const std::vector<LetStatement *> &values);
  void assignAgain(LetStatement &let, Symbol &symbol);
  /// Makes a statement that names an argument, or a value of a list. The value must have been analyzed.
  LetStatement &bind(const Parameter &parameter, ExprPtr value, Statements &into);
  /// Declares the name of an argument or of a list. `value` is null for a literal.
  void declareParameter(const Parameter &parameter, LetStatement *value);
  /// Analyzes a copy of a statement, and appends it.
  void inlineStatement(const Statement &statement, const Literals &literals, Statements &into);
  /// Counts an operation, if it stands in inlined text. False, after an error, if there are too many.
  bool countOperation();
  bool isInlining() const { return !expansions.empty(); }

  // Constants, in AnalyzeConstants.cpp.
  void foldConstant(Expr &expr);
  /// Call it if a value of shape `result` is computed from `operand`. If `operand` is a scalar and `result`
  /// is not, the scalar is rounded to `element`. A constant that `element` cannot hold is an error.
  void meetTensor(const Expr &operand, Shape result, ElementType element = ElementType::F32);
  /// Call it if a scalar is rounded to `element` at `place`.
  void roundScalar(const Expr &scalar, SourceRange place, ElementType element);
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
  Type analyzeTranspose(CallExpr &call);
  Type analyzeIdentity(CallExpr &call);
  Type analyzeSizeOf(CallExpr &call);
  Type analyzeUniform(CallExpr &call);
  Type analyzeStochastic(CallExpr &call);
  /// Whether the target can hold what the right side, a call of `stochastic`, rounds. Reports others.
  bool checkStochastic(const AssignStatement &assign);
  /// The size that a scalar names: `rows`, `cols(x)`, a whole number, or a `let` that is a size.
  std::optional<Size> sizeOf(const Expr &expr);
  /// Makes the `let` a size. It is the one of an earlier `let` that computes the same.
  Size declareSize(LetStatement &let);
  /// The computation of a scalar that is known before a step, as a text. Equal computations have equal texts.
  std::string formulaOf(const Expr &expr);
  std::string formulaOf(const LetStatement &let);
  /// The first part of a scalar for which its value is not known before a step. Null if it is.
  const Expr *unknownIn(const Expr &expr) const;
  /// Replaces the names of sizes in the declaration of a state. The `let`s above it must have been analyzed.
  void resolveSizes(StateDeclaration &state);
  void checkStart(StateDeclaration &state);
  bool resolveCoefficients(CallExpr &call, Orthogonalization &result);
  bool resolveForm(CallExpr &call, Orthogonalization &result);
  bool checkGrowth(CallExpr &call, const Orthogonalization &result);
  bool checkCoefficients(const CoefficientListExpr &list);
  void checkDecayFactor(const CallExpr &call);

  Body &body;
  const Words words;
  Diagnostics &diagnostics;
  const Source &source;
  const File *file;
  /// All declarations of the body, later ones too, for messages about use before declaration. While a
  /// function is inlined, its names.
  Symbols symbols;
  /// The places of the calls and repeats whose text is being inlined, the outermost first.
  std::vector<SourceRange> expansions;
  unsigned repeats = 0;    ///< How many of them are repeats of the body or function itself.
  unsigned operations = 0; ///< How many operations were inlined.
  unsigned nesting = 0;    ///< How many calls of analyzeExpr are active.
  bool isTooLarge = false; ///< Too many operations were reported.
  bool toldSizes = false;  ///< Too many sizes were reported.
  /// Names that were declared inside of a `repeat` that has ended, or that later text of the turn declares.
  llvm::StringMap<SourceRange> outOfScope;
  bool isResultMisspelt = false; ///< An assignment to the misspelt result was reported.
  const AssignStatement *resultAssignment = nullptr;
  const Expr *assigned = nullptr;           ///< The right side of the assignment that is analyzed.
  llvm::StringMap<LetStatement *> formulas; ///< The sizes, by formulaOf.
  llvm::DenseMap<const LetStatement *, unsigned> formulaNumbers; ///< of `let`s within formulas
  llvm::StringMap<unsigned> knownFormulas;
  uint32_t letCount = 0;  ///< How many `let`s were analyzed.
  uint32_t gradDepth = 0; ///< Expr::depth of the gradient.
  uint32_t skipDepth = 0; ///< Expr::depth of the conditions so far that skip the step, joined.
  /// Expressions at which constants become NaN or infinite, and divisions by a constant 0, with the calls
  /// that they are inlined by.
  std::vector<std::pair<const Expr *, std::vector<Diagnostic::Note>>> notFinite;
  /// Whether a depth beyond maxDepth was reported. It is reported once per body, because each further
  /// link of a chain would repeat the error.
  bool toldDepth = false;
};

class RuleAnalyzer : public BodyAnalyzer {
public:
  /// `file` declares the rule, and `main` imports it. The model must have been analyzed.
  RuleAnalyzer(Rule &rule, const File &file, const File &main, Diagnostics &diagnostics);

private:
  void unknownModelValue(const ModelValueExpr &value, Model &model);
  bool needMatrix(SourceRange range, const llvm::Twine &what) override;
  bool needParameter(SourceRange, const llvm::Twine &) override { return true; }
  Type analyzeModelValue(ModelValueExpr &value) override;
  std::string hintUnknown(llvm::StringRef name) const override;
  std::string hintDeclaration(llvm::StringRef name) const override;
  void finish() override;

  Rule &rule;
  const File &main;
};

class ModelAnalyzer : public BodyAnalyzer {
public:
  ModelAnalyzer(Model &model, const File &file, Diagnostics &diagnostics);

private:
  bool needMatrix(SourceRange range, const llvm::Twine &what) override;
  bool needParameter(SourceRange range, const llvm::Twine &what) override;
  Type analyzeModelValue(ModelValueExpr &value) override;
  std::string hintDeclaration(llvm::StringRef name) const override;
  void finish() override;
};

/// Warns of hyperparameters' values (defaults, and those in claims) that f32
/// cannot hold, if the hyperparameter meets a tensor.
void warnHyperparameters(const File &file, Diagnostics &diagnostics);

/// Reports further models, names that the model's entry in checkpoints has, and metrics of optimizers that
/// have the name of a metric of the model.
void checkModel(const File &file, Diagnostics &diagnostics);

/// Reports texts that are no valid patterns.
void checkPatterns(const std::vector<StringLiteral> &patterns, Diagnostics &diagnostics);

/// Checks the patterns and numbers of a `blocks` statement. The sizes of parameters are not known here.
void analyzeBlocks(const BlocksStatement &blocks, Diagnostics &diagnostics);

/// Finds the functions that the file may call, after the same was done for its imports. Checks names and
/// calls in its own, and that none calls itself. What depends on the types of the
/// arguments is checked at each call.
void checkDefs(File &file, Diagnostics &diagnostics);
/// Reports a name of a `repeat` where the name does not stand for a value.
void reportOutOfScope(llvm::StringRef name, SourceRange use, SourceRange declaration,
                      Diagnostics &diagnostics);
/// Whether a call draws random numbers. Of a function of the file, the calls that it makes must be known.
bool drawsNumbers(const CallExpr &call, const File &file);
/// Reports a call of a function that is not there. The hint is empty if no function has a similar name.
Diagnostic &reportUnknownFunction(const Name &callee, const File *file, Diagnostics &diagnostics);
/// The names of all functions: of the language, and of the file, if there is one.
std::vector<llvm::StringRef> callableNames(const File *file);
/// Whether the call gives the function as many arguments as it has. Reports others.
bool checkArguments(const CallExpr &call, const Def &def, Diagnostics &diagnostics);

/// Checks the route against the rules and fills the claims.
void analyzeRoutes(File &file, Diagnostics &diagnostics);

/// Computes the constants of hyperparameters, initial values and claims. Wrong ones are reported and dropped.
void computeConstants(File &file, Diagnostics &diagnostics);
/// Checks the condition of a claim on the sizes of blocks.
void analyzeWhere(Expr &condition, const File &file, Diagnostics &diagnostics);

/// Adds the hint `did you mean 'x'?` if a candidate is near.
void hintNearest(Diagnostic &diagnostic, llvm::StringRef name,
                 llvm::ArrayRef<llvm::StringRef> candidates);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_ANALYZER_H
