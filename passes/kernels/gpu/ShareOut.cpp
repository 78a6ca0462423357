//===- ShareOut.cpp - The rows of a block, shared out to its threads --------===//
//
// Needs no division. Along a row stand as many threads as the row has vectors, rounded up to a power of two.
// The other threads of the GPU block take the rows below.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/gpu/GpuKernels.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace stepc::kernels {

/// The least s for which 2^s threads take the vectors of a row at once. At most all threads of a GPU block
/// do.
static Value shiftFor(KernelBuilder &b, Value vectors) {
  constexpr int64_t most = llvm::ConstantLog2<kThreads>();
  // 64 − clz(n − 1) is log2 n, rounded up; for n = 0 it is 64, which is then limited.
  Value below = arith::SubIOp::create(b, b.loc, vectors, b.constant(1));
  Value zeros = math::CountLeadingZerosOp::create(b, b.loc, below);
  Value shift = arith::SubIOp::create(b, b.loc, b.constant(64), zeros);
  return arith::MinSIOp::create(b, b.loc, shift, b.constant(most));
}

Value areAligned(KernelBuilder &b, Value rows, ArrayRef<Value> bases, ArrayRef<Value> strides) {
  auto equals = [&](Value x, int64_t y) -> Value {
    return arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::eq, x, b.constant(y));
  };
  Value all = b.constant(0), apart = all;
  for (Value base : bases) {
    if (isa<LLVM::LLVMPointerType>(base.getType()))
      base = LLVM::PtrToIntOp::create(b, b.loc, b.getI64Type(), base);
    all = arith::OrIOp::create(b, b.loc, all, base);
  }
  for (Value stride : strides)
    apart = arith::OrIOp::create(b, b.loc, apart, stride);
  // If there is only one row, its stride may be anything.
  apart = arith::SelectOp::create(b, b.loc, equals(rows, 1), b.constant(0), apart);
  all = arith::OrIOp::create(b, b.loc, all, apart);
  return equals(arith::AndIOp::create(b, b.loc, all, b.constant(kWideBytes - 1)), 0);
}

void shareOut(KernelBuilder &b, Value rows, Value cols, int64_t width, Value isAligned,
              function_ref<void(Value)> beginRow, function_ref<void(Value, Value, bool)> body) {
  Value zero = b.constant(0), one = b.constant(1);
  Value whole = arith::AndIOp::create(b, b.loc, cols, b.constant(-width));
  whole = arith::SelectOp::create(b, b.loc, isAligned, whole, zero);
  Value isWide = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::ne, whole, zero);
  Value vectors = arith::DivUIOp::create(b, b.loc, whole, b.constant(width));
  Value shift = shiftFor(b, arith::SelectOp::create(b, b.loc, isWide, vectors, cols));
  Value across = arith::ShLIOp::create(b, b.loc, one, shift);
  Value down = arith::ShRUIOp::create(b, b.loc, b.constant(kThreads), shift);
  Value thread = threadIndex(b);
  Value firstRow = arith::ShRUIOp::create(b, b.loc, thread, shift);
  Value lane =
      arith::AndIOp::create(b, b.loc, thread, arith::SubIOp::create(b, b.loc, across, one));
  Value wide = b.mul(across, b.constant(width));
  b.loop(firstRow, rows, down, [&](Value row) {
    beginRow(row);
    b.loop(b.mul(lane, b.constant(width)), whole, wide,
           [&](Value column) { body(row, column, true); });
    b.loop(b.add(whole, lane), cols, across, [&](Value column) { body(row, column, false); });
  });
}

} // namespace stepc::kernels
