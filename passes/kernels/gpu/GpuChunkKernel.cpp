//===- GpuChunkKernel.cpp - A chunk per block ------------------------------===//

#include "passes/kernels/ChunkKernel.h"
#include "passes/kernels/gpu/ReduceWay.h"
#include "runtime/sums/Reduce.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

/// Elements that a thread computes at once. If they have 16 bits, they move in one wide access, f32 in two.
constexpr int64_t kStageWidth = 8;

class GpuEmitter : public ChunkEmitter {
public:
  /// A kernel that reduces does so in `way`, with the same builder.
  GpuEmitter(ChunkKernel &kernel, SumBuilder &b, ReduceWay &way)
      : ChunkEmitter(kernel, b), b(b), way(way) {}

  void emit(gpu::GPUFuncOp function) {
    unsigned next = 3;
    bind(function.getArgument(0), function.getArgument(1), function.getArgument(2),
         [&] { return function.getArgument(next++); });
    chunkAt(blockIndex(b));
    auto all = [&] { emitItem(); };
    if (kernel.overShards)
      ifActive(b, function.getArgument(2), field(offsetof(stepc_chunk, parameter)), all);
    else
      all();
  }

private:
  void emitReduction(Value rows, Value cols) override {
    if (kernel.writes[0].place == ChunkOperand::Place::Row)
      reduceRows(rows, cols);
    else
      reduceColumns(rows, cols);
  }

  /// A warp has a row.
  void reduceRows(Value rows, Value cols) {
    Value warp = b.quotient(b.thread, kWarp), lane = b.remainder(b.thread, kWarp);
    b.loop(warp, rows, kWarps, [&](Value row) {
      loadRow(row);
      ReduceWay::Values found =
          way.addLine(way.ofWarp(), b.constant(0), cols, kRun,
                      [&](Value column) { return emitBody(row, column, 0)[0]; });
      Value result = way.resultOfWarp(found, cols);
      b.when(b.below(lane, 1), [&] { b.store(result, at(kernel.writes[0], row, {}), 4); });
    });
  }

  /// A lane has a column, and the warps share its rows.
  void reduceColumns(Value rows, Value cols) {
    Value lane = b.remainder(b.thread, kWarp);
    b.loop(b.constant(0), cols, kWarp, [&](Value first) {
      Value column = b.add(first, lane), taken = b.smaller(column, b.add(cols, -1));
      ReduceWay::Values all = way.overWarps(addColumns(way.ofThread(), rows, taken));
      b.when(b.below(b.thread, kWarp), [&] {
        Value result = way.resultOfThread(all, rows);
        b.when(b.below(column, cols),
               [&] { b.store(result, at(kernel.writes[0], {}, column), 4); });
      });
      b.barrier(); // the next columns take the same memory
    });
  }

