//===- Transpose.cpp - Kernels of #optim.block_transpose --------------------===//

#include "passes/kernels/BlockKernels.h"
#include "passes/kernels/products/VectorBuilder.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace stepc::kernels {

interpret::TransposeKernel transposeOf(exec::ApplyOp op) {
  auto source = cast<exec::BatchAttr>(op.getSources()[0]);
  return {*optim::toPlan(source.getType()), source.getRows(), source.getCols()};
}

std::string kernelName(const interpret::TransposeKernel &kernel) {
  return llvm::formatv("stepc_transpose_{0}x{1}_{2}", kernel.rows, kernel.cols,
                       plan::name(kernel.type));
}

/// A kernel whose items are bands of the out, as many rows of it as a cache line has elements of f32 or more.
/// A band is copied in squares, so that few lines of the source are in use at once.
Kernels TransposeKernels::onCpu(SymbolTable &symbols, exec::ApplyOp op) const {
  interpret::TransposeKernel record = transposeOf(op);
  constexpr int64_t kBand = interpret::TransposeKernel::kRowsPerItem;
  auto source = cast<exec::BatchAttr>(op.getSources()[0]);
  auto emit = [&](VectorBuilder &b, LLVM::LLVMFuncOp function) {
    Type word = b.memoryType(source.getType());
    Value arguments = function.getArgument(0);
    Value rows = shapeNumber(function, 0), cols = shapeNumber(function, 1);
    Value bands = b.quotientUp(cols, kBand), size = b.mul(rows, cols);
    b.loop(function.getArgument(1), function.getArgument(2), 1, [&](Value item) {
      Value block = b.mul(b.quotient(item, bands), size);
      Value from = b.address(b.argument(arguments, 1), word, block);
      Value to = b.address(b.argument(arguments, 2), word, block);
      Value first = b.mul(b.remainder(item, bands), kBand);
      Value last = b.smaller(b.add(first, kBand), cols);
      b.loop(b.constant(0), rows, kBand, [&](Value top) {
        Value bottom = b.smaller(b.add(top, kBand), rows);
        b.loop(first, last, 1, [&](Value col) {
          b.loop(top, bottom, 1, [&](Value row) {
            Value element = b.load(word, b.address(from, word, b.add(b.mul(row, cols), col)));
            b.store(element, b.address(to, word, b.add(b.mul(col, rows), row)));
          });
        });
      });
    });
  };
  std::string shared = llvm::formatv("stepc_transpose_{0}", plan::name(record.type));
  return {{kernelOfShape(symbols, kernelName(record), shared, {record.rows, record.cols},
                         op.getLoc(), emit),
           record.itemsPerBlock()}};
}

BlockKernels::Interpreted TransposeKernels::interpreted(exec::ApplyOp op) const {
  interpret::TransposeKernel record = transposeOf(op);
  return {{kernelName(record), record}, record.itemsPerBlock()};
}

} // namespace stepc::kernels
