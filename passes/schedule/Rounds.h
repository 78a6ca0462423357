//===- Rounds.h - What chains do between their exchanges --------*- C++ -*-===//
#ifndef STEPC_PASSES_SCHEDULE_ROUNDS_H
#define STEPC_PASSES_SCHEDULE_ROUNDS_H

#include "passes/schedule/MergeStarts.h"

namespace stepc::schedule {

/// A start that is under way, and the segments of what it moves.
struct Started {
  mlir::Value token;
  llvm::SmallVector<mlir::Attribute> segments;
};

/// Operations, and the collectives that take their results further.
struct Round {
  llvm::SmallVector<mlir::Operation *> operations;
  llvm::SmallVector<comm::CollectiveOpInterface> collectives;
  llvm::SmallVector<Started> starts;
};

/// What a chain does in a round. Some chains are on their way to matrix space while others are in it, or on
/// their way back. What other ranks wait for comes first. What is computed does not wait for results of other
/// groups. What is on its way back goes on with the results of what was computed, in the same messages. Last
/// come stages that send nothing.
enum class Phase { There, Computes, Returns, Ends };

/// What one wave does, in order.
struct Wave {
  llvm::SmallVector<Round> rounds;      // of chains that exchange
  llvm::SmallVector<mlir::Operation *> local; // chains without exchange, whole
};

/// The segment on which an operation works; null if there is none.
mlir::FlatSymbolRefAttr segmentOf(mlir::Operation *op);
/// The segment that a collective brings together.
mlir::FlatSymbolRefAttr segmentOf(comm::CollectiveOpInterface op);
/// Whether it adds up over slabs.
bool addsUp(comm::CollectiveOpInterface op);
/// The phase of each chain that does anything in a round. `computed` are the chains that were in matrix space
/// so far; those that are in this round are added.
llvm::DenseMap<mlir::Attribute, Phase> phasesOf(const Round &round, const StartMerger &merger,
                                                llvm::DenseSet<mlir::Attribute> &computed);

} // namespace stepc::schedule

#endif
