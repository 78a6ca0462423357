//===- CpuChunkKernel.cpp - Loops over the chunks of a kernel --------------===//
//
// The loops walk the rows of the chunks. Along a row they take 16 elements at a time and
// the rest one by one, through clones of one region.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/ChunkKernel.h"
#include "passes/kernels/CpuKernels.h"

#include "runtime/sums/Pieces.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

/// Elements per vector: one AVX-512 register of f32, two of AVX2, four of SSE and Neon. Wider ones
/// gain nothing, as stages wait for memory.
constexpr int64_t kWidth = 16;

class CpuEmitter : public ChunkEmitter {
public:
  using ChunkEmitter::ChunkEmitter;

  void emit(LLVM::LLVMFuncOp function) {
    if (kernel.reduction) {
      terms = local(b.getF32Type(), sums::kPieceTerms);
      state = local(b.getI8Type(), STEPC_PIECES_BYTES);
    }
    Value list = function.getArgument(0);
    int64_t next = 3; // the arguments after the records
    bind(b.argument(list, 0), b.argument(list, 1), b.argument(list, 2),
         [&] { return b.argument(list, next++); });
    b.loop(function.getArgument(1), function.getArgument(2), 1, [&](Value item) {
      chunkAt(item);
      emitItem();
    });
  }

private:
  // NaNs are rare. So the loop over vectors only adds up the values that may be NaN. The sum is a NaN if a
  // value is one, and seldom otherwise (infinities of both signs). If the sum is a NaN, a second loop over
  // the chunk replaces NaNs.
  void emitRows(Value rows, Value cols, bool storeStaged) override {
    Value zero = b.constant(0);
    Value whole = arith::AndIOp::create(b, b.loc, cols, b.constant(-kWidth));
    SmallVector<Value> sum;
    if (llvm::any_of(kernel.writes,
                     [&](const ChunkOperand &write) { return storesAnyNaN(write, storeStaged); }))
      sum.push_back(arith::ConstantOp::create(
          b, b.loc, b.getZeroAttr(VectorType::get(kWidth, b.getF32Type()))));
    sum = b.loop(zero, rows, 1, sum, [&](Value row, ValueRange before) {
      loadRow(row);
      SmallVector<Value> after =
          b.loop(zero, whole, kWidth, before, [&](Value column, ValueRange terms) {
            SmallVector<Value> mayBeNaN, result(terms);
            emitElements(row, column, kWidth, storeStaged, /*alignment=*/0, &mayBeNaN);
            for (Value value : mayBeNaN)
              result[0] = arith::AddFOp::create(b, b.loc, result[0], value);
            return result;
          });
      b.loop(whole, cols, 1, [&](Value column) { emitElements(row, column, 0, storeStaged); });
      return after;
    });
    if (!sum.empty())
      replaceNaNs(rows, whole, storeStaged, sum[0]);
  }

  /// Memory of the function.
  Value local(Type element, int64_t count) {
    return LLVM::AllocaOp::create(b, b.loc, b.pointer, element, b.constant(count), 64);
  }

  /// Computes up to kPieceTerms terms at a time and gives them to the runtime.
  void emitReduction(Value rows, Value cols) override {
    Value zero = b.constant(0), one = b.constant(1);
    if (kernel.writes[0].place == ChunkOperand::Place::Row) {
      b.loop(zero, rows, 1, [&](Value row) {
        loadRow(row);
        b.loop(zero, cols, sums::kPieceTerms, [&](Value first) {
          Value count = smaller(b.constant(sums::kPieceTerms), less(cols, first));
          emitTerms(row, first, count, zero);
          reducePiece(cols, first, one, count, at(kernel.writes[0], row, {}),
                      /*next=*/{row, b.add(first, b.constant(sums::kPieceTerms))});
        });
      });
      return;
    }
    constexpr int64_t kRows = sums::kPieceTerms / sums::kPieceStride;
    b.loop(zero, cols, sums::kColumns, [&](Value column) {
      Value count = smaller(b.constant(sums::kColumns), less(cols, column));
      b.loop(zero, rows, kRows, [&](Value first) {
        Value down = smaller(b.constant(kRows), less(rows, first));
        b.loop(zero, down, 1, [&](Value i) {
          Value row = b.add(first, i);
          loadRow(row);
          emitTerms(row, column, count, b.mul(i, b.constant(sums::kPieceStride)));
        });
        reducePiece(rows, first, down, count, at(kernel.writes[0], {}, column));
      });
    });
  }

