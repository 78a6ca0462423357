//===- TilesKernel.cpp - The tiles of a product and their epilogue ---------===//

#include "passes/kernels/products/ProductKernels.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

/// mirror(square of the finished tile, out, n): stores `lanes` columns of a tile as rows of the upper half, n
/// elements apart. A chip has one per type.
LLVM::LLVMFuncOp mirrorFunction(SymbolTable &symbols, const ProductSpec &spec) {
  const Tiling &tiling = spec.tiling;
  assert(tiling.rowStride == tiling.lanes && "a tile's columns fit in a register");
  std::string name = "stepc_product_mirror_" + tiling.chip() + "_" + typeName(spec.out);
  if (auto known = findKernel(symbols, name))
    return known;
  VectorBuilder b(symbols.getOp()->getContext(), spec.loc);
  auto function = startKernel(symbols, name, {b.pointer, b.pointer, b.getI64Type()}, b);
  function.setNoInline(true);
  Value from = function.getArgument(0), to = function.getArgument(1), n = function.getArgument(2);
  Type f32 = b.getF32Type();
  SmallVector<Value> rows;
  for (int64_t r = 0; r < tiling.lanes; ++r)
    rows.push_back(b.read(f32, b.address(from, f32, r * tiling.tileCols), tiling.lanes));
  for (auto [i, column] : llvm::enumerate(b.transpose(rows)))
    b.write(spec.out, b.leading(column, tiling.tileRows),
            b.element(to, spec.out, b.mul(n, int64_t(i))));
  return function;
}

class TilesEmitter {
public:
  TilesEmitter(const ProductSpec &spec, VectorBuilder &builder, SymbolTable &symbols)
      : spec(spec), t(spec.tiling), b(builder), symbols(symbols) {}

  void emit(LLVM::LLVMFuncOp kernel) {
    Type f32 = b.getF32Type();
    m = shapeNumber(kernel, 0);
    n = shapeNumber(kernel, 1);
    itemRows = shapeNumber(kernel, 3);
    Value k = shapeNumber(kernel, 2), items = shapeNumber(kernel, 4);
    TilingValues shape(b, t, m, n, k);
    columnItems = b.quotientUp(shape.colPanels, t.itemCols);
    Value arguments = kernel.getArgument(0);
    Value scratch = b.argument(arguments, kScratch);
    Value addend = spec.addend ? b.argument(arguments, kAddend) : Value();
    Value out = b.argument(arguments, outArgument(bool(addend)));
    std::tie(alpha, beta) = b.factors(b.argument(arguments, factorsArgument(bool(addend))));
    if (spec.hasShift)
      shift = b.factors(b.argument(arguments, shiftArgument(bool(addend)))).first;
    tile = b.stack(t.rowStride * t.tileCols);
    b.loop(kernel.getArgument(1), kernel.getArgument(2), 1, [&](Value at) {
      Value slot = b.quotient(at, items);
      auto [itemRow, itemColumn] = place(b.remainder(at, items));
      Value left = b.address(scratch, f32, b.mul(slot, shape.scratchElements));
      Value right = b.address(left, f32, shape.rightOffset);
      Value block = b.mul(slot, b.mul(m, n));
      outBlock = b.element(out, spec.out, block);
      if (addend)
        addendBlock = b.element(addend, spec.addend, block);
      Value i0 = b.mul(itemRow, itemRows), i1 = b.smaller(b.add(i0, itemRows), shape.rowPanels);
      Value j0 = b.mul(itemColumn, t.itemCols);
      Value j1 = b.smaller(b.add(j0, t.itemCols), shape.colPanels);
      b.loop(j0, j1, 1, [&](Value j) {
        Value rightPanel = b.address(right, f32, b.mul(b.mul(j, k), t.tileCols));
        b.loop(i0, i1, 1, [&](Value i) {
          Value leftPanel = b.address(left, f32, b.mul(b.mul(i, k), t.rowStride));
          row0 = b.mul(i, t.tileRows);
          column0 = b.mul(j, t.tileCols);
          auto compute = [&] {
            auto call = [&](LLVM::LLVMFuncOp function) {
              LLVM::CallOp::create(b, b.loc, function, ValueRange{leftPanel, rightPanel, k, tile});
            };
            // On the diagonal and at the right edge, the right half of a tile is often not needed.
            Value end = spec.symmetric ? b.smaller(b.add(row0, t.tileRows), n) : n;
            b.when(
                b.atMost(end, b.add(column0, t.tileCols / 2)),
                [&] { call(tileFunction(symbols, spec, t.tileCols / 2)); },
                [&] { call(tileFunction(symbols, spec, t.tileCols)); });
            finish();
          };
          if (!spec.symmetric)
            return compute();
          // A tile above the diagonal is not computed, because it is the mirror of a tile below.
          Value lastRow = b.smaller(b.add(row0, t.tileRows - 1), b.add(m, -1));
          b.when(b.atMost(column0, lastRow), compute);
        });
      });
    });
  }

private:
  /// The row and column of an item in the grid of items.
  std::pair<Value, Value> place(Value item) {
    if (!spec.symmetric)
      return {b.quotient(item, columnItems), b.remainder(item, columnItems)};
    // If the product is symmetric, lower rows of the grid have more items. So walk down the rows.
    Type i64 = b.getI64Type();
    auto count = [&](Value i) { // the number of items in row i
      Value rows = b.smaller(b.mul(b.mul(b.add(i, 1), itemRows), t.tileRows), m);
      return b.smaller(b.quotientUp(rows, t.itemCols * t.tileCols), columnItems);
    };
    auto walk = scf::WhileOp::create(
        b, b.loc, TypeRange{i64, i64}, ValueRange{b.constant(0), item},
        [&](OpBuilder &, Location, ValueRange state) {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToEnd(state[0].getParentBlock());
          Value beyond = b.atMost(count(state[0]), state[1]);
          scf::ConditionOp::create(b, b.loc, beyond, state);
        },
        [&](OpBuilder &, Location, ValueRange state) {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToEnd(state[0].getParentBlock());
          scf::YieldOp::create(b, b.loc,
                               ValueRange{b.add(state[0], 1), b.sub(state[1], count(state[0]))});
        });
    return {walk.getResult(0), walk.getResult(1)};
  }

