//===- MatrixOps.cpp - Operations of a rule on whole blocks -------------------===//

#include "dialects/optim/Optim.h"
#include "dialects/optim/Saturate.h"
#include "runtime/sums/Reduce.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

MatrixExtents::MatrixExtents(const plan::Group &group)
    : MatrixExtents(plan::view(group, ValueKind::Full).rows,
                    plan::view(group, ValueKind::Full).cols) {
  areSlabs = !group.slabs.factors.empty();
  sizes = group.sizes;
  if (!areSlabs)
    return;
  plan::View slab = plan::computedView(group, ValueKind::Full);
  rows = slab.rows;
  cols = slab.cols;
  isTall = group.slabs.axis == plan::Division::Rows;
}

LogicalResult BlockReduceAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                      Reduction kind, int64_t exponent) {
  bool scales = kind == Reduction::Norm || kind == Reduction::Rms;
  if (exponent < -30 || exponent > 30 || (exponent != 0 && !scales))
    return emitError()
           << "expected an exponent between -30 and 30, and 0 but for norm and rms, found "
           << exponent;
  return success();
}

std::string BlockReduceAttr::describe() const {
  std::string text(plan::name(getKind()));
  return getExponent() == 0 ? text : text + " times 2^" + std::to_string(getExponent());
}

LogicalResult BlockReduceAttr::verifyBlocks(llvm::function_ref<InFlightDiagnostic()> emitError,
                                            ArrayRef<RankedTensorType> sources,
                                            RankedTensorType out) const {
  if (sources.size() != 1)
    return emitError() << "expected one source of a reduction, found " << sources.size();
  ArrayRef<int64_t> from = sources[0].getShape(), to = out.getShape();
  auto fits = [&](int axis) { return to[axis] == 1 || to[axis] == from[axis]; };
  if (!out.getElementType().isF32() || !fits(0) || !fits(1) || (to[0] != 1 && to[1] != 1))
    return emitError() << "expected an out of f32 with one value per block, row or column, found "
                       << out << " of " << sources[0];
  return success();
}

int64_t BlockReduceAttr::flops(ArrayRef<RankedTensorType> sources, RankedTensorType) const {
  return saturatingMul(saturatingMul(2, sources[0].getDimSize(0)), sources[0].getDimSize(1));
}

/// A reduction to one value per block keeps a sum of each of the block's parts.
int64_t BlockReduceAttr::scratchBound(ArrayRef<RankedTensorType> sources,
                                      RankedTensorType out) const {
  bool isOne = out.getDimSize(0) == 1 && out.getDimSize(1) == 1;
  int64_t elements = saturatingMul(sources[0].getDimSize(0), sources[0].getDimSize(1));
  return isOne ? saturatingMul(sums::kPartBytes, sums::partsOf(elements)) : 0;
}

MatrixValue ReduceOp::expand(MatrixBuilder &builder, ArrayRef<MatrixValue> operands,
                             ValueKind kind) {
  auto function = BlockReduceAttr::get(getContext(), getKind(), /*exponent=*/0);
  return builder.apply(function, operands, kind, Float32Type::get(getContext()));
}

static ValueKind transposedIf(bool isTransposed, ValueKind kind) {
  return isTransposed ? ValueKind(kind.cols, kind.rows) : kind;
}

LogicalResult MatmulOp::verify() {
  auto kind = [](Value value) { return kindOf(value.getType()).value_or(ValueKind::Full); };
  if (getElementTypeOrSelf(getLhs()) != getElementTypeOrSelf(getRhs()))
    return emitOpError("expected factors of one element type, found ")
           << getLhs().getType() << " and " << getRhs().getType();
  // Types of batches have numbers as extents, so this function checks only tensors of a rule (rank 2).
  if (getLhs().getType().getRank() != 2)
    return success();
  ValueKind lhs = transposedIf(getTransposeLhs(), kind(getLhs()));
  ValueKind rhs = transposedIf(getTransposeRhs(), kind(getRhs()));
  if (lhs.cols != rhs.rows)
    return emitOpError("expected equal inner extents, found factors of ")
           << plan::name(lhs) << " and " << plan::name(rhs);
  if (ValueKind result{lhs.rows, rhs.cols}; kind(getResult()) != result)
    return emitOpError("expected a result of ")
           << plan::name(result) << ", found one of " << plan::name(kind(getResult()));
  return success();
}

