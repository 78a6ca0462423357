//===- Reduce.cpp - Kernels of #optim.block_reduce --------------------------===//

#include "passes/kernels/BlockKernels.h"
#include "passes/kernels/products/Products.h"
#include "passes/kernels/products/Reducer.h"
#include "passes/kernels/products/Tiling.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

using optim::Reduction;

/// About how many elements an item has, so that it is worth a thread.
constexpr int64_t kItemElements = 1 << 14;
constexpr int64_t kItemColumns = 64;

/// Calls body(item within the slot, slot) for every item of the launch.
void eachItem(VectorBuilder &b, LLVM::LLVMFuncOp kernel, Value items,
              function_ref<void(Value, Value)> body) {
  b.loop(kernel.getArgument(1), kernel.getArgument(2), 1,
         [&](Value at) { body(b.remainder(at, items), b.quotient(at, items)); });
}

/// The numbers that functions of all shapes get as arguments, in order (kernelOfShape).
enum : unsigned { kRowCount, kColCount, kItemCount, kRowsPerItem };

/// Calls body(slot) for every item of a launch with one item per block.
void eachSlot(VectorBuilder &b, LLVM::LLVMFuncOp kernel, function_ref<void(Value)> body) {
  b.loop(kernel.getArgument(1), kernel.getArgument(2), 1, body);
}

/// Calls body(row, slot) for the rows of every item.
void eachRow(VectorBuilder &b, LLVM::LLVMFuncOp kernel, const ShapeValues &shape,
             function_ref<void(Value, Value)> body) {
  Value perItem = shapeNumber(kernel, kRowsPerItem);
  eachItem(b, kernel, shapeNumber(kernel, kItemCount), [&](Value item, Value slot) {
    Value first = b.mul(item, perItem), last = b.smaller(b.add(first, perItem), shape.rows);
    b.loop(first, last, 1, [&](Value row) { body(row, slot); });
  });
}
int64_t rowsPerItem(const Shape &shape) {
  return std::max<int64_t>(1, kItemElements / std::max<int64_t>(1, shape.cols));
}

/// The arguments of every kernel, in order.
enum : int64_t { kScratch, kSource, kOut };

Value buffer(VectorBuilder &b, LLVM::LLVMFuncOp kernel, int64_t index) {
  return b.argument(kernel.getArgument(0), index);
}

/// Emits one result per row. With `raw` this is the chain's value, as f32 into the scratch.
void emitRows(Reducer &reducer, LLVM::LLVMFuncOp kernel, const ShapeValues &shape, bool raw) {
  VectorBuilder &b = reducer.b;
  reducer.begin();
  Value source = buffer(b, kernel, kSource), out = buffer(b, kernel, raw ? kScratch : kOut);
  eachRow(b, kernel, shape, [&](Value row, Value slot) {
    Value from = reducer.rowOf(shape, source, slot, row);
    auto line = [&](Value scale) {
      return reducer.line(shape.type, from, shape.cols, false, scale);
    };
    Value result = line({});
    if (!raw)
      result = reducer.result(result, shape.cols, line);
    b.store(result, b.element(out, b.getF32Type(), b.add(b.mul(slot, shape.rows), row)));
  });
}

/// Emits one result per block, from partial results of rows in the scratch. With `raw` this is the chain's
/// value.
void emitCombine(Reducer &reducer, LLVM::LLVMFuncOp kernel, const ShapeValues &shape, bool raw) {
  VectorBuilder &b = reducer.b;
  reducer.begin();
  Type f32 = b.getF32Type();
  Value partials = buffer(b, kernel, kScratch), out = buffer(b, kernel, kOut);
  eachSlot(b, kernel, [&](Value slot) {
    Value from = b.element(partials, f32, b.mul(slot, shape.rows));
    Value result = reducer.line(f32, from, shape.rows, true);
    if (!raw)
      result = reducer.result(result, b.mul(shape.rows, shape.cols), nullptr);
    b.store(result, b.element(out, f32, slot));
  });
}

