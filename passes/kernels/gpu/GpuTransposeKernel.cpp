//===- GpuTransposeKernel.cpp - #optim.block_transpose by a GPU's blocks ----===//

#include "passes/kernels/BlockKernels.h"
#include "passes/kernels/gpu/BlockBuilder.h"
#include "passes/kernels/products/Tiling.h"

using namespace mlir;

namespace stepc::kernels {

/// A GPU block copies a square of kWarp × kWarp elements by way of its shared memory, so that its warps read
/// and write rows of memory. A row of the square takes one element more than it has, so that the elements of
/// a column are in different banks.
GpuKernels TransposeKernels::onGpu(gpu::GPUModuleOp code, exec::ApplyOp op) const {
  interpret::TransposeKernel record = transposeOf(op);
  auto [plain, rows, cols] = record;
  int64_t across = ceilDivide(cols, kWarp), blocks = ceilDivide(rows, kWarp) * across;
  std::string name = kernelName(record);
  if (auto known = code.lookupSymbol<gpu::GPUFuncOp>(name))
    return {{known, blocks}};
  constexpr unsigned scratch = 0, source = scratch + 1, out = source + 1, buffers = out + 1;
  constexpr int64_t kStride = kWarp + 1, warps = kThreads / kWarp;
  BlockBuilder b(code.getContext(), op.getLoc());
  b.begin(code, name, buffers, blocks);
  Type word = b.memoryType(cast<exec::BatchAttr>(op.getSources()[0]).getType());
  unsigned bytes = word.getIntOrFloatBitWidth() / 8;
  Value square = b.memory(word, kWarp * kStride);
  Value warp = b.quotient(b.thread, kWarp), lane = b.remainder(b.thread, kWarp);
  Value top = b.mul(b.quotient(b.item, across), kWarp);
  Value left = b.mul(b.remainder(b.item, across), kWarp);
  auto block = [&](unsigned buffer) {
    return b.address(b.function.getArgument(buffer), word,
                     b.mul(b.slot, record.rows * record.cols));
  };
  Value from = block(source), to = block(out);
  auto at = [&](Value row, Value col) {
    return b.address(square, word, b.add(b.mul(row, kStride), col));
  };
  b.loop(warp, b.constant(kWarp), warps, [&](Value i) {
    Value row = b.add(top, i), col = b.add(left, lane);
    b.when(b.both(b.below(row, record.rows), b.below(col, record.cols)), [&] {
      Value element = b.load(word, b.address(from, word, b.add(b.mul(row, record.cols), col)));
      b.store(element, at(i, lane), bytes);
    });
  });
  b.barrier();
  b.loop(warp, b.constant(kWarp), warps, [&](Value i) {
    Value row = b.add(top, lane), col = b.add(left, i);
    b.when(b.both(b.below(row, record.rows), b.below(col, record.cols)), [&] {
      Value element = b.load(word, at(lane, i));
      b.store(element, b.address(to, word, b.add(b.mul(col, record.rows), row)), bytes);
    });
  });
  return {{b.function, blocks}};
}

} // namespace stepc::kernels
