//===- AnalyzeOutside.cpp - Expressions outside of definitions ------------===//
//
// Constants are computed of literals alone, and conditions of claims of the sizes of blocks and of literals.
//
//===----------------------------------------------------------------------===//
#include "frontends/language/Analyzer.h"
#include "frontends/language/ForeignNames.h"
#include "frontends/text/Text.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace stepc::lang;
using llvm::ArrayRef;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// Analyzes one expression as if it stood in an optimizer without declarations.
class OutsideAnalyzer : BodyAnalyzer {
public:
  /// `known` are the names that it may read. `alone` are names that may stand in its place.
  OutsideAnalyzer(Rule &empty, ArrayRef<StringRef> known, ArrayRef<StringRef> alone,
                  Diagnostics &diagnostics, const File &file)
      : BodyAnalyzer(empty, {.known = known}, diagnostics, *file.source, nullptr), alone(alone),
        defs(file) {}

  /// Whether the expression is a number, or a condition, without an error.
  bool run(Expr &expr, bool isCondition) {
    if (!isAllowed(expr))
      return false;
    Type type = isCondition ? analyzeCondition(expr) : analyzeNumber(expr);
    if (isCondition) // a constant that is not finite is an error
      warnNotFinite();
    return type.isValid();
  }

private:
  /// Reports the first part that is no literal, no name that it may read, and no function of scalars.
  bool isAllowed(const Expr &expr);
  bool isAllowed(const CallExpr &call);
  bool isAllowedPower(const BinaryExpr &power);
  bool refuse(SourceRange range, const Twine &found, const Twine &hint = "");
  bool readsSizes() const { return !words.known.empty(); }

  bool needMatrix(SourceRange, const Twine &) override { return true; }
  bool needParameter(SourceRange, const Twine &) override { return true; }
  Type analyzeModelValue(ModelValueExpr &) override { return {}; }
  std::string hintDeclaration(StringRef) const override { return {}; }
  void finish() override {}

  ArrayRef<StringRef> alone;
  const File &defs; ///< Its functions are refused.
};

bool OutsideAnalyzer::refuse(SourceRange range, const Twine &found, const Twine &hint) {
  StringRef expected =
      readsSizes() ? "expected a condition on rows, cols, numel and literals" : "expected a number";
  diagnostics.error(range, expected + ", found " + found).withHint(hint.str());
  return false;
}

bool OutsideAnalyzer::isAllowed(const Expr &expr) {
  switch (expr.kind) {
  case Expr::Kind::Error:
    return false;
  case Expr::Kind::Number:
    return true;
  case Expr::Kind::Name: {
    StringRef name = llvm::cast<NameExpr>(expr).name;
    if (llvm::is_contained(words.known, name))
      return true;
    std::string hint = foreignConstantHint(name).str();
    StringRef near = stepc::text::nearestName(name, readsSizes() ? words.known : alone);
    if (hint.empty() && !near.empty() && near != name)
      hint = ("did you mean '" + near + "'?").str();
    else if (hint.empty() && !readsSizes())
      hint = alone.empty() ? "a number is computed from literals alone: '0.1 / 3'"
                           : "a number is computed from literals alone: '0.1 / 3'; 'param', "
                             "'identity' and 'normal' stand by themselves";
    return refuse(expr.range, "'" + name + "'", hint);
  }
  case Expr::Kind::ModelValue:
    return refuse(expr.range, "a value of the model");
  case Expr::Kind::Unary:
    return isAllowed(*llvm::cast<UnaryExpr>(expr).operand);
  case Expr::Kind::Binary: {
    std::vector<const BinaryExpr *> links = chain(llvm::cast<BinaryExpr>(expr));
    if (!isAllowed(*links.front()->lhs))
      return false;
    return llvm::all_of(links, [&](const BinaryExpr *link) {
      return isAllowed(*link->rhs) && (link->op != BinaryOp::Power || isAllowedPower(*link));
    });
  }
  case Expr::Kind::Call:
    return isAllowed(llvm::cast<CallExpr>(expr));
  case Expr::Kind::CoefficientList:
  case Expr::Kind::NumberList:
    return refuse(expr.range, "a list");
  }
  return false;
}

bool OutsideAnalyzer::isAllowed(const CallExpr &call) {
  const FunctionInfo *info = findFunction(call.callee.text);
  if (defs.findDef(call.callee.text))
    return refuse(call.callee.range, "'" + call.callee.text + "'",
                  "a function of 'def' is for optimizers and the model");
  bool isOfTensors = info && !info->fold;
  if (isOfTensors || (info && readsSizes() && !isRoundedAlike(info->function)))
    return refuse(call.callee.range, "'" + call.callee.text + "'",
                  isOfTensors ? "it is a function of tensors"
                              : "machines may round it differently");
  return llvm::all_of(call.arguments, [&](const ExprPtr &each) { return isAllowed(*each); });
}

