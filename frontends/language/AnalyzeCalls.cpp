//===- AnalyzeCalls.cpp - Functions, reductions and orthogonalize ---------===//
#include "frontends/language/Analyzer.h"
#include "frontends/language/ForeignNames.h"
#include "frontends/text/Text.h"
#include "runtime/text/Plural.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace stepc::lang;
using llvm::ArrayRef;
using llvm::StringRef;
using llvm::Twine;

static CallExpr::Option *findOption(CallExpr &call, StringRef name) {
  for (CallExpr::Option &option : call.options)
    if (option.name.text == name)
      return &option;
  return nullptr;
}

/// The word that an option is set to, or an empty string.
static StringRef wordOf(const Expr &expr) {
  const auto *name = llvm::dyn_cast<NameExpr>(&expr);
  return name ? StringRef(name->name) : StringRef();
}

static void hintDtype(Diagnostic &error, const Expr &expr) {
  std::string lower = wordOf(expr).lower();
  if (parseElementType(lower))
    error.withHint("did you mean '" + lower + "'?");
  else if (std::optional<StringRef> hint = foreignDtypeHint(lower))
    error.withHint(*hint);
}

static std::string list(ArrayRef<StringRef> words) {
  return llvm::join(words.drop_back(), ", ") + " or " + words.back().str();
}

/// How messages show a wrong value of an option.
static std::string found(const Expr &expr) {
  StringRef word = wordOf(expr);
  if (!word.empty())
    return ("'" + word + "'").str();
  if (std::optional<double> value = literalValue(expr))
    return spellNumber(*value);
  return llvm::isa<CoefficientListExpr, NumberListExpr>(expr) ? "a list" : "an expression";
}

Diagnostic &stepc::lang::reportUnknownFunction(const Name &callee, const File *file,
                                               Diagnostics &diagnostics) {
  StringRef name = callee.text;
  Diagnostic &error = diagnostics.error(callee.range, "unknown function '" + name + "'");
  if (diagnostics.isFull())
    return error;
  if (std::optional<StringRef> hint = foreignFunctionHint(name))
    error.withHint(*hint);
  else
    hintNearest(error, name, callableNames(file));
  return error;
}

const FunctionInfo *BodyAnalyzer::findCallee(CallExpr &call) {
  StringRef name = call.callee.text;
  if (const FunctionInfo *info = findFunction(name))
    return info;
  if (auto it = symbols.find(name); it != symbols.end()) {
    diagnostics.error(call.callee.range, "expected a function, found the value '" + name + "'")
        .withNote(it->second.range, "it is declared here")
        .withHint("a product is written '" + name + " * (...)'");
    return nullptr;
  }
  if (!isFirstMention(name))
    return nullptr;
  Diagnostic &error = reportUnknownFunction(call.callee, file, diagnostics);
  if (diagnostics.isFull() || foreignFunctionHint(name) || !error.hint.empty())
    return nullptr;
  StringRef value = text::nearestName(name, valueNames(call.range.begin));
  if (!value.empty())
    error.withHint("did you mean the value '" + value + "'? A product is written '" + value +
                   " * (...)'");
  return nullptr;
}

bool BodyAnalyzer::checkArgumentCount(CallExpr &call, const FunctionInfo &info) {
  size_t count = call.arguments.size();
  if (count == info.argumentCount)
    return true;
  Diagnostic &error =
      diagnostics.error(call.range, "expected " + plural(info.argumentCount, "argument") + " of '" +
                                        info.name + "', found " + Twine(count));
  ArrayRef<StringRef> options = optionsOf(info.functionClass);
  StringRef word = count == 2 ? wordOf(*call.arguments[1]) : "";
  if (info.function == Function::Min && count == 1) {
    error.withHint("the least of a tensor is '-max(-x)'");
  } else if (options == ArrayRef<StringRef>{"over"} && (word == "columns" || word == "rows")) {
    if (llvm::is_contained(words.known, "rows")) // a model has no rows
      error.withHint("write 'over = " + word + "'");
    call.arguments.pop_back(); // it is no value
  } else if (options.size() > 1 && count > info.argumentCount) {
    error.withHint("give further arguments by name: " + llvm::join(options, ", "));
  }
  return false;
}

