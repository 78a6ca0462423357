//===- BufferStates.h - What each buffer holds as a step goes on -*- C++ -*-===//
#ifndef STEPC_PASSES_VERIFY_BUFFERSTATES_H
#define STEPC_PASSES_VERIFY_BUFFERSTATES_H

#include "passes/verify/Verify.h"

#include "llvm/ADT/MapVector.h"

namespace stepc::verify {

/// What stands in a buffer.
struct Meaning {
  enum Kind { Nothing, Staged, Scalars } kind = Nothing;
  int64_t index = -1; ///< the segment, or the group of scalars
  plan::Layout layout = plan::Layout::None;
  plan::Direction direction = plan::Direction::ToMatrix;
  plan::ValueKind value = plan::ValueKind::Full;

  /// The kind of a batch is that of its buffer's type.
  static Meaning blocks(int64_t segment) { return {Staged, segment, plan::Layout::Blocks}; }
  bool operator==(const Meaning &) const = default;
};

struct BufferState {
  Meaning holds;
  mlir::Operation *writer = nullptr;
  int64_t producer = -1, message = -1; ///< tables that packed and carried it
  size_t life = 0;
  comm::StartOp sentBy, leaving, arriving;
  bool isRead = false;
};

/// Follows the buffers through the step. Reads and writes give nothing, after an error, when
/// they are not allowed; a result is valid until the next read or write.
class BufferStates {
public:
  BufferStates(const ProgramPlan &program, std::vector<Life> &lives)
      : plan(program.plan), segments(program.segments), lives(lives) {}

  /// The next operation begins.
  void advance() { ++now; }
  BufferState *read(mlir::Operation *user, mlir::Value value, const Meaning &wanted);
  BufferState *write(mlir::Operation *user, mlir::Value value, const Meaning &meaning);
  /// A collective has ended: its buffers lived until here.
  void land(comm::StartOp start, mlir::Operation *wait);
  /// At the end of the step: all that arrived was read.
  bool checkAllRead();

  std::string describe(const Meaning &meaning) const;

private:
  comm::BufferOp bufferOf(mlir::Operation *user, mlir::Value value);
  bool checkExtent(mlir::Operation *user, comm::BufferOp buffer, const Meaning &meaning);
  bool checkWasRead(const BufferState &state);
  void touch(const BufferState &state, mlir::Operation *user);

  const plan::Plan &plan;
  const ProgramPlan::Index &segments;
  std::vector<Life> &lives;
  int64_t now = 0;
  llvm::MapVector<mlir::Value, BufferState> states;
};

} // namespace stepc::verify

#endif
