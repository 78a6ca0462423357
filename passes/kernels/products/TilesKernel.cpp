//===- TilesKernel.cpp - The tiles of a product and their epilogue ---------===//

#include "passes/kernels/products/ProductKernels.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

class TilesEmitter {
public:
  using TileFunction = function_ref<LLVM::LLVMFuncOp(int64_t cols)>;

  TilesEmitter(const ProductSpec &spec, VectorBuilder &builder, TileFunction tileFunction)
      : spec(spec), t(spec.tiling), b(builder), tileFunction(tileFunction) {}

  int64_t items() const {
    int64_t count = 0;
    for (int64_t i = 0; i < ceilDivide(t.rowPanels, t.itemRows); ++i)
      count += spec.symmetric ? columnItems(i) : columnItems();
    return count;
  }

  void emit(LLVM::LLVMFuncOp kernel) {
    Type f32 = b.getF32Type();
    Value arguments = kernel.getArgument(0);
    Value scratch = b.argument(arguments, kScratch);
    Value addend = spec.addend ? b.argument(arguments, kAddend) : Value();
    Value out = b.argument(arguments, outArgument(bool(addend)));
    std::tie(alpha, beta) = b.factors(b.argument(arguments, factorsArgument(bool(addend))));
    tile = b.stack(t.rowStride * t.tileCols);
    b.loop(kernel.getArgument(1), kernel.getArgument(2), 1, [&](Value at) {
      Value slot = b.quotient(at, items());
      auto [itemRow, itemColumn] = place(b.remainder(at, items()));
      Value left = b.address(scratch, f32, b.mul(slot, t.scratchElements()));
      Value right = b.address(left, f32, b.constant(t.rightOffset()));
      Value block = b.mul(slot, t.m * t.n);
      outBlock = b.element(out, spec.out, block);
      if (addend)
        addendBlock = b.element(addend, spec.addend, block);
      Value i0 = b.mul(itemRow, t.itemRows), i1 = b.smaller(b.add(i0, t.itemRows), t.rowPanels);
      Value j0 = b.mul(itemColumn, t.itemCols), j1 = b.smaller(b.add(j0, t.itemCols), t.colPanels);
      b.loop(j0, j1, 1, [&](Value j) {
        Value rightPanel = b.address(right, f32, b.mul(j, t.k * t.tileCols));
        b.loop(i0, i1, 1, [&](Value i) {
          Value leftPanel = b.address(left, f32, b.mul(i, t.k * t.rowStride));
          row0 = b.mul(i, t.tileRows);
          column0 = b.mul(j, t.tileCols);
          auto compute = [&] {
            auto call = [&](LLVM::LLVMFuncOp function) {
              LLVM::CallOp::create(b, b.loc, function,
                                   ValueRange{leftPanel, rightPanel, b.constant(t.k), tile});
            };
            // Half of a tile on the diagonal or at the right edge is often not asked for.
            Value end = spec.symmetric ? b.smaller(b.add(row0, t.tileRows), t.n) : b.constant(t.n);
            b.when(
                b.atMost(end, b.add(column0, t.tileCols / 2)),
                [&] { call(tileFunction(t.tileCols / 2)); },
                [&] { call(tileFunction(t.tileCols)); });
            finish();
          };
          if (!spec.symmetric)
            return compute();
          // A tile that lies above the diagonal is the mirror of one below.
          Value lastRow = b.smaller(b.add(row0, t.tileRows - 1), t.m - 1);
          b.when(b.atMost(column0, lastRow), compute);
        });
      });
    });
  }

private:
  int64_t columnItems() const { return ceilDivide(t.colPanels, t.itemCols); }
  /// Items in row i of items that touch the lower triangle.
  int64_t columnItems(int64_t i) const {
    int64_t rows = std::min(t.m, (i + 1) * t.itemRows * t.tileRows);
    return std::min(columnItems(), ceilDivide(rows, t.itemCols * t.tileCols));
  }