bool BodyAnalyzer::checkOptions(CallExpr &call, ArrayRef<StringRef> allowed) {
  bool valid = true;
  for (const CallExpr::Option &option : call.options) {
    StringRef name = option.name.text;
    const auto &first = *findOption(call, name);
    if (!llvm::is_contained(allowed, name)) {
      valid = false;
      if (name == "algorithm" && call.function == Function::Orthogonalize) {
        diagnostics.error(option.name.range, "unknown argument 'algorithm' of 'orthogonalize'")
            .withHint("did you mean 'form'?");
        continue;
      }
      Diagnostic &error = diagnostics.error(
          option.name.range, "unknown argument '" + name + "' of '" + call.callee.text + "'");
      bool isValue = llvm::is_contained(valueNames(option.name.range.begin), name);
      if (allowed.empty() && isValue)
        error.withHint("equality is written '" + name + " == ...'");
      else if (allowed.empty())
        error.withHint("'" + Twine(call.callee.text) + "' takes its arguments by position");
      else if (allowed.size() == 1)
        error.withHint("did you mean '" + allowed[0] + "'?");
      else
        hintNearest(error, name, allowed);
      if (error.hint.empty())
        error.withHint("it takes " + list(allowed));
    } else if (&first != &option) {
      valid = false;
      diagnostics.error(option.name.range, "argument '" + name + "' is given twice")
          .withNote(first.name.range, "the first is here");
    }
  }
  return valid;
}

Type BodyAnalyzer::analyzeCall(CallExpr &call) {
  if (!countOperation())
    return {};
  if (Def *def = file ? file->findDef(call.callee.text) : nullptr)
    return analyzeInlined(call, *def);
  const FunctionInfo *info = findCallee(call);
  if (!info) {
    for (const ExprPtr &argument : call.arguments)
      if (!parseElementType(wordOf(*argument))) // a type is no value whose name is unknown
        analyzeExpr(*argument);
    return {};
  }
  call.function = info->function;
  FunctionClass functionClass = info->functionClass;
  if (info->function == Function::Max && call.arguments.size() == 1) {
    call.function = Function::MaxOf;
    functionClass = FunctionClass::Reduction;
  }

  // Options are checked before arguments are counted: a text that looks like an option may be an argument.
  bool valid = checkOptions(call, optionsOf(functionClass));
  if (functionClass != FunctionClass::Reduction || call.arguments.size() != 1)
    valid = valid && checkArgumentCount(call, *info);
  if (!valid) {
    for (auto [index, argument] : llvm::enumerate(call.arguments)) {
      // A word too many is an option, or the value of one, and not a value whose name is unknown.
      StringRef word = wordOf(*argument);
      bool isOption = functionClass == FunctionClass::Orthogonalize &&
                      index >= info->argumentCount && !word.empty() &&
                      !llvm::is_contained(valueNames(argument->range.begin), word);
      if (functionClass != FunctionClass::Cast && !isOption)
        analyzeExpr(*argument);
    }
    return {};
  }

  switch (functionClass) {
  case FunctionClass::Elementwise:
    if (Type type = analyzeElementwise(call, call.arguments); type.isValid()) {
      warnElementwise(call);
      return type;
    }
    return {};
  case FunctionClass::Test:
    if (Type type = analyzeNumber(*call.arguments[0]); type.isValid())
      return {type.shape, ElementType::Condition};
    return {};
  case FunctionClass::Select:
    return analyzeSelect(call);
  case FunctionClass::Cast:
    return analyzeCast(call);
  case FunctionClass::Named:
    return analyzeNamed(call, *info);
  case FunctionClass::Reduction:
    return analyzeReduction(call);
  case FunctionClass::Orthogonalize:
    return analyzeOrthogonalize(call);
  case FunctionClass::Transpose:
    return analyzeTranspose(call);
  case FunctionClass::Identity:
    return analyzeIdentity(call);
  case FunctionClass::SizeOf:
    return analyzeSizeOf(call);
  case FunctionClass::Uniform:
    return analyzeUniform(call);
  case FunctionClass::Stochastic:
    return analyzeStochastic(call);
  }
  return {};
}

