//===- AST.h - The syntax tree of one .optim file ---------------*- C++ -*-===//
//
// The parser builds the tree; `analyze` fills the fields marked "analysis".
// After an analysis without errors every expression has a valid type and every
// name points at its declaration. All pointers live as long as the File.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_FRONTENDS_LANGUAGE_AST_H
#define STEPC_FRONTENDS_LANGUAGE_AST_H

#include "dialects/optim/NewtonSchulz.h"
#include "frontends/language/Source.h"
#include "frontends/language/Types.h"
#include "runtime/model/Model.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Casting.h"
#include <array>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <set>

namespace stepc::lang {

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

struct Name {
  std::string text;
  SourceRange range;
};

struct Expr;

/// A number, known when compiling: a literal with its sign, or what is computed of literals, as in `0.1 / 3`.
struct Constant {
  double value = 0; ///< analysis, for a constant that is computed
  SourceRange range;
  std::shared_ptr<Expr> computed; ///< How it is computed. Null for a literal.
};

struct StringLiteral {
  std::string value;
  SourceRange range;
};

/// A hyperparameter: a run-time f64 scalar of a parameter group.
struct Hyperparameter {
  Name name;
  std::optional<Constant> defaultValue;
  bool isBroken = false; ///< The default could not be read, and the error was reported.
  SourceRange range;
  bool isUsed = false;     ///< analysis
  bool isImplicit = false; ///< analysis: `seed`, which a rule that draws has undeclared
  /// analysis: the first place where the hyperparameter itself is rounded to
  /// f32 because it meets a tensor there.
  std::optional<SourceRange> meetsTensor;
};

/// `state NAME : dtype[kind] = initial`, or `input NAME : dtype[kind] = default`. An input is what the
/// trainer gives for each step: statements read it as they read a state, and none assigns it.
struct StateDeclaration {
  Name name;
  bool isInput = false;
  ElementType element = ElementType::Invalid; ///< Invalid after a syntax error.
  Shape shape = Shape::Full;                  ///< Never a scalar.
  std::optional<Constant>
      initial; ///< Where absent, a state starts at zero, and an input must be given.
  /// analysis: what the first step takes for its old value, unless it is a number.
  plan::Initial start = plan::Initial::Number;
  SourceRange range;
  SourceRange sizes;       ///< The brackets with its sizes; empty without.
  SourceRange starts;      ///< analysis: where `start` is named
  bool isAssigned = false; ///< analysis
  bool isRead = false;     ///< analysis: read by any statement, also by the one that assigns it
  uint32_t depth = 0;      ///< analysis: Expr::depth of the value that was assigned last
};

/// `master : f32`.
struct Master {
  ElementType element = ElementType::Invalid;
  SourceRange range;
};

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

struct LetStatement;

struct Expr {
  enum class Kind : uint8_t {
    Error,
    Number,
    Name,
    Unary,
    Binary,
    Call,
    ModelValue,
    CoefficientList,
    NumberList,
  };

  const Kind kind;
  bool parenthesized = false; ///< Written inside parentheses.
  /// How deep a walk recurses below this node; the parser bounds it. Walks loop
  /// over left operands of binary operators (see BinaryExpr). So a chain
  /// `a + b + ...` has the height of its highest term plus one.
  uint16_t height = 1;
  SourceRange range; ///< Without these parentheses.
  Type type;         ///< analysis
  /// analysis: the value of a scalar that is computed from literals alone; 1 or
  /// 0 for a condition. Nothing for other values.
  std::optional<double> constant;
  /// analysis: a bound on the longest chain of operations of level 1 that ends
  /// in this value. The operations behind names count, too.
  uint32_t depth = 0;
  bool readsStep = false; ///< analysis: whether it is computed from `step`, also by way of names

