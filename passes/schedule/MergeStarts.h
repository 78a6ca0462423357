//===- MergeStarts.h - What travels with one start --------------*- C++ -*-===//
#ifndef STEPC_PASSES_SCHEDULE_MERGESTARTS_H
#define STEPC_PASSES_SCHEDULE_MERGESTARTS_H

#include "dialects/comm/Comm.h"
#include "passes/plan/PlanFromIR.h"

namespace stepc::schedule {

/// The values that travel with one start.
struct Together {
  comm::CollectiveKind kind;
  comm::CommunicatorAttr ranks; // null: the world
  mlir::Location loc;
  bool there;   // on the way to matrix space; otherwise on the way back
  bool travels; // whether values go to other ranks
  llvm::SmallVector<mlir::Value> sends, receives;
};

/// Merges collectives that begin at the same time into starts.
class StartMerger {
public:
  explicit StartMerger(const ProgramPlan &program) : program(program) {}

  /// The starts for these collectives. No two starts of one direction have messages between the same two
  /// ranks.
  llvm::SmallVector<Together> merge(llvm::ArrayRef<comm::CollectiveOpInterface> collectives);

  /// Verifies that all ranks between which a collective moves elements meet on its communicator. The caller
  /// must check this before `merge`, which may replace the communicator.
  mlir::LogicalResult checkRanks(comm::CollectiveOpInterface op) const;

  plan::Place placeOf(mlir::Value packed) const;
  /// True if a move leads to the shards over which stages run, or from there towards matrix space. False if
  /// it leads back.
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