Type BodyAnalyzer::analyzeElementwise(CallExpr &call, ArrayRef<ExprPtr> operands) {
  Shape shape = Shape::Scalar;
  bool valid = true;
  for (const ExprPtr &operand : operands) {
    valid &= joinInto(shape, analyzeNumber(*operand), call.range);
  }
  if (!valid)
    return {};
  for (const ExprPtr &operand : operands)
    meetTensor(*operand, shape);
  return {shape, shape.isTensor ? ElementType::F32 : ElementType::F64};
}

/// Returns x if the expression is x * x or x ^ 2, otherwise null.
static const Expr *squared(const Expr &expr, const Source &source) {
  const auto *binary = llvm::dyn_cast<BinaryExpr>(&expr);
  if (!binary)
    return nullptr;
  bool isSquare = binary->op == BinaryOp::Power
                      ? literalValue(*binary->rhs) == 2.0
                      : binary->op == BinaryOp::Multiply &&
                            source.text(binary->lhs->range) == source.text(binary->rhs->range);
  return isSquare ? binary->lhs.get() : nullptr;
}

/// Warns of what is legal, but seldom what was meant.
void BodyAnalyzer::warnElementwise(const CallExpr &call) {
  if (call.function == Function::Lerp && !call.arguments[2]->type.isScalar()) {
    diagnostics
        .warning(call.arguments[2]->range,
                 "the weight of this 'lerp' is " + describe(call.arguments[2]->type))
        .withHint("lerp(from, to, weight) is from + weight * (to - from)");
    return;
  }
  const auto *root =
      call.function == Function::Sqrt ? llvm::dyn_cast<CallExpr>(call.arguments[0].get()) : nullptr;
  bool isMean = root && root->function == Function::Mean;
  if (!isMean && !(root && root->function == Function::Sum))
    return;
  const Expr *operand = squared(*root->arguments[0], source);
  if (!operand)
    return;
  // With its options, as in `over = columns`.
  StringRef rest = ")";
  if (!root->options.empty()) {
    rest = source.text({root->arguments[0]->range.end, root->range.end});
    rest = rest.drop_front(std::min(rest.find(','), rest.size()));
  }
  StringRef better = isMean ? "rms" : "norm";
  diagnostics
      .warning(call.range, "squares may overflow or underflow here where '" + better + "' does not")
      .withHint("write '" + better + "(" + source.text(operand->range) + rest + "'");
}

Type BodyAnalyzer::analyzeSelect(CallExpr &call) {
  Type condition = analyzeCondition(*call.arguments[0]);
  Type values = analyzeElementwise(call, ArrayRef(call.arguments).drop_front());
  if (!condition.isValid() || !values.isValid())
    return {};
  std::optional<Shape> joined = join(condition.shape, values.shape, call.range);
  if (!joined)
    return {};
  Shape shape = *joined;
  // If both values are scalars, the condition may be the first tensor that they meet.
  if (values.isScalar())
    for (const ExprPtr &value : ArrayRef(call.arguments).drop_front())
      meetTensor(*value, shape);
  return {shape, shape.isTensor ? ElementType::F32 : ElementType::F64};
}

Type BodyAnalyzer::analyzeCast(CallExpr &call) {
  Type type = analyzeTensor(*call.arguments[0]);
  const Expr &dtype = *call.arguments[1];
  std::optional<ElementType> element = parseElementType(wordOf(dtype));
  if (!element) {
    hintDtype(diagnostics.error(dtype.range, "expected f32, bf16 or f16, found " + found(dtype)),
              dtype);
    return {};
  }
  call.castTo = *element;
  return type.isValid() ? Type{type.shape, *element} : Type();
}

