//===- OrthogonalizeToProducts.cpp - Newton–Schulz as batched products -----===//

#include "passes/distribute/Passes.h"

#include "passes/distribute/Communicators.h"
#include "runtime/geometry/Geometry.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;
using optim::ProductOp;

namespace stepc::distribute {
#define GEN_PASS_DEF_ORTHOGONALIZETOPRODUCTS
#include "passes/distribute/Passes.h.inc"
} // namespace stepc::distribute

namespace {

class Expansion {
public:
  /// `beside`: chains of other groups are computed before what this one makes is sent.
  Expansion(optim::OrthogonalizeOp op, FlatSymbolRefAttr segment, optim::GroupOp group, bool beside)
      : builder(op), op(op), segment(segment), group(group), beside(beside), loc(op.getLoc()) {
    auto type = cast<RankedTensorType>(op.getType());
    element = type.getElementType();
    rows = type.getDimSize(1);
    cols = type.getDimSize(2);
    plan::Group layout = group.toPlan();
    slabs = layout.slabs.factors;
    small = slabs.empty() ? std::min(rows, cols) : std::min(layout.rows(), layout.cols());
    tall = slabs.empty() ? rows > cols : layout.slabs.axis == plan::Division::Rows;
    if (!slabs.empty()) {
      auto rule = SymbolTable::lookupNearestSymbolFrom<optim::RuleOp>(group, group.getRuleAttr());
      plan::Mesh mesh =
          optim::toPlan(optim::lookupMesh(group, group.getExemplar().getMeshAttr()));
      isOfAll = geometry::haveSameSlabs(layout, mesh, layout.slabs,
                                        plan::home(layout, optim::toPlan(rule)).whose());
    }
    count = ExtentOp::create(builder, loc, builder.getIndexType(),
                             PlaceAttr::blocks(segment, ValueKind::Full));
  }

  Value run() {
    Value normalized = normalize(op.getSource()), x = normalized;
    SmallVector<std::array<double, 3>> steps(op.getSteps());
    for (auto [index, each] : llvm::enumerate(steps)) {
      auto [a, b, c] = each;
      // For a tall X the transposed iteration is computed in place: Xᵀ X, and X B instead of B Xᵀ. Without a
      // square of A its factor is the product's own. That avoids a second rounding, and a stage over A, whose
      // extents are not a block's.
      double factor = c == 0.0 ? b : 1.0;
      Value gram = slabs.empty() ? product(x, x, Value(), factor, 0.0, square(), true, tall, !tall)
                                 : gramOfSlabs(x, factor);
      Value poly = c == 0.0 ? gram : product(gram, gram, gram, c, b, square(), true);
      // If all chains of a wave are normalized before the first one's products, the last step writes where
      // the first one read: input and result stand in one place.
      Value init = beside && index > 0 && index + 1 == steps.size()
                       ? normalized
                       : empty(PlaceAttr::blocks(segment, ValueKind::Full), rows, cols, element);
      x = tall ? product(x, poly, x, 1.0, a, init) : product(poly, x, x, 1.0, a, init);
    }
    return x;
  }

private:
  Value empty(PlaceAttr place, int64_t r, int64_t c, Type type) {
    return tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{ShapedType::kDynamic, r, c},
                                   type, ValueRange{count}, place);
  }

  //===--- Slabs --------------------------------------------------------------===//

  PlaceAttr place(ValueKind kind, Distribution from, Distribution to, End end = End::Rest) {
    return PlaceAttr::packed(segment, kind, from, to, end);
  }

  Value parts(ValueKind kind, int64_t size) {
    return empty(place(kind, Distribution::Parts, Distribution::Parts), size, size,
                 builder.getF32Type());
  }

