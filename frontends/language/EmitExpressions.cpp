//===- EmitExpressions.cpp ------------------------------------------------===//
#include "frontends/language/BodyEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace stepc;
using namespace stepc::lang;
using arith::CmpFPredicate;

Value BodyEmitter::emitTo(const Expr &expr, Shape shape) {
  return toShape(locate(expr.range), emit(expr), shape);
}

Value BodyEmitter::emit(const Expr &expr) {
  switch (expr.kind) {
  case Expr::Kind::Number:
    return constant(locate(expr.range), cast<NumberExpr>(expr).value);
  case Expr::Kind::Name:
    return emitName(cast<NameExpr>(expr));
  case Expr::Kind::Unary:
    return emitUnary(cast<UnaryExpr>(expr));
  case Expr::Kind::Binary:
    return emitBinary(cast<BinaryExpr>(expr));
  case Expr::Kind::ModelValue:
    return emitModelValue(cast<ModelValueExpr>(expr));
  case Expr::Kind::Call:
    return emitCall(cast<CallExpr>(expr));
  case Expr::Kind::Error:
  case Expr::Kind::CoefficientList:
  case Expr::Kind::NumberList:
    break;
  }
  llvm_unreachable("analysis accepts no such expression");
}

Value BodyEmitter::emitName(const NameExpr &name) {
  switch (name.symbol) {
  case NameExpr::Symbol::Param:
    return param;
  case NameExpr::Symbol::Grad:
    return grad;
  case NameExpr::Symbol::Step:
    return step;
  case NameExpr::Symbol::Rows:
    return seenRows();
  case NameExpr::Symbol::Cols:
    return seenCols();
  case NameExpr::Symbol::Numel:
    return numel;
  case NameExpr::Symbol::Row:
    return emitPosition(locate(name.range), plan::Division::Rows, Size::Rows);
  case NameExpr::Symbol::Col:
    return emitPosition(locate(name.range), plan::Division::Columns, Size::Cols);
  case NameExpr::Symbol::Transposed:
    return arith::ConstantOp::create(builder, locate(name.range), builder.getBoolAttr(isTall));
  case NameExpr::Symbol::Hyperparameter:
    return hyperparameters.lookup(name.hyperparameter);
  case NameExpr::Symbol::State:
    return states.lookup(name.state);
  case NameExpr::Symbol::Let:
    return lets.lookup(name.let);
  case NameExpr::Symbol::Unresolved:
    break;
  }
  llvm_unreachable("analysis resolves every name");
}

Value BodyEmitter::emitPosition(Location loc, plan::Division::Axis axis, Size size) {
  bool ofRows = axis == plan::Division::Rows;
  Shape shape = ofRows ? Shape::of(size, Size::One) : Shape::of(Size::One, size);
  auto stored = ofRows != isTall ? plan::Division::Rows : plan::Division::Columns;
  return optim::PositionOp::create(builder, loc, tensorType(shape, builder.getF32Type()), stored);
}

Value BodyEmitter::emitIdentity(Location loc, Shape shape) {
  if (!shape.hasSeveral())
    return toShape(loc, constant(loc, 1), shape);
  Value row = toShape(loc, emitPosition(loc, plan::Division::Rows, shape.rows), shape);
  Value col = toShape(loc, emitPosition(loc, plan::Division::Columns, shape.cols), shape);
  Value isEqual = arith::CmpFOp::create(builder, loc, CmpFPredicate::OEQ, row, col);
  Value one = constantLike(loc, 1, row), zero = constantLike(loc, 0, row);
  return arith::SelectOp::create(builder, loc, isEqual, one, zero);
}

Value BodyEmitter::emitSize(Location loc, Size size) {
  return size.of == Size::Of::Rows   ? seenRows()
         : size.of == Size::Of::Cols ? seenCols()
         : size.of == Size::Of::Let  ? sizeValues.lookup(size.name)
                                     : constant(loc, double(size.number));
}

/// A product reads a factor that is a transpose from the matrix itself.
Value BodyEmitter::emitProduct(const BinaryExpr &binary, Value lhs) {
  Location loc = locate(binary.opRange);
  // A state is read as f32, and multiplied as it is stored.
  Value rhs = toElement(loc, emit(*binary.rhs), binary.rhs->type.element);
  lhs = toElement(loc, lhs, binary.lhs->type.element);
  bool isTransposed[2] = {};
  for (auto [factor, transposed] : llvm::zip(std::array{&lhs, &rhs}, isTransposed))
    if (auto transpose = factor->getDefiningOp<optim::TransposeOp>()) {
      transposed = true;
      *factor = transpose.getSource();
    }
  if (isTall) { // (A B)ᵀ = Bᵀ Aᵀ
    std::swap(lhs, rhs);
    std::swap(isTransposed[0], isTransposed[1]);
  }
  auto unit = [&](bool on) { return on ? builder.getUnitAttr() : UnitAttr(); };
  return optim::MatmulOp::create(builder, loc, tensorType(binary.type.shape, builder.getF32Type()),
                                 lhs, rhs, unit(isTransposed[0]), unit(isTransposed[1]));
}

