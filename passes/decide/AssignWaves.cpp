//===- AssignWaves.cpp - Divide the blocks into waves ----------------------===//
//
// The pass tries several numbers of waves. Among those whose workspace stays within the bound and whose
// modelled time is close to the least, it chooses the number with the least workspace.
//
//===----------------------------------------------------------------------===//

#include "passes/decide/Passes.h"

#include "dialects/comm/Comm.h"
#include "dialects/optim/Saturate.h"
#include "passes/decide/ClusterOfModule.h"
#include "passes/decide/WaveModel.h"
#include "runtime/text/Plural.h"

#include "mlir/IR/Remarks.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

namespace stepc::decide {
#define GEN_PASS_DEF_ASSIGNWAVES
#include "passes/decide/Passes.h.inc"
} // namespace stepc::decide

using namespace stepc::decide;

namespace {

/// Without a limit and without the option target-bytes, the bound is the device's memory divided by this
/// number.
constexpr double kPartOfCapacity = 12;
/// How many percent the modelled time of the choice may be above the best.
constexpr int64_t kTolerancePercent = 3;
/// Without a limit, no more waves are tried once the modelled time is this many times the best.
constexpr double kWorthless = 2;
/// The most waves that are tried once a number of waves stays within the bound. Each further wave makes the
/// program longer, and saves less workspace than the wave before.
constexpr int64_t kMostFreeWaves = 32;
/// Under a limit each number of waves up to this one is tried. If a number takes too much memory, a
/// neighbouring number often does not, because it is chance which blocks of different sizes are in one wave.
constexpr int64_t kMostDenseWaves = 64;

class AssignWaves : public stepc::decide::impl::AssignWavesBase<AssignWaves> {
public:
  using AssignWavesBase::AssignWavesBase;

private:
  /// A division of all blocks into waves, and its cost.
  struct Division {
    std::vector<int64_t> waveOf;
    int64_t waves = 0;
    WaveCosts costs;
    bool sideBySide = false; // whether the chains of each wave are computed side by side
    WaveCost cost;           // of chains side by side or in turn
  };

  /// The chosen division, and figures for comparison.
  struct Choice {
    Division division;
    int64_t oneWave = 0; // bytes of all blocks at once
    double best = 0;     // seconds of the fastest division that was allowed
    int64_t kept = 0;    // bytes that are kept beside all waves
    int64_t bytes() const { return saturatingAdd(division.cost.bytes, kept); }
  };

  /// Bytes of reduced gradients that the step keeps from the model's numbers to the rules. There are none
  /// unless a number follows from gradients.
  int64_t keptBytes(const WaveModel &waves) {
    ModelOp model = findModel(getOperation());
    SetVector<Value> read;
    for (Operation *number : model ? model.getNumbers() : SmallVector<Operation *>())
      if (isa<ReduceOp>(number))
        read.insert(number->operand_begin(), number->operand_end());
    for (size_t i = 0; i < read.size(); ++i)
      if (Operation *op = read[i].getDefiningOp())
        read.insert(op->operand_begin(), op->operand_end());
    return model && read.contains(model.getGradientArgument()) ? waves.reducedBytes() : 0;
  }

  WaveModel collect() {
    WaveModel model(clusterOf(getOperation()));
    for (auto group : getOperation().getOps<GroupOp>())
      if (group.getWaves())
        continue;
      else if (group.getHops() || group.getExemplar().standsApart())
        model.add(group);
      else
        model.addElementwise(group);
    return model;
  }

  /// The most workspace that chains may take side by side. The model may be too low by some percent, and a
  /// step above a limit is an error.
  static int64_t mostSideBySide(int64_t bound, bool isLimit) {
    return isLimit ? bound - bound / 4 : bound;
  }

  /// Chains are computed side by side if that is faster and the workspace stays within the bound. Only
  /// kernels that serve products of several chains in one launch gain time.
  Division divide(WaveModel &model, int64_t count, int64_t bound, bool isLimit) {
    Division division;
    division.waveOf = model.assign(count);
    division.waves = *llvm::max_element(division.waveOf) + 1;
    division.costs = model.cost(division.waveOf);
    division.cost = division.costs.inTurn;
    const std::optional<WaveCost> &other = division.costs.sideBySide;
    division.sideBySide = other && other->seconds < division.cost.seconds &&
                          other->bytes <= mostSideBySide(bound, isLimit);
    if (division.sideBySide)
      division.cost = *other;
    return division;
  }

