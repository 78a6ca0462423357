//===- Emit.cpp - Rules, states and the model -----------------------===//
#include "frontends/language/BodyEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <limits>

using namespace mlir;
using namespace stepc;
using namespace stepc::lang;

void lang::loadDialects(MLIRContext &context) {
  context.loadDialect<optim::OptimDialect, arith::ArithDialect, math::MathDialect,
                      tensor::TensorDialect>();
}

Location BodyEmitter::locate(SourceRange range) const {
  LineColumn at = source.lineColumn(range.begin);
  Location place =
      FileLineColLoc::get(builder.getContext(), source.name(range.begin), at.line, at.column);
  return calls.empty() ? place : Location(CallSiteLoc::get(place, calls.back()));
}

//===----------------------------------------------------------------------===//
// Types and conversions
//===----------------------------------------------------------------------===//

optim::ValueKind BodyEmitter::valueKind(Shape shape) const {
  auto extent = [&](Size size) -> int64_t {
    if (size == Size::Rows || size == Size::Cols)
      return (size == Size::Rows) != isTall ? optim::ValueKind::OfRows : optim::ValueKind::OfCols;
    return size.of == Size::Of::Let ? optim::ValueKind::ofSize(sizes.lookup(size.name))
                                    : size.number;
  };
  if (isTall)
    shape = shape.transposed();
  return {extent(shape.rows), extent(shape.cols)};
}

mlir::Type BodyEmitter::elementType(ElementType element) {
  switch (element) {
  case ElementType::F64:
    return builder.getF64Type();
  case ElementType::BF16:
    return builder.getBF16Type();
  case ElementType::F16:
    return builder.getF16Type();
  case ElementType::Condition:
    return builder.getI1Type();
  default:
    return builder.getF32Type();
  }
}

RankedTensorType BodyEmitter::tensorType(Shape shape, mlir::Type element) {
  return optim::tensorType(valueKind(shape), element);
}

Value BodyEmitter::constant(Location loc, double value) {
  return arith::ConstantOp::create(builder, loc, builder.getF64FloatAttr(value));
}

Value BodyEmitter::constantLike(Location loc, double value, Value like) {
  Value scalar = constant(loc, value);
  if (!isa<RankedTensorType>(like.getType()))
    return scalar;
  return optim::SplatOp::create(builder, loc, like.getType(), scalar);
}

Value BodyEmitter::toF32(Location loc, Value value) {
  return toElement(loc, value, ElementType::F32);
}

/// Converts between bf16 and f16 through f32, which holds both exactly.
Value BodyEmitter::toElement(Location loc, Value value, ElementType element) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  mlir::Type wanted = elementType(element);
  if (!type || type.getElementType() == wanted)
    return value;
  if (auto wide = value.getDefiningOp<arith::ExtFOp>();
      wide && cast<RankedTensorType>(wide.getIn().getType()).getElementType() == wanted)
    return wide.getIn();
  // So that a product reads the matrix itself.
  if (auto transpose = value.getDefiningOp<optim::TransposeOp>())
    return optim::TransposeOp::create(builder, loc, toElement(loc, transpose.getSource(), element));
  if (!type.getElementType().isF32())
    value = arith::ExtFOp::create(builder, loc, type.clone(builder.getF32Type()), value);
  if (wanted.isF32())
    return value;
  return arith::TruncFOp::create(builder, loc, type.clone(wanted), value);
}

Value BodyEmitter::toShape(Location loc, Value value, Shape shape) {
  if (!shape.isTensor)
    return value;
  if (value.getType().isInteger(1)) {
    // optim.splat takes only f64 scalars, so the condition becomes 1 or 0 first.
    // The constants have names, since C++ leaves open which argument it evaluates first.
    Value one = constant(loc, 1), zero = constant(loc, 0);
    Value number = arith::SelectOp::create(builder, loc, value, one, zero);
    Value splat = toShape(loc, number, shape);
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::ONE, splat,
                                 constantLike(loc, 0, splat));
  }
  if (value.getType().isF64())
    return optim::SplatOp::create(builder, loc, tensorType(shape, builder.getF32Type()), value);
  auto type = cast<RankedTensorType>(value.getType());
  if (!type.getElementType().isInteger(1))
    value = toF32(loc, value);
  auto wanted = tensorType(shape, cast<RankedTensorType>(value.getType()).getElementType());
  if (value.getType() == wanted)
    return value;
  return optim::BroadcastOp::create(builder, loc, wanted, value);
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

