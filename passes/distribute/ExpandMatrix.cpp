//===- ExpandMatrix.cpp - Matrix operations as products, functions, stages --===//

#include "passes/distribute/Passes.h"

#include "passes/distribute/Communicators.h"
#include "runtime/geometry/Geometry.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <map>

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;
using optim::MatrixProduct;
using optim::MatrixValue;
using optim::ProductOp;

namespace stepc::distribute {
#define GEN_PASS_DEF_EXPANDMATRIX
#include "passes/distribute/Passes.h.inc"
} // namespace stepc::distribute

namespace {

/// Builds operations on batches of whole blocks, or of slabs.
class BatchBuilder : public optim::MatrixBuilder {
public:
  /// `beside`: blocks of other groups are computed before the results of this group are sent.
  BatchBuilder(Operation *op, FlatSymbolRefAttr segment, optim::GroupOp group, bool beside)
      : MatrixBuilder(group.toPlan()), builder(op), segment(segment), group(group), beside(beside),
        loc(op->getLoc()) {
    if (extents.areSlabs) {
      plan::Group layout = group.toPlan();
      slabs = layout.slabs;
      auto rule = SymbolTable::lookupNearestSymbolFrom<optim::RuleOp>(group, group.getRuleAttr());
      plan::Mesh mesh = optim::toPlan(optim::lookupMesh(group, group.getExemplar().getMeshAttr()));
      isOfAll = geometry::haveSameSlabs(layout, mesh, layout.slabs,
                                        plan::home(layout, optim::toPlan(rule)).whose());
    }
    count = ExtentOp::create(builder, loc, builder.getIndexType(),
                             PlaceAttr::blocks(segment, ValueKind::Full));
  }

  MatrixValue apply(optim::BlockFunctionAttrInterface function, ArrayRef<MatrixValue> sources,
                    ValueKind kind, Type element) override {
    return valueOf(apply(function, sources, empty(kind, element)));
  }

  MatrixValue norm(MatrixValue source, int64_t exponent, double least) override {
    Value init =
        extents.areSlabs ? parts(ValueKind::One) : empty(ValueKind::One, builder.getF32Type());
    auto function =
        optim::BlockReduceAttr::get(builder.getContext(), optim::Reduction::Norm, exponent);
    Value norm = apply(function, source, init);
    return valueOf(extents.areSlabs ? normOfSlabs(norm, least) : norm);
  }

  MatrixValue product(const MatrixProduct &product) override {
    // The product sums over the axis that slabs cut, so the products of all slabs must be added up.
    plan::Division::Axis inner =
        product.transposeLhs ? plan::Division::Rows : plan::Division::Columns;
    if (extents.areSlabs && product.lhs.kind == ValueKind::Full && inner == slabs.axis)
      return valueOf(productOfSlabs(product));
    // If several groups are computed side by side, all are normalized before the first products. The result
    // then takes the memory of the normalized input.
    Value init =
        beside && product.replaced ? product.replaced->batch : empty(product.kind, product.element);
    return valueOf(multiply(product, init));
  }

  MatrixValue stage(ArrayRef<MatrixValue> ins, ValueKind kind, Type element, Body body) override {
    return valueOf(stage(batchesOf(ins), empty(kind, element), body));
  }

private:
  Value empty(PlaceAttr place, int64_t r, int64_t c, Type type) {
    return tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{ShapedType::kDynamic, r, c},
                                   type, ValueRange{count}, place);
  }

  static SmallVector<Value> batchesOf(ArrayRef<MatrixValue> values) {
    return llvm::map_to_vector(values, [](const MatrixValue &one) { return one.batch; });
  }
  /// The value that a batch holds. Its kind stands in the batch's place.
  static MatrixValue valueOf(Value batch) {
    return {batch, placeOf(batch).getValue(), elementOf(batch)};
  }

  Value apply(optim::BlockFunctionAttrInterface function, ArrayRef<MatrixValue> sources,
              Value init) {
    return optim::ApplyOp::create(builder, loc, init.getType(), function, batchesOf(sources), init)
        .getResult();
  }