Value BodyEmitter::emitRounded(const Expr &expr, ElementType element) {
  Value value = emit(expr);
  const auto *binary = dyn_cast<BinaryExpr>(&expr);
  if (binary && binary->op == BinaryOp::Product && element != ElementType::F32) {
    auto result = cast<mlir::OpResult>(value);
    result.setType(tensorType(expr.type.shape, elementType(element)));
    return result;
  }
  return toElement(locate(expr.range), value, element);
}

Value BodyEmitter::emitModelValue(const ModelValueExpr &value) {
  return optim::ModelValueOp::create(builder, locate(value.range),
                                     tensorType(Shape::One, builder.getF32Type()),
                                     value.member.text);
}

Value BodyEmitter::emitUnary(const UnaryExpr &unary) {
  Location loc = locate(unary.range);
  Value operand = emit(*unary.operand);
  if (unary.op == UnaryOp::Negate)
    return arith::NegFOp::create(builder, loc, toF32(loc, operand));
  Shape shape = unary.type.shape;
  if (!shape.isTensor) {
    Value one = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
    return arith::XOrIOp::create(builder, loc, operand, one);
  }
  // A constant cannot have a dynamic shape, so a tensor of true is the comparison 0 == 0.
  Value zero = toShape(loc, constant(loc, 0), shape);
  Value always = arith::CmpFOp::create(builder, loc, CmpFPredicate::OEQ, zero, zero);
  return arith::XOrIOp::create(builder, loc, operand, always);
}

/// A comparison with NaN is false, except `!=`.
static CmpFPredicate predicate(BinaryOp op) {
  switch (op) {
  case BinaryOp::Less:
    return CmpFPredicate::OLT;
  case BinaryOp::LessEqual:
    return CmpFPredicate::OLE;
  case BinaryOp::Greater:
    return CmpFPredicate::OGT;
  case BinaryOp::GreaterEqual:
    return CmpFPredicate::OGE;
  case BinaryOp::Equal:
    return CmpFPredicate::OEQ;
  default:
    return CmpFPredicate::UNE;
  }
}

Value BodyEmitter::emitBinary(const BinaryExpr &binary) {
  std::vector<const BinaryExpr *> links = chain(binary);
  Value result = emit(*links.front()->lhs);
  for (const BinaryExpr *link : links)
    result = emitLink(*link, result);
  return result;
}

/// Emits one operation of a chain. `lhs` is the value of its left operand.
Value BodyEmitter::emitLink(const BinaryExpr &binary, Value lhs) {
  if (binary.op == BinaryOp::Product)
    return emitProduct(binary, lhs);
  Shape shape = binary.type.shape;
  lhs = toShape(locate(binary.lhs->range), lhs, shape);
  if (binary.op == BinaryOp::Power)
    return emitPower(binary, lhs);
  Location loc = locate(binary.opRange);
  Value rhs = emitTo(*binary.rhs, shape);
  switch (binary.op) {
  case BinaryOp::Add:
    return arith::AddFOp::create(builder, loc, lhs, rhs);
  case BinaryOp::Subtract:
    return arith::SubFOp::create(builder, loc, lhs, rhs);
  case BinaryOp::Multiply:
    return arith::MulFOp::create(builder, loc, lhs, rhs);
  case BinaryOp::Divide:
    return arith::DivFOp::create(builder, loc, lhs, rhs);
  case BinaryOp::And:
    return arith::AndIOp::create(builder, loc, lhs, rhs);
  case BinaryOp::Or:
    return arith::OrIOp::create(builder, loc, lhs, rhs);
  default:
    return arith::CmpFOp::create(builder, loc, predicate(binary.op), lhs, rhs);
  }
}

/// A whole literal exponent (isProductExponent) becomes multiplications, by
/// repeated squaring. They are exact if the result is representable, and right
/// for negative bases, for which exp(b log a) has no value.
Value BodyEmitter::emitPower(const BinaryExpr &binary, Value base) {
  Location loc = locate(binary.opRange);
  double exponent = literalExponent(*binary.rhs);
  if (exponent == 0.5)
    return math::SqrtOp::create(builder, loc, base);
  if (!isProductExponent(exponent))
    return math::PowFOp::create(builder, loc, base, emitTo(*binary.rhs, binary.type.shape));
  Value result;
  Value power = base;
  for (unsigned n = static_cast<unsigned>(std::abs(exponent)); n; n >>= 1) {
    if (n & 1)
      result = result ? Value(arith::MulFOp::create(builder, loc, result, power)) : power;
    if (n > 1)
      power = arith::MulFOp::create(builder, loc, power, power);
  }
  if (exponent < 0)
    result = arith::DivFOp::create(builder, loc, constantLike(loc, 1, result), result);
  return result;
}

