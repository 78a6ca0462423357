//===- PipelineWaves.cpp - Merge exchanges and overlap waves ---------------===//
//
// The program comes as chains, one per group and wave: in, exchange, matrix, exchange,
// out. Each operation gets a phase from its place in its chain; the phases are
// then laid out anew. Operations without effects (extents, shards, allocations)
// move to their first use.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/Passes.h"

#include "dialects/comm/Comm.h"
#include "dialects/optim/Optim.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;

namespace stepc::schedule {
#define GEN_PASS_DEF_PIPELINEWAVES
#include "passes/schedule/Passes.h.inc"
} // namespace stepc::schedule

namespace {

/// What one wave does, in order.
struct Wave {
  SmallVector<Operation *> in, matrix, out;       // of chains that exchange
  SmallVector<CollectiveOpInterface> there, back; // to matrix, to shards
  SmallVector<Operation *> local;                 // chains without exchange, whole
};

/// The segment that an operation works on; null where it works on none.
FlatSymbolRefAttr segmentOf(Operation *op) {
  if (auto stage = dyn_cast<StageOp>(op))
    return stage.getSegmentAttr();
  if (auto copy = dyn_cast<CopyOp>(op))
    return copy.getSegmentAttr();
  return segmentOfBatch(op);
}

/// The segment that a collective brings together, and whether it does so towards its blocks.
FlatSymbolRefAttr segmentOf(CollectiveOpInterface op) {
  return placeOf(op.getSends().front()).getSymbol();
}
bool isThere(CollectiveOpInterface op) {
  return placeOf(op.getSends().front()).getTo() == Distribution::Blocks;
}

class Pipeliner {
public:
  explicit Pipeliner(func::FuncOp step) : step(step), builder(step.getContext()) {}

  LogicalResult run() {
    if (failed(collect()))
      return failure();
    layOut();
    report();
    return success();
  }

private:
  LogicalResult collect() {
    auto module = step->getParentOfType<ModuleOp>();
    llvm::StringMap<int64_t> waveOf;
    for (auto segment : module.getOps<SegmentOp>())
      waveOf[segment.getSymName()] = segment.getWave().value_or(0);
    // Which chains exchange, per direction seen so far: 1 after the way there, 2 after the way
    // back.
    llvm::StringMap<int> progress;
    llvm::StringSet<> exchanging, elementwiseSegments;
    step.walk([&](CollectiveOpInterface op) {
      for (Value send : op.getSends())
        exchanging.insert(placeOf(send).getSymbol().getValue());
    });
    for (auto segment : module.getOps<SegmentOp>()) {
      auto group =
          SymbolTable::lookupNearestSymbolFrom<optim::GroupOp>(segment, segment.getGroupAttr());
      if (group.getStrategy() == optim::Strategy::Elementwise)
        elementwiseSegments.insert(segment.getSymName());
    }
    for (Operation &op : step.getBody().front()) {
      if (isMemoryEffectFree(&op) || isa<memref::AllocOp, func::ReturnOp>(op))
        continue; // placed at its first use
      if (isa<ScalarsOp>(op)) {
        scalars.push_back(&op);
        continue;
      }
      if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
        if (collective.getSends().empty())
          continue; // nothing travels: it goes
        StringRef name = segmentOf(collective).getValue();
        bool there = isThere(collective);
        Wave &wave = waveAt(waveOf.lookup(name));
        (there ? wave.there : wave.back).push_back(collective);
        progress[name] = there ? 1 : 2;
        continue;
      }
      FlatSymbolRefAttr segment = segmentOf(&op);
      if (!segment)
        return op.emitOpError(
            "expected an operation on a segment, found none: it has no place in a wave");
      StringRef name = segment.getValue();
      Wave &wave = waveAt(waveOf.lookup(name));
      if (elementwiseSegments.contains(name))
        fillers.push_back(&op);
      else if (!exchanging.contains(name))
        wave.local.push_back(&op);
      else if (progress.lookup(name) == 0)
        wave.in.push_back(&op);
      else
        (progress.lookup(name) == 1 ? wave.matrix : wave.out).push_back(&op);
    }
    return success();
  }

  Wave &waveAt(int64_t index) {
    if (int64_t(waves.size()) <= index)
      waves.resize(index + 1);
    return waves[index];
  }

  //===--------------------------------------------------------------------===//
  // Laying out
  //===--------------------------------------------------------------------===//

  /// Moves an operation to the end, after what it needs.
  void place(Operation *op) {
    for (Value operand : op->getOperands())
      if (Operation *from = operand.getDefiningOp(); from && !placed.contains(from))
        place(from);
    placed.insert(op);
    op->moveBefore(terminator);
  }
  void placeAll(ArrayRef<Operation *> ops) {
    for (Operation *op : ops)
      place(op);
  }