MatrixValue MatmulOp::expand(MatrixBuilder &builder, ArrayRef<MatrixValue> operands,
                             ValueKind kind) {
  MatrixProduct product{.lhs = operands[0], .rhs = operands[1]};
  product.transposeLhs = getTransposeLhs();
  product.transposeRhs = getTransposeRhs();
  product.isSymmetric = getLhs() == getRhs() && getTransposeLhs() != getTransposeRhs();
  product.kind = kind;
  product.element = getResult().getType().getElementType();
  return builder.product(product);
}

void TransposeOp::build(OpBuilder &builder, OperationState &state, Value source) {
  auto type = cast<RankedTensorType>(source.getType());
  ValueKind kind = transposedIf(true, kindOf(type).value_or(ValueKind::Full));
  build(builder, state, tensorType(kind, type.getElementType()), source);
}

LogicalResult TransposeOp::verify() {
  auto from = cast<RankedTensorType>(getSource().getType());
  auto to = cast<RankedTensorType>(getType());
  SmallVector<int64_t> wanted = extentsOf(from);
  if (wanted.size() >= 2)
    std::swap(wanted[wanted.size() - 1], wanted[wanted.size() - 2]);
  if (from.getElementType() == to.getElementType() && wanted == extentsOf(to))
    return success();
  return emitOpError(
             "expected a result of the source's type and extents in the other order, found ")
         << to << " of " << from;
}

MatrixValue TransposeOp::expand(MatrixBuilder &builder, ArrayRef<MatrixValue> operands,
                                ValueKind kind) {
  return builder.apply(BlockTransposeAttr::get(getContext()), operands, kind,
                       getType().getElementType());
}

std::string BlockTransposeAttr::describe() const { return "transpose"; }

LogicalResult BlockTransposeAttr::verifyBlocks(llvm::function_ref<InFlightDiagnostic()> emitError,
                                               ArrayRef<RankedTensorType> sources,
                                               RankedTensorType out) const {
  if (sources.size() != 1)
    return emitError() << "expected one source of a transpose, found " << sources.size();
  ArrayRef<int64_t> from = sources[0].getShape(), to = out.getShape();
  if (sources[0].getElementType() != out.getElementType() || from[0] != to[1] || from[1] != to[0])
    return emitError() << "expected an out of the source's type, transposed, found " << out
                       << " of " << sources[0];
  return success();
}

/// It computes nothing. An element that moves counts as one operation, so that the time is not 0.
int64_t BlockTransposeAttr::flops(ArrayRef<RankedTensorType>, RankedTensorType out) const {
  return saturatingMul(out.getDimSize(0), out.getDimSize(1));
}

int64_t BlockTransposeAttr::scratchBound(ArrayRef<RankedTensorType>, RankedTensorType) const {
  return 0;
}

SmallVector<std::array<double, 3>> OrthogonalizeOp::getSteps() {
  SmallVector<std::array<double, 3>> steps;
  for (Attribute step : getCoefficients()) {
    std::array<double, 3> values;
    for (auto [value, attr] : llvm::zip(values, cast<ArrayAttr>(step)))
      value = cast<FloatAttr>(attr).getValueAsDouble();
    steps.push_back(values);
  }
  return steps;
}