std::pair<Value, Value> BodyEmitter::emitHalves(Location loc, Value count) {
  constexpr double half = 1 << 16;
  Value rest = math::FloorOp::create(builder, loc, count);
  // The lower half of what is left, and then what is left above it. What is no number counts as 0.
  auto takeHalf = [&] {
    Value scale = constant(loc, half), zero = constant(loc, 0);
    Value above =
        math::FloorOp::create(builder, loc, arith::DivFOp::create(builder, loc, rest, scale));
    Value taken = arith::SubFOp::create(builder, loc, rest,
                                        arith::MulFOp::create(builder, loc, above, scale));
    rest = above;
    Value isNumber = arith::CmpFOp::create(builder, loc, CmpFPredicate::OGE, taken, zero);
    Value word = arith::SelectOp::create(builder, loc, isNumber, taken, zero);
    return toShape(loc, word, Shape::One);
  };
  Value low = takeHalf(), high = takeHalf();
  return {high, low};
}

Value BodyEmitter::emitRandom(Location loc, plan::Draw draw, Shape shape, Value condition) {
  auto [high, low] = emitHalves(loc, hyperparameters.lookup(body.findHyperparameter(kSeed)));
  auto [stepHigh, stepLow] = emitHalves(loc, step);
  return optim::RandomOp::create(builder, loc, tensorType(shape, builder.getF32Type()), draw, high,
                                 low, stepHigh, stepLow, condition, draws++, /*element=*/Value(),
                                 /*key=*/Value());
}

/// Whether a value is below infinity without its sign, which no NaN is.
Value BodyEmitter::emitFinite(Location loc, Value value) {
  Value size = math::AbsFOp::create(builder, loc, value);
  Value infinity = constantLike(loc, std::numeric_limits<double>::infinity(), value);
  return arith::CmpFOp::create(builder, loc, CmpFPredicate::OLT, size, infinity);
}

/// -1, 1, or x itself if it is a zero or NaN.
Value BodyEmitter::emitSign(Location loc, Value value) {
  Value zero = constantLike(loc, 0, value);
  auto chooseIf = [&](CmpFPredicate compare, double number, Value otherwise) {
    Value condition = arith::CmpFOp::create(builder, loc, compare, value, zero);
    Value chosen = constantLike(loc, number, value);
    return arith::SelectOp::create(builder, loc, condition, chosen, otherwise);
  };
  Value negative = chooseIf(CmpFPredicate::OLT, -1, value);
  return chooseIf(CmpFPredicate::OGT, 1, negative);
}

Value BodyEmitter::emitLerp(Location loc, ValueRange operands) {
  Value from = operands[0], to = operands[1], weight = operands[2];
  if (isa<RankedTensorType>(from.getType()))
    return optim::LerpOp::create(builder, loc, from.getType(), from, to, weight);
  Value difference = arith::SubFOp::create(builder, loc, to, from);
  Value product = arith::MulFOp::create(builder, loc, weight, difference);
  return arith::AddFOp::create(builder, loc, from, product);
}

Value BodyEmitter::emitSelect(const CallExpr &call) {
  Shape shape = call.type.shape;
  Value condition = emitTo(*call.arguments[0], shape);
  Value yes = emitTo(*call.arguments[1], shape);
  Value no = emitTo(*call.arguments[2], shape);
  return arith::SelectOp::create(builder, locate(call.range), condition, yes, no);
}

Value BodyEmitter::emitReduction(const CallExpr &call) {
  Location loc = locate(call.range);
  Value source = toF32(loc, emit(*call.arguments[0]));
  optim::Reduction kind = optim::Reduction::Max;
  switch (*call.function) {
  case Function::Sum:
    kind = optim::Reduction::Sum;
    break;
  case Function::Mean:
    kind = optim::Reduction::Mean;
    break;
  case Function::Rms:
    kind = optim::Reduction::Rms;
    break;
  case Function::Norm:
    kind = optim::Reduction::Norm;
    break;
  default:
    break;
  }
  return optim::ReduceOp::create(builder, loc, tensorType(call.type.shape, builder.getF32Type()),
                                 kind, source);
}

static_assert(Orthogonalization::leastEps == optim::kLeastEps);