  void finish() {
    Value whole =
        b.both(b.atMost(b.add(row0, t.tileRows), m), b.atMost(b.add(column0, t.tileCols), n));
    // With a shift, a whole tile has no element of the diagonal.
    if (spec.symmetric)
      whole = b.both(whole, b.atMost(b.add(column0, t.tileCols - (spec.hasShift ? 0 : 1)), row0));
    b.when(
        whole,
        [&] {
          storeRows(false);
          if (spec.symmetric)
            mirrorWhole();
        },
        [&] {
          storeRows(true);
          if (spec.symmetric)
            mirrorEdge();
        });
  }

  Value epilogue(Value sum, Value addendAt, Value mask) {
    int64_t lanes = t.lanes;
    sum = b.scaled(sum, alpha);
    if (!addendAt)
      return sum;
    Value term = b.read(spec.addend, addendAt, lanes, mask);
    return arith::AddFOp::create(b, b.loc, sum, b.scaled(term, beta));
  }

  /// Adds the shift to the element of column `row` among the elements from `column` on.
  Value shiftDiagonal(Value result, Value row, Value column) {
    Value before = b.lanesBelow(column, row, t.lanes);
    Value upTo = b.lanesBelow(column, b.add(row, 1), t.lanes);
    Value here = arith::XOrIOp::create(b, b.loc, before, upTo);
    Value shifted = arith::AddFOp::create(b, b.loc, result, b.broadcast(shift, t.lanes));
    return arith::SelectOp::create(b, b.loc, here, shifted, result);
  }

  /// Computes the epilogue of a tile's rows and stores them. At an edge only elements inside the block are
  /// stored. If the product is symmetric, elements above the diagonal are not stored either.
  void storeRows(bool edge) {
    Type f32 = b.getF32Type();
    // Unrolled here, because LLVM does not unroll a loop whose stride it does not know.
    if (!edge) {
      Value at = b.add(b.mul(row0, n), column0);
      for (int64_t r = 0; r < t.tileRows; ++r, at = b.add(at, n))
        storeRow(at, b.address(tile, f32, r * t.tileCols), {});
      return;
    }
    b.loop(b.constant(0), b.smaller(b.sub(m, row0), t.tileRows), 1, [&](Value r) {
      Value row = b.add(row0, r);
      Value end = spec.symmetric ? b.smaller(b.add(row, 1), n) : n;
      storeRow(b.add(b.mul(row, n), column0), b.address(tile, f32, b.mul(r, t.tileCols)), end, row);
    });
  }