/// The out has the sum of squares so far. If the sum left its range, emits partial results of scaled rows.
void emitRescale(Reducer &reducer, LLVM::LLVMFuncOp kernel, const ShapeValues &shape) {
  VectorBuilder &b = reducer.b;
  reducer.begin();
  Type f32 = b.getF32Type();
  Value source = buffer(b, kernel, kSource), partials = buffer(b, kernel, kScratch);
  Value sum = buffer(b, kernel, kOut);
  eachRow(b, kernel, shape, [&](Value row, Value slot) {
    auto [outside, scale] = reducer.scaleOf(b.load(f32, b.element(sum, f32, slot)));
    b.when(outside, [&, scale = scale] {
      Value from = reducer.rowOf(shape, source, slot, row);
      b.store(reducer.line(shape.type, from, shape.cols, false, scale),
              b.element(partials, f32, b.add(b.mul(slot, shape.rows), row)));
    });
  });
}

/// Replaces the sum of squares in the out by the result.
void emitRoot(Reducer &reducer, LLVM::LLVMFuncOp kernel, const ShapeValues &shape) {
  VectorBuilder &b = reducer.b;
  reducer.begin();
  Type f32 = b.getF32Type();
  Value partials = buffer(b, kernel, kScratch), out = buffer(b, kernel, kOut);
  eachSlot(b, kernel, [&](Value slot) {
    Value at = b.element(out, f32, slot);
    Value result = reducer.result(b.load(f32, at), b.mul(shape.rows, shape.cols), [&](Value) {
      return reducer.line(f32, b.element(partials, f32, b.mul(slot, shape.rows)), shape.rows, true);
    });
    b.store(result, at);
  });
}

/// Emits one result per block without scratch. Its bits are those of emitRows and emitCombine.
void emitOne(Reducer &reducer, LLVM::LLVMFuncOp kernel, const ShapeValues &shape) {
  VectorBuilder &b = reducer.b;
  reducer.begin();
  Value source = buffer(b, kernel, kSource), out = buffer(b, kernel, kOut);
  eachSlot(b, kernel, [&](Value slot) {
    auto block = [&](Value scale) { return reducer.block(shape, source, slot, scale); };
    b.store(reducer.result(block({}), b.mul(shape.rows, shape.cols), block),
            b.element(out, b.getF32Type(), slot));
  });
}

/// Emits one result per column.
void emitCols(Reducer &reducer, LLVM::LLVMFuncOp kernel, const ShapeValues &shape) {
  VectorBuilder &b = reducer.b;
  Type f32 = b.getF32Type();
  Value partials = b.stack(kPartials * kItemColumns);
  Value source = buffer(b, kernel, kSource), out = buffer(b, kernel, kOut);
  eachItem(b, kernel, shapeNumber(kernel, kItemCount), [&](Value item, Value slot) {
    Value first = b.mul(item, kItemColumns);
    Value columns = b.smaller(b.sub(shape.cols, first), kItemColumns);
    Value whole = b.mul(b.quotient(columns, kPartials), kPartials);
    auto partial = [&](Value j, Value c) {
      return b.element(partials, f32, b.add(b.mul(j, kItemColumns), c));
    };
    /// A column is one chain, so that vectors and single columns give the same bits.
    auto eachColumn = [&](function_ref<void(Value, int64_t)> body) {
      b.loop(b.constant(0), whole, kPartials, [&](Value c) { body(c, kPartials); });
      b.loop(whole, columns, 1, [&](Value c) { body(c, 0); });
    };
    auto clear = [&](Value c, int64_t lanes) {
      Type type = lanes ? Type(b.vector(lanes)) : f32;
      for (int64_t j = 0; j < kPartials; ++j)
        b.write(f32, b.number(type, reducer.neutral), partial(b.constant(j), c));
    };
    auto addRow = [&](Value row, Value c, int64_t lanes, Value scale) {
      Value line = b.mul(b.add(b.mul(slot, shape.rows), row), shape.cols);
      Value from = b.element(source, shape.type, b.add(line, first));
      Value at = partial(b.remainder(row, kPartials), c);
      Value x = b.read(shape.type, b.element(from, shape.type, c), lanes);
      b.write(f32, reducer.combine(b.read(f32, at, lanes), reducer.term(x, scale)), at);
    };
    auto gather = [&](Value c, int64_t lanes) {
      SmallVector<Value> chains;
      for (int64_t j = 0; j < kPartials; ++j)
        chains.push_back(b.read(f32, partial(b.constant(j), c), lanes));
      for (int64_t half = kPartials / 2; half >= 1; half /= 2)
        for (int64_t j = 0; j < half; ++j)
          chains[j] = reducer.combine(chains[j], chains[j + half]);
      return chains[0];
    };
    eachColumn(clear);
    b.loop(b.constant(0), shape.rows, 1, [&](Value row) {
      eachColumn([&](Value c, int64_t lanes) { addRow(row, c, lanes, {}); });
    });
    eachColumn([&](Value c, int64_t lanes) {
      Value result = reducer.result(gather(c, lanes), shape.rows, [&](Value scale) {
        clear(c, lanes);
        b.loop(b.constant(0), shape.rows, 1, [&](Value row) { addRow(row, c, lanes, scale); });
        return gather(c, lanes);
      });
      Value at = b.add(b.add(b.mul(slot, shape.cols), first), c);
      b.write(f32, result, b.element(out, f32, at));
    });
  });
}

} // namespace