  /// One start for all collectives of a wave and direction that are of one kind and communicator.
  SmallVector<Value> start(ArrayRef<CollectiveOpInterface> collectives) {
    llvm::MapVector<std::pair<CollectiveKind, Value>, SmallVector<CollectiveOpInterface>> alike;
    for (CollectiveOpInterface op : collectives)
      alike[{op.getKind(), op->getOperand(0)}].push_back(op);
    SmallVector<Value> started;
    for (auto &[key, ops] : alike)
      started.push_back(merge(key.first, key.second, ops));
    return started;
  }

  Value merge(CollectiveKind kind, Value communicator, ArrayRef<CollectiveOpInterface> ops) {
    SmallVector<Value> sends, receives;
    for (CollectiveOpInterface op : ops) {
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp(); def && !placed.contains(def))
          place(def);
      llvm::append_range(sends, op.getSends());
      llvm::append_range(receives, op.getReceives());
    }
    builder.setInsertionPoint(terminator);
    auto started = StartOp::create(builder, CollectiveOpInterface(ops.front()).getLoc(),
                                   TokenType::get(builder.getContext()), kind, communicator,
                                   order++, sends, receives);
    placed.insert(started);
    for (CollectiveOpInterface op : ops)
      op.erase();
    return started.getToken();
  }

  void wait(ArrayRef<Value> started) {
    builder.setInsertionPoint(terminator);
    for (Value token : started)
      placed.insert(WaitOp::create(builder, token.getLoc(), token));
  }

  void begin(size_t wave) {
    placeAll(waves[wave].in);
    tokens[wave] = start(waves[wave].there);
  }

  void finish(size_t wave) {
    wait(backTokens[wave]);
    placeAll(waves[wave].out);
  }

  void layOut() {
    terminator = step.getBody().front().getTerminator();
    tokens.resize(waves.size());
    backTokens.resize(waves.size());
    placeAll(scalars);
    if (!waves.empty())
      begin(0);
    placeAll(fillers);
    for (size_t wave = 0; wave < waves.size(); ++wave) {
      if (wave + 1 < waves.size())
        begin(wave + 1);
      placeAll(waves[wave].local);
      wait(tokens[wave]);
      placeAll(waves[wave].matrix);
      backTokens[wave] = start(waves[wave].back);
      if (wave > 0)
        finish(wave - 1);
    }
    if (!waves.empty())
      finish(waves.size() - 1);
    // What nothing uses any more stands in front; it goes.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(step.getBody().front())))
      if (&op != terminator && !placed.contains(&op) && op.use_empty())
        op.erase();
  }

  /// Says which exchanges nothing hides.
  void report() {
    auto named = [](StringRef name) {
      return remark::RemarkOpts::name(name).category("comm-pipeline-waves");
    };
    for (auto started : step.getOps<StartOp>()) {
      Operation *next = started->getNextNode();
      while (!isa<WaitOp>(next) &&
             (isa<StartOp, memref::AllocOp>(next) || isMemoryEffectFree(next)))
        next = next->getNextNode();
      auto waited = dyn_cast<WaitOp>(next);
      if (!waited || waited.getToken() != started.getToken())
        continue;
      PlaceAttr first = placeOf(started.getSends().front());
      bool there = first.getTo() == Distribution::Blocks;
      SmallVector<Attribute> segments;
      for (Value send : started.getSends())
        segments.push_back(placeOf(send).getSymbol());
      remark::missed(started.getLoc(), named("exchange-exposed"))
          << remark::metric("order", int64_t(started.getOrder()))
          << remark::metric("from", stringifyDistribution(first.getFrom()))
          << remark::metric("to", stringifyDistribution(first.getTo()))
          << remark::metric("segments", Attribute(builder.getArrayAttr(segments)))
          << (there ? remark::reason("no elementwise or local group and no other wave is left to "
                                     "run while it travels")
                    : remark::reason("it is the last wave's: no later matrix operations run while "
                                     "it travels"));
    }
    remark::passed(step.getLoc(), named("waves-pipelined"))
        << remark::metric("waves", waves.size()) << remark::metric("exchanges", order);
  }

  func::FuncOp step;
  OpBuilder builder;
  std::vector<Wave> waves;
  SmallVector<Operation *> scalars, fillers;
  std::vector<SmallVector<Value>> tokens, backTokens; // per wave
  llvm::DenseSet<Operation *> placed;
  Operation *terminator = nullptr;
  int64_t order = 0;
};

class PipelineWaves : public schedule::impl::PipelineWavesBase<PipelineWaves> {
  void runOnOperation() override {
    for (auto step : getOperation().getOps<func::FuncOp>())
      if (failed(Pipeliner(step).run()))
        return signalPassFailure();
  }
};

} // namespace