ArrayAttr BodyEmitter::hyperparameterNames() {
  SmallVector<StringRef> names;
  for (const Hyperparameter &hyper : body.hyperparameters)
    names.push_back(hyper.name.text);
  return builder.getStrArrayAttr(names);
}

SmallVector<Attribute> BodyEmitter::stateAttributes() {
  SmallVector<Attribute> attributes;
  auto add = [&](const Name &name, ElementType element, Shape shape, double initial,
                 plan::Initial start, bool metric, bool input) {
    attributes.push_back(optim::StateAttr::get(
        builder.getContext(), builder.getStringAttr(name.text), elementType(element),
        valueKind(shape), builder.getF64FloatAttr(initial), /*master=*/false, start, metric,
        input));
  };
  for (const StateDeclaration &state : body.states) {
    double absent = state.isInput ? std::numeric_limits<double>::quiet_NaN() : 0;
    add(state.name, state.element, state.shape, state.initial ? state.initial->value : absent,
        state.start, /*metric=*/false, state.isInput);
  }
  for (const MetricStatement *metric : body.metrics())
    add(metric->target, ElementType::F32, Shape::One, 0, plan::Initial::Number, /*metric=*/true,
        /*input=*/false);
  return attributes;
}

void BodyEmitter::addHyperparameters(Block &block) {
  for (const Hyperparameter &hyper : body.hyperparameters)
    hyperparameters[&hyper] = block.addArgument(builder.getF64Type(), locate(hyper.name.range));
}

void BodyEmitter::emitAssignment(const AssignStatement &assign) {
  // `s = s` emits nothing: the state stays as it is stored.
  if (const auto *name = dyn_cast<NameExpr>(assign.value.get()))
    if (name->state && name->state == assign.state)
      return;
  Location loc = locate(assign.range);
  Shape shape = assign.state ? assign.state->shape : Shape::Full;
  if (!assign.state) {
    Value value = emit(*assign.value);
    if (assign.roundsByChance())
      value.getDefiningOp<optim::StochasticOp>().setOfParameter(true);
    (isa<Model>(body) ? grad : param) = toShape(loc, value, shape);
    return;
  }
  // Later statements read the state as it is stored, rounded to its type.
  Value value =
      assign.value->type.shape == shape
          ? emitRounded(*assign.value, assign.state->element)
          : toElement(loc, toShape(loc, emit(*assign.value), shape), assign.state->element);
  value = states[assign.state] = toF32(loc, value);
  Value &stored = kept[assign.state];
  stored = skipped ? Value(arith::SelectOp::create(builder, loc, skipped, stored, value)) : value;
}

void BodyEmitter::emitSkip(const SkipStatement &skip) {
  Value condition = emitTo(*skip.value, Shape::One);
  skipped = skipped ? Value(arith::OrIOp::create(builder, locate(skip.range), skipped, condition))
                    : condition;
}

void BodyEmitter::emitLet(const LetStatement &let) {
  Value value = lets[&let] = emit(*let.value);
  // The location gets the let's name, for `stepc run --watch`. One value may have several names, and a name
  // that is assigned again has the last value.
  if (!let.isLocal && let.declared->last == &let)
    value.setLoc(NameLoc::get(builder.getStringAttr(let.target.text), value.getLoc()));
  if (let.sizeName.empty())
    return;
  sizeValues[let.sizeName] = value;
  optim::SizeOp::create(builder, locate(let.range), sizes.lookup(let.sizeName), let.sizeName,
                        value);
}

void BodyEmitter::emitStatements(const Statements &statements) {
  for (const auto &statement : statements) {
    if (const auto *let = dyn_cast<LetStatement>(statement.get()))
      emitLet(*let);
    else if (const auto *skip = dyn_cast<SkipStatement>(statement.get()))
      emitSkip(*skip);
    else if (const auto *metric = dyn_cast<MetricStatement>(statement.get()))
      metrics.push_back(toF32(locate(metric->range), emitTo(*metric->value, Shape::One)));
    else if (const auto *repeat = dyn_cast<RepeatStatement>(statement.get()))
      emitStatements(repeat->turns);
    else
      emitAssignment(*cast<AssignStatement>(statement.get()));
  }
}