  /// A new batch for one value per block.
  Value empty(ValueKind kind, Type type) {
    auto [r, c] = extents.of(kind);
    return empty(PlaceAttr::blocks(segment, kind), r, c, type);
  }

  //===--- Slabs --------------------------------------------------------------===//

  PlaceAttr place(ValueKind kind, Distribution from, Distribution to, End end = End::Rest) {
    return PlaceAttr::packed(segment, kind, from, to, end);
  }

  /// A new batch for what each slab adds to a value of its block.
  Value parts(ValueKind kind) {
    auto [r, c] = extents.of(kind);
    return empty(place(kind, Distribution::Parts, Distribution::Parts), r, c, builder.getF32Type());
  }

  Value packed(PlaceAttr where) {
    Value size = ExtentOp::create(builder, loc, builder.getIndexType(), where);
    return tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{ShapedType::kDynamic},
                                   builder.getF32Type(), ValueRange{size}, where);
  }

  Value copy(Value from, Value to) {
    return CopyOp::create(builder, loc, to.getType(), from, Value(), to, Value()).getResult();
  }

  /// Packs a value for all ranks that have slabs of its blocks. Returns the packed values that these ranks
  /// sent.
  template <typename Collective> Value bring(Value value, Distribution from, Distribution to) {
    ValueKind kind = placeOf(value).getValue();
    Value sent = copy(value, packed(place(kind, from, to, End::Sent)));
    Value received = packed(place(kind, from, to, End::Received));
    Value ranks = communicators.get(builder, loc, group.getExemplar().getMeshAttr(), slabs.factors);
    return Collective::create(builder, loc, TypeRange(received.getType()), ranks, ValueRange(sent),
                              ValueRange(received))
        ->getResult(0);
  }

  /// The sum of `part` over all ranks with slabs of a block, in f32, in the order of the slabs. One rank adds
  /// up each element and sends the sum to the others, so all ranks have the same bits.
  Value sum(Value part) {
    ValueKind kind = placeOf(part).getValue();
    Value range = packed(place(kind, Distribution::Ranges, Distribution::Ranges, End::Kept));
    Value contributions = bring<ExchangeOp>(part, Distribution::Parts, Distribution::Ranges);
    range = SumOp::create(builder, loc, range.getType(), /*divisor=*/1, comm::ReductionAttr(),
                          contributions, range)
                .getResult();
    // An all-gather sends every range of sums to every rank. That is right only if all ranks have slabs of
    // all blocks. Otherwise an exchange sends to each rank the ranges of its blocks.
    Value all = isOfAll ? bring<AllGatherOp>(range, Distribution::Ranges, Distribution::Blocks)
                        : bring<ExchangeOp>(range, Distribution::Ranges, Distribution::Blocks);
    return copy(all, empty(kind, builder.getF32Type()));
  }

  Value productOfSlabs(const MatrixProduct &product) {
    Value whole = sum(multiply(product, parts(product.kind)));
    if (product.element.isF32())
      return whole;
    return stage({whole}, empty(product.kind, product.element),
                 [&](OpBuilder &, Location, ValueRange arguments) { return arguments[0]; });
  }

  /// The norm of a block from the norms of its slabs. The square of a norm may overflow where the norm does
  /// not. So the norms of slabs are added up first, as a bound, and then the squares of norm / bound.
  Value normOfSlabs(Value norm, double least) {
    Value bound = sum(norm);
    auto limited = [&](Value total) -> Value {
      Value limit = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(float(least)));
      return arith::MaximumFOp::create(builder, loc, total, limit);
    };
    Value squares = sum(stage({norm, bound}, parts(ValueKind::One),
                              [&](OpBuilder &, Location, ValueRange arguments) -> Value {
                                Value ratio = arith::DivFOp::create(builder, loc, arguments[0],
                                                                    limited(arguments[1]));
                                return arith::MulFOp::create(builder, loc, ratio, ratio);
                              }));
    Value result = empty(ValueKind::One, builder.getF32Type());
    return stage({bound, squares}, result,
                 [&](OpBuilder &, Location, ValueRange arguments) -> Value {
                   Value root = math::SqrtOp::create(builder, loc, arguments[1]);
                   return arith::MulFOp::create(builder, loc, limited(arguments[0]), root);
                 });
  }

  //===--- Blocks -------------------------------------------------------------===//

  /// A stage over blocks with one out.
  Value stage(ValueRange ins, Value init, Body body) {
    SmallVector<Type> arguments;
    for (Value in : ins)
      arguments.push_back(cast<ShapedType>(in.getType()).getElementType());
    auto created = StageOp::create(builder, loc, TypeRange(init.getType()), segment.getValue(),
                                   Distribution::Blocks, ins, ValueRange(), ValueRange(init),
                                   /*scalars=*/Value(), /*active=*/Value(), comm::WalkedAttr(),
                                   comm::ReductionAttr());
    OpBuilder::InsertionGuard guard(builder);
    Block *block = builder.createBlock(&created.getBody(), {}, arguments,
                                       SmallVector<Location>(arguments.size(), loc));
    Value result = body(builder, loc, block->getArguments());
    Type wanted = elementOf(init);
    if (result.getType() != wanted)
      result = arith::TruncFOp::create(builder, loc, wanted, result);
    comm::YieldOp::create(builder, loc, result);
    return created.getResult(0);
  }

  Value multiply(const MatrixProduct &product, Value init) {
    auto unit = [&](bool on) { return on ? builder.getUnitAttr() : UnitAttr(); };
    Value addend = product.addend ? product.addend->batch : Value();
    auto created = ProductOp::create(
        builder, loc, init.getType(), product.lhs.batch, product.rhs.batch, addend, init,
        builder.getF64FloatAttr(product.alpha), builder.getF64FloatAttr(product.beta),
        unit(product.transposeLhs), unit(product.transposeRhs), unit(product.isSymmetric),
        product.shift == 0 ? FloatAttr() : builder.getF64FloatAttr(product.shift));
    return created.getResult();
  }

  OpBuilder builder;
  FlatSymbolRefAttr segment;
  optim::GroupOp group;
  bool beside;
  Location loc;
  plan::Slabs slabs;    // without factors if blocks are whole
  bool isOfAll = false; // whether all ranks along the factors have slabs of the same blocks
  distribute::Communicators communicators;
  Value count; // blocks that this rank computes
};