  virtual ~Expr() = default;

protected:
  Expr(Kind kind, SourceRange range) : kind(kind), range(range) {}
};
using ExprPtr = std::unique_ptr<Expr>;

/// Replaces an expression whose syntax error was reported. Analysis reports
/// nothing more about it.
struct ErrorExpr : Expr {
  explicit ErrorExpr(SourceRange range) : Expr(Kind::Error, range) {}
  static bool classof(const Expr *e) { return e->kind == Kind::Error; }
};

struct NumberExpr : Expr {
  double value;
  NumberExpr(SourceRange range, double value) : Expr(Kind::Number, range), value(value) {}
  static bool classof(const Expr *e) { return e->kind == Kind::Number; }
};

/// A name as a value. A name as an option (`over = rows`, `precision = bf16`,
/// `coefficients = simple`) stays Unresolved.
struct NameExpr : Expr {
  enum class Symbol : uint8_t {
    Unresolved,
    Param,
    Grad,
    Step,
    Rows,
    Cols,
    Numel,
    Row,
    Col,
    Transposed, ///< A condition, in rules that are wide.
    Hyperparameter,
    State,
    Let,
  };

  std::string name;
  Symbol symbol = Symbol::Unresolved;       ///< analysis
  Hyperparameter *hyperparameter = nullptr; ///< analysis
  const StateDeclaration *state = nullptr;  ///< analysis
  LetStatement *let = nullptr;              ///< analysis

  NameExpr(SourceRange range, std::string name) : Expr(Kind::Name, range), name(std::move(name)) {}
  static bool classof(const Expr *e) { return e->kind == Kind::Name; }
};

/// `model.NAME` in an optimizer: a value of the model, one f32.
struct ModelValueExpr : Expr {
  Name member;
  ModelValueExpr(SourceRange range, Name member)
      : Expr(Kind::ModelValue, range), member(std::move(member)) {}
  static bool classof(const Expr *e) { return e->kind == Kind::ModelValue; }
};

enum class UnaryOp : uint8_t { Negate, Not };

struct UnaryExpr : Expr {
  UnaryOp op;
  ExprPtr operand;
  UnaryExpr(SourceRange range, UnaryOp op, ExprPtr operand)
      : Expr(Kind::Unary, range), op(op), operand(std::move(operand)) {}
  static bool classof(const Expr *e) { return e->kind == Kind::Unary; }
};

enum class BinaryOp : uint8_t {
  Add,
  Subtract,
  Multiply,
  Divide,
  Product, ///< of two matrices
  Power,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  Equal,
  NotEqual,
  And,
  Or,
};
llvm::StringRef spell(BinaryOp op);
inline bool isComparison(BinaryOp op) { return op >= BinaryOp::Less && op <= BinaryOp::NotEqual; }
inline bool isLogical(BinaryOp op) { return op >= BinaryOp::And; }

/// A chain `a + b + ...` may be long, and its tree is deep on the left. So every
/// walk over a tree loops over the links that `chain` lists, and does not recurse.
struct BinaryExpr : Expr {
  BinaryOp op;
  SourceRange opRange;
  ExprPtr lhs, rhs;
  ~BinaryExpr() override;
  BinaryExpr(BinaryOp op, SourceRange opRange, ExprPtr lhs, ExprPtr rhs)
      : Expr(Kind::Binary, lhs->range.to(rhs->range)), op(op), opRange(opRange),
        lhs(std::move(lhs)), rhs(std::move(rhs)) {}
  static bool classof(const Expr *e) { return e->kind == Kind::Binary; }
};

/// `top` and the binary expressions below it on the left, the innermost first.
/// The left operand of each is the one before. Only that of the first is no
/// binary expression.
std::vector<BinaryExpr *> chain(BinaryExpr &top);
std::vector<const BinaryExpr *> chain(const BinaryExpr &top);

/// The value of a literal with or without a minus. Nothing for other expressions.
std::optional<double> literalValue(const Expr &expr);
/// The value of a power's exponent if it is a literal; otherwise NaN.
inline double literalExponent(const Expr &exponent) {
  return literalValue(exponent).value_or(std::numeric_limits<double>::quiet_NaN());
}
/// Whether a power with this literal exponent is computed by multiplications.
bool isProductExponent(double exponent);
/// Whether all machines round a power with this literal exponent alike: a product or a square root.
inline bool isRoundedAlike(double exponent) {
  return exponent == 0.5 || isProductExponent(exponent);
}

/// `[(a, b, c), ...]`, an option of `orthogonalize`.
struct CoefficientListExpr : Expr {
  std::vector<std::array<Constant, 3>> steps;
  explicit CoefficientListExpr(SourceRange range) : Expr(Kind::CoefficientList, range) {}
  static bool classof(const Expr *e) { return e->kind == Kind::CoefficientList; }
};

/// `[1, 3]`, the restarts of `orthogonalize`.
struct NumberListExpr : Expr {
  std::vector<Constant> numbers;
  explicit NumberListExpr(SourceRange range) : Expr(Kind::NumberList, range) {}
  static bool classof(const Expr *e) { return e->kind == Kind::NumberList; }
};

/// The functions of the language; Builtins.h has the table of them.
enum class Function : uint8_t {
  Sqrt,
  Rsqrt,
  Abs,
  Floor,
  Sign,
  Exp,
  Log,
  Min,
  Max, ///< The larger of two values; with one tensor it is MaxOf.
  Clamp,
  Lerp,
  Finite,
  Select,
  Cast,
  Momentum,
  Decay,
  Sum,
  Mean,
  Rms,
  Norm,
  MaxOf,
  Orthogonalize,
  Transpose,
  Identity,
  RowsOf,
  ColsOf,
  Uniform,
  Stochastic,
};

/// The options of a call of `orthogonalize` after analysis.
struct Orthogonalization {
  /// One (a, b, c) per step of the iteration. A safety factor is already applied.
  std::vector<std::array<double, 3>> coefficients;
  std::string coefficientSet; ///< The name of the set of coefficients; empty for a list.
  ElementType precision = ElementType::BF16;
  optim::Form form = optim::Form::Standard;
  /// How many steps are done before each restart; empty in the standard form.
  std::vector<int64_t> restarts;
  double eps = 1e-7;
  /// With a smaller eps, the scaled eps of optim.orthogonalize would be subnormal.
  static constexpr double leastEps = 0x1p-100;
};

struct InlinedCall;

struct CallExpr : Expr {
  struct Option {
    Name name;
    ExprPtr value;
  };