  void emitSums(Value rows, Value cols, Value count) override {
    switch (kernel.writes[0].place) {
    case ChunkOperand::Place::Row:
      return sumRows(rows, count);
    case ChunkOperand::Place::Column:
      return sumColumns(cols, count);
    default:
      return sumBlock(count);
    }
  }

  void sumRows(Value rows, Value count) {
    Value zero = b.constant(0), one = b.constant(1);
    b.loop(zero, rows, 1, [&](Value row) {
      Value out = at(kernel.writes[0], row, {});
      beginSums(one, out);
      b.loop(zero, count, 1, [&](Value further) {
        auto [ignored, cols] = goTo(further);
        loadRow(row);
        b.loop(zero, cols, sums::kPieceTerms, [&](Value first) {
          Value taken = smaller(b.constant(sums::kPieceTerms), less(cols, first));
          emitTerms(row, first, taken, zero);
          addTerms(sums::Remains::Rows, one, taken, out);
        });
      });
    });
  }

  void sumColumns(Value cols, Value count) {
    constexpr int64_t kRows = sums::kPieceTerms / sums::kPieceStride;
    Value zero = b.constant(0);
    b.loop(zero, cols, sums::kColumns, [&](Value column) {
      Value taken = smaller(b.constant(sums::kColumns), less(cols, column));
      Value out = at(kernel.writes[0], {}, column);
      beginSums(taken, out);
      b.loop(zero, count, 1, [&](Value further) {
        auto [rows, ignored] = goTo(further);
        b.loop(zero, rows, kRows, [&](Value first) {
          Value down = smaller(b.constant(kRows), less(rows, first));
          b.loop(zero, down, 1, [&](Value i) {
            Value row = b.add(first, i);
            loadRow(row);
            emitTerms(row, column, taken, b.mul(i, b.constant(sums::kPieceStride)));
          });
          addTerms(sums::Remains::Columns, down, taken, out);
        });
      });
    });
  }

  /// A piece has several short rows, or a part of a long one.
  void sumBlock(Value count) {
    Value zero = b.constant(0), one = b.constant(1), most = b.constant(sums::kPieceTerms);
    Value out = kernel.writes[0].base;
    beginSums(one, out);
    b.loop(zero, count, 1, [&](Value further) {
      auto [rows, cols] = goTo(further);
      Value down = arith::MaxSIOp::create(b, b.loc, one, cols);
      down = arith::MaxSIOp::create(b, b.loc, one, arith::DivSIOp::create(b, b.loc, most, down));
      b.loop(zero, rows, down, [&](Value first) {
        Value taken = smaller(down, less(rows, first));
        b.loop(zero, cols, sums::kPieceTerms, [&](Value column) {
          Value along = smaller(most, less(cols, column));
          b.loop(zero, taken, 1, [&](Value i) {
            Value row = b.add(first, i);
            loadRow(row);
            emitTerms(row, column, along, b.mul(i, along));
          });
          addTerms(sums::Remains::One, one, b.mul(taken, along), out);
        });
      });
    });
  }

  void beginSums(Value count, Value out) {
    callRuntime("stepc_rt_begin_sums", {b.constant(int64_t(*kernel.reduction)), count, out});
  }
  /// Adds rows × cols terms, whose rows are kPieceStride apart, to the sums at `out`.
  void addTerms(sums::Remains remains, Value rows, Value cols, Value out) {
    callRuntime("stepc_rt_add_terms",
                {b.constant(int64_t(*kernel.reduction)), b.constant(int64_t(remains)), rows, cols,
                 terms, b.constant(sums::kPieceStride), out});
  }
  void callRuntime(StringRef name, ValueRange arguments) {
    auto module = b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
    LLVM::LLVMFuncOp function = declare(module, name, LLVM::LLVMVoidType::get(b.getContext()),
                                        llvm::to_vector(arguments.getTypes()));
    LLVM::CallOp::create(b, b.loc, function, arguments);
  }

  /// Stores `count` terms of a row from column `first` on, as terms `to` and following.
  void emitTerms(Value row, Value first, Value count, Value to) {
    Value zero = b.constant(0);
    Value whole = arith::AndIOp::create(b, b.loc, count, b.constant(-kWidth));
    auto emitTerm = [&](Value i, int64_t width) {
      Value term = emitBody(row, b.add(first, i), width)[0];
      b.store(term, b.address(terms, b.getF32Type(), b.add(to, i)), 4);
    };
    b.loop(zero, whole, kWidth, [&](Value i) { emitTerm(i, kWidth); });
    b.loop(whole, count, 1, [&](Value i) { emitTerm(i, 0); });
  }