  /// Stores a tile's row to the block, from element `at` on. With `end`, only columns before `end` are
  /// stored, and the element on the diagonal of `row` gets the shift.
  void storeRow(Value at, Value tileRow, Value end, Value row = {}) {
    Type f32 = b.getF32Type();
    for (int64_t c = 0; c < t.tileCols; c += t.lanes) {
      Value mask = end ? b.lanesBelow(b.add(column0, c), end, t.lanes) : Value();
      Value tileAt = b.address(tileRow, f32, c), here = b.add(at, c);
      Value addendAt = spec.addend ? b.element(addendBlock, spec.addend, here) : Value();
      Value result = epilogue(b.read(f32, tileAt, t.lanes), addendAt, mask);
      if (spec.hasShift && row)
        result = shiftDiagonal(result, row, b.add(column0, c));
      b.write(spec.out, result, b.element(outBlock, spec.out, here), mask);
      if (spec.symmetric)
        b.write(f32, result, tileAt);
    }
  }

  /// Stores columns of the finished tile as rows of the upper half.
  void mirrorWhole() {
    LLVM::LLVMFuncOp mirror = mirrorFunction(symbols, spec);
    b.loop(0, t.tileCols, t.lanes, [&](Value c) {
      Value from = b.address(tile, b.getF32Type(), c);
      Value at = b.add(b.mul(b.add(column0, c), n), row0);
      LLVM::CallOp::create(b, b.loc, mirror,
                           ValueRange{from, b.element(outBlock, spec.out, at), n});
    });
  }

  void mirrorEdge() {
    Type f32 = b.getF32Type();
    Value rows = b.smaller(b.sub(m, row0), t.tileRows);
    b.loop(b.constant(0), rows, 1, [&](Value r) {
      Value row = b.add(row0, r);
      // The columns of this row that are left of the diagonal.
      Value columns = b.smaller(b.sub(row, column0), t.tileCols);
      b.loop(b.constant(0), columns, 1, [&](Value c) {
        Value result = b.load(f32, b.address(tile, f32, b.add(b.mul(r, t.tileCols), c)));
        b.write(spec.out, result,
                b.element(outBlock, spec.out, b.add(b.mul(b.add(column0, c), n), row)));
      });
    });
  }

  const ProductSpec &spec;
  const Tiling &t;
  VectorBuilder &b;
  SymbolTable &symbols;
  Value m, n, itemRows, columnItems;
  Value tile, outBlock, addendBlock, row0, column0, alpha, beta, shift;
};

/// The number of items in row i of the grid of items. If the product is symmetric, only items that touch the
/// lower triangle count.
int64_t columnItems(const ProductSpec &spec, int64_t i) {
  const Tiling &t = spec.tiling;
  int64_t all = ceilDivide(t.colPanels, t.itemCols);
  int64_t rows = std::min(t.m, (i + 1) * t.itemRows * t.tileRows);
  return spec.symmetric ? std::min(all, ceilDivide(rows, t.itemCols * t.tileCols)) : all;
}

} // namespace

Kernel tilesKernel(SymbolTable &symbols, const ProductSpec &spec) {
  const Tiling &tiling = spec.tiling;
  std::string kind = typeName(spec.out) + (spec.symmetric ? "_symmetric" : "") +
                     (spec.hasShift ? "_shifted" : "") +
                     (spec.addend ? "_plus_" + typeName(spec.addend) : "");
  int64_t items = 0;
  for (int64_t i = 0; i < ceilDivide(tiling.rowPanels, tiling.itemRows); ++i)
    items += columnItems(spec, i);
  auto emit = [&](VectorBuilder &builder, LLVM::LLVMFuncOp kernel) {
    TilesEmitter(spec, builder, symbols).emit(kernel);
  };
  return {kernelOfShape(symbols,
                        llvm::formatv("stepc_product_{0}_{1}x{2}x{3}_{4}", tiling.chip(), tiling.m,
                                      tiling.n, tiling.k, kind)
                            .str(),
                        "stepc_product_tiles_" + tiling.chip() + "_" + kind,
                        {tiling.m, tiling.n, tiling.k, tiling.itemRows, items}, spec.loc, emit),
          items};
}

} // namespace stepc::kernels
