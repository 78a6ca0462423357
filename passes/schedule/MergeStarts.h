//===- MergeStarts.h - What travels with one start --------------*- C++ -*-===//
#ifndef STEPC_PASSES_SCHEDULE_MERGESTARTS_H
#define STEPC_PASSES_SCHEDULE_MERGESTARTS_H

#include "dialects/comm/Comm.h"
#include "passes/plan/PlanFromIR.h"

namespace stepc::schedule {

/// What travels with one start.
struct Together {
  comm::CollectiveKind kind;
  comm::CommunicatorAttr ranks; // null: the world
  mlir::Location loc;
  bool there;   // to where it is computed, or back
  bool travels; // to other ranks
  llvm::SmallVector<mlir::Value> sends, receives;
};

/// Puts together what collectives move that begin at one time.
class StartMerger {
public:
  explicit StartMerger(const ProgramPlan &program) : program(program) {}

  /// No two of them have messages in one direction between the same two ranks.
  llvm::SmallVector<Together> merge(llvm::ArrayRef<comm::CollectiveOpInterface> collectives);

  /// That all ranks between which a collective moves anything meet on its communicator. Merged with
  /// others, it would be on another one.
  mlir::LogicalResult checkRanks(comm::CollectiveOpInterface op) const;

  plan::Place placeOf(mlir::Value packed) const;
  /// Whether a move leads to where a group's stages are and its blocks are computed, or back.
  bool leadsThere(const plan::Place &place) const;

private:
  bool areAlike(const Together &one, const Together &other) const;
  bool shareAPair(comm::CommunicatorAttr one, comm::CommunicatorAttr other);
  bool meet(const Together &one, const Together &other);
  void add(Together &one, const Together &other);
  comm::CommunicatorAttr join(comm::CommunicatorAttr one, comm::CommunicatorAttr other) const;

  const ProgramPlan &program;
  llvm::DenseMap<std::pair<mlir::Attribute, mlir::Attribute>, bool> pairs;
};

} // namespace stepc::schedule

#endif
