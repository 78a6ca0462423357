//===- PipelineWaves.cpp - Merge exchanges and overlap waves ---------------===//
//
// The program comes as chains, one per group and wave: operations, collectives, operations, and so
// on (in, to matrix space, matrix, back, out). A round is operations of a chain with the collectives
// after them; rounds of all chains are laid out anew. Operations without effects (extents,
// shards, allocations) move to their first use.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/ProductForms.h"
#include "passes/schedule/Passes.h"
#include "passes/schedule/Rounds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringSet.h"

#include <map>

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;
using namespace stepc::schedule;

namespace stepc::schedule {
#define GEN_PASS_DEF_PIPELINEWAVES
#include "passes/schedule/Passes.h.inc"
} // namespace stepc::schedule

namespace {

class Pipeliner {
public:
  Pipeliner(func::FuncOp step, const ProgramPlan &program)
      : step(step), merger(program), builder(step.getContext()),
        sideBySide(step->getParentOfType<ModuleOp>()->hasAttr(kSideBySideAttr)) {}

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
    // Per chain: its current round, and whether this round has a collective yet.
    llvm::StringMap<std::pair<size_t, bool>> progress;
    llvm::StringSet<> exchanging, elementwiseSegments;
    step.walk([&](CollectiveOpInterface op) {
      if (op->hasAttr(kOfModelAttr))
        return;
      for (Value send : op.getSends())
        exchanging.insert(placeOf(send).getSymbol().getValue());
    });
    for (auto segment : module.getOps<SegmentOp>()) {
      auto group =
          SymbolTable::lookupNearestSymbolFrom<optim::GroupOp>(segment, segment.getGroupAttr());
      if (!group.getHops())
        elementwiseSegments.insert(segment.getSymName());
    }
    for (Operation &op : step.getBody().front()) {
      if (op.hasAttr(kOfModelAttr)) {
        if (failed(collectOfModel(&op)))
          return failure();
        continue;
      }
      if (auto last = dyn_cast<AdvanceStepsOp>(op)) {
        if (!isa<func::ReturnOp>(op.getNextNode()))
          return last.emitOpError("expected nothing behind it, because what fails before it does "
                                  "not count as a step, found '")
                 << op.getNextNode()->getName() << "'";
        advance = last;
        continue;
      }
      if (isMemoryEffectFree(&op) || isa<memref::AllocOp, func::ReturnOp>(op))
        continue; // placed at its first use
      if (isa<ScalarsOp>(op)) {
        scalars.push_back(&op);
        continue;
      }
      if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
        if (collective.getSends().empty())
          continue; // nothing travels, so it is erased
        if (!ranksOf(op.getOperand(0)))
          return op.emitOpError(
                     "expected a communicator of comm.communicator or comm.world, found ")
                 << op.getOperand(0);
        if (failed(merger.checkRanks(collective)))
          return failure();
        StringRef name = segmentOf(collective).getValue();
        auto &[round, travels] = progress[name];
        travels = true;
        roundAt(waveOf.lookup(name), round).collectives.push_back(collective);
        continue;
      }
      FlatSymbolRefAttr segment = segmentOf(&op);
      if (!segment)
        return op.emitOpError(
            "expected an operation on a segment, found none: it has no place in a wave");
      StringRef name = segment.getValue();
      if (exchanging.contains(name)) {
        auto &[round, travels] = progress[name];
        round += std::exchange(travels, false);
        roundAt(waveOf.lookup(name), round).operations.push_back(&op);
      } else if (elementwiseSegments.contains(name)) {
        fillers.push_back(&op);
      } else {
        waveAt(waveOf.lookup(name)).local.push_back(&op);
      }
    }
    return success();
  }

  /// Adds an operation that makes numbers of the model. Segments of one wave make their parts side by side,
  /// wave after wave, so that they share the workspace. All else waits for what is before it.
  LogicalResult collectOfModel(Operation *op) {
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (collective && failed(merger.checkRanks(collective)))
      return failure();
    FlatSymbolRefAttr segment = collective ? segmentOf(collective) : segmentOf(op);
    auto named =
        segment ? SymbolTable::lookupNearestSymbolFrom<SegmentOp>(op, segment) : SegmentOp();
    int64_t wave = named ? named.getWave().value_or(0) : -1;
    bool adds = isa<CollectOp>(op);
    if (ofModel.empty() || wave < 0 || adds || wave != ofModel.back().wave ||
        (ofModel.back().own && ofModel.back().own != segment))
      ofModel.push_back(OfModel{wave, adds ? segment : FlatSymbolRefAttr()});
    auto &[round, travels] = ofModel.back().progress[segment ? segment.getValue().str() : ""];
    SmallVector<Round> &rounds = ofModel.back().rounds;
    round += !collective && std::exchange(travels, false);
    if (rounds.size() <= round)
      rounds.resize(round + 1);
    if (collective) {
      travels = true;
      rounds[round].collectives.push_back(collective);
    } else {
      rounds[round].operations.push_back(op);
    }
    return success();
  }

  /// Places what makes numbers of the model, before all else.
  void layOutOfModel() {
    for (OfModel &part : ofModel)
      for (Round &round : part.rounds) {
        placeAll(round.operations);
        SmallVector<Started> starts = start(round.collectives);
        wait(starts, [](Attribute) { return true; });
      }
  }

  Wave &waveAt(int64_t index) {
    if (int64_t(waves.size()) <= index)
      waves.resize(index + 1);
    return waves[index];
  }

  Round &roundAt(int64_t wave, size_t round) {
    SmallVector<Round> &all = waveAt(wave).rounds;
    if (all.size() <= round)
      all.resize(round + 1);
    rounds = std::max(rounds, all.size());
    return all[round];
  }

  //===--------------------------------------------------------------------===//
  // Laying out
  //===--------------------------------------------------------------------===//

  /// Moves an operation to the end of the step, after the operations that define its operands.
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

  /// A communicator of the scheduled step. The operation is created when it is first used.
  Value communicator(CommunicatorAttr ranks, Location loc) {
    Value &value = communicators[ranks];
    if (value)
      return value;
    auto type = CommunicatorType::get(builder.getContext());
    value = ranks ? CommunicatorOp::create(builder, loc, type, ranks).getResult()
                  : WorldOp::create(builder, loc, type).getResult();
    placed.insert(value.getDefiningOp());
    return value;
  }

  /// Replaces collectives by starts, merged as StartMerger says.
  SmallVector<Started> start(ArrayRef<CollectiveOpInterface> collectives) {
    for (CollectiveOpInterface op : collectives)
      for (OperandRange values : {op.getSends(), op.getReceives()})
        for (Value value : values)
          if (Operation *def = value.getDefiningOp(); def && !placed.contains(def))
            place(def);
    SmallVector<Together> merged = merger.merge(collectives);
    for (CollectiveOpInterface op : collectives)
      op.erase();
    builder.setInsertionPoint(terminator);
    SmallVector<Started> starts;
    for (Together &each : merged) {
      auto started =
          StartOp::create(builder, each.loc, TokenType::get(builder.getContext()), each.kind,
                          communicator(each.ranks, each.loc), order++, each.sends, each.receives);
      placed.insert(started);
      Started &under = starts.emplace_back(Started{started.getToken(), {}});
      for (Value send : started.getSends())
        under.segments.push_back(placeOf(send).getSymbol());
    }
    return starts;
  }

  /// Waits for each start that has values of segments for which `isOf` is true. Erases these from `starts`.
  void wait(SmallVector<Started> &starts, llvm::function_ref<bool(Attribute)> isOf) {
    builder.setInsertionPoint(terminator);
    llvm::erase_if(starts, [&](const Started &each) {
      if (!llvm::any_of(each.segments, isOf))
        return false;
      placed.insert(WaitOp::create(builder, each.token.getLoc(), each.token));
      return true;
    });
  }

  /// The steps of each chain in a phase: indices of operations.
  using Steps = std::map<int64_t, std::vector<size_t>>;

  cost::Chain chainOf(ArrayRef<Operation *> ops, ArrayRef<size_t> indices) {
    cost::Chain chain;
    for (size_t index : indices) {
      auto product = cast<optim::ProductOp>(ops[index]);
      int64_t number = forms.try_emplace(formOf(product), int64_t(forms.size())).first->second;
      cost::ChainProduct &made = chain.emplace_back(cost::ChainProduct{number, {}});
      for (auto [before, other] : llvm::enumerate(indices.take_front(chain.size() - 1)))
        if (depend(cast<optim::ProductOp>(ops[other]), product))
          made.after.push_back(before);
    }
    return chain;
  }

  /// Places the operations of all chains before their products, then the products, then the next operations
  /// of all chains. So equal operations of different chains are next to each other. Products are placed chain
  /// by chain or, if the module says so, also side by side: as many products of one form as possible are next
  /// to each other.
  void placeSideBySide(ArrayRef<Operation *> ops) {
    llvm::MapVector<Attribute, std::pair<int64_t, int64_t>> chains; // its number, and its phase
    std::map<int64_t, Steps> phases;                                // products are odd phases
    for (auto [index, op] : llvm::enumerate(ops)) {
      auto [known, isNew] = chains.insert({segmentOf(op), {int64_t(chains.size()), 0}});
      auto &[chain, phase] = known->second;
      phase += isa<optim::ProductOp>(op) != (phase % 2 == 1);
      phases[phase][chain].push_back(index);
    }
    for (auto &[phase, steps] : phases) {
      bool multiplies = phase % 2 == 1;
      std::vector<std::vector<size_t>> columns;
      if (multiplies && sideBySide) {
        std::vector<cost::Chain> found;
        for (auto &[chain, indices] : steps)
          found.push_back(chainOf(ops, indices));
        columns = cost::columnsOf(found);
      }
      SmallVector<std::array<size_t, 3>> order; // the last number is the index in `ops`
      for (auto [row, chain] : llvm::enumerate(steps))
        for (auto [step, index] : llvm::enumerate(chain.second))
          order.push_back(!multiplies  ? std::array{step, row, index}
                          : sideBySide ? std::array{columns[row][step], row, index}
                                       : std::array{row, step, index});
      llvm::sort(order);
      for (const auto &[column, row, index] : order)
        place(ops[index]);
    }
  }

  /// Places the operations of a round of a wave, its starts, and the waits for the round before.
  void layOut(Wave &wave, size_t round) {
    if (round == 1 && sideBySide)
      placeSideBySide(wave.local);
    else if (round == 1)
      placeAll(wave.local);
    if (round >= wave.rounds.size())
      return;
    Round &now = wave.rounds[round];
    SmallVector<Started> none, &before = round > 0 ? wave.rounds[round - 1].starts : none;
    llvm::DenseMap<Attribute, Phase> phases = phasesOf(now, merger, computed);
    SmallVector<CollectiveOpInterface>
        collectives; // of placed operations, until starts replace them
    for (Phase phase : {Phase::There, Phase::Computes, Phase::Returns, Phase::Ends}) {
      auto isOf = [&](Attribute segment) {
        auto found = phases.find(segment);
        return found != phases.end() && found->second == phase;
      };
      SmallVector<Operation *> operations;
      llvm::copy_if(now.operations, std::back_inserter(operations),
                    [&](Operation *op) { return isOf(segmentOf(op)); });
      llvm::erase_if(now.collectives, [&](CollectiveOpInterface op) {
        bool found = isOf(segmentOf(op));
        if (found)
          collectives.push_back(op);
        return found;
      });
      wait(before, isOf);
      if (phase == Phase::Computes && (sideBySide || !collectives.empty()))
        placeSideBySide(operations);
      else
        placeAll(operations);
      if (phase !=
          Phase::Computes) // the collectives of this phase start together with those of Returns
        llvm::append_range(now.starts, start(std::exchange(collectives, {})));
    }
    auto all = [](Attribute) { return true; };
    wait(before, all);
    if (round + 1 == wave.rounds.size())
      wait(now.starts, all);
  }

  /// The number of rounds for which a wave is in matrix space: one, and one for each round with sums over
  /// slabs.
  static size_t roundsOfBlocks(const Wave &wave) {
    return 1 + llvm::count_if(wave.rounds, [&](const Round &round) {
             return llvm::any_of(round.collectives, addsUp);
           });
  }

  void layOut() {
    terminator = step.getBody().front().getTerminator();
    layOutOfModel();
    placeAll(scalars);
    // While round r + 1 of a wave travels, round r of the next wave is computed. At most two waves are in
    // matrix space at a time, even if they stay there for many rounds. A third wave would take more memory
    // and could hide no more time.
    std::map<size_t, size_t> waveOf; // the wave whose first round is at a time
    std::vector<size_t> begin;
    for (size_t wave = 0; wave < waves.size(); ++wave) {
      size_t earliest = wave > 0 ? begin[wave - 1] + 1 : 0;
      if (wave > 1)
        earliest = std::max(earliest, begin[wave - 2] + roundsOfBlocks(waves[wave - 2]));
      begin.push_back(earliest);
      waveOf[earliest] = wave;
    }
    size_t end = begin.empty() ? 1 : begin.back() + rounds;
    for (size_t time = 0; time < end; ++time) {
      for (size_t round = 0; round <= std::min(time, rounds - 1); ++round)
        if (auto found = waveOf.find(time - round); found != waveOf.end())
          layOut(waves[found->second], round);
      if (time == 0)
        placeAll(fillers);
    }
    if (advance)
      place(advance);
    // Operations that were not placed are in front of the others and unused. They are erased.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(step.getBody().front())))
      if (&op != terminator && !placed.contains(&op) && op.use_empty())
        op.erase();
  }

  /// Emits a remark for each exchange beside which nothing is computed, and one with the numbers of waves and
  /// exchanges.
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
      plan::Place first = merger.placeOf(started.getSends().front());
      SmallVector<Attribute> segments;
      for (Value send : started.getSends())
        segments.push_back(placeOf(send).getSymbol());
      remark::missed(started.getLoc(), named("exchange-exposed"))
          << remark::metric("order", int64_t(started.getOrder()))
          << remark::metric("from", plan::name(first.from))
          << remark::metric("to", plan::name(first.to))
          << remark::metric("segments", Attribute(builder.getArrayAttr(segments)))
          << (merger.leadsThere(first)
                  ? remark::reason("no elementwise or local group and no other wave is left to "
                                   "run while it travels")
                  : remark::reason("it is the last wave's: no later matrix operations run while "
                                   "it travels"));
    }
    remark::passed(step.getLoc(), named("waves-pipelined"))
        << remark::metric("waves", waves.size()) << remark::metric("exchanges", order);
  }

  func::FuncOp step;
  StartMerger merger;
  OpBuilder builder;
  const bool sideBySide;
  std::map<cost::LaunchForm, int64_t> forms;
  /// Operations that make numbers of the model, by rounds. `own` is the segment of the model if they add up
  /// what ranks have.
  struct OfModel {
    int64_t wave;
    FlatSymbolRefAttr own;
    std::map<std::string, std::pair<size_t, bool>> progress = {}; // round, and whether it has a collective
    SmallVector<Round> rounds = {};
  };
  std::vector<OfModel> ofModel;
  std::vector<Wave> waves;
  SmallVector<Operation *> scalars, fillers;
  size_t rounds =
      2; // the most rounds of a wave; at least 2, because local chains are placed in round 1
  llvm::DenseSet<Operation *> placed;
  llvm::DenseMap<Attribute, Value> communicators;
  llvm::DenseSet<Attribute> computed; // chains that were in matrix space
  Operation *terminator = nullptr, *advance = nullptr;
  int64_t order = 0;
};

class PipelineWaves : public schedule::impl::PipelineWavesBase<PipelineWaves> {
  void runOnOperation() override {
    FailureOr<ProgramPlan> program = planFromModule(getOperation());
    if (failed(program))
      return signalPassFailure();
    for (auto step : getOperation().getOps<func::FuncOp>())
      if (failed(Pipeliner(step, *program).run()))
        return signalPassFailure();
  }
};

} // namespace
