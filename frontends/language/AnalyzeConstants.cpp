//===- AnalyzeConstants.cpp - The values that literals give ---------------===//
#include "frontends/language/Analyzer.h"
#include "frontends/language/Builtins.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace stepc::lang;
using llvm::StringRef;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

Loss stepc::lang::lossIn(ElementType element, double value) {
  if (std::isnan(value))
    return Loss::NaN;
  if (std::isinf(value))
    return Loss::Infinite;
  llvm::APFloat number(value);
  bool losesBits;
  auto round = [&](const llvm::fltSemantics &to) {
    number.convert(to, llvm::APFloat::rmNearestTiesToEven, &losesBits);
  };
  if (element == ElementType::F32)
    round(llvm::APFloat::IEEEsingle());
  else if (element == ElementType::BF16)
    round(llvm::APFloat::BFloat());
  else if (element == ElementType::F16)
    round(llvm::APFloat::IEEEhalf());
  if (!number.isFinite())
    return Loss::ToInfinity;
  return number.isZero() && value != 0 ? Loss::ToZero : Loss::None;
}

std::string stepc::lang::spellNumber(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

std::string stepc::lang::describeLoss(double value, Loss loss) {
  switch (loss) {
  case Loss::ToZero:
    return spellNumber(value) + ", which rounds to 0";
  case Loss::ToInfinity:
    return spellNumber(value) + ", which rounds to infinity";
  case Loss::Infinite:
    return value < 0 ? "minus infinity" : "infinity";
  case Loss::NaN:
    return "NaN";
  case Loss::None:
    break;
  }
  return spellNumber(value);
}

//===----------------------------------------------------------------------===//
// Folding
//===----------------------------------------------------------------------===//

static std::optional<double> foldBinary(const BinaryExpr &binary) {
  if (!binary.lhs->constant || !binary.rhs->constant)
    return std::nullopt;
  double a = *binary.lhs->constant, b = *binary.rhs->constant;
  switch (binary.op) {
  case BinaryOp::Add:
    return a + b;
  case BinaryOp::Subtract:
    return a - b;
  case BinaryOp::Multiply:
    return a * b;
  case BinaryOp::Divide:
    return a / b;
  case BinaryOp::Power:
    return std::pow(a, b);
  case BinaryOp::Less:
    return a < b;
  case BinaryOp::LessEqual:
    return a <= b;
  case BinaryOp::Greater:
    return a > b;
  case BinaryOp::GreaterEqual:
    return a >= b;
  case BinaryOp::Equal:
    return a == b;
  case BinaryOp::NotEqual:
    return a != b;
  case BinaryOp::And:
    return a != 0 && b != 0;
  case BinaryOp::Or:
    return a != 0 || b != 0;
  }
  return std::nullopt;
}

static std::optional<double> foldCall(const CallExpr &call) {
  const FunctionInfo *info = findFunction(call.callee.text);
  if (!call.function || !info || call.function != info->function || !info->fold)
    return std::nullopt;
  std::vector<double> x;
  for (const ExprPtr &argument : call.arguments) {
    if (!argument->constant)
      return std::nullopt;
    x.push_back(*argument->constant);
  }
  return x.size() == info->argumentCount ? std::optional(info->fold(x)) : std::nullopt;
}

std::optional<double> stepc::lang::foldScalar(const Expr &expr) {
  if (const auto *binary = llvm::dyn_cast<BinaryExpr>(&expr))
    return foldBinary(*binary);
  if (const auto *call = llvm::dyn_cast<CallExpr>(&expr))
    return call->inlined ? call->inlined->result->constant : foldCall(*call);
  const auto *unary = llvm::dyn_cast<UnaryExpr>(&expr);
  if (!unary || !unary->operand->constant)
    return std::nullopt;
  return unary->op == UnaryOp::Not ? *unary->operand->constant == 0 : -*unary->operand->constant;
}

static bool hasFiniteOperands(const Expr &expr) {
  auto finite = [](const ExprPtr &operand) { return std::isfinite(*operand->constant); };
  if (const auto *binary = llvm::dyn_cast<BinaryExpr>(&expr))
    return finite(binary->lhs) && finite(binary->rhs);
  if (const auto *call = llvm::dyn_cast<CallExpr>(&expr))
    return !call->inlined && llvm::all_of(call->arguments, finite);
  return false;
}

void BodyAnalyzer::foldConstant(Expr &expr) {
  const auto *binary = llvm::dyn_cast<BinaryExpr>(&expr);
  if (binary && binary->op == BinaryOp::Divide && binary->rhs->constant == 0.0 &&
      !binary->lhs->constant)
    notFinite.emplace_back(&expr, diagnostics.activeCalls());
  if (!expr.type.isValid() || !expr.type.isScalar())
    return;
  if (const auto *number = llvm::dyn_cast<NumberExpr>(&expr)) {
    expr.constant = number->value;
    return;
  }
  if (const auto *name = llvm::dyn_cast<NameExpr>(&expr)) {
    if (name->let)
      expr.constant = name->let->value->constant;
    return;
  }
  expr.constant = foldScalar(expr);
  // Only the first infinity or NaN is reported. Values that are computed from it have the same cause.
  if (expr.constant && !std::isfinite(*expr.constant) && hasFiniteOperands(expr))
    notFinite.emplace_back(&expr, diagnostics.activeCalls());
}

void BodyAnalyzer::warnNotFinite() {
  for (const auto &[expr, calls] : notFinite) {
    double value = expr->constant.value_or(0);
    Diagnostic &warning = diagnostics.warning(
        expr->range,
        expr->constant ? "this constant is " + describeLoss(value, lossIn(ElementType::F64, value))
                       : "this divides by 0");
    warning.calls = calls;
  }
}

//===----------------------------------------------------------------------===//
// Where scalars meet tensors
//===----------------------------------------------------------------------===//

/// The hyperparameter that an expression names, directly or through `let`. Null for other expressions.
static Hyperparameter *hyperparameterOf(const Expr *expr) {
  const auto *name = llvm::dyn_cast<NameExpr>(expr);
  while (name && name->let)
    name = llvm::dyn_cast<NameExpr>(name->let->value.get());
  return name ? name->hyperparameter : nullptr;
}

void BodyAnalyzer::meetTensor(const Expr &operand, Shape result, ElementType element) {
  if (operand.type.isValid() && operand.type.isScalar() && !operand.type.isCondition() &&
      result.isTensor)
    roundScalar(operand, operand.range, element);
}

void BodyAnalyzer::roundScalar(const Expr &scalar, SourceRange place, ElementType element) {
  if (Hyperparameter *hyper = hyperparameterOf(&scalar); hyper && !hyper->meetsTensor)
    hyper->meetsTensor = place;
  if (!scalar.constant)
    return;
  Loss loss = lossIn(element, *scalar.constant);
  if (loss == Loss::None)
    return;
  Diagnostic &error = diagnostics.error(place, "expected a number that " + spell(element) +
                                                   " can hold next to a tensor, found " +
                                                   describeLoss(*scalar.constant, loss));
  const auto *name = llvm::dyn_cast<NameExpr>(&scalar);
  if (name || place != scalar.range)
    error.withNote(name ? name->let->value->range : scalar.range, "its value is given here");
  error.withHint(element == ElementType::F16
                     ? "f16 holds numbers from 6e-8 to 65504"
                     : spell(element) + " holds numbers from " +
                           (element == ElementType::F32 ? "1.4e-45" : "9.2e-41") + " to 3.4e+38");
}

/// Checks the factor 1 - lr * wd of `decay(p, lr, wd)`. Only the factor is rounded to f32, not lr and wd.
void BodyAnalyzer::checkDecayFactor(const CallExpr &call) {
  double factor = 1 - *call.arguments[1]->constant * *call.arguments[2]->constant;
  if (Loss loss = lossIn(ElementType::F32, factor); loss != Loss::None)
    diagnostics.error(call.arguments[1]->range.to(call.arguments[2]->range),
                      "expected a factor '1 - lr * wd' that f32 can hold, found " +
                          describeLoss(factor, loss));
}

bool BodyAnalyzer::checkCoefficients(const CoefficientListExpr &list) {
  bool valid = true;
  for (const std::array<Constant, 3> &step : list.steps)
    for (const Constant &coefficient : step)
      if (Loss loss = lossIn(ElementType::F32, coefficient.value); loss != Loss::None) {
        diagnostics.error(coefficient.range, "expected a coefficient that f32 can hold, found " +
                                                 describeLoss(coefficient.value, loss));
        valid = false;
      }
  return valid;
}

void stepc::lang::warnHyperparameters(const File &file, Diagnostics &diagnostics) {
  auto warn = [&](const Hyperparameter &hyper, const Constant &value) {
    Loss loss = lossIn(ElementType::F32, value.value);
    if (hyper.meetsTensor && loss != Loss::None)
      diagnostics
          .warning(value.range,
                   "'" + hyper.name.text + "' is " + describeLoss(value.value, loss) + " in f32")
          .withNote(*hyper.meetsTensor, "it meets a tensor here");
  };
  for (const Body *body : file.bodies())
    for (const Hyperparameter &hyper : body->hyperparameters)
      if (hyper.defaultValue)
        warn(hyper, *hyper.defaultValue);
  for (const Route &route : file.routes)
    for (const Claim &claim : route.claims)
      for (const Setting &setting : claim.settings)
        for (const Hyperparameter &hyper : claim.rule->hyperparameters)
          if (setting.number && setting.name.text == hyper.name.text)
            warn(hyper, *setting.number);
}