  ReduceWay::Values addColumns(ValueRange found, Value rows, Value column) {
    return way.addColumns(found, rows, [&](Value row) {
      loadRow(row);
      return emitBody(row, column, 0)[0];
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

  /// Goes through the rows of the table of an item.
  ReduceWay::Values
  overRows(ReduceWay::Values found, Value count,
           function_ref<ReduceWay::Values(ValueRange found, Value rows, Value cols)> add) {
    return b.loop(b.constant(0), count, 1, found, [&](Value further, ValueRange found) {
      auto [rows, cols] = goTo(further);
      return add(found, rows, cols);
    });
  }
  /// Adds columns [first, last) of a row.
  ReduceWay::Values addRow(ValueRange found, Value row, Value first, Value last) {
    loadRow(row);
    return way.addLine(found, first, last, kRun,
                       [&](Value column) { return emitBody(row, column, 0)[0]; });
  }

  /// A warp has a row.
  void sumRows(Value rows, Value count) {
    Value warp = b.quotient(b.thread, kWarp);
    b.loop(warp, rows, kWarps, [&](Value row) {
      Value out = at(kernel.writes[0], row, {});
      way.storePart(overRows(way.ofWarp(), count,
                             [&](ValueRange found, Value, Value cols) {
                               return addRow(found, row, b.constant(0), cols);
                             }),
                    out);
    });
  }

  /// A lane has a column, and the warps share its rows.
  void sumColumns(Value cols, Value count) {
    Value lane = b.remainder(b.thread, kWarp);
    b.loop(b.constant(0), cols, kWarp, [&](Value first) {
      Value column = b.add(first, lane), taken = b.smaller(column, b.add(cols, -1));
      Value out = at(kernel.writes[0], {}, taken);
      ReduceWay::Values all =
          way.overWarps(overRows(way.ofThread(), count, [&](ValueRange found, Value rows, Value) {
            return addColumns(found, rows, taken);
          }));
      Value isFirstWarp = b.below(b.thread, kWarp);
      b.when(b.both(isFirstWarp, b.below(column, cols)), [&] { way.storePartOfThread(all, out); });
      b.barrier(); // the next columns take the same memory
    });
  }

  /// The warps share runs of kRun columns.
  void sumBlock(Value count) {
    Value out = kernel.writes[0].base, warp = b.quotient(b.thread, kWarp);
    ReduceWay::Values all =
        way.overWarps(overRows(way.ofWarp(), count, [&](ValueRange found, Value rows, Value cols) {
          Value runs = b.quotient(b.add(cols, kRun - 1), kRun);
          return b.loop(warp, b.mul(rows, runs), kWarps, found, [&](Value run, ValueRange found) {
            Value row = arith::DivSIOp::create(b, b.loc, run, runs);
            Value first = b.mul(b.sub(run, b.mul(row, runs)), kRun);
            return addRow(found, row, first, b.smaller(b.add(first, kRun), cols));
          });
        }));
    b.when(b.below(b.thread, kWarp), [&] { way.storePart(all, out); });
  }

  /// Whether every operand with an element per column is aligned for vectors in all rows, and the numbers of
  /// elements are multiples of their width. If nothing is staged, staged operands do not count.
  Value isAligned(Value rows, bool storeStaged) {
    SmallVector<Value> bases, strides;
    for (const auto *list : {&kernel.reads, &kernel.writes})
      for (const ChunkOperand &operand : *list) {
        if (operand.place == ChunkOperand::Place::ElementNumber && kernel.sharesCounters()) {
          // Multiples of the width are what areAligned looks for, if they count in such units.
          static_assert(kStageWidth % random::sharing(plan::Draw::Uniform16) == 0 &&
                        kWideBytes % kStageWidth == 0);
          Value unit = b.constant(kWideBytes / kStageWidth);
          bases.push_back(b.mul(operand.base, unit));
          strides.push_back(b.mul(operand.stride, unit));
        }
        bool leftOut = list == &kernel.writes && !storeStaged && kernel.mayBeAbsent(operand);
        if (!operand.alongColumns() || leftOut)
          continue;
        bases.push_back(operand.base);
        if (operand.stride)
          strides.push_back(
              b.mul(operand.stride, b.constant(operand.element.getIntOrFloatBitWidth() / 8)));
      }
    return areAligned(b, rows, bases, strides);
  }

  void emitRows(Value rows, Value cols, bool storeStaged) override {
    shareOut(
        b, rows, cols, kStageWidth, isAligned(rows, storeStaged), [&](Value row) { loadRow(row); },
        [&](Value row, Value column, bool isWide) {
          emitElements(row, column, isWide ? kStageWidth : 0, storeStaged, isWide ? kWideBytes : 0);
        });
  }

  SumBuilder &b;
  ReduceWay &way;
};

} // namespace

FailureOr<gpu::GPUFuncOp> addGpuChunkKernel(gpu::GPUModuleOp code, func::FuncOp function,
                                            ArrayRef<exec::DispatchChunksOp> dispatches) {
  FailureOr<ChunkKernel> kernel = ChunkKernel::read(function, dispatches);
  if (failed(kernel))
    return failure();
  auto reduction = kernel->reduction.value_or(plan::Reduction::Sum);
  SumBuilder b(function.getContext(), function.getLoc(), sums::termsOf(reduction));
  // Arguments: the rows, the workspace, the records, and a list of shards for each operand that is shards.
  unsigned arguments = 3;
  for (size_t i = 0; i < kernel->each; ++i)
    arguments += isa<exec::ShardsAttr>(kernel->operand(i));
  b.begin(code, function.getSymName(), arguments, /*blocksPerSlot=*/1);
  // A kernel that draws waits for its memory and computes much, so two blocks have to share a multiprocessor.
  // By itself ptxas takes registers for one alone.
  if (kernel->sharesCounters())
    b.function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), b.getI32IntegerAttr(2));
  std::unique_ptr<ReduceWay> way = ReduceWay::make(b, reduction, /*exponent=*/0);
  GpuEmitter(*kernel, b, *way).emit(b.function);
  return b.function;
}

} // namespace stepc::kernels
