//===- ChunkForm.h - What a kernel over chunks does -------------*- C++ -*-===//
#ifndef STEPC_PASSES_VERIFY_CHUNKFORM_H
#define STEPC_PASSES_VERIFY_CHUNKFORM_H

#include "runtime/model/Model.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace stepc::verify {

/// What the function of a kernel over chunks reads, writes and computes.
struct ChunkForm {
  /// Which value of an operand belongs to element (r, c) of a block: its own, the block's only one, that of
  /// row r, or that of column c.
  enum class Reach { Element, Block, Row, Column };
  struct Operand {
    unsigned argument;
    mlir::Type element;
    Reach reach;
  };
  llvm::SmallVector<Operand> reads, writes;
  llvm::SmallVector<int64_t> columns; ///< columns of the scalars (argument 0) that it loads
  unsigned arguments = 0;
  /// Set if the body yields terms: how those of each row or column are reduced. The reach of `writes[0]` says
  /// which of the two.
  std::optional<plan::Reduction> reduction;
  int64_t sums = 0; ///< how many exact sums it writes for each line; 0: it writes the result
  mlir::Block *body = nullptr; ///< arguments: reads, columns, old values of the writes
};

/// Fails with an error if the function is not a kernel over chunks.
mlir::FailureOr<ChunkForm> readChunkKernel(mlir::func::FuncOp kernel);

} // namespace stepc::verify

#endif