Type BodyAnalyzer::analyzeNamed(CallExpr &call, const FunctionInfo &info) {
  Shape shape = Shape::Scalar;
  bool valid = true;
  for (auto [index, argument] : llvm::enumerate(call.arguments)) {
    if (index < info.tensorCount) {
      valid &= joinInto(shape, analyzeTensor(*argument), call.range);
      continue;
    }
    Type type = analyzeNumber(*argument);
    if (type.isValid() && !type.isScalar()) {
      diagnostics.error(argument->range, "expected a scalar, found " + describe(type));
      valid = false;
    }
    valid &= type.isValid();
  }
  if (!valid)
    return {};
  if (call.function == Function::Momentum)
    meetTensor(*call.arguments[2], shape);
  else if (call.arguments[1]->constant && call.arguments[2]->constant)
    checkDecayFactor(call);
  return {shape, ElementType::F32};
}

Type BodyAnalyzer::analyzeReduction(CallExpr &call) {
  Expr &operand = *call.arguments[0];
  Type type = analyzeTensor(operand);
  CallExpr::Option *over = findOption(call, "over");
  bool overColumns = false;
  if (over) {
    StringRef word = wordOf(*over->value);
    if (word != "columns" && word != "rows") {
      Diagnostic &error = diagnostics.error(
          over->value->range, "expected 'columns' or 'rows', found " + found(*over->value));
      if (word.starts_with("col"))
        error.withHint("did you mean 'columns' (one value per row)?");
      else if (word.starts_with("row"))
        error.withHint("did you mean 'rows' (one value per column)?");
      else
        error.withHint("'over = columns' gives one value per row, 'over = rows' one per column");
      return {};
    }
    if (!needMatrix(over->name.range, "'over = " + word + "'"))
      return {};
    overColumns = word == "columns";
  }
  if (!type.isValid())
    return {};
  if (!type.shape.hasSeveral() || (over && !type.shape.isMatrix())) {
    std::string wanted = over ? "a matrix" : "a tensor of several values";
    Diagnostic &error =
        diagnostics.error(operand.range, "expected " + wanted + ", found " + describe(type));
    if (over && type.shape.hasSeveral())
      error.withHint("without 'over' it reduces them to one value");
    return {};
  }
  Shape shape = !over         ? Shape::One
                : overColumns ? Shape::of(type.shape.rows, Size::One)
                              : Shape::of(Size::One, type.shape.cols);
  return {shape, ElementType::F32};
}

Type BodyAnalyzer::analyzeTranspose(CallExpr &call) {
  bool valid = needMatrix(call.callee.range, "'transpose'");
  Type type = analyzeTensor(*call.arguments[0]);
  return valid && type.isValid() ? Type{type.shape.transposed(), type.element} : Type();
}

/// Checks that the state has the sizes of what it starts at, and an input those of the parameter.
void BodyAnalyzer::checkStart(StateDeclaration &state) {
  using stepc::plan::Initial;
  if (state.isInput && !state.shape.isOfParameter()) {
    diagnostics.error(state.sizes,
                      "expected an input of the parameter's sizes, or one value per row, "
                      "column or block, found " +
                          lang::describe(state.shape));
    state.element = ElementType::Invalid;
    return;
  }
  bool isSquare = state.shape.isMatrix() && state.shape.rows == state.shape.cols;
  if (state.start == Initial::Number || state.shape == Shape::Full ||
      (isSquare && state.start == Initial::Identity) ||
      (state.shape.isMatrix() && state.start == Initial::Normal))
    return;
  diagnostics
      .error(state.starts, "expected a number, because '" + Twine(state.name.text) + "' has " +
                               lang::describe(state.shape) + ", found '" +
                               source.text(state.starts) + "'")
      .withNote(state.range, "the state is declared here")
      .withHint("only a state shaped like the parameter can start at it");
}

Type BodyAnalyzer::analyzeIdentity(CallExpr &call) {
  bool valid = needMatrix(call.callee.range, "'identity'");
  const Expr &argument = *call.arguments[0];
  Type type = analyzeNumber(*call.arguments[0]);
  if (!valid || !type.isValid())
    return {};
  std::optional<Size> size = sizeOf(argument);
  if (!size) {
    diagnostics
        .error(argument.range,
               "expected a size: 'rows', 'cols', 'rows(x)', 'cols(x)', a whole number "
               "from 1 to 2^20 or a 'let' that follows from these, found " +
                   (argument.constant ? spellNumber(*argument.constant) : describe(type)))
        .withHint(type.isScalar() ? "" : "the identity matrix beside x is 'identity(rows(x))'");
    return {};
  }
  return {Shape::of(*size, *size), ElementType::F32};
}

