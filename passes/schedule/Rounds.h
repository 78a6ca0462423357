//===- Rounds.h - What chains do between their exchanges --------*- C++ -*-===//
#ifndef STEPC_PASSES_SCHEDULE_ROUNDS_H
#define STEPC_PASSES_SCHEDULE_ROUNDS_H

#include "passes/schedule/MergeStarts.h"

namespace stepc::schedule {

/// A start that is under way, and the segments of its values.
struct Started {
  mlir::Value token;
  llvm::SmallVector<mlir::Attribute> segments;
};

/// Operations of one or more chains, and the collectives that send their results.
struct Round {
  llvm::SmallVector<mlir::Operation *> operations;
  llvm::SmallVector<comm::CollectiveOpInterface> collectives;
  llvm::SmallVector<Started> starts;
};

/// What a chain does in a round. In one round, chains on the way to matrix space (There) come first, because
/// other ranks wait for their messages. Then chains compute, before anything waits for results of other
/// chains. Chains on the way back (Returns) follow, and share messages with the results just computed. Last
/// come stages that send nothing (Ends).
enum class Phase { There, Computes, Returns, Ends };

/// What one wave does, in order.
struct Wave {
  llvm::SmallVector<Round> rounds;            // of chains that exchange
  llvm::SmallVector<mlir::Operation *> local; // all operations of chains without exchanges
};

/// Whether one product writes a buffer that the other reads or writes.
bool depend(optim::ProductOp a, optim::ProductOp b);

/// The segment on which an operation works; null if there is none.
mlir::FlatSymbolRefAttr segmentOf(mlir::Operation *op);
/// The segment of the first value that a collective sends.
mlir::FlatSymbolRefAttr segmentOf(comm::CollectiveOpInterface op);
/// Whether a collective is part of a sum over slabs.
bool addsUp(comm::CollectiveOpInterface op);
/// The phase of each chain that takes part in a round. `computed` has the chains that were in matrix space in
/// rounds before. Adds the chains that compute in this round.
llvm::DenseMap<mlir::Attribute, Phase> phasesOf(const Round &round, const StartMerger &merger,
                                                llvm::DenseSet<mlir::Attribute> &computed);

} // namespace stepc::schedule

#endif