  Value packed(PlaceAttr where) {
    Value size = ExtentOp::create(builder, loc, builder.getIndexType(), where);
    return tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{ShapedType::kDynamic},
                                   builder.getF32Type(), ValueRange{size}, where);
  }

  Value copy(Value from, Value to) {
    return CopyOp::create(builder, loc, to.getType(), from, Value(), to, Value()).getResult();
  }

  /// Packs a value for all ranks that have slabs of its blocks, and gives what these sent.
  template <typename Collective> Value bring(Value value, Distribution from, Distribution to) {
    ValueKind kind = placeOf(value).getValue();
    Value sent = copy(value, packed(place(kind, from, to, End::Sent)));
    Value received = packed(place(kind, from, to, End::Received));
    Value ranks = communicators.get(builder, loc, group.getExemplar().getMeshAttr(), slabs);
    return Collective::create(builder, loc, TypeRange(received.getType()), ranks, ValueRange(sent),
                              ValueRange(received))
        ->getResult(0);
  }

  /// The sum of what all ranks with slabs of a block have in `part`, in f32 in the order of the slabs. One
  /// rank adds up each element and gives it to all, so these have the same bits.
  Value sum(Value part) {
    ValueKind kind = placeOf(part).getValue();
    Value range = packed(place(kind, Distribution::Ranges, Distribution::Ranges, End::Kept));
    Value contributions = bring<ExchangeOp>(part, Distribution::Parts, Distribution::Ranges);
    range = SumOp::create(builder, loc, range.getType(), /*divisor=*/1, contributions, range)
                .getResult();
    // All ranks can get all ranges only if they all have slabs of all blocks. Otherwise a rank may get other
    // ranges than its neighbour.
    Value all = isOfAll ? bring<AllGatherOp>(range, Distribution::Ranges, Distribution::Blocks)
                        : bring<ExchangeOp>(range, Distribution::Ranges, Distribution::Blocks);
    int64_t size = cast<RankedTensorType>(part.getType()).getDimSize(1);
    return copy(all, empty(place(kind, Distribution::Blocks, Distribution::Blocks), size, size,
                           builder.getF32Type()));
  }

  Value gramOfSlabs(Value x, double factor) {
    Value part =
        product(x, x, Value(), factor, 0.0, parts(ValueKind::Gram, small), true, tall, !tall);
    Value gram = sum(part);
    if (element.isF32())
      return gram;
    Value rounded = empty(place(ValueKind::Gram, Distribution::Blocks, Distribution::Blocks), small,
                          small, element);
    return stage({gram}, rounded, [&](OpBuilder &, ValueRange arguments) { return arguments[0]; });
  }

  /// The norm of a block from the norms of its slabs. The square of a norm may overflow where the norm does
  /// not. So the norms of slabs are added up first, as a bound, and then the squares of norm / bound.
  Value normOfSlabs(Value norm) {
    Value bound = sum(norm);
    auto limited = [&](Value total) -> Value {
      return arith::MaximumFOp::create(builder, loc, total, leastNorm());
    };
    Value squares = sum(stage(
        {norm, bound}, parts(ValueKind::One, 1), [&](OpBuilder &, ValueRange arguments) -> Value {
          Value ratio = arith::DivFOp::create(builder, loc, arguments[0], limited(arguments[1]));
          return arith::MulFOp::create(builder, loc, ratio, ratio);
        }));
    Value result = empty(PlaceAttr::blocks(segment, ValueKind::One), 1, 1, builder.getF32Type());
    return stage({bound, squares}, result, [&](OpBuilder &, ValueRange arguments) -> Value {
      Value root = math::SqrtOp::create(builder, loc, arguments[1]);
      return arith::MulFOp::create(builder, loc, limited(arguments[0]), root);
    });
  }

  //===--- Blocks -------------------------------------------------------------===//

  /// A matrix of small × small that is no value of the block.
  Value square() { return empty(PlaceAttr::partial(segment), small, small, element); }

  /// A stage over blocks of one full out.
  Value stage(ValueRange ins, Value init,
              llvm::function_ref<Value(OpBuilder &, ValueRange arguments)> body) {
    SmallVector<Type> arguments;
    for (Value in : ins)
      arguments.push_back(cast<ShapedType>(in.getType()).getElementType());
    auto created = StageOp::create(builder, loc, TypeRange(init.getType()), segment.getValue(),
                                   Distribution::Blocks, ins, ValueRange(), ValueRange(init),
                                   /*scalars=*/Value(),
                                   /*active=*/Value());
    OpBuilder::InsertionGuard guard(builder);
    Block *block = builder.createBlock(&created.getBody(), {}, arguments,
                                       SmallVector<Location>(arguments.size(), loc));
    Value result = body(builder, block->getArguments());
    Type wanted = elementOf(init);
    if (result.getType() != wanted)
      result = arith::TruncFOp::create(builder, loc, wanted, result);
    comm::YieldOp::create(builder, loc, result);
    return created.getResult(0);
  }

  Value widen(Value value) {
    if (value.getType().isF32())
      return value;
    return arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
  }

  Value constant(double value) {
    return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(float(value)));
  }

  Value leastNorm() {
    return constant(std::ldexp(op.getEps().convertToDouble(), optim::kNormExponent));
  }

  Value normalize(Value x) {
    Value one = slabs.empty()
                    ? empty(PlaceAttr::blocks(segment, ValueKind::One), 1, 1, builder.getF32Type())
                    : parts(ValueKind::One, 1);
    Value norm = optim::BlockReduceOp::create(builder, loc, one.getType(), optim::Reduction::Norm,
                                              x, one, uint64_t(int64_t(optim::kNormExponent)))
                     .getResult();
    if (!slabs.empty())
      norm = normOfSlabs(norm);
    Value init = empty(PlaceAttr::blocks(segment, ValueKind::Full), rows, cols, element);
    return stage({x, norm}, init, [&](OpBuilder &, ValueRange arguments) {
      Value divisor = arith::MaximumFOp::create(builder, loc, arguments[1], leastNorm());
      Value quotient = arith::DivFOp::create(builder, loc, widen(arguments[0]), divisor);
      Value scale = constant(std::ldexp(1.0, optim::kNormExponent));
      return Value(arith::MulFOp::create(builder, loc, quotient, scale));
    });
  }

  Value product(Value lhs, Value rhs, Value addend, double alpha, double beta, Value init,
                bool symmetric = false, bool transposeLhs = false, bool transposeRhs = false) {
    auto unit = [&](bool on) { return on ? builder.getUnitAttr() : UnitAttr(); };
    auto created = ProductOp::create(builder, loc, init.getType(), lhs, rhs, addend, init,
                                     builder.getF64FloatAttr(alpha), builder.getF64FloatAttr(beta),
                                     unit(transposeLhs), unit(transposeRhs), unit(symmetric));
    return created.getResult();
  }

  OpBuilder builder;
  optim::OrthogonalizeOp op;
  FlatSymbolRefAttr segment;
  optim::GroupOp group;
  bool beside;
  Location loc;
  Type element;
  int64_t rows, cols; // of a block, or of a slab
  int64_t small;      // of a block
  bool tall;
  std::vector<plan::Factor> slabs; // none: blocks are whole
  bool isOfAll = false;            // whether all ranks along these have slabs of the same blocks
  distribute::Communicators communicators;
  Value count; // blocks that this rank computes
};

