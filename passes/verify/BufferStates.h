//===- BufferStates.h - What each buffer holds as a step goes on -*- C++ -*-===//
#ifndef STEPC_PASSES_VERIFY_BUFFERSTATES_H
#define STEPC_PASSES_VERIFY_BUFFERSTATES_H

#include "passes/verify/Verify.h"

#include "llvm/ADT/MapVector.h"

namespace stepc::verify {

/// What a buffer holds is told by its type: a value in one place. Here is whose it is.
struct BufferState {
  mlir::Operation *writer = nullptr;
  int64_t producer = -1, message = -1; ///< tables that packed and carried it
  size_t life = 0;
  comm::StartOp leaving, arriving;
  bool isRead = false;
};

/// Follows the buffers through the step. Reads and writes give nothing, after an error, when
/// they are not allowed; a result is valid until the next read or write.
class BufferStates {
public:
  explicit BufferStates(std::vector<Life> &lives) : lives(lives) {}

  /// The next operation begins.
  void advance() { ++now; }
  BufferState *read(mlir::Operation *user, mlir::Value value);
  BufferState *write(mlir::Operation *user, mlir::Value value);
  /// A collective has ended: its buffers lived until here.
  void land(comm::StartOp start, mlir::Operation *wait);
  /// At the end of the step: all that arrived was read.
  bool checkAllRead();

private:
  comm::BufferOp bufferOf(mlir::Operation *user, mlir::Value value);
  bool checkExtent(mlir::Operation *user, mlir::Value value);
  bool checkWasRead(mlir::Value value, const BufferState &state);
  void touch(const BufferState &state, mlir::Operation *user);

  std::vector<Life> &lives;
  int64_t now = 0;
  llvm::MapVector<mlir::Value, BufferState> states;
};

} // namespace stepc::verify

#endif
