//===- GpuChunkKernel.cpp - A chunk per block ------------------------------===//
//
// The threads of a block share out a chunk without a division: as many stand side by side along a row as
// it has vectors, rounded up to a power of two, and the others take the rows below.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/ChunkKernel.h"
#include "passes/kernels/gpu/GpuKernels.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

/// Elements that a thread takes at once, and where their operands must stand for that: 16-bit ones move
/// in one access of 16 bytes, f32 in two.
constexpr int64_t kWidth = 8, kBytes = 16;

class GpuEmitter : public ChunkEmitter {
public:
  using ChunkEmitter::ChunkEmitter;

  void emit(gpu::GPUFuncOp function) {
    unsigned next = 3;
    bind(function.getArgument(0), function.getArgument(1),
         [&] { return function.getArgument(next++); });
    chunkAt(blockIndex(b));
    auto all = [&] { emitItem(); };
    if (kernel.overShards)
      ifActive(b, function.getArgument(2), field(offsetof(stepc_chunk, parameter)), all);
    else
      all();
  }

private:
  /// Whether every operand along columns allows for vectors in all rows. Where there is one row alone
  /// its stride is anything, and where nothing is staged a staged operand stands anywhere.
  Value isAligned(Value rows, bool storeStaged) {
    Value bases = b.constant(0), strides = bases;
    for (const auto *list : {&kernel.reads, &kernel.writes})
      for (const ChunkOperand &operand : *list) {
        bool leftOut = list == &kernel.writes && !storeStaged && kernel.mayBeAbsent(operand);
        if (!operand.alongColumns() || leftOut)
          continue;
        Value address = LLVM::PtrToIntOp::create(b, b.loc, b.getI64Type(), operand.base);
        bases = arith::OrIOp::create(b, b.loc, bases, address);
        if (!operand.stride)
          continue;
        Value bytes =
            b.mul(operand.stride, b.constant(operand.element.getIntOrFloatBitWidth() / 8));
        strides = arith::OrIOp::create(b, b.loc, strides, bytes);
      }
    Value one = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::eq, rows, b.constant(1));
    strides = arith::SelectOp::create(b, b.loc, one, b.constant(0), strides);
    Value low = arith::AndIOp::create(b, b.loc, arith::OrIOp::create(b, b.loc, bases, strides),
                                      b.constant(kBytes - 1));
    return arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::eq, low, b.constant(0));
  }

  /// The least s for which 2^s threads take the vectors of a row at once; at most the block.
  Value shiftFor(Value vectors) {
    constexpr int64_t most = llvm::ConstantLog2<kThreads>();
    // 64 − clz(n − 1) is log2 n, rounded up; of n = 0 it is 64.
    Value one = b.constant(1);
    Value below = arith::SubIOp::create(b, b.loc, vectors, one);
    Value zeros = math::CountLeadingZerosOp::create(b, b.loc, below);
    Value shift = arith::SubIOp::create(b, b.loc, b.constant(64), zeros);
    return arith::MinSIOp::create(b, b.loc, shift, b.constant(most));
  }

  void emitRows(Value rows, Value cols, bool storeStaged) override {
    Value zero = b.constant(0), one = b.constant(1);
    Value whole = arith::AndIOp::create(b, b.loc, cols, b.constant(-kWidth));
    whole = arith::SelectOp::create(b, b.loc, isAligned(rows, storeStaged), whole, zero);
    Value isWide = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::ne, whole, zero);
    Value vectors = arith::DivUIOp::create(b, b.loc, whole, b.constant(kWidth));
    Value shift = shiftFor(arith::SelectOp::create(b, b.loc, isWide, vectors, cols));
    Value across = arith::ShLIOp::create(b, b.loc, one, shift);
    Value down = arith::ShRUIOp::create(b, b.loc, b.constant(kThreads), shift);
    Value thread = threadIndex(b);
    Value firstRow = arith::ShRUIOp::create(b, b.loc, thread, shift);
    Value lane =
        arith::AndIOp::create(b, b.loc, thread, arith::SubIOp::create(b, b.loc, across, one));
    Value wide = b.mul(across, b.constant(kWidth));
    b.loop(firstRow, rows, down, [&](Value row) {
      for (ChunkOperand &operand : kernel.reads)
        if (operand.place == ChunkOperand::Place::Row)
          operand.single = loadElements(b, operand.element, at(operand, row, {}), 0);
      b.loop(b.mul(lane, b.constant(kWidth)), whole, wide,
             [&](Value column) { emitElements(row, column, kWidth, storeStaged, kBytes); });
      b.loop(b.add(whole, lane), cols, across,
             [&](Value column) { emitElements(row, column, 0, storeStaged); });
    });
  }
};

} // namespace

FailureOr<gpu::GPUFuncOp> addGpuChunkKernel(gpu::GPUModuleOp code, func::FuncOp function,
                                            ArrayRef<exec::DispatchChunksOp> dispatches) {
  FailureOr<ChunkKernel> kernel = ChunkKernel::read(function, dispatches);
  if (failed(kernel))
    return failure();
  KernelBuilder b(function.getContext(), function.getLoc(), kGlobal);
  // The rows, the workspace, the records, and a list of shards for each operand that is shards.
  SmallVector<Type> arguments(3, b.pointer);
  for (size_t i = 0; i < kernel->each; ++i)
    if (isa<exec::ShardsAttr>(kernel->operand(i)))
      arguments.push_back(b.pointer);
  gpu::GPUFuncOp made = beginGpuKernel(code, function.getSymName(), arguments, b);
  GpuEmitter(*kernel, b).emit(made);
  kernel->addBlockRows(dispatches);
  return made;
}

} // namespace stepc::kernels