class OrthogonalizeToProducts
    : public stepc::distribute::impl::OrthogonalizeToProductsBase<OrthogonalizeToProducts> {
public:
  using OrthogonalizeToProductsBase::OrthogonalizeToProductsBase;

private:
  /// Per wave, the segments whose results are brought back from owners: they travel together.
  std::map<int64_t, llvm::SmallPtrSet<Attribute, 8>> findTogether() {
    std::map<int64_t, llvm::SmallPtrSet<Attribute, 8>> together;
    SymbolTable symbols(getOperation());
    for (auto segment : getOperation().getOps<SegmentOp>()) {
      auto group = symbols.lookup<optim::GroupOp>(segment.getGroup());
      if (llvm::any_of(group.getPlanHops(),
                       [](const plan::Hop &hop) { return !hop.owned.empty(); }))
        together[segment.getWave().value_or(0)].insert(segment.getSymNameAttr());
    }
    return together;
  }

  void runOnOperation() override {
    SmallVector<optim::OrthogonalizeOp> ops;
    for (auto step : getOperation().getOps<func::FuncOp>())
      step.walk([&](optim::OrthogonalizeOp op) { ops.push_back(op); });
    llvm::SmallPtrSet<Attribute, 8> beside;
    for (auto &[wave, segments] : findTogether())
      if (segments.size() > 1)
        beside.insert_range(segments);
    SymbolTable symbols(getOperation());
    for (optim::OrthogonalizeOp op : ops) {
      FlatSymbolRefAttr segment = segmentOfBatch(op);
      auto type = cast<RankedTensorType>(op.getSource().getType());
      if (!segment || type.getRank() != 3) {
        op.emitOpError("expected a batch of blocks with a place, found ") << type;
        return signalPassFailure();
      }
      auto group =
          symbols.lookup<optim::GroupOp>(symbols.lookup<SegmentOp>(segment.getAttr()).getGroup());
      op.getResult().replaceAllUsesWith(
          Expansion(op, segment, group, beside.contains(segment.getAttr())).run());
      op.erase();
    }
  }
};

} // namespace