  /// The numbers of waves to try. These are all numbers up to `dense`, the numbers of 1, 2, 3, 4, 6, 8,
  /// 12, … above `dense`, and the number of blocks.
  static SmallVector<int64_t> counts(int64_t blocks, int64_t dense) {
    SmallVector<int64_t> result;
    for (int64_t count = 1; count < std::min(blocks, dense + 1); ++count)
      result.push_back(count);
    auto add = [&](int64_t count) {
      if (count > dense && count < blocks)
        result.push_back(count);
    };
    for (int64_t power = 1; power < blocks; power *= 2) {
      add(power);
      if (power > 1)
        add(power / 2 * 3);
    }
    result.push_back(blocks);
    return result;
  }

  /// Chooses the division with the least workspace within the tolerance of the best time, among divisions
  /// that stay within the bound. If none stays within a limit, it chooses the least workspace of all: the
  /// arena may still keep the limit. If none stays within a bound that is no limit, it chooses among
  /// divisions with at most twice the least workspace. Among equal divisions it chooses the one with the
  /// fewest waves.
  Choice choose(WaveModel &model, int64_t bound, bool isLimit) {
    Choice choice;
    bool any = false;
    double fastest = std::numeric_limits<double>::infinity();
    int64_t least = std::numeric_limits<int64_t>::max();
    std::vector<Division> found;
    for (int64_t count : counts(model.blocks(), isLimit ? kMostDenseWaves : 0)) {
      if (any && count > kMostFreeWaves)
        break;
      // More waves take more time. Without a limit, less workspace is not worth that much time.
      if (!isLimit && !found.empty() && found.back().cost.seconds > fastest * kWorthless)
        break;
      Division division = divide(model, count, bound, isLimit);
      // Skips a division that equals the last one. Two divisions with equally many waves may still differ in
      // the blocks of a wave and in workspace.
      if (!found.empty() && division.waveOf == found.back().waveOf)
        continue;
      any |= division.cost.bytes <= bound;
      fastest = std::min(fastest, division.cost.seconds);
      least = std::min(least, division.cost.bytes);
      found.push_back(std::move(division));
    }
    int64_t most = any ? bound : isLimit ? least : saturatingMul(2, least);
    auto allowed = [&](const Division &d) { return d.cost.bytes <= most; };
    choice.best = std::numeric_limits<double>::infinity();
    for (const Division &d : found)
      if (allowed(d))
        choice.best = std::min(choice.best, d.cost.seconds);
    const Division *chosen = nullptr;
    for (const Division &d : found)
      if (allowed(d) && d.cost.seconds * 100 <= choice.best * (100 + kTolerancePercent) &&
          (!chosen || d.cost.bytes < chosen->cost.bytes))
        chosen = &d;
    choice.division = *chosen;
    choice.oneWave = found.front().cost.bytes;
    return choice;
  }

  /// Chooses whether reduced gradients are kept, and the division beside them. They are reduced again if the
  /// model finds nothing within the limit beside them, and that takes less workspace. A number of waves that
  /// is forced stays as it is.
  Choice chooseKept(WaveModel &model, int64_t bound, bool isLimit) {
    int64_t kept = keptBytes(model);
    auto choosing = [&](int64_t kept) {
      int64_t left = std::max<int64_t>(0, bound - kept);
      model.keepReduced(kept > 0);
      // Chooses even if a number of waves is forced, because the remark compares with this choice.
      Choice choice = choose(model, left, isLimit);
      if (waves > 0)
        choice.division = divide(model, std::min<int64_t>(waves, model.blocks()), left, isLimit);
      choice.kept = kept;
      return choice;
    };
    Choice keeping = choosing(kept);
    if (!kept || !isLimit || keeping.bytes() <= bound)
      return keeping;
    Choice reducing = choosing(0);
    if (reducing.bytes() >= keeping.bytes())
      return keeping;
    getOperation()->setAttr(comm::kReducesAgainAttr, UnitAttr::get(&getContext()));
    remark::passed(
        getOperation().getLoc(),
        remark::RemarkOpts::name("gradients-reduced-again").category("optim-assign-waves"))
        << remark::metric("kept-bytes", kept) << remark::metric("modelled-bytes", keeping.bytes())
        << remark::metric("target-bytes", bound);
    return reducing;
  }