  Name callee;
  std::vector<ExprPtr> arguments; ///< Positional ones.
  std::vector<Option> options;    ///< `name = value`.

  std::optional<Function> function;                   ///< analysis; nothing if a `def` is called
  std::unique_ptr<InlinedCall> inlined;               ///< analysis, for the call of a `def`
  ElementType castTo = ElementType::Invalid;          ///< analysis, for `cast`
  std::optional<Orthogonalization> orthogonalization; ///< analysis

  CallExpr(SourceRange range, Name callee);
  ~CallExpr() override;
  static bool classof(const Expr *e) { return e->kind == Kind::Call; }
};

//===----------------------------------------------------------------------===//
// Statements and declarations
//===----------------------------------------------------------------------===//

struct Statement {
  enum class Kind : uint8_t { Let, Assign, Skip, Metric, Repeat, Return };
  const Kind kind;
  SourceRange range;
  Name target;   ///< The statement's word if nothing gets the value.
  ExprPtr value; ///< Null in a `repeat` with a list.

  virtual ~Statement() = default;

protected:
  Statement(Kind kind, SourceRange range, Name target, ExprPtr value)
      : kind(kind), range(range), target(std::move(target)), value(std::move(value)) {}
};

/// Whether some statement reads a name. Copies of a text that is inlined share it.
using Usage = std::shared_ptr<bool>;

/// `let NAME = value`: a name for a value, for the rest of the body. If it is the model's, rules may read it.
/// Analysis makes further ones: the arguments of a call, and the values that `repeat` assigns to a name.
struct LetStatement : Statement {
  Usage isUsed = std::make_shared<bool>(false); ///< analysis
  bool isLocal = false;                         ///< analysis: within a `def` or a `repeat`
  LetStatement *same = nullptr; ///< analysis: the `let` of which this is another name
  /// analysis: the first part for which the value is not known before a step. Null if it is known.
  const Expr *unknown = nullptr;
  /// analysis: of a name that `repeat` assigns, the `let` that declares it, and there the last assignment.
  LetStatement *declared = this, *last = this;
  /// analysis: the name of the size, if values have so many rows or columns. Empty for other values.
  llvm::StringRef sizeName;
  uint32_t order = 0; ///< analysis: how many `let`s of the body are evaluated before
  LetStatement(SourceRange range, Name target, ExprPtr value)
      : Statement(Kind::Let, range, std::move(target), std::move(value)) {}
  static bool classof(const Statement *s) { return s->kind == Kind::Let; }
};

/// `NAME = value` for a state, `param = value` in a rule, or `grad = value` in the model. Later statements
/// read the value as the state stores it, rounded to the state's dtype.
struct AssignStatement : Statement {
  /// Whether the right side is `stochastic(x)`. It must have been analyzed.
  bool roundsByChance() const {
    const auto *call = llvm::dyn_cast<CallExpr>(value.get());
    return call && call->function == Function::Stochastic;
  }
  const StateDeclaration *state = nullptr; ///< analysis; null for `param` and `grad`
  AssignStatement(SourceRange range, Name target, ExprPtr value)
      : Statement(Kind::Assign, range, std::move(target), std::move(value)) {}
  static bool classof(const Statement *s) { return s->kind == Kind::Assign; }
};

/// `skip when value`, in the model: the step changes nothing if the condition holds.
struct SkipStatement : Statement {
  SkipStatement(SourceRange range, Name word, ExprPtr value)
      : Statement(Kind::Skip, range, std::move(word), std::move(value)) {}
  static bool classof(const Statement *s) { return s->kind == Kind::Skip; }
};

/// `metric NAME = value`: a number that each step gives to the trainer. No statement reads it.
struct MetricStatement : Statement {
  MetricStatement(SourceRange range, Name target, ExprPtr value)
      : Statement(Kind::Metric, range, std::move(target), std::move(value)) {}
  static bool classof(const Statement *s) { return s->kind == Kind::Metric; }
};

using Statements = std::vector<std::unique_ptr<Statement>>;

/// A name that gets its value from outside: an argument of a `def`, or a name of the list of a `repeat`.
struct Parameter {
  Name name;
  Usage isUsed = std::make_shared<bool>(false); ///< analysis
};

/// `repeat COUNT { ... }`, or `repeat NAMES in [...] { ... }` with a turn for each entry of the list.
struct RepeatStatement : Statement {
  std::vector<Parameter> names;
  std::vector<std::vector<ExprPtr>> entries; ///< Each has a value per name.
  Statements statements;                     ///< As written. Analysis leaves them alone.
  Statements turns; ///< analysis: the statements of all turns, one turn after the other
  RepeatStatement(SourceRange range, Name word)
      : Statement(Kind::Repeat, range, std::move(word), nullptr) {}
  static bool classof(const Statement *s) { return s->kind == Kind::Repeat; }
};

/// `return value`, the last statement of a `def`.
struct ReturnStatement : Statement {
  ReturnStatement(SourceRange range, Name word, ExprPtr value)
      : Statement(Kind::Return, range, std::move(word), std::move(value)) {}
  static bool classof(const Statement *s) { return s->kind == Kind::Return; }
};

/// The statements of a `def` for one call. The first ones name the arguments.
struct InlinedCall {
  Statements statements;
  ExprPtr result;
};

/// Why a rule applies to matrices only.
struct MatrixNeed {
  SourceRange range;
  std::string what; ///< E.g. "'orthogonalize'".
};

/// The part that optimizers, the model and functions share: statements that run from top to bottom.
struct Body {
  enum class Kind : uint8_t { Rule, Model, Def };
  const Kind kind;
  Name name; ///< The name of an optimizer. For the model the word `model`.
  std::vector<Hyperparameter> hyperparameters;
  std::vector<StateDeclaration> states;
  Statements statements;
  SourceRange range;
  bool hasSyntaxErrors = false; ///< Statements may be missing.
  bool lacksNames = false;      ///< Declarations may be missing, so unknown names are not reported.
  /// Names in text that could not be parsed. The text may declare them, so they are not reported as
  /// unknown. The analysis adds the unknown names that it has reported.
  std::set<std::string, std::less<>> unread;