bool OutsideAnalyzer::isAllowedPower(const BinaryExpr &power) {
  if (!readsSizes() || isRoundedAlike(literalExponent(*power.rhs)))
    return true;
  return refuse(power.range, "a power whose exponent is no whole literal from -16 to 16",
                "machines may round it differently");
}

} // namespace

/// The start that a name says, or nothing.
static std::optional<stepc::plan::Initial> startOf(StringRef name) {
  for (auto start :
       {stepc::plan::Initial::Param, stepc::plan::Initial::Identity, stepc::plan::Initial::Normal})
    if (name == StringRef(stepc::plan::name(start)))
      return start;
  return std::nullopt;
}

/// Gives a rule that draws random numbers the hyperparameter `seed`, unless the rule declares it.
static void addSeed(Rule &rule, SourceRange range) {
  if (!rule.findHyperparameter(kSeed)) {
    rule.hyperparameters.push_back({{kSeed.str(), range}, Constant{0, range}});
    rule.hyperparameters.back().range = range;
    rule.hyperparameters.back().isImplicit = true;
  }
  for (Hyperparameter &each : rule.hyperparameters)
    each.isUsed |= each.name.text == kSeed;
}

/// The first call of a rule that draws random numbers. Null if none does.
static const CallExpr *findDraw(const Rule &rule, const File &file) {
  return findCall(rule.statements, [&](const CallExpr &call) { return drawsNumbers(call, file); });
}

/// Whether a state starts at a value that is named, not computed. Reports a name that the state cannot take.
static bool startsAtValue(StateDeclaration &state, Body &body, Diagnostics &diagnostics) {
  const auto *name = llvm::dyn_cast_if_present<NameExpr>(state.initial->computed.get());
  std::optional<stepc::plan::Initial> start = name ? startOf(name->name) : std::nullopt;
  auto *rule = llvm::dyn_cast<Rule>(&body);
  if (!start || !rule)
    return false;
  if (*start == stepc::plan::Initial::Normal)
    addSeed(*rule, name->range);
  // At most so many operations make the value, round it to the state's type and choose it.
  state.depth = 16;
  state.start = *start;
  state.starts = name->range;
  if (*start == stepc::plan::Initial::Identity && !rule->needsMatrix)
    rule->needsMatrix = MatrixNeed{name->range, "'identity'"};
  return true;
}

void stepc::lang::computeConstants(File &file, Diagnostics &diagnostics) {
  Rule empty;
  static constexpr StringRef starts[] = {"param", "identity", "normal"};
  // Whether the constant has its value.
  auto compute = [&](Constant &constant, ArrayRef<StringRef> alone = {}) {
    if (!constant.computed)
      return true;
    Expr &expr = *constant.computed;
    if (!OutsideAnalyzer(empty, {}, alone, diagnostics, file).run(expr, /*isCondition=*/false))
      return false;
    constant.value = expr.constant.value_or(std::nan(""));
    Loss loss = lossIn(ElementType::F64, constant.value);
    if (loss != Loss::None)
      diagnostics.error(constant.range,
                        "expected a finite number, found " + describeLoss(constant.value, loss));
    return loss == Loss::None;
  };
  for (Body *body : file.bodies()) {
    for (Hyperparameter &hyper : body->hyperparameters)
      if (hyper.defaultValue && !compute(*hyper.defaultValue)) {
        hyper.defaultValue.reset();
        hyper.isBroken = true;
      }
    ArrayRef<StringRef> alone = llvm::isa<Rule>(body) ? ArrayRef(starts) : ArrayRef<StringRef>();
    for (StateDeclaration &state : body->states)
      if (state.initial &&
          ((!state.isInput && startsAtValue(state, *body, diagnostics)) ||
           !compute(*state.initial, state.isInput ? ArrayRef<StringRef>() : alone)))
        state.initial.reset();
    auto *rule = llvm::dyn_cast<Rule>(body);
    if (const CallExpr *draw = rule ? findDraw(*rule, file) : nullptr)
      addSeed(*rule, draw->callee.range);
  }
  for (Route &route : file.routes)
    for (Claim &claim : route.claims)
      for (Setting &setting : claim.settings)
        if (setting.number && !compute(*setting.number))
          setting.number.reset();
}

void stepc::lang::analyzeWhere(Expr &condition, const File &file, Diagnostics &diagnostics) {
  static constexpr StringRef sizes[] = {"rows", "cols", "numel"};
  Rule empty;
  if (!OutsideAnalyzer(empty, sizes, {}, diagnostics, file).run(condition, /*isCondition=*/true))
    return;
  if (condition.constant)
    diagnostics.warning(condition.range, *condition.constant != 0
                                             ? "this condition holds for every matrix"
                                             : "this condition holds for no matrix");
}
