//===- GpuCopyKernel.cpp - A row of a copy per block -------------------------===//

#include "passes/kernels/gpu/GpuKernels.h"
#include "runtime/plan/Tables.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

class CopyEmitter {
public:
  CopyEmitter(KernelBuilder &b, gpu::GPUFuncOp kernel, int64_t elementBytes)
      : b(b), kernel(kernel), bytes(elementBytes), element(b.getIntegerType(8 * bytes)) {}

  void emit(bool fromShards, bool toShards) {
    constexpr int64_t words = sizeof(plan::CopyRow) / sizeof(int64_t);
    row = b.address(kernel.getArgument(0), b.getI64Type(), b.mul(blockIndex(b), b.constant(words)));
    Value parameter = field(offsetof(plan::CopyRow, parameter));
    auto move = [&] {
      emitRows(side(1, 3, fromShards, parameter), side(2, 4, toShards, parameter));
    };
    // The gradient of a skipped parameter may be null.
    if (fromShards || toShards)
      ifActive(b, kernel.getArgument(5), parameter, move);
    else
      move();
  }

private:
  Value field(size_t offset) {
    return b.load(b.getI64Type(),
                  b.address(row, b.getI64Type(), int64_t(offset / sizeof(int64_t))));
  }

  /// The address from which a side's offsets count: of a buffer, or of the shards of a parameter.
  Value side(unsigned buffer, unsigned shards, bool isShards, Value parameter) {
    if (!isShards)
      return kernel.getArgument(buffer);
    return b.load(b.pointer, b.address(kernel.getArgument(shards), b.pointer, parameter));
  }

  void emitRows(Value from, Value to) {
    Value rows = field(offsetof(plan::CopyRow, rows)), cols = field(offsetof(plan::CopyRow, cols));
    Value fromStride = field(offsetof(plan::CopyRow, sourceStride));
    Value toStride = field(offsetof(plan::CopyRow, targetStride));
    from = b.address(from, element, field(offsetof(plan::CopyRow, source)));
    to = b.address(to, element, field(offsetof(plan::CopyRow, target)));
    int64_t width = kWideBytes / bytes;
    Value elementBytes = b.constant(bytes);
    Value isAligned = areAligned(b, rows, {from, to},
                                 {b.mul(fromStride, elementBytes), b.mul(toStride, elementBytes)});
    auto at = [&](Value base, Value line, Value stride, Value column) {
      return b.address(base, element, b.add(b.mul(line, stride), column));
    };
    shareOut(
        b, rows, cols, width, isAligned, [](Value) {},
        [&](Value line, Value column, bool isWide) {
          Type type = isWide ? Type(VectorType::get(width, element)) : Type(element);
          unsigned alignment = isWide ? kWideBytes : bytes;
          Value moved = b.load(type, at(from, line, fromStride, column), alignment);
          b.store(moved, at(to, line, toStride, column), alignment);
        });
  }

  KernelBuilder &b;
  gpu::GPUFuncOp kernel;
  int64_t bytes;
  IntegerType element;
  Value row;
};

/// Wide elements, which are parts of lines, are copied as words.
int64_t bytesOf(exec::CopyOp op) { return plan::wordOf(op.getTable().getElementBytes()); }

std::string nameOf(exec::CopyOp op) {
  return llvm::formatv("stepc_copy_{0}{1}{2}", bytesOf(op),
                       isa<exec::ShardsAttr>(op.getSource()) ? "_from_shards" : "",
                       isa<exec::ShardsAttr>(op.getTarget()) ? "_to_shards" : "");
}

} // namespace

GpuKernels addGpuCopyKernel(gpu::GPUModuleOp code, exec::CopyOp op) {
  if (auto known = code.lookupSymbol<gpu::GPUFuncOp>(nameOf(op)))
    return {{known, 1}};
  KernelBuilder b(op.getContext(), op.getLoc(), kGlobal);
  // Arguments: the rows; the source and the target as buffers, then as lists of shards; the records.
  SmallVector<Type> arguments(6, b.pointer);
  gpu::GPUFuncOp made = beginGpuKernel(code, nameOf(op), arguments, b);
  CopyEmitter(b, made, bytesOf(op))
      .emit(isa<exec::ShardsAttr>(op.getSource()), isa<exec::ShardsAttr>(op.getTarget()));
  return {{made, 1}};
}

} // namespace stepc::kernels