Value BodyEmitter::emitOrthogonalize(const CallExpr &call) {
  Location loc = locate(call.range);
  const Orthogonalization &options = *call.orthogonalization;
  // The range of f16 is too small for a matrix before it is normalized, so rounding to f16 comes later.
  bool isHalf = options.precision == ElementType::F16;
  Value operand = emitRounded(*call.arguments[0], isHalf ? ElementType::F32 : options.precision);
  SmallVector<Attribute> steps;
  for (const std::array<double, 3> &step : options.coefficients)
    steps.push_back(builder.getF64ArrayAttr(step));
  RankedTensorType type = tensorType(Shape::Full, elementType(options.precision));
  bool isStandard = options.form == optim::Form::Standard;
  return optim::OrthogonalizeOp::create(
      builder, loc, type, operand, builder.getArrayAttr(steps),
      builder.getF64FloatAttr(options.eps),
      isStandard ? optim::FormAttr() : optim::FormAttr::get(builder.getContext(), options.form),
      options.restarts.empty() ? DenseI64ArrayAttr()
                               : builder.getDenseI64ArrayAttr(options.restarts));
}

void BodyEmitter::emitSizesIn(const Expr &expr) {
  if (findCall(expr, [](const CallExpr &call) { return call.inlined != nullptr; }))
    (void)emit(expr);
}

Value BodyEmitter::emitInlined(const CallExpr &call) {
  calls.push_back(locate(call.callee.range));
  emitStatements(call.inlined->statements);
  Value result = emit(*call.inlined->result);
  calls.pop_back();
  return result;
}

Value BodyEmitter::emitCall(const CallExpr &call) {
  if (call.inlined)
    return emitInlined(call);
  Location loc = locate(call.range);
  switch (*call.function) {
  case Function::Select:
    return emitSelect(call);
  case Function::Cast:
    return emitRounded(*call.arguments[0], call.castTo);
  case Function::Sum:
  case Function::Mean:
  case Function::Rms:
  case Function::Norm:
  case Function::MaxOf:
    return emitReduction(call);
  case Function::Orthogonalize:
    return emitOrthogonalize(call);
  case Function::Transpose: {
    Value source = emit(*call.arguments[0]);
    if (auto before = source.getDefiningOp<optim::TransposeOp>())
      return before.getSource();
    return optim::TransposeOp::create(builder, loc, source);
  }
  case Function::Identity:
    emitSizesIn(*call.arguments[0]);
    return emitIdentity(loc, call.type.shape);
  case Function::RowsOf:
    emitSizesIn(*call.arguments[0]);
    return emitSize(loc, call.arguments[0]->type.shape.rows);
  case Function::ColsOf:
    emitSizesIn(*call.arguments[0]);
    return emitSize(loc, call.arguments[0]->type.shape.cols);
  case Function::Uniform:
    return emitRandom(loc, plan::Draw::Uniform, call.type.shape);
  case Function::Stochastic: {
    Value exact = toF32(loc, emit(*call.arguments[0]));
    Value number = emitRandom(loc, plan::Draw::Uniform16, call.type.shape);
    return optim::StochasticOp::create(builder, loc, exact, number);
  }
  case Function::Decay: {
    // Emitted in separate statements, since C++ leaves open which argument it evaluates first.
    Value parameter = emitTo(*call.arguments[0], call.type.shape);
    Value lr = emit(*call.arguments[1]);
    Value weightDecay = emit(*call.arguments[2]);
    return optim::DecayOp::create(builder, loc, parameter, lr, weightDecay);
  }
  default:
    break;
  }

  SmallVector<Value> operands;
  for (const ExprPtr &argument : call.arguments)
    operands.push_back(emitTo(*argument, call.type.shape));
  Value x = operands[0];
  switch (*call.function) {
  case Function::Sqrt:
    return math::SqrtOp::create(builder, loc, x);
  case Function::Rsqrt: {
    // Square root and division are correctly rounded, so the result is the same on every target.
    Value one = constantLike(loc, 1, x);
    Value root = math::SqrtOp::create(builder, loc, x);
    return arith::DivFOp::create(builder, loc, one, root);
  }
  case Function::Abs:
    return math::AbsFOp::create(builder, loc, x);
  case Function::Floor:
    return math::FloorOp::create(builder, loc, x);
  case Function::Sign:
    return emitSign(loc, x);
  case Function::Finite:
    return emitFinite(loc, x);
  case Function::Exp:
    return math::ExpOp::create(builder, loc, x);
  case Function::Log:
    return math::LogOp::create(builder, loc, x);
  case Function::Min:
    return arith::MinimumFOp::create(builder, loc, x, operands[1]);
  case Function::Max:
    return arith::MaximumFOp::create(builder, loc, x, operands[1]);
  case Function::Clamp:
    return arith::MinimumFOp::create(
        builder, loc, arith::MaximumFOp::create(builder, loc, x, operands[1]), operands[2]);
  case Function::Lerp:
    return emitLerp(loc, operands);
  case Function::Momentum:
    return optim::MomentumOp::create(builder, loc, x.getType(), x, operands[1], operands[2]);
  default:
    llvm_unreachable("handled above");
  }
}