  bool usesGrad = false; ///< analysis
  /// analysis: the `let`s that are sizes of values, in the order in which they are evaluated.
  std::vector<const LetStatement *> sizes;
  std::deque<std::string> sizeNames; ///< analysis: what LetStatement::sizeName refers to

  /// The hyperparameter of that name. Null if there is none.
  const Hyperparameter *findHyperparameter(llvm::StringRef name) const;
  std::vector<const MetricStatement *> metrics() const;
  const MetricStatement *findMetric(llvm::StringRef name) const; ///< Null if there is none.

protected:
  explicit Body(Kind kind) : kind(kind) {}
};

/// One `optimizer`: what happens to one matrix or vector parameter in a step.
struct Rule : Body {
  std::optional<Master> master;
  /// Written after `wide`: the rule sees a matrix with more rows than columns transposed.
  std::optional<SourceRange> wide;
  std::vector<SourceRange> furtherMasters; ///< Each is an error in analysis.

  std::optional<MatrixNeed> needsMatrix; ///< analysis: the first reason, if any
  /// analysis: the names that the rule reads as `model.NAME`.
  std::set<std::string, std::less<>> modelValues;

  Rule() : Body(Kind::Rule) {}
  static bool classof(const Body *b) { return b->kind == Kind::Rule; }
};

/// The `model`: what happens to all parameters at once in a step, before the rules.
struct Model : Body {
  Model() : Body(Kind::Model) {}
  static bool classof(const Body *b) { return b->kind == Kind::Model; }
};

/// `def NAME(arguments) { ... return value }` or `def NAME(arguments) = value`: a function, which is inlined
/// where it is called. The last statement is its `return`, unless the text has errors.
struct Def : Body {
  std::vector<Parameter> parameters;
  bool isUsed = false;   ///< analysis
  bool isBroken = false; ///< analysis: it has errors, which were reported
  bool draws = false;    ///< analysis: a call of it draws random numbers

