//===- GpuProduct.cpp - What all kernels of products share -----------------===//

#include "passes/kernels/gpu/GpuProduct.h"
#include "passes/kernels/gpu/WarpgroupProduct.h"

#include "passes/cost/ProductRates.h"
#include "passes/kernels/GpuChips.h"
#include "runtime/plan/TileLists.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace stepc::kernels {

GpuProduct::GpuProduct(exec::ProductOp op, BlockBuilder &b, int64_t tile, int64_t width)
    : op(op), b(b), m(op.getSizes()[0]), n(op.getSizes()[1]), k(op.getSizes()[2]),
      out(op.getOut().getType()), isSymmetric(op.getSymmetric()), hasShift(!op.getShift().isZero()),
      tile(tile), width(width) {
  if (op.getAddend())
    addend = op.getAddend()->getType();
}

std::string GpuProduct::name() {
  auto operand = [&](Type type, bool transposed) {
    return typeName(type) + (transposed ? "t" : "");
  };
  std::string text = llvm::formatv("stepc_product_{0}x{1}x{2}_{3}_{4}_{5}{6}", m, n, k,
                                   operand(op.getLhs().getType(), op.getTransposeLhs()),
                                   operand(op.getRhs().getType(), op.getTransposeRhs()),
                                   typeName(out), isSymmetric ? "_symmetric" : "");
  text += hasShift ? "_shifted" : "";
  if (addend)
    text += "_plus_" + typeName(addend);
  if (op.getAccumulation() == exec::Accumulation::TensorCore)
    text += "_tensorcore";
  return text;
}

int64_t GpuProduct::blocksPerSlot() const {
  int64_t down = ceilDivide(m, tile);
  return isSymmetric ? down * (down + 1) / 2 : down * ceilDivide(n, tile);
}

void GpuProduct::emit() {
  auto [tileRow, tileColumn] = place();
  row0 = b.mul(tileRow, tile);
  column0 = b.mul(tileColumn, tile);
  std::tie(alpha, beta) = b.factors(pointer(factorsArgument(bool(addend))));
  if (hasShift)
    shift = b.factors(pointer(shiftArgument(bool(addend)))).first;
  finish(accumulate(), tileRow, tileColumn);
}

/// The row and column of the GPU block's tile among all tiles. Tiles of a symmetric result are not above the
/// diagonal.
std::pair<Value, Value> GpuProduct::place() {
  int64_t across = ceilDivide(n, tile);
  if (!isSymmetric)
    return {b.quotient(b.item, across), b.remainder(b.item, across)};
  // Row i has i + 1 tiles, so walk down the rows.
  Type i64 = b.getI64Type();
  auto inRegion = [&](ValueRange state, function_ref<void()> body) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(state[0].getParentBlock());
    body();
  };
  auto walk = scf::WhileOp::create(
      b, b.loc, TypeRange{i64, i64}, ValueRange{b.constant(0), b.item},
      [&](OpBuilder &, Location, ValueRange state) {
        inRegion(state,
                 [&] { scf::ConditionOp::create(b, b.loc, b.below(state[0], state[1]), state); });
      },
      [&](OpBuilder &, Location, ValueRange state) {
        inRegion(state, [&] {
          Value next = b.add(state[0], 1);
          scf::YieldOp::create(b, b.loc, ValueRange{next, b.sub(state[1], next)});
        });
      });
  return {walk.getResult(0), walk.getResult(1)};
}

/// alpha · sum + beta · term, for numbers or vectors; without an addend `term` is null.
Value GpuProduct::result(Value sum, Value term) {
  sum = b.scaled(sum, alpha);
  return term ? Value(arith::AddFOp::create(b, b.loc, sum, b.scaled(term, beta))) : sum;
}

void GpuProduct::finish(ArrayRef<Run> runs, Value tileRow, Value tileColumn) {
  outBase = blockOf(outArgument(bool(addend)), out, m * n);
  if (addend)
    addendBase = blockOf(kAddend, addend, m * n);
  if (n % width != 0 || (isSymmetric && m <= tile))
    return oneByOne(runs);
  SmallVector<Value> conditions;
  auto widthOf = [&](Type type) { return width * type.getIntOrFloatBitWidth() / 8; };
  conditions.push_back(b.isMultiple(outBase, widthOf(out)));
  if (addend)
    conditions.push_back(b.isMultiple(addendBase, widthOf(addend)));
  if (m % tile)
    conditions.push_back(b.below(row0, m - tile + 1));
  if (n % tile)
    conditions.push_back(b.below(column0, n - tile + 1));
  if (isSymmetric)
    conditions.push_back(b.below(tileColumn, tileRow));
  Value isWhole = conditions.front();
  for (Value condition : ArrayRef(conditions).drop_front())
    isWhole = b.both(isWhole, condition);
  b.when(isWhole, [&] { whole(runs); }, [&] { oneByOne(runs); });
}