  /// Row and column of an item among items.
  std::pair<Value, Value> place(Value item) {
    if (!spec.symmetric)
      return {b.quotient(item, columnItems()), b.remainder(item, columnItems())};
    // Rows of items grow towards the bottom: walk down them.
    Type i64 = b.getI64Type();
    auto count = [&](Value i) {
      Value rows = b.smaller(b.mul(b.add(i, 1), t.itemRows * t.tileRows), t.m);
      int64_t width = t.itemCols * t.tileCols;
      return b.smaller(b.quotient(b.add(rows, width - 1), width), columnItems());
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
    Value whole = b.both(b.atMost(b.add(row0, t.tileRows), b.constant(t.m)),
                         b.atMost(b.add(column0, t.tileCols), b.constant(t.n)));
    if (spec.symmetric)
      whole = b.both(whole, b.atMost(b.add(column0, t.tileCols - 1), row0));
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

  /// The epilogue of a tile's rows; at an edge only of what lies in the block (and, of a
  /// symmetric one, not above the diagonal).
  void storeRows(bool edge) {
    Type f32 = b.getF32Type();
    Value rows = b.constant(t.tileRows);
    if (edge)
      rows = b.smaller(b.sub(b.constant(t.m), row0), rows);
    b.loop(b.constant(0), rows, 1, [&](Value r) {
      Value row = b.add(row0, r);
      Value at = b.add(b.mul(row, t.n), column0);
      Value end = b.constant(t.n);
      if (edge && spec.symmetric)
        end = b.smaller(b.add(row, 1), end);
      Value tileRow = b.address(tile, f32, b.mul(r, t.tileCols));
      for (int64_t c = 0; c < t.tileCols; c += t.lanes) {
        Value mask = edge ? b.lanesBelow(b.add(column0, c), end, t.lanes) : Value();
        Value tileAt = b.address(tileRow, f32, c), here = b.add(at, c);
        Value addendAt = spec.addend ? b.element(addendBlock, spec.addend, here) : Value();
        Value result = epilogue(b.read(f32, tileAt, t.lanes), addendAt, mask);
        b.write(spec.out, result, b.element(outBlock, spec.out, here), mask);
        if (spec.symmetric)
          b.write(f32, result, tileAt);
      }
    });
  }

  /// Columns of the finished tile as rows of the upper half.
  void mirrorWhole() {
    assert(t.rowStride == t.lanes && "a tile's columns fit in a register");
    Type f32 = b.getF32Type();
    b.loop(0, t.tileCols, t.lanes, [&](Value c) {
      SmallVector<Value> rows;
      Value from = b.address(tile, f32, c);
      for (int64_t r = 0; r < t.lanes; ++r)
        rows.push_back(b.read(f32, b.address(from, f32, r * t.tileCols), t.lanes));
      Value at = b.add(b.mul(b.add(column0, c), t.n), row0);
      Value to = b.element(outBlock, spec.out, at);
      for (auto [i, column] : llvm::enumerate(b.transpose(rows)))
        b.write(spec.out, b.leading(column, t.tileRows), b.element(to, spec.out, int64_t(i) * t.n));
    });
  }

  void mirrorEdge() {
    Type f32 = b.getF32Type();
    Value rows = b.smaller(b.sub(b.constant(t.m), row0), t.tileRows);
    b.loop(b.constant(0), rows, 1, [&](Value r) {
      Value row = b.add(row0, r);
      // Of this row, the columns left of the diagonal.
      Value columns = b.smaller(b.sub(row, column0), t.tileCols);
      b.loop(b.constant(0), columns, 1, [&](Value c) {
        Value result = b.load(f32, b.address(tile, f32, b.add(b.mul(r, t.tileCols), c)));
        b.write(spec.out, result,
                b.element(outBlock, spec.out, b.add(b.mul(b.add(column0, c), t.n), row)));
      });
    });
  }

  const ProductSpec &spec;
  const Tiling &t;
  VectorBuilder &b;
  TileFunction tileFunction;
  Value tile, outBlock, addendBlock, row0, column0, alpha, beta;
};

} // namespace

Kernel tilesKernel(SymbolTable &symbols, const ProductSpec &spec) {
  const Tiling &tiling = spec.tiling;
  std::string name =
      llvm::formatv("stepc_product_{0}_{1}x{2}x{3}_{4}{5}", tiling.chip(), tiling.m, tiling.n,
                    tiling.k, typeName(spec.out), spec.symmetric ? "_symmetric" : "");
  if (spec.addend)
    name += "_plus_" + typeName(spec.addend);
  VectorBuilder builder(symbols.getOp()->getContext(), spec.loc);
  auto tile = [&](int64_t cols) { return tileFunction(symbols, spec, cols); };
  TilesEmitter emitter(spec, builder, tile);
  if (auto known = findKernel(symbols, name))
    return {known, emitter.items()};
  Type i64 = builder.getI64Type();
  auto kernel = startKernel(symbols, name, {builder.pointer, i64, i64}, builder);
  emitter.emit(kernel);
  return {kernel, emitter.items()};
}

} // namespace stepc::kernels