bool BlockReduction::isShared() const {
  return remains() == interpret::Remains::One && source.getRows() > 1 &&
         source.getRows() * source.getCols() > kItemElements;
}

std::string BlockReduction::nameOf(StringRef what, StringRef shape) const {
  std::string name = llvm::formatv("stepc_reduce_{0}_{1}{2}_{3}", plan::name(function.getKind()),
                                   what, shape, source.getType());
  int64_t exponent = function.getExponent();
  if (exponent != 0)
    name += llvm::formatv("_{0}{1}", exponent < 0 ? "m" : "p", std::abs(exponent));
  return name;
}

std::string BlockReduction::kernelName(StringRef what) const {
  return nameOf(what, llvm::formatv("_{0}x{1}", source.getRows(), source.getCols()).str());
}

int64_t ReduceKernels::scratchBytesPerBlock(exec::ApplyOp op) const {
  BlockReduction reduction(op);
  return reduction.isShared() ? 4 * reduction.source.getRows() : 0;
}

Kernels ReduceKernels::onCpu(SymbolTable &symbols, exec::ApplyOp op) const {
  BlockReduction reduction(op);
  Shape shape = reduction.shape();
  Kernels kernels;
  Reduction kind = reduction.function.getKind();
  bool squares = kind == Reduction::Rms || kind == Reduction::Norm;
  auto add = [&](StringRef what, int64_t items,
                 function_ref<void(Reducer &, LLVM::LLVMFuncOp, const ShapeValues &)> emit) {
    if (items == 0)
      return;
    auto all = [&](VectorBuilder &b, LLVM::LLVMFuncOp function) {
      Reducer reducer(b, reduction.function);
      emit(reducer, function,
           {shape.type, shapeNumber(function, kRowCount), shapeNumber(function, kColCount)});
    };
    kernels.push_back(
        {kernelOfShape(symbols, reduction.kernelName(what), reduction.functionName(what),
                       {shape.rows, shape.cols, items, rowsPerItem(shape)}, op.getLoc(), all),
         items});
  };
  using Function = LLVM::LLVMFuncOp;
  using Values = const ShapeValues &;
  int64_t rowItems = ceilDivide(shape.rows, rowsPerItem(shape));
  if (reduction.isShared()) {
    add("partials", rowItems, [&](Reducer &r, Function f, Values s) { emitRows(r, f, s, true); });
    add("combine", 1, [&](Reducer &r, Function f, Values s) { emitCombine(r, f, s, squares); });
    if (squares) {
      // Two more kernels, so that all threads also share a block whose squares left their range.
      add("rescale", rowItems, emitRescale);
      add("root", 1, emitRoot);
    }
  } else if (reduction.remains() == interpret::Remains::One) {
    add("one", 1, emitOne);
  } else if (reduction.remains() == interpret::Remains::Rows) {
    add("rows", rowItems, [&](Reducer &r, Function f, Values s) { emitRows(r, f, s, false); });
  } else {
    add("cols", ceilDivide(shape.cols, kItemColumns), emitCols);
  }
  return kernels;
}

BlockKernels::Interpreted ReduceKernels::interpreted(exec::ApplyOp op) const {
  BlockReduction reduction(op);
  interpret::ReduceKernel record;
  record.reduction = reduction.function.getKind();
  record.exponent = reduction.function.getExponent();
  record.remains = reduction.remains();
  record.type = *optim::toPlan(reduction.source.getType());
  record.rows = reduction.source.getRows();
  record.cols = reduction.source.getCols();
  return {{reduction.kernelName(plan::name(record.remains)), record}, record.itemsPerBlock()};
}

} // namespace stepc::kernels