namespace {

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

class RuleEmitter : BodyEmitter {
public:
  /// `isTall` is for matrices with more rows than columns, which a wide rule sees transposed.
  RuleEmitter(const Rule &rule, const Source &source, ModuleOp module, bool isTall)
      : BodyEmitter(rule, source, module), rule(rule) {
    this->isTall = isTall;
  }

  optim::RuleOp run() {
    StringAttr name = builder.getStringAttr(rule.name.text),
               tall = builder.getStringAttr(rule.name.text + optim::kTallSuffix.str());
    auto op = optim::RuleOp::create(
        builder, locate(rule.name.range), isTall ? tall : name, hyperparameterNames(), allStates(),
        rule.needsMatrix ? builder.getUnitAttr() : UnitAttr(), /*written=*/FlatSymbolRefAttr(),
        rule.wide && !isTall ? FlatSymbolRefAttr::get(tall) : FlatSymbolRefAttr(),
        /*block_states=*/ArrayAttr());
    Block &block = op.getBody().emplaceBlock();
    addArguments(block);
    builder.setInsertionPointToEnd(&block);
    emitInitialValues();
    emitStatements(body.statements);
    SmallVector<Value> results{param};
    for (const StateDeclaration &state : rule.states)
      results.push_back(states[&state]);
    results.append(metrics);
    // optim.rule ignores what is yielded for the master: its new value is the parameter's.
    if (rule.master)
      results.push_back(param);
    optim::YieldOp::create(builder, locate(rule.range), results);
    return op;
  }

private:
  ArrayAttr allStates() {
    SmallVector<Attribute> attributes = stateAttributes();
    if (rule.master)
      attributes.push_back(
          optim::StateAttr::get(builder.getContext(), builder.getStringAttr("master"),
                                builder.getF32Type(), optim::ValueKind::Full,
                                builder.getF64FloatAttr(0), /*master=*/true, plan::Initial::Number,
                                /*metric=*/false, /*input=*/false));
    return builder.getArrayAttr(attributes);
  }

  /// In the first step of a parameter, states that start at no number have that value, rounded to their
  /// type.
  void emitInitialValues() {
    for (const StateDeclaration &state : rule.states) {
      if (state.start == plan::Initial::Number)
        continue;
      Location loc = locate(state.range);
      Value one = constant(loc, 1);
      Value isFirst = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, step, one);
      Value value =
          state.start == plan::Initial::Param ? param
          : state.start == plan::Initial::Identity
              ? emitIdentity(loc, state.shape)
              : emitRandom(loc, plan::Draw::Normal, state.shape, toShape(loc, isFirst, Shape::One));
      Value initial = toF32(loc, toElement(loc, value, state.element));
      Value condition = toShape(loc, isFirst, state.shape);
      states[&state] =
          arith::SelectOp::create(builder, loc, condition, initial, states.lookup(&state));
    }
  }

  void addArguments(Block &block) {
    mlir::Type full = tensorType(Shape::Full, builder.getF32Type());
    Location loc = locate(rule.name.range);
    param = block.addArgument(full, loc);
    grad = block.addArgument(full, loc);
    for (const StateDeclaration &state : rule.states)
      states[&state] = block.addArgument(tensorType(state.shape, builder.getF32Type()),
                                         locate(state.name.range));
    for (const MetricStatement *metric : rule.metrics())
      block.addArgument(tensorType(Shape::One, builder.getF32Type()), locate(metric->target.range));
    if (rule.master)
      block.addArgument(full, locate(rule.master->range));
    addHyperparameters(block);
    for (Value *value : {&step, &rows, &cols, &numel})
      *value = block.addArgument(builder.getF64Type(), loc);
  }

  const Rule &rule;
};

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

class ModelEmitter : BodyEmitter {
public:
  ModelEmitter(const Model &model, const Source &source, ModuleOp module)
      : BodyEmitter(model, source, module), model(model) {}