  /// Reduces rows × cols terms of lines that have `size` terms, of which `done` came before. What the kernel
  /// reads for the terms at `next`, a row and a column, is prefetched meanwhile. A column behind the row's
  /// end is the next row's, if there are no gaps between rows.
  void reducePiece(Value size, Value done, Value rows, Value cols, Value out,
                   std::pair<Value, Value> next = {}) {
    Value ahead = terms;
    int64_t aheadBytes = 0;
    for (const ChunkOperand &read : kernel.reads)
      if (next.first && !aheadBytes && read.place == ChunkOperand::Place::Shards) {
        ahead = at(read, next.first, next.second);
        aheadBytes = read.element.getIntOrFloatBitWidth() / 8;
      }
    bool ofColumns = kernel.writes[0].place == ChunkOperand::Place::Column;
    SmallVector<Value> arguments = {b.constant(int64_t(*kernel.reduction)),
                                    b.constant(ofColumns),
                                    size,
                                    done,
                                    rows,
                                    cols,
                                    terms,
                                    state,
                                    out,
                                    ahead,
                                    b.constant(aheadBytes)};
    callRuntime("stepc_rt_reduce_pieces", arguments);
  }
  Value smaller(Value a, Value c) { return arith::MinSIOp::create(b, b.loc, a, c); }
  Value less(Value a, Value c) { return arith::SubIOp::create(b, b.loc, a, c); }

  /// Replaces NaNs in the vectors of a chunk. There are none unless `sum` has a NaN.
  void replaceNaNs(Value rows, Value whole, bool storeStaged, Value sum) {
    Value isNaN = arith::CmpFOp::create(b, b.loc, arith::CmpFPredicate::UNO, sum, sum);
    Value any = LLVM::vector_reduce_or::create(b, b.loc, b.getI1Type(), isNaN);
    auto found = scf::IfOp::create(b, b.loc, any, /*withElseRegion=*/false);
    LLVM::LLVMFuncOp replace = nanReplacer();
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(found.thenBlock());
    for (const ChunkOperand &write : kernel.writes)
      if (storesAnyNaN(write, storeStaged))
        LLVM::CallOp::create(b, b.loc, replace, ValueRange{write.base, write.stride, rows, whole});
  }

  /// The function that all kernels share: f(first element, elements from one row to the next, rows, columns).
  /// It is not inlined, because it would take registers from the loops.
  LLVM::LLVMFuncOp nanReplacer() {
    auto module = b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
    constexpr StringLiteral kName = "stepc_replace_nans_f32";
    if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(kName))
      return known;
    OpBuilder::InsertionGuard guard(b);
    Type i64 = b.getI64Type(), f32 = b.getF32Type();
    LLVM::LLVMFuncOp made = beginKernel(module, kName, b, {b.pointer, i64, i64, i64});
    made.setNoInline(true);
    made.setPassthroughAttr(b.getStrArrayAttr({"cold"}));
    auto [first, stride, rows, cols] = std::tuple(made.getArgument(0), made.getArgument(1),
                                                  made.getArgument(2), made.getArgument(3));
    b.loop(b.constant(0), rows, 1, [&](Value row) {
      b.loop(b.constant(0), cols, kWidth, [&](Value column) {
        Value at = b.address(first, f32, b.add(b.mul(row, stride), column));
        storeElements(b, f32, withOneNaN(b, f32, loadElements(b, f32, at, kWidth)), at, kWidth);
      });
    });
    return made;
  }

  Value terms, state; ///< of a kernel that reduces
};

} // namespace

FailureOr<LLVM::LLVMFuncOp> lowerChunkKernel(func::FuncOp function,
                                             ArrayRef<exec::DispatchChunksOp> dispatches) {
  FailureOr<ChunkKernel> kernel = ChunkKernel::read(function, dispatches);
  if (failed(kernel))
    return failure();
  KernelBuilder b(function.getContext(), function.getLoc());
  LLVM::LLVMFuncOp made =
      beginKernel(function->getParentOfType<ModuleOp>(), function.getSymName(), b);
  CpuEmitter(*kernel, b).emit(made);
  return made;
}

} // namespace stepc::kernels