  const Expr &result() const { return *statements.back()->value; }

  Def() : Body(Kind::Def) {}
  static bool classof(const Body *b) { return b->kind == Kind::Def; }
};

/// `NAME = value` in a claim.
struct Setting {
  Name name;
  std::optional<Constant> number; ///< The value of a hyperparameter.
  std::optional<Name> word;       ///< The value of `missing_grad`. After an error both are empty.
};

using plan::BlockSizes, plan::MissingGrad;

/// One line of a route: which parameters a rule takes.
struct Claim {
  Name ruleName;
  std::optional<Name> routeName; ///< Written after `as`.
  std::vector<Setting> settings;
  bool lacksSettings = false; ///< After an error settings may be missing.
  bool isRest = false;        ///< Takes the parameters that no other claim takes.
  bool isMatrix = false;      ///< Takes matrices only; if there are globs, those that match a glob.
  std::vector<StringLiteral> globs;
  std::optional<SourceRange> ifPresent; ///< Set if the globs may match nothing.
  std::vector<StringLiteral> except;
  ExprPtr where; ///< A condition on the sizes of blocks, beside `isMatrix`. Null if there is none.
  SourceRange range;
  SourceRange selectorRange; ///< `rest`, `matrix` or the globs, without `if present`.

  const Rule *rule = nullptr;                   ///< analysis
  MissingGrad missingGrad = MissingGrad::Error; ///< analysis
  /// analysis: the name after `as`. A claim without `as` has the rule's name. Several claims of one rule
  /// without `as` are `RULE.1`, `RULE.2`, … in order.
  std::string name;
  /// analysis: one value per hyperparameter of the rule, in its order.
  std::vector<double> values;
};

struct Route {
  std::vector<Claim> claims;
  SourceRange range;
};

/// `blocks "*.qkv.weight" repeat 8 rows 512, 128, 128` names parameters whose matrices are divided, and how.
/// `blocks "*.conv.weight" flatten 1` says which axes are a matrix. The numbers are known here, the sizes of
/// the matrices are not.
struct BlocksStatement {
  std::vector<StringLiteral> globs;
  std::optional<SourceRange> ifPresent;
  std::vector<StringLiteral> except;
  std::optional<Constant> flatten; ///< The first of the axes that form the columns.
  std::optional<Constant> repeat;  ///< How often the list of blocks recurs along the axis.
  bool isColumns = false;
  BlockSizes sizes = BlockSizes::Listed;
  std::vector<Constant> numbers; ///< Empty if the statement only flattens.
  SourceRange range;
};

struct File;

/// `import "linear.optim"`: the functions, optimizers and the model of another file.
struct ImportStatement {
  StringLiteral path;
  SourceRange range;
  File *file = nullptr; ///< `load` sets it. Null after an error.
};

struct File {
  const Source *source = nullptr;
  SourceRange part; ///< Its text in the source.
  std::vector<ImportStatement> imports;
  std::vector<std::unique_ptr<Rule>> rules;
  std::vector<std::unique_ptr<Model>> models; ///< More than one is an error of analysis.
  std::vector<std::unique_ptr<Def>> defs;
  std::vector<BlocksStatement> blocks;
  std::vector<Route> routes; ///< More than one is an error of analysis.
  bool lacksRules = false;   ///< Optimizers may be missing, so unknown ones are not reported.
  bool lacksNames =
      false; ///< As of a body, for all bodies: an import with errors may declare any name.
  bool isForeign = false; ///< The text is in another language, and the error was reported.