  /// Emits the model with the values of these names, in the order of their declarations.
  void run(const std::set<StringRef> &names) {
    SmallVector<double> defaults;
    for (const Hyperparameter &hyper : model.hyperparameters)
      defaults.push_back(hyper.defaultValue ? hyper.defaultValue->value
                                            : std::numeric_limits<double>::quiet_NaN());
    Location loc = locate(model.name.range);
    auto op = optim::ModelOp::create(builder, loc, hyperparameterNames(),
                                     builder.getDenseF64ArrayAttr(defaults),
                                     /*values=*/builder.getStrArrayAttr({}),
                                     builder.getArrayAttr(stateAttributes()), /*skips=*/UnitAttr());
    Block &block = op.getBody().emplaceBlock();
    mlir::Type full = tensorType(Shape::Full, builder.getF32Type());
    param = block.addArgument(full, loc);
    grad = block.addArgument(full, loc);
    addHyperparameters(block);
    step = block.addArgument(builder.getF64Type(), loc);
    builder.setInsertionPointToEnd(&block);
    for (const StateDeclaration &state : model.states)
      states[&state] = kept[&state] = optim::ModelStateOp::create(
          builder, locate(state.name.range), tensorType(Shape::One, builder.getF32Type()),
          state.name.text);
    emitStatements(body.statements);
    SmallVector<StringRef> values;
    SmallVector<Value> results{grad};
    // Rules read one f32, so a scalar is rounded here.
    auto give = [&](const Name &name, Value value) {
      if (!names.contains(name.text))
        return;
      values.push_back(name.text);
      results.push_back(toShape(locate(name.range), value, Shape::One));
    };
    for (const Hyperparameter &hyper : model.hyperparameters)
      give(hyper.name, hyperparameters.lookup(&hyper));
    for (const auto &statement : model.statements)
      if (const auto *let = dyn_cast<LetStatement>(statement.get()))
        give(let->target, lets.lookup(let->last));
    for (const StateDeclaration &state : model.states)
      give(state.name, states.lookup(&state));
    op.setValuesAttr(builder.getStrArrayAttr(values));
    for (const StateDeclaration &state : model.states)
      results.push_back(kept.lookup(&state));
    results.append(metrics);
    op.setSkips(bool(skipped));
    if (skipped) {
      Value one = toShape(loc, constant(loc, 1), Shape::One), zero = constantLike(loc, 0, one);
      results.push_back(arith::SelectOp::create(builder, loc, skipped, one, zero));
    }
    optim::YieldOp::create(builder, locate(model.range), results);
  }

private:
  const Model &model;
};

//===----------------------------------------------------------------------===//
// Conditions of claims
//===----------------------------------------------------------------------===//

class ConditionEmitter : BodyEmitter {
public:
  /// A condition reads no declarations, so the body that has them is empty.
  ConditionEmitter(const Rule &empty, const Source &source, Region &region)
      : BodyEmitter(empty, source, region.getParentOfType<ModuleOp>()), region(region) {}

  void run(const Expr &condition) {
    Block &block = region.emplaceBlock();
    builder.setInsertionPointToEnd(&block);
    Location loc = locate(condition.range);
    for (Value *value : {&rows, &cols, &numel})
      *value = block.addArgument(builder.getF64Type(), loc);
    optim::YieldOp::create(builder, loc, emit(condition));
  }

private:
  Region &region;
};

} // namespace

void lang::emitCondition(const Expr &condition, const Source &source, Region &region) {
  ConditionEmitter(Rule(), source, region).run(condition);
}

optim::RuleOp lang::emitRule(const Rule &rule, const Source &source, ModuleOp module) {
  if (rule.wide)
    RuleEmitter(rule, source, module, /*isTall=*/true).run();
  return RuleEmitter(rule, source, module, /*isTall=*/false).run();
}

void lang::emitDefinitions(const File &file, ModuleOp module,
                           llvm::function_ref<bool(const Rule &)> isTaken) {
  std::set<StringRef> read;
  for (const Rule *rule : file.allRules())
    if (isTaken(*rule))
      read.insert(rule->modelValues.begin(), rule->modelValues.end());
  if (const Model *model = file.model())
    ModelEmitter(*model, *file.source, module).run(read);
  for (const Rule *rule : file.allRules())
    if (isTaken(*rule))
      emitRule(*rule, *file.source, module);
}
