//===- Reduce.cpp - optim.block_reduce as kernels --------------------------===//

#include "passes/kernels/products/Contiguous.h"
#include "passes/kernels/products/Products.h"
#include "passes/kernels/products/Tiling.h"
#include "passes/kernels/products/VectorBuilder.h"

#include "llvm/Support/FormatVariadic.h"

#include <limits>

using namespace mlir;

namespace stepc::kernels {
namespace {

using optim::Reduction;

/// Interleaved partial results of every chain: part of what a reduction means, on every chip.
constexpr int64_t kPartials = 16;
/// Elements that make an item worth a thread's while.
constexpr int64_t kItemElements = 1 << 14;
constexpr int64_t kItemColumns = 64;

class Reducer {
public:
  Reducer(VectorBuilder &builder, Reduction kind)
      : b(builder), kind(kind), isMax(kind == Reduction::Max) {
    // Sums start at +0 and so never become -0: padding with the start value changes nothing.
    neutral = isMax ? -std::numeric_limits<float>::infinity() : 0.0f;
  }

  Value combine(Value a, Value c) {
    if (isMax)
      return arith::MaximumFOp::create(b, b.loc, a, c);
    return arith::AddFOp::create(b, b.loc, a, c);
  }
  /// What an element of the source adds to a chain.
  Value term(Value x) {
    bool square = kind == Reduction::Rms || kind == Reduction::Norm;
    return square ? Value(arith::MulFOp::create(b, b.loc, x, x)) : x;
  }
  Value finish(Value x, int64_t count) {
    if (kind == Reduction::Mean || kind == Reduction::Rms)
      x = arith::DivFOp::create(b, b.loc, x, b.number(x.getType(), float(count)));
    if (kind == Reduction::Rms || kind == Reduction::Norm)
      x = LLVM::SqrtOp::create(b, b.loc, x);
    return x;
  }

  /// partial j + partial j + 8, then 4, 2, 1.
  Value pairwise(Value partials) {
    for (int64_t half = kPartials / 2; half >= 1; half /= 2) {
      auto part = [&](int64_t first) -> Value {
        return vector::ShuffleOp::create(b, b.loc, partials, partials,
                                         llvm::to_vector(llvm::seq(first, first + half)));
      };
      partials = combine(part(0), part(half));
    }
    return vector::ExtractOp::create(b, b.loc, partials, 0);
  }

  /// Sets up the memory that line() uses; in the entry block.
  void begin() {
    tail = b.stack(kPartials);
    b.write(b.getF32Type(), b.number(b.vector(kPartials), neutral), tail);
  }
  /// One line of `count` neighbours; `raw` ones are results of chains already.
  Value line(Type type, Value from, int64_t count, bool raw) {
    auto termOf = [&](Value x) { return raw ? x : term(x); };
    int64_t whole = count / kPartials * kPartials;
    Value sum = b.fold(b.constant(0), b.constant(whole), kPartials,
                       b.number(b.vector(kPartials), neutral), [&](Value i, Value partials) {
                         return combine(partials,
                                        termOf(b.read(type, b.element(from, type, i), kPartials)));
                       });
    if (whole < count) {
      b.loop(whole, count, 1, [&](Value i) {
        b.store(termOf(b.read(type, b.element(from, type, i), 0)),
                b.element(tail, b.getF32Type(), b.add(i, -whole)));
      });
      sum = combine(sum, b.read(b.getF32Type(), tail, kPartials));
    }
    return pairwise(sum);
  }