  /// The files that this one imports, directly or by way of others. A file comes after those that it imports.
  /// Only the file that `load` returns has them.
  std::vector<std::unique_ptr<File>> imported;
  /// analysis: the functions that it may call, its own and those of its imports.
  llvm::StringMap<Def *> functions;

  /// The route. Null if the file has none. Routes of imports have no effect.
  const Route *route() const { return routes.empty() ? nullptr : &routes[0]; }
  /// The model, also that of an import. Null if there is none.
  Model *model() const;
  /// The optimizers, its own first and then those of its imports.
  std::vector<Rule *> allRules() const;
  /// Models and rules of the file itself.
  std::vector<Body *> bodies() const;
  /// The function of that name, after `checkDefs`. Null if there is none.
  Def *findDef(llvm::StringRef name) const { return functions.lookup(name); }
};

/// The hyperparameter of what random numbers depend on.
inline constexpr llvm::StringLiteral kSeed = "seed";

/// The first call in the text for which `isIt` holds. Null if there is none. Options of calls, and what is
/// inlined, are not searched.
const CallExpr *findCall(const Expr &expr, llvm::function_ref<bool(const CallExpr &)> isIt);
const CallExpr *findCall(const Statements &statements,
                         llvm::function_ref<bool(const CallExpr &)> isIt);

/// A copy of what the parser made, without the results of an analysis. A name that `replaced` maps to a
/// literal becomes the literal.
struct Literal {
  const Expr *value;
  Usage isUsed;
};
using Literals = llvm::StringMap<Literal>;
ExprPtr copyOf(const Expr &expr, const Literals &replaced);
std::unique_ptr<Statement> copyOf(const Statement &statement, const Literals &replaced);

/// The tree as text without positions, for tests and debugging: two files with
/// equal dumps mean the same.
std::string dump(const File &file);
std::string dump(const Expr &expr);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_AST_H