LogicalResult OrthogonalizeOp::verify() {
  if (getCoefficients().empty())
    return emitOpError("expected at least one step of coefficients");
  for (Attribute attr : getCoefficients()) {
    auto step = dyn_cast<ArrayAttr>(attr);
    if (!step || step.size() != 3 || !llvm::all_of(step, llvm::IsaPred<FloatAttr>))
      return emitOpError("expected three numbers per step, found ") << attr;
    for (auto number : step.getAsRange<FloatAttr>())
      if (!std::isfinite(float(number.getValueAsDouble())))
        return emitOpError("expected coefficients that are finite in f32, found ") << attr;
  }
  double eps = getEps().convertToDouble();
  if (!(eps >= kLeastEps) || !std::isfinite(float(eps)))
    return emitOpError("expected an eps of at least 2^-100, finite in f32, found ") << eps;
  auto from = cast<ShapedType>(getSource().getType()), to = cast<ShapedType>(getType());
  if (extentsOf(from) != extentsOf(to))
    return emitOpError("expected a source and a result of one shape, found ")
           << from << " and " << to;
  if (from.getRank() == 2 && kindOf(from) != ValueKind::Full)
    return emitOpError("expected a full source, found ") << from;
  Type source = from.getElementType(), result = to.getElementType();
  if (source != result && !source.isF32())
    return emitOpError("expected a source of ") << result << " or f32, found " << source;
  Form form = getForm().value_or(Form::Standard);
  ArrayRef<int64_t> restarts = getRestarts().value_or(ArrayRef<int64_t>());
  if (form == Form::Standard && !restarts.empty())
    return emitOpError("expected restarts only of the forms gram and auto, found them in standard");
  SmallVector<std::array<double, 3>> steps = getSteps();
  if (size_t wrong = findWrongRestart(restarts, steps.size()); wrong < restarts.size())
    return emitOpError("expected ")
           << expectedInPlaceOf(wrong, restarts, steps.size()) << ", found " << restarts[wrong];
  if (Growth growth = boundOf(steps, form, restarts); result.isF16() && growth.bound > kLargestHalf)
    return emitOpError(
               "expected coefficients that keep values of f16 below 65504, found a bound of ")
           << growth.bound << " in step " << growth.step;
  return success();
}

bool OrthogonalizeOp::isGram(int64_t rows, int64_t cols) {
  return isGramForm(getForm().value_or(Form::Standard), rows, cols);
}

/// An f32 constant in a stage.
static Value number(OpBuilder &builder, Location loc, double value) {
  return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(float(value)));
}

/// X after the steps, from the normalized X. If X is tall, the iteration multiplies Xᵀ X, and X B instead of
/// B X. So it never transposes X in memory. Gram matrices are symmetric in bits. Products of them read the
/// right operand as if it were stored transposed, as X Xᵀ does, so that one kernel serves both.
static MatrixValue standardForm(MatrixBuilder &builder, MatrixValue normalized,
                                ArrayRef<std::array<double, 3>> steps, Type element) {
  bool isTall = builder.extents.isTall;
  MatrixValue x = normalized;
  for (auto [index, step] : llvm::enumerate(steps)) {
    auto [a, b, c] = step;
    // If c = 0, there is no product A A. Then b scales the product X Xᵀ itself, which saves a second
    // rounding and a stage over A.
    MatrixValue gram = builder.product({.lhs = x,
                                        .rhs = x,
                                        .alpha = c == 0.0 ? b : 1.0,
                                        .transposeLhs = isTall,
                                        .transposeRhs = !isTall,
                                        .isSymmetric = true,
                                        .kind = ValueKind::Gram,
                                        .element = element});
    MatrixValue poly = gram;
    if (c != 0.0)
      poly = builder.product({.lhs = gram,
                              .rhs = gram,
                              .addend = gram,
                              .alpha = c,
                              .beta = b,
                              .transposeRhs = true,
                              .isSymmetric = true,
                              .kind = ValueKind::Gram,
                              .element = element});
    MatrixProduct last{.lhs = isTall ? x : poly, .rhs = isTall ? poly : x};
    last.addend = x;
    last.beta = a;
    last.element = element;
    if (index > 0 && index + 1 == steps.size())
      last.replaced = normalized;
    x = builder.product(last);
  }
  return x;
}