class ExpandMatrix : public stepc::distribute::impl::ExpandMatrixBase<ExpandMatrix> {
public:
  using ExpandMatrixBase::ExpandMatrixBase;

private:
  /// Per wave, the segments whose results travel back from owners. They travel together.
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
    SmallVector<optim::MatrixOpInterface> ops;
    for (auto step : getOperation().getOps<func::FuncOp>())
      step.walk([&](optim::MatrixOpInterface op) { ops.push_back(op); });
    llvm::SmallPtrSet<Attribute, 8> beside;
    for (auto &[wave, segments] : findTogether())
      if (segments.size() > 1)
        beside.insert_range(segments);
    SymbolTable symbols(getOperation());
    for (optim::MatrixOpInterface op : ops) {
      FlatSymbolRefAttr segment = segmentOfBatch(op);
      for (Value operand : op->getOperands())
        if (auto type = dyn_cast<RankedTensorType>(operand.getType());
            !segment || !type || type.getRank() != 3 || !placeOf(operand)) {
          op->emitOpError("expected a batch of blocks with a place, found ") << operand.getType();
          return signalPassFailure();
        }
      auto group =
          symbols.lookup<optim::GroupOp>(symbols.lookup<SegmentOp>(segment.getAttr()).getGroup());
      BatchBuilder builder(op, segment, group, beside.contains(segment.getAttr()));
      SmallVector<MatrixValue> operands;
      for (Value operand : op->getOperands())
        operands.push_back({operand, placeOf(operand).getValue(), elementOf(operand)});
      Value result = op->getResult(0);
      PlaceAttr place = placeOf(result);
      if (!place || place.isScalars()) {
        op->emitOpError("expected a result with a place, found ") << result.getType();
        return signalPassFailure();
      }
      result.replaceAllUsesWith(op.expand(builder, operands, place.getValue()).batch);
      op->erase();
    }
  }
};

} // namespace