Type BodyAnalyzer::analyzeSizeOf(CallExpr &call) {
  bool valid = needMatrix(call.callee.range, "'" + Twine(call.callee.text) + "'");
  Type type = analyzeTensor(*call.arguments[0]);
  return valid && type.isValid() ? Type{Shape::Scalar, ElementType::F64} : Type();
}

Type BodyAnalyzer::analyzeUniform(CallExpr &call) {
  bool valid = needParameter(call.callee.range, "'uniform'");
  return valid ? Type{Shape::Full, ElementType::F32} : Type();
}

Type BodyAnalyzer::analyzeStochastic(CallExpr &call) {
  bool valid = needParameter(call.callee.range, "'stochastic'");
  Type type = analyzeTensor(*call.arguments[0]);
  if (!valid || !type.isValid())
    return {};
  if (&call != assigned) {
    diagnostics
        .error(call.callee.range,
               "expected 'stochastic' as the whole right side of an assignment to 'param' or to a "
               "state of bf16, found it elsewhere")
        .withHint("it rounds what is stored: 'param = stochastic(...)'");
    return {};
  }
  return {type.shape, ElementType::BF16};
}

bool BodyAnalyzer::checkStochastic(const AssignStatement &assign) {
  SourceRange place = llvm::cast<CallExpr>(*assign.value).callee.range;
  const auto *rule = llvm::dyn_cast<Rule>(&body);
  if (!assign.state) {
    if (!rule || !rule->master)
      return true;
    diagnostics
        .error(place,
               "expected no 'stochastic' for 'param' beside a master, which is f32 and keeps "
               "the value as it is")
        .withNote(rule->master->range, "the master is declared here")
        .withHint("leave out one of them");
    return false;
  }
  const StateDeclaration &state = *assign.state;
  auto refuse = [&](StringRef expected, const Twine &found, StringRef hint) {
    diagnostics.error(place, "expected " + expected + " for 'stochastic', found " + found)
        .withNote(state.range, "the state is declared here")
        .withHint(hint);
    return false;
  };
  if (!state.shape.isMatrix())
    return refuse("a state of matrices", lang::describe(state.shape),
                  "so few numbers can be kept in f32");
  if (state.element == ElementType::BF16)
    return true;
  bool isWide = state.element == ElementType::F32;
  return refuse("a state of bf16",
                "the " + Twine(spell(state.element)) + " state '" + state.name.text + "'",
                isWide ? "f32 holds the value as it is" : "");
}

Type BodyAnalyzer::analyzeOrthogonalize(CallExpr &call) {
  Expr &operand = *call.arguments[0];
  bool valid = needMatrix(call.callee.range, "'orthogonalize'");
  Type type = analyzeNumber(operand);
  valid &= type.isValid();
  if (valid && type.shape != Shape::Full) {
    diagnostics.error(operand.range,
                      "expected " + lang::describe(Shape::Full) + ", found " + describe(type));
    valid = false;
  }

  Orthogonalization result;
  if (CallExpr::Option *precision = findOption(call, "precision")) {
    auto element = parseElementType(wordOf(*precision->value));
    if (!element)
      hintDtype(diagnostics.error(precision->value->range,
                                  "expected f32, bf16 or f16, found " + found(*precision->value)),
                *precision->value);
    valid &= element.has_value();
    result.precision = element.value_or(ElementType::F32);
  }
  if (CallExpr::Option *eps = findOption(call, "eps")) {
    std::optional<double> value = literalValue(*eps->value);
    if (!value || *value < Orthogonalization::leastEps) {
      diagnostics.error(eps->value->range,
                        "expected a constant of at least 2^-100 (7.9e-31), found " +
                            found(*eps->value));
      valid = false;
    } else if (Loss loss = lossIn(ElementType::F32, *value); loss != Loss::None) {
      diagnostics.error(eps->value->range, "expected a constant that f32 can hold, found " +
                                               describeLoss(*value, loss));
      valid = false;
    }
    result.eps = value.value_or(1);
  }
  bool hasSteps = resolveCoefficients(call, result);
  if (!hasSteps || !resolveForm(call, result) || !valid || !checkGrowth(call, result))
    return {};
  ElementType element = result.precision;
  call.orthogonalization = std::move(result);
  return {Shape::Full, element};
}

