//===- Rounds.cpp - What chains do between their exchanges -----------------===//

#include "passes/schedule/Rounds.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;
using namespace stepc::schedule;

bool schedule::depend(optim::ProductOp a, optim::ProductOp b) {
  return llvm::is_contained(b->getOperands(), a.getInit()) ||
         llvm::is_contained(a->getOperands(), b.getInit());
}

FlatSymbolRefAttr schedule::segmentOf(Operation *op) {
  if (auto stage = dyn_cast<StageOp>(op))
    return stage.getSegmentAttr();
  if (auto copy = dyn_cast<CopyOp>(op))
    return copy.getSegmentAttr();
  if (auto sum = dyn_cast<SumOp>(op))
    return sum.getSegmentAttr();
  if (auto collect = dyn_cast<CollectOp>(op))
    return collect.getSegmentAttr();
  if (auto skip = dyn_cast<SkipOp>(op))
    return skip.getSegmentAttr();
  return segmentOfBatch(op);
}

static bool usesBlocks(Operation *op) {
  return llvm::any_of(op->getOperands(), [](Value value) {
    PlaceAttr place = placeOf(value);
    return place && place.isBatch();
  });
}

bool schedule::addsUp(CollectiveOpInterface op) {
  Distribution from = placeOf(op.getSends().front()).getFrom();
  return from == Distribution::Parts || from == Distribution::Ranges;
}

FlatSymbolRefAttr schedule::segmentOf(CollectiveOpInterface op) {
  return placeOf(op.getSends().front()).getSymbol();
}

llvm::DenseMap<Attribute, Phase> schedule::phasesOf(const Round &round, const StartMerger &merger,
                                                    llvm::DenseSet<Attribute> &computed) {
  llvm::DenseMap<Attribute, Phase> phases;
  for (Operation *op : round.operations) {
    Phase &phase = phases.try_emplace(segmentOf(op), Phase::Ends).first->second;
    if (usesBlocks(op))
      phase = Phase::Computes;
  }
  for (CollectiveOpInterface op : round.collectives) {
    Phase &phase = phases.try_emplace(segmentOf(op), Phase::Ends).first->second;
    if (addsUp(op))
      phase = Phase::Computes;
    else if (phase == Phase::Ends)
      // Shards that move to `home` only for stages after matrix space travel with the results.
      phase = merger.leadsThere(merger.placeOf(op.getSends().front())) &&
                      !computed.contains(segmentOf(op))
                  ? Phase::There
                  : Phase::Returns;
  }
  for (auto [segment, phase] : phases)
    if (phase == Phase::Computes)
      computed.insert(segment);
  return phases;
}