/// Stores a tile that lies inside the result, a run at a time, and its mirror from the same registers.
void GpuProduct::whole(ArrayRef<Run> runs) {
  SmallVector<Value> results;
  for (const Run &run : runs) {
    Value term;
    if (addend) {
      Value bits = b.load(VectorType::get({width}, b.memoryType(addend)),
                          at(addendBase, addend, run.row, run.column),
                          unsigned(width * addend.getIntOrFloatBitWidth() / 8));
      term = b.extend(addend, bits);
    }
    results.push_back(b.narrow(out, result(run.sums, term)));
    store(results.back(), run.row, run.column);
  }
  if (isSymmetric)
    mirror(runs, results);
}

/// Stores the elements that exist in a tile at an edge or on the diagonal. Only symmetric results have a
/// shift, so all elements of the diagonal are stored here.
void GpuProduct::oneByOne(ArrayRef<Run> runs) {
  for (const Run &run : runs)
    for (int64_t c = 0; c < width; ++c) {
      Value column = b.add(run.column, c);
      // Rows of a symmetric result end with the diagonal.
      Value rowEnds = isSymmetric ? b.atMost(column, run.row) : b.below(column, n);
      b.when(b.both(b.below(run.row, m), rowEnds), [&] {
        Value sum = vector::ExtractOp::create(b, b.loc, run.sums, c);
        Value term = addend ? b.read(addend, at(addendBase, addend, run.row, column), 0) : Value();
        Value value = result(sum, term);
        if (hasShift) {
          Value shifted = arith::AddFOp::create(b, b.loc, value, shift);
          Value onDiagonal =
              arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::eq, run.row, column);
          value = arith::SelectOp::create(b, b.loc, onDiagonal, shifted, value);
        }
        b.write(out, value, at(outBase, out, run.row, column));
        if (isSymmetric)
          b.write(out, value, at(outBase, out, column, run.row));
      });
    }
}

exec::Accumulation gpuAccumulation(bool tensorCores, Type lhs, Type rhs) {
  return tensorCores && exec::ProductOp::tensorCoresTake(lhs, rhs) ? exec::Accumulation::TensorCore
                                                                   : exec::Accumulation::FusedChain;
}

ProductTile gpuProductTile(const GpuTarget &target, const cost::BlockProduct &product,
                           exec::Accumulation accumulation) {
  if (accumulation == exec::Accumulation::TensorCore &&
      cost::kernelOf(target.products(), product) == cost::ProductKernel::Warpgroup)
    return {cost::ProductKernel::Warpgroup, plan::kTileBlocks * plan::kTileRows, plan::kTileColumns,
            plan::kTileSteps, plan::kTileStages};
  return gpuProductTile(product.m, product.n, accumulation);
}

ProductTile gpuProductTile(int64_t m, int64_t n, exec::Accumulation accumulation) {
  bool isTensorCore = accumulation == exec::Accumulation::TensorCore;
  auto kernel = isTensorCore ? cost::ProductKernel::TensorCore : cost::ProductKernel::Chain;
  int64_t edge = cost::partOf(kernel, {m, n, 0}).rows;
  if (isTensorCore)
    // Three stages of both operands are 48 KiB, the shared memory that a kernel has without asking for more.
    return {kernel, edge, edge, edge == 128 ? 32 : 64, 3};
  return {kernel, edge, edge, edge == 128 ? 16 : 32, 2};
}

GpuKernels addGpuProductKernels(gpu::GPUModuleOp code, exec::ProductOp op) {
  if (hasWarpgroups(code))
    if (std::optional<WarpgroupForm> form = warpgroupForm(op))
      return {{addWarpgroupKernel(code, *form, op.getLoc()), 1}};
  BlockBuilder b(op.getContext(), op.getLoc());
  std::unique_ptr<GpuProduct> product = op.getAccumulation() == exec::Accumulation::TensorCore
                                            ? tensorCoreProduct(op, b)
                                            : chainProduct(op, b);
  if (product->blocksPerSlot() == 0)
    return {};
  std::string name = product->name();
  auto known = code.lookupSymbol<gpu::GPUFuncOp>(name);
  if (!known) {
    b.begin(code, name, product->arguments(), product->blocksPerSlot());
    product->emit();
    known = b.function;
  }
  return {{known, product->blocksPerSlot()}};
}

} // namespace stepc::kernels