/// The form and its restarts, after the steps are known.
bool BodyAnalyzer::resolveForm(CallExpr &call, Orthogonalization &result) {
  size_t steps = result.coefficients.size();
  CallExpr::Option *form = findOption(call, "form"), *restarts = findOption(call, "restarts");
  if (form) {
    auto word = plan::parse<optim::Form>(wordOf(*form->value));
    if (!word) {
      std::vector<StringRef> names(plan::kNames<optim::Form>.begin(),
                                   plan::kNames<optim::Form>.end());
      Diagnostic &error = diagnostics.error(
          form->value->range, "expected " + list(names) + ", found " + found(*form->value));
      hintNearest(error, wordOf(*form->value), names);
      return false;
    }
    result.form = *word;
  }
  bool isStandard = result.form == optim::Form::Standard;
  if (!restarts) {
    // A restart behind step 2, if there are further steps.
    if (!isStandard && steps > 2)
      result.restarts = {2};
    return true;
  }
  if (isStandard) {
    Diagnostic &error = diagnostics.error(
        restarts->name.range,
        "expected 'restarts' with 'form = gram' or 'form = auto' only, found " +
            Twine(form ? "'form = standard'" : "no form, which is 'form = standard'"));
    if (form)
      error.withNote(form->name.range, "the form is given here");
    return false;
  }
  const auto *given = llvm::dyn_cast<NumberListExpr>(restarts->value.get());
  if (!given) {
    diagnostics
        .error(restarts->value->range,
               "expected a list of restarts, found " + found(*restarts->value))
        .withHint("a restart is how many steps are done before it: 'restarts = [2]'");
    return false;
  }
  for (const Constant &number : given->numbers) {
    bool isWhole = number.value == std::floor(number.value) && std::abs(number.value) <= 1e6;
    result.restarts.push_back(isWhole ? static_cast<int64_t>(number.value) : 0);
  }
  if (size_t wrong = optim::findWrongRestart(result.restarts, steps);
      wrong < result.restarts.size()) {
    diagnostics.error(given->numbers[wrong].range,
                      "expected " + optim::expectedInPlaceOf(wrong, result.restarts, steps) +
                          ", found " + spellNumber(given->numbers[wrong].value));
    return false;
  }
  return true;
}

/// Refuses coefficients for which an intermediate number may be above the largest f16.
bool BodyAnalyzer::checkGrowth(CallExpr &call, const Orthogonalization &result) {
  if (result.precision != ElementType::F16)
    return true;
  optim::Growth growth = optim::boundOf(result.coefficients, result.form, result.restarts);
  if (growth.bound <= optim::kLargestHalf)
    return true;
  auto fits = [&](optim::Form form, ArrayRef<int64_t> restarts) {
    return optim::boundOf(result.coefficients, form, restarts).bound <= optim::kLargestHalf;
  };
  std::vector<int64_t> all;
  for (size_t step = 1; step < result.coefficients.size(); ++step)
    all.push_back(static_cast<int64_t>(step));
  // Coefficients are to blame if no restarts keep the bound. If a text gives none of what is to blame, it has
  // given the precision.
  bool areFew = fits(result.form, all);
  CallExpr::Option *given = areFew ? findOption(call, "restarts") : nullptr;
  for (const char *name : {"coefficients", "steps", "precision"})
    given = given ? given : findOption(call, name);
  Diagnostic &error = diagnostics.error(
      given->value->range,
      "expected " + Twine(areFew ? "restarts" : "coefficients") +
          " that keep all numbers within f16, at most 65504, found " +
          (std::isinf(growth.bound) ? "no bound" : "up to " + spellNumber(growth.bound)) +
          " in step " + Twine(growth.step));
  bool lacksSafety = result.coefficientSet == "polar_express" && !findOption(call, "safety");
  error.withHint(lacksSafety                       ? "give 'safety = 1.01'"
                 : areFew                          ? "give more restarts, or 'precision = bf16'"
                 : fits(optim::Form::Standard, {}) ? "give 'form = standard', or 'precision = bf16'"
                                                   : "give 'precision = bf16'");
  return false;
}

