//===- Effect.h - What a command does to memory -----------------*- C++ -*-===//
//
// Each command lists what it may do to memory. Three things follow from the list: the memory that race
// detectors allow a kernel to touch, the parameters that a failed step may have changed, and the bytes that
// simulated commands move. The proof (passes/verify) reads operands by itself. It refuses a command that does
// more than its list says.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_COMMANDS_EFFECT_H
#define STEPC_RUNTIME_PLAN_COMMANDS_EFFECT_H

#include "runtime/plan/commands/Operand.h"

namespace stepc::plan {

/// What a command does to an operand's memory.
enum class Access {
  Reads,
  Writes,
  Updates, ///< reads and writes
  /// A kernel reads, writes or does both, and only its code says which.
  ReadsOrWrites,
};

struct Effect {
  /// Which part of an operand's memory is meant.
  enum Extent {
    All,      ///< every byte
    From,     ///< the elements that rows of `table` name in its `from` place
    To,       ///< the elements that rows of `table` name in its `to` place
    Blocks,   ///< `blockBytes` bytes for each computed block of `table`
    Row,      ///< the rows of scalars of the parameters that the items belong to
    Sent,     ///< the buffer that a start sends, which stays read until its await
    Received, ///< the buffer that a start receives into, which stays written until its await
  };

  const Operand *operand = nullptr; // null: the workspace's scratch
  int64_t number = -1;              // of the operand in the command; -1: the scratch
  Access access = Access::Reads;
  Extent extent = All;
  TableNumber table = {};
  GroupNumber group = {}; // whose blocks or parameters the operand belongs to, if there is no table
  int64_t blockBytes = 0; // of one block; 0: only the kernel knows
  int64_t elementBytes = 0; // From and To; 0: only the kernel knows

  bool reads() const { return access != Access::Writes; }
  bool writes() const { return access != Access::Reads; }
  /// Whether the memory is in use until the await of the command's start.
  bool isInFlight() const { return extent == Sent || extent == Received; }
};

using Effects = std::vector<Effect>;

} // namespace stepc::plan

#endif