  /// Emits remarks on the chosen division and on a bound that it does not keep, and a warning if fewer waves
  /// than forced are filled. `name` is the bound's.
  void report(const Choice &choice, int64_t blocks, int64_t bound, StringRef name, bool isLimit) {
    const Division &chosen = choice.division;
    Location loc = getOperation().getLoc();
    auto named = [](StringRef name) {
      return remark::RemarkOpts::name(name).category("optim-assign-waves");
    };
    int64_t needed = choice.bytes();
    if (waves > chosen.waves)
      getOperation().emitWarning("expected at most ")
          << plural(chosen.waves, "wave") << ", as many as " << plural(blocks, "block")
          << " can be divided into by their bytes, found " << int64_t(waves) << " forced";
    if (needed > bound)
      remark::missed(loc, named("workspace-above-target"))
          << remark::metric("modelled-bytes", needed) << remark::metric("target-bytes", bound)
          << remark::metric("waves", chosen.waves)
          << (waves > 0 ? remark::reason("the number of waves is forced")
                        : remark::reason("no number of waves that was tried is modelled to stay "
                                         "within {0}",
                                         name));
    remark::passed(loc, named("waves-assigned"))
        << remark::metric("blocks", blocks) << remark::metric("modelled-bytes", needed)
        << remark::metric("modelled-ns", cost::picoseconds(chosen.cost.seconds) / 1000)
        << remark::metric("one-wave-bytes", saturatingAdd(choice.oneWave, choice.kept))
        << remark::metric("target-bytes", bound)
        << remark::metric(
               "time-percent-of-best",
               choice.best > 0 ? int64_t(std::round(100 * chosen.cost.seconds / choice.best)) : 100)
        << remark::metric("waves", chosen.waves)
        << (waves > 0 ? remark::reason("forced by option waves")
            : needed > bound && isLimit
                ? remark::reason("the least workspace, and still above {0}", name)
            : needed > bound
                ? remark::reason("nothing stays within {0}; of what takes at most twice the least "
                                 "workspace, the least "
                                 "whose modelled time is at most {1} % above the best",
                                 name, kTolerancePercent)
                : remark::reason("the least workspace within {0} whose modelled time is at most "
                                 "{1} % above the best",
                                 name, kTolerancePercent));
  }

  /// Lets the chains of each wave be computed side by side if the division says so. Emits a remark.
  void standSideBySide(const Division &chosen, int64_t bound, bool isLimit) {
    auto named = [](StringRef name) {
      return remark::RemarkOpts::name(name).category("optim-assign-waves");
    };
    const std::optional<WaveCost> &other = chosen.costs.sideBySide;
    if (!other)
      return;
    if (!chosen.sideBySide) {
      remark::missed(getOperation().getLoc(), named("chains-side-by-side"))
          << remark::metric("modelled-bytes", other->bytes)
          << remark::metric("most-bytes", mostSideBySide(bound, isLimit))
          << (other->seconds < chosen.cost.seconds
                  ? remark::reason("all chains of a wave at the same time take more workspace")
                  : remark::reason("no launch would have products of several chains"));
      return;
    }
    getOperation()->setAttr(comm::kSideBySideAttr, UnitAttr::get(&getContext()));
    remark::passed(getOperation().getLoc(), named("chains-side-by-side"))
        << remark::metric("modelled-bytes", chosen.cost.bytes)
        << remark::metric("bytes-in-turn", chosen.costs.inTurn.bytes);
  }

  void runOnOperation() override {
    comm::setLevel(getOperation(), "decided");
    WaveModel model = collect();
    if (model.blocks() == 0) {
      if (waves > 1)
        getOperation().emitWarning("expected blocks to divide into the ")
            << int64_t(waves) << " waves that are forced, found none: nothing comes together";
      return;
    }
    auto limit = getOperation()->getAttrOfType<IntegerAttr>(comm::kLimitAttr);
    double capacity = clusterOf(getOperation()).device.capacity;
    int64_t bound = limit ? limit.getInt() : int64_t(capacity / kPartOfCapacity);
    if (targetBytes > 0)
      bound = limit ? std::min<int64_t>(bound, targetBytes) : int64_t(targetBytes);
    Choice choice = chooseKept(model, bound, bool(limit));
    StringRef name = limit && bound == limit.getInt() ? "the limit" : "target-bytes";
    report(choice, model.blocks(), bound, name, bool(limit));
    std::vector<std::vector<int64_t>> lists(model.groups().size());
    for (auto [block, wave] : llvm::enumerate(choice.division.waveOf))
      lists[model.groupOf(int64_t(block))].push_back(wave);
    standSideBySide(choice.division, std::max<int64_t>(0, bound - choice.kept), bool(limit));
    for (auto [group, list] : llvm::zip(model.groups(), lists))
      GroupOp(group).setWavesAttr(DenseI64ArrayAttr::get(&getContext(), list));
  }
};

} // namespace