  VectorBuilder &b;
  Reduction kind;
  bool isMax;
  float neutral;

private:
  Value tail;
};

struct Shape {
  Type type, outType;
  int64_t rows, cols;
};

/// f(item of a slot, slot) for every item of the launch.
void eachItem(VectorBuilder &b, LLVM::LLVMFuncOp kernel, int64_t items,
              function_ref<void(Value, Value)> body) {
  b.loop(kernel.getArgument(1), kernel.getArgument(2), 1,
         [&](Value at) { body(b.remainder(at, items), b.quotient(at, items)); });
}

/// (source, out): one result per row; with raw, the chain's value as f32.
int64_t emitRows(VectorBuilder &b, LLVM::LLVMFuncOp kernel, Reduction kind, Shape shape, bool raw) {
  int64_t perItem = std::max<int64_t>(1, kItemElements / std::max<int64_t>(1, shape.cols));
  int64_t items = ceilDivide(shape.rows, perItem);
  Reducer reducer(b, kind);
  reducer.begin();
  Value source = b.argument(kernel.getArgument(0), 0), out = b.argument(kernel.getArgument(0), 1);
  eachItem(b, kernel, items, [&](Value item, Value slot) {
    Value first = b.mul(item, perItem), last = b.smaller(b.add(first, perItem), shape.rows);
    b.loop(first, last, 1, [&](Value row) {
      Value line = b.add(b.mul(slot, shape.rows), row);
      Value from = b.element(source, shape.type, b.mul(line, shape.cols));
      Value result = reducer.line(shape.type, from, shape.cols, false);
      Type type = raw ? b.getF32Type() : shape.outType;
      b.write(type, raw ? result : reducer.finish(result, shape.cols), b.element(out, type, line));
    });
  });
  return items;
}

/// (row partials, out): one result per block.
int64_t emitCombine(VectorBuilder &b, LLVM::LLVMFuncOp kernel, Reduction kind, Shape shape) {
  Reducer reducer(b, kind);
  reducer.begin();
  Value source = b.argument(kernel.getArgument(0), 0), out = b.argument(kernel.getArgument(0), 1);
  eachItem(b, kernel, 1, [&](Value, Value slot) {
    Value from = b.element(source, b.getF32Type(), b.mul(slot, shape.rows));
    Value result = reducer.line(b.getF32Type(), from, shape.rows, true);
    b.write(shape.outType, reducer.finish(result, shape.rows * shape.cols),
            b.element(out, shape.outType, slot));
  });
  return 1;
}

/// (source, out): one result per block without memory for row partials; the same bits.
int64_t emitOne(VectorBuilder &b, LLVM::LLVMFuncOp kernel, Reduction kind, Shape shape) {
  Reducer reducer(b, kind);
  reducer.begin();
  Type f32 = b.getF32Type();
  Value partials = b.stack(kPartials);
  Value source = b.argument(kernel.getArgument(0), 0), out = b.argument(kernel.getArgument(0), 1);
  eachItem(b, kernel, 1, [&](Value, Value slot) {
    b.write(f32, b.number(b.vector(kPartials), reducer.neutral), partials);
    b.loop(0, shape.rows, 1, [&](Value row) {
      Value line = b.add(b.mul(slot, shape.rows), row);
      Value from = b.element(source, shape.type, b.mul(line, shape.cols));
      Value at = b.element(partials, f32, b.remainder(row, kPartials));
      b.store(reducer.combine(b.load(f32, at), reducer.line(shape.type, from, shape.cols, false)),
              at);
    });
    Value result = reducer.pairwise(b.read(f32, partials, kPartials));
    b.write(shape.outType, reducer.finish(result, shape.rows * shape.cols),
            b.element(out, shape.outType, slot));
  });
  return 1;
}

/// (source, out): one result per column.
int64_t emitCols(VectorBuilder &b, LLVM::LLVMFuncOp kernel, Reduction kind, Shape shape) {
  int64_t items = ceilDivide(shape.cols, kItemColumns);
  Reducer reducer(b, kind);
  Type f32 = b.getF32Type();
  Value partials = b.stack(kPartials * kItemColumns);
  Value source = b.argument(kernel.getArgument(0), 0), out = b.argument(kernel.getArgument(0), 1);
  eachItem(b, kernel, items, [&](Value item, Value slot) {
    Value first = b.mul(item, kItemColumns);
    Value columns = b.smaller(b.sub(b.constant(shape.cols), first), kItemColumns);
    Value whole = b.mul(b.quotient(columns, kPartials), kPartials);
    auto partial = [&](Value j, Value c) {
      return b.element(partials, f32, b.add(b.mul(j, kItemColumns), c));
    };
    /// A column is one chain, so that vectors and single columns give the same bits.
    auto eachColumn = [&](function_ref<void(Value, int64_t)> body) {
      b.loop(b.constant(0), whole, kPartials, [&](Value c) { body(c, kPartials); });
      b.loop(whole, columns, 1, [&](Value c) { body(c, 0); });
    };
    b.loop(0, kPartials * kItemColumns, kPartials, [&](Value i) {
      b.write(f32, b.number(b.vector(kPartials), reducer.neutral), b.element(partials, f32, i));
    });
    b.loop(0, shape.rows, 1, [&](Value row) {
      Value line = b.mul(b.add(b.mul(slot, shape.rows), row), shape.cols);
      Value from = b.element(source, shape.type, b.add(line, first));
      Value j = b.remainder(row, kPartials);
      eachColumn([&](Value c, int64_t lanes) {
        Value at = partial(j, c), x = b.read(shape.type, b.element(from, shape.type, c), lanes);
        b.write(f32, reducer.combine(b.read(f32, at, lanes), reducer.term(x)), at);
      });
    });
    eachColumn([&](Value c, int64_t lanes) {
      SmallVector<Value> chains;
      for (int64_t j = 0; j < kPartials; ++j)
        chains.push_back(b.read(f32, partial(b.constant(j), c), lanes));
      for (int64_t half = kPartials / 2; half >= 1; half /= 2)
        for (int64_t j = 0; j < half; ++j)
          chains[j] = reducer.combine(chains[j], chains[j + half]);
      Value at = b.add(b.add(b.mul(slot, shape.cols), first), c);
      b.write(shape.outType, reducer.finish(chains[0], shape.rows),
              b.element(out, shape.outType, at));
    });
  });
  return items;
}

} // namespace

int64_t reduceScratchElements(int64_t rows, int64_t cols, int64_t resultRows, int64_t resultCols) {
  // One item's worth is done faster in one launch.
  bool one = resultRows == 1 && resultCols == 1;
  return one && rows > 1 && rows * cols > kItemElements ? rows : 0;
}

FailureOr<SmallVector<KernelLaunch>> emitBlockReduce(SymbolTable &symbols, optim::BlockReduceOp op,
                                                     const TargetShape &target) {
  for (Value value : op->getOperands())
    if (failed(checkContiguous(op, value)))
      return failure();
  Value source = op.getSource(), out = op.getOuts()[0];
  Value scratch = op.getOuts().size() == 2 ? op.getOuts()[1] : Value();
  auto from = cast<MemRefType>(source.getType()), to = cast<MemRefType>(out.getType());
  Shape shape{from.getElementType(), to.getElementType(), from.getDimSize(1), from.getDimSize(2)};
  if (scratch && (!cast<MemRefType>(scratch.getType()).getElementType().isF32() ||
                  elementsPerBlock(scratch) != shape.rows))
    return op.emitOpError("expected scratch of ")
           << shape.rows << " x f32 per block, found " << scratch.getType();
  SmallVector<KernelLaunch> launches;
  using Emitter = function_ref<int64_t(VectorBuilder &, LLVM::LLVMFuncOp)>;
  auto launch = [&](StringRef what, ArrayRef<Value> buffers, Emitter emit) {
    std::string types;
    llvm::raw_string_ostream(types) << shape.type << '_' << shape.outType;
    std::string name =
        llvm::formatv("stepc_reduce_{0}_{1}_{2}x{3}_{4}", optim::stringifyReduction(op.getKind()),
                      what, shape.rows, shape.cols, types);
    // The count of items is a by-product of the code: kept on the function.
    constexpr StringLiteral kItems = "stepc.items";
    LLVM::LLVMFuncOp kernel = findKernel(symbols, name);
    if (!kernel) {
      VectorBuilder b(symbols.getOp()->getContext(), op.getLoc());
      kernel = startKernel(symbols, name, {b.pointer, b.getI64Type(), b.getI64Type()}, b);
      kernel->setAttr(kItems, b.getI64IntegerAttr(emit(b, kernel)));
    }
    int64_t items = kernel->getAttrOfType<IntegerAttr>(kItems).getInt();
    if (items > 0)
      launches.push_back({kernel, SmallVector<Value>(buffers), items});
  };
  if (to.getDimSize(1) == 1 && to.getDimSize(2) == 1) {
    if (!scratch || shape.rows == 0) {
      launch("one", {source, out}, [&](VectorBuilder &b, LLVM::LLVMFuncOp f) {
        return emitOne(b, f, op.getKind(), shape);
      });
      return launches;
    }
    launch("partials", {source, scratch}, [&](VectorBuilder &b, LLVM::LLVMFuncOp f) {
      return emitRows(b, f, op.getKind(), shape, true);
    });
    launch("combine", {scratch, out}, [&](VectorBuilder &b, LLVM::LLVMFuncOp f) {
      return emitCombine(b, f, op.getKind(), shape);
    });
  } else if (to.getDimSize(2) == 1) {
    launch("rows", {source, out}, [&](VectorBuilder &b, LLVM::LLVMFuncOp f) {
      return emitRows(b, f, op.getKind(), shape, false);
    });
  } else {
    launch("cols", {source, out}, [&](VectorBuilder &b, LLVM::LLVMFuncOp f) {
      return emitCols(b, f, op.getKind(), shape);
    });
  }
  return launches;
}

} // namespace stepc::kernels