bool BodyAnalyzer::resolveCoefficients(CallExpr &call, Orthogonalization &result) {
  constexpr unsigned maxSteps = 100;
  CallExpr::Option *coefficients = findOption(call, "coefficients");
  CallExpr::Option *steps = findOption(call, "steps");
  CallExpr::Option *safety = findOption(call, "safety");

  std::optional<unsigned> count;
  if (steps) {
    std::optional<double> value = literalValue(*steps->value);
    if (!value || *value != std::floor(*value) || *value < 1 || *value > maxSteps) {
      diagnostics.error(steps->value->range, "expected a whole number of steps from 1 to " +
                                                 Twine(maxSteps) + ", found " +
                                                 found(*steps->value));
      return false;
    }
    count = static_cast<unsigned>(*value);
  }
  double factor = 1;
  if (safety) {
    std::optional<double> value = literalValue(*safety->value);
    if (!value || *value < 1) {
      diagnostics.error(safety->value->range,
                        "expected a constant of at least 1, found " + found(*safety->value));
      return false;
    }
    factor = *value;
    if (!coefficients || wordOf(*coefficients->value) != "polar_express") {
      diagnostics.error(safety->name.range, "expected 'safety' with 'coefficients = polar_express' "
                                            "only");
      return false;
    }
  }

  if (coefficients && llvm::isa<CoefficientListExpr>(*coefficients->value)) {
    const auto &given = llvm::cast<CoefficientListExpr>(*coefficients->value);
    if (given.steps.empty() || given.steps.size() > maxSteps ||
        (count && *count != given.steps.size())) {
      Diagnostic &error = diagnostics.error(
          given.range, "expected " + (count ? Twine(*count) : "1 to 100") +
                           " coefficients, one per step, found " + Twine(given.steps.size()));
      if (steps)
        error.withNote(steps->name.range, "the number of steps is given here");
      return false;
    }
    for (const auto &step : given.steps)
      result.coefficients.push_back({step[0].value, step[1].value, step[2].value});
    return checkCoefficients(given);
  }

  StringRef name = coefficients ? wordOf(*coefficients->value) : "simple";
  const CoefficientSet *set = findCoefficientSet(name);
  if (!set) {
    std::vector<StringRef> names;
    for (const CoefficientSet &each : coefficientSets())
      names.push_back(each.name);
    Diagnostic &error =
        diagnostics.error(coefficients->value->range, "expected a list or one of " + list(names) +
                                                          ", found " + found(*coefficients->value));
    if (!name.empty())
      hintNearest(error, name, names);
    return false;
  }
  if (count && !set->isOpenEnded && *count != set->steps.size()) {
    diagnostics
        .error(steps->value->range, "expected the " + Twine(set->steps.size()) +
                                        " steps of the coefficients '" + name + "', found " +
                                        Twine(*count))
        .withHint("give a list to use some of them");
    return false;
  }
  // Rounding lifts singular values above 1. The first steps of these sets let such values grow without bound.
  if (result.precision != ElementType::F32 && (name == "cans" || name == "polar_express") &&
      !safety)
    diagnostics
        .warning(coefficients->value->range,
                 "coefficients '" + name + "' can diverge in " + Twine(spell(result.precision)))
        .withHint(name == "cans" ? "give 'precision = f32'"
                                 : "give 'safety = 1.01', or 'precision = f32'");
  result.coefficientSet = name.str();
  result.coefficients = set->take(count.value_or(set->defaultSteps), factor);
  // The factor changes c most. In the set that takes a factor, no c is 0.
  for (const std::array<double, 3> &step : result.coefficients)
    if (safety && (step[2] == 0 || lossIn(ElementType::F32, step[2]) != Loss::None)) {
      diagnostics.error(safety->value->range,
                        "expected a factor that leaves coefficients f32 can hold, found " +
                            found(*safety->value));
      return false;
    }
  return true;
}
