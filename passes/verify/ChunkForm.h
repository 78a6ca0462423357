//===- ChunkForm.h - What a kernel over chunks does -------------*- C++ -*-===//
#ifndef STEPC_PASSES_VERIFY_CHUNKFORM_H
#define STEPC_PASSES_VERIFY_CHUNKFORM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace stepc::verify {

/// A kernel over chunks, as its function says.
struct ChunkForm {
  /// Which of an operand's values belongs to row r and column c of a block.
  enum class Reach { Element, Block, Row, Column };
  struct Operand {
    unsigned argument;
    mlir::Type element;
    Reach reach;
  };
  llvm::SmallVector<Operand> reads, writes;
  llvm::SmallVector<int64_t> columns; ///< of the scalars, which are the first argument
  unsigned arguments = 0;
  mlir::Block *body = nullptr; ///< of the reads, the columns, and what was in the writes
};

/// An error where the function is no kernel over chunks.
mlir::FailureOr<ChunkForm> readChunkKernel(mlir::func::FuncOp kernel);

} // namespace stepc::verify

#endif