/// X after the steps, in the Gram form: see the operation's description.
static MatrixValue gramForm(MatrixBuilder &builder, MatrixValue normalized,
                            ArrayRef<std::array<double, 3>> steps, ArrayRef<int64_t> restarts,
                            Type element) {
  bool isTall = builder.extents.isTall;
  // A polynomial of R, which is `times` the matrix.
  struct Scaled {
    MatrixValue matrix;
    double times = 1;
  };
  auto multiply = [&](const Scaled &lhs, const MatrixValue &rhs,
                      std::optional<MatrixValue> addend = {}, double beta = 0, double shift = 0) {
    return builder.product({.lhs = lhs.matrix,
                            .rhs = rhs,
                            .addend = addend,
                            .alpha = lhs.times,
                            .beta = beta,
                            .shift = shift,
                            .transposeRhs = true,
                            .isSymmetric = true,
                            .kind = ValueKind::Gram,
                            .element = element});
  };
  MatrixValue x = normalized;
  SmallVector<size_t> ends(restarts);
  ends.push_back(steps.size());
  size_t begin = 0;
  for (size_t end : ends) {
    MatrixValue r = builder.product({.lhs = x,
                                     .rhs = x,
                                     .transposeLhs = isTall,
                                     .transposeRhs = !isTall,
                                     .isSymmetric = true,
                                     .kind = ValueKind::Gram,
                                     .element = element});
    Scaled first; // Z of the first step of the run
    std::optional<MatrixValue> q;
    for (size_t i = begin; i < end; ++i) {
      auto [a, b, c] = steps[i];
      bool isSecond = i == begin + 1;
      Scaled z{r, b};
      if (c != 0.0 || isSecond)
        z = {multiply({r, c}, r, r, b, isSecond ? a : 0.0)};
      if (i == begin)
        first = z;
      else if (isSecond)
        q = multiply({first.matrix, first.times}, z.matrix, z.matrix, steps[begin][0]);
      else
        q = multiply({*q, z.times}, z.matrix, q, a);
      if (i + 1 == end)
        break;
      // In the second step, z has the shift, so nothing is added.
      std::optional<MatrixValue> none;
      MatrixValue w = multiply({r, z.times}, z.matrix, isSecond ? none : r, a);
      r = multiply(z, w, isSecond ? none : w, a);
    }
    MatrixValue poly = q.value_or(first.matrix);
    MatrixProduct last{.lhs = isTall ? x : poly, .rhs = isTall ? poly : x};
    if (!q) {
      last.alpha = first.times;
      last.addend = x;
      last.beta = steps[begin][0];
    }
    last.element = element;
    if (begin > 0 && end == steps.size())
      last.replaced = normalized;
    x = builder.product(last);
    begin = end;
  }
  return x;
}

MatrixValue OrthogonalizeOp::expand(MatrixBuilder &builder, ArrayRef<MatrixValue> operands,
                                    ValueKind kind) {
  Type element = getType().getElementType();
  double least = std::ldexp(getEps().convertToDouble(), kNormExponent);
  MatrixValue norm = builder.norm(operands[0], kNormExponent, least);
  MatrixValue normalized = builder.stage(
      {operands[0], norm}, kind, element, [&](OpBuilder &b, Location loc, ValueRange x) {
        Value divisor = arith::MaximumFOp::create(b, loc, x[1], number(b, loc, least));
        Value wide = x[0];
        if (!wide.getType().isF32())
          wide = arith::ExtFOp::create(b, loc, b.getF32Type(), wide);
        Value quotient = arith::DivFOp::create(b, loc, wide, divisor);
        Value scale = number(b, loc, std::ldexp(1.0, kNormExponent));
        return Value(arith::MulFOp::create(b, loc, quotient, scale));
      });
  SmallVector<std::array<double, 3>> steps = getSteps();
  if (isGram(builder.extents.small, builder.extents.large))
    return gramForm(builder, normalized, steps, getRestarts().value_or(ArrayRef<int64_t>()),
                    element);
  return standardForm(builder, normalized, steps, element);
}

bool OrthogonalizeOp::takesSlabs() { return true; }
