//===- Emit.cpp - Rules and states --------------------------------===//
#include "frontends/language/RuleEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::lang;

void lang::loadDialects(MLIRContext &context) {
  context.loadDialect<optim::OptimDialect, arith::ArithDialect, math::MathDialect,
                      tensor::TensorDialect>();
}

Location RuleEmitter::locate(SourceRange range) const {
  LineColumn at = source.lineColumn(range.begin);
  return FileLineColLoc::get(builder.getContext(), source.name(), at.line, at.column);
}

//===----------------------------------------------------------------------===//
// Types and conversions
//===----------------------------------------------------------------------===//

static optim::ValueKind valueKind(Shape shape) {
  switch (shape) {
  case Shape::Rows:
    return optim::ValueKind::Rows;
  case Shape::Cols:
    return optim::ValueKind::Cols;
  case Shape::Full:
    return optim::ValueKind::Full;
  case Shape::One:
  case Shape::Scalar:
    return optim::ValueKind::One;
  }
  return optim::ValueKind::Full;
}

mlir::Type RuleEmitter::elementType(ElementType element) {
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

RankedTensorType RuleEmitter::tensorType(Shape shape, mlir::Type element) {
  return optim::tensorType(valueKind(shape), element);
}

Value RuleEmitter::constant(Location loc, double value) {
  return arith::ConstantOp::create(builder, loc, builder.getF64FloatAttr(value));
}

Value RuleEmitter::constantLike(Location loc, double value, Value like) {
  Value scalar = constant(loc, value);
  if (!isa<RankedTensorType>(like.getType()))
    return scalar;
  return optim::SplatOp::create(builder, loc, like.getType(), scalar);
}

Value RuleEmitter::toF32(Location loc, Value value) {
  return toElement(loc, value, ElementType::F32);
}

/// Converts between bf16 and f16 through f32, which holds both exactly.
Value RuleEmitter::toElement(Location loc, Value value, ElementType element) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  mlir::Type wanted = elementType(element);
  if (!type || type.getElementType() == wanted)
    return value;
  if (!type.getElementType().isF32())
    value = arith::ExtFOp::create(builder, loc, type.clone(builder.getF32Type()), value);
  if (wanted.isF32())
    return value;
  return arith::TruncFOp::create(builder, loc, type.clone(wanted), value);
}

Value RuleEmitter::toShape(Location loc, Value value, Shape shape) {
  if (shape == Shape::Scalar)
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
// Rules
//===----------------------------------------------------------------------===//

ArrayAttr RuleEmitter::stateAttributes() {
  MLIRContext *context = builder.getContext();
  SmallVector<Attribute> attributes;
  for (const StateDeclaration &state : rule.states)
    attributes.push_back(optim::StateAttr::get(
        context, builder.getStringAttr(state.name.text), elementType(state.element),
        valueKind(state.shape), builder.getF64FloatAttr(state.initial ? state.initial->value : 0),
        /*master=*/false));
  if (rule.master)
    attributes.push_back(optim::StateAttr::get(context, builder.getStringAttr("master"),
                                               builder.getF32Type(), optim::ValueKind::Full,
                                               builder.getF64FloatAttr(0), /*master=*/true));
  return builder.getArrayAttr(attributes);
}

void RuleEmitter::addArguments(Block &block) {
  mlir::Type full = tensorType(Shape::Full, builder.getF32Type());
  mlir::Type scalar = builder.getF64Type();
  Location loc = locate(rule.name.range);
  param = block.addArgument(full, loc);
  grad = block.addArgument(full, loc);
  for (const StateDeclaration &state : rule.states)
    states[&state] =
        block.addArgument(tensorType(state.shape, builder.getF32Type()), locate(state.name.range));
  if (rule.master)
    block.addArgument(full, locate(rule.master->range));
  for (const Hyperparameter &hyper : rule.hyperparameters)
    hyperparameters[&hyper] = block.addArgument(scalar, locate(hyper.name.range));
  for (Value *value : {&step, &rows, &cols, &numel})
    *value = block.addArgument(scalar, loc);
}

void RuleEmitter::emitAssignment(const AssignStatement &assign) {
  // `s = s` emits nothing: the state stays as it is stored.
  if (const auto *name = dyn_cast<NameExpr>(assign.value.get()))
    if (name->state && name->state == assign.state)
      return;
  Location loc = locate(assign.range);
  Shape shape = assign.state ? assign.state->shape : Shape::Full;
  Value value = toShape(loc, emit(*assign.value), shape);
  if (!assign.state) {
    param = value;
    return;
  }
  // Later statements read the state as it is stored, rounded to its type.
  value = toElement(loc, value, assign.state->element);
  states[assign.state] = toF32(loc, value);
}

optim::RuleOp RuleEmitter::run() {
  SmallVector<StringRef> names;
  for (const Hyperparameter &hyper : rule.hyperparameters)
    names.push_back(hyper.name.text);
  auto op =
      optim::RuleOp::create(builder, locate(rule.name.range), builder.getStringAttr(rule.name.text),
                            builder.getStrArrayAttr(names), stateAttributes(),
                            rule.needsMatrix ? builder.getUnitAttr() : UnitAttr(),
                            /*written=*/FlatSymbolRefAttr(), /*block_states=*/ArrayAttr());
  Block &block = op.getBody().emplaceBlock();
  addArguments(block);
  builder.setInsertionPointToEnd(&block);
  for (const auto &statement : rule.statements) {
    if (const auto *let = dyn_cast<LetStatement>(statement.get())) {
      // The location gets the let's name, for `stepc run --watch`. One value may have several names.
      Value value = lets[let] = emit(*let->value);
      value.setLoc(NameLoc::get(builder.getStringAttr(let->target.text), value.getLoc()));
    } else {
      emitAssignment(*cast<AssignStatement>(statement.get()));
    }
  }
  SmallVector<Value> results{param};
  for (const StateDeclaration &state : rule.states)
    results.push_back(states[&state]);
  // optim.rule ignores what is yielded for the master: its new value is the parameter's.
  if (rule.master)
    results.push_back(param);
  optim::YieldOp::create(builder, locate(rule.range), results);
  return op;
}

optim::RuleOp lang::emitRule(const Rule &rule, const Source &source, ModuleOp module) {
  return RuleEmitter(rule, source, module).run();
}
