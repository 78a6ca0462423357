//===- AssignStrategies.cpp - Choose each group's strategy -----------------===//

#include "passes/decide/Passes.h"

#include "dialects/optim/Optim.h"
#include "passes/decide/CutSpaces.h"
#include "passes/decide/Forces.h"
#include "passes/decide/StrategyModel.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

namespace stepc::decide {
#define GEN_PASS_DEF_ASSIGNSTRATEGIES
#include "passes/decide/Passes.h.inc"
} // namespace stepc::decide

using namespace stepc::decide;

namespace {

class AssignStrategies : public stepc::decide::impl::AssignStrategiesBase<AssignStrategies> {
public:
  using AssignStrategiesBase::AssignStrategiesBase;

private:
  /// The force that applies to the group's parameters. Null if there is none or if the rule has no matrix
  /// operations. Emits an error if parameters have different forces (optim-group-parameters prevents this).
  FailureOr<Force *> forceOf(GroupOp group, std::vector<Force> &forces, bool matrix) {
    Force *chosen = nullptr;
    StringRef first;
    for (auto [index, attr] : llvm::enumerate(group.getParameters())) {
      if (forces.empty())
        break;
      ParameterOp parameter = parameters.lookup(cast<FlatSymbolRefAttr>(attr).getAttr());
      StringRef name = parameter.getSymName();
      Force *last = lastMatch(forces, parameter, matrix);
      if (!matrix)
        continue; // a wide pattern may also match parameters of elementwise rules
      if (index == 0) {
        chosen = last;
        first = name;
      } else if (bool(last) != bool(chosen) || (last && last->strategy != chosen->strategy)) {
        auto text = [](Force *force) {
          return force ? force->strategy.name() : StringRef("nothing");
        };
        return blameOptions(group.emitError("expected one strategy for the parameters of group ")
                            << group.getSymName() << ", found '" << first << "' forced to "
                            << text(chosen) << " and '" << name << "' to " << text(last));
      }
    }
    return chosen;
  }

  /// Emits a remark that a strategy was chosen or refused, with the reason and the modelled time of a step.
  static void report(GroupOp group, bool chosen, StringRef strategy, const Judgement *judgement,
                     const Twine &reason) {
    auto options = remark::RemarkOpts::name(chosen ? "strategy-chosen" : "strategy-refused")
                       .category("optim-assign-strategies");
    auto remark =
        chosen ? remark::passed(group.getLoc(), options) : remark::missed(group.getLoc(), options);
    remark << remark::metric("group", group.getSymName());
    if (chosen)
      remark << remark::metric("first-parameter", firstParameter(group));
    remark << remark::metric("strategy", strategy);
    if (judgement)
      remark << remark::metric("modelled-ns", cost::picoseconds(judgement->seconds) / 1000);
    remark << remark::reason("{0}", reason.str());
  }

  /// The reasons why some groups get no strategy, and the parameters of all these groups.
  struct Refusals {
    struct Reason {
      StringRef strategy;
      std::string why;
      Location first; // of the first group with this reason
      llvm::SetVector<StringRef> parameters;
    };
    std::vector<Reason> reasons;
    llvm::SetVector<StringRef> parameters;

    void add(const Judgement &judgement, GroupOp group) {
      StringRef strategy = judgement.strategy.name();
      auto found = llvm::find_if(reasons, [&](const Reason &each) {
        return each.strategy == strategy && each.why == judgement.refusal;
      });
      if (found == reasons.end())
        found = reasons.insert(found, {strategy, judgement.refusal, group.getLoc(), {}});
      for (auto parameter : group.getParameters().getAsRange<FlatSymbolRefAttr>()) {
        found->parameters.insert(parameter.getValue());
        parameters.insert(parameter.getValue());
      }
    }

    std::string names() const { return nameSome(parameters.getArrayRef()); }

    void attachNotes(InFlightDiagnostic &diag) const {
      for (const Reason &each : reasons) {
        Diagnostic &note = diag.attachNote(each.first) << each.strategy;
        if (each.parameters.size() < parameters.size())
          note << " for " << nameSome(each.parameters.getArrayRef());
        note << ": " << each.why;
      }
    }
  };

  /// Emits one error for all groups without a legal strategy, and one for all groups that are forced to a
  /// strategy that is not legal for them.
  LogicalResult checkRefusals() {
    if (!impossible.reasons.empty()) {
      auto diag = getOperation().emitError("expected a strategy that is legal for ")
                  << impossible.names() << ", found none";
      impossible.attachNotes(diag);
    }
    if (illegal.reasons.empty())
      return success(impossible.reasons.empty());
    auto diag =
        blameOptions(getOperation().emitError("expected a strategy that is legal to force on ")
                     << illegal.names() << ", found ");
    if (illegal.reasons.size() == 1)
      return diag << illegal.reasons[0].strategy << ": " << illegal.reasons[0].why;
    llvm::SetVector<StringRef> found;
    for (const Refusals::Reason &each : illegal.reasons)
      found.insert(each.strategy);
    diag << llvm::join(found, ", ");
    illegal.attachNotes(diag);
    return diag;
  }

  /// Notes what a group moves because a reduction needs whole matrices, unless another operation of its rule
  /// needs them, too.
  void noteReductions(RuleOp rule, const Judgement &chosen) {
    ReduceOp first;
    for (Operation &op : rule.getBody().front()) {
      if (!isa<MatrixOpInterface>(op) || spaceOf(&op) != Space::Matrix)
        continue;
      auto reduce = dyn_cast<ReduceOp>(op);
      if (!reduce)
        return;
      if (!first && kindOf(reduce.getSource().getType()) == ValueKind::Full)
        first = reduce;
    }
    if (!first)
      return;
    CrossingCost cost = crossingCostOf(rule);
    reductions[{first.getLoc(), first.getKind()}] +=
        (double(cost.there) * chosen.there + double(cost.back) * chosen.back) / 1024;
  }

  /// Warns of reductions that move many bytes: few optimizers are meant to.
  void warnOfReductions() {
    constexpr double kMebibyte = 1 << 20, kMany = 64 * kMebibyte;
    for (auto &[reduction, bytes] : reductions)
      if (bytes >= kMany) {
        bool isLarge = bytes >= 1024 * kMebibyte;
        emitWarning(reduction.first)
            << "this " << plan::name(reduction.second)
            << " needs whole matrices, so a rank moves about "
            << llvm::formatv("{0:F1} {1}", bytes / (isLarge ? 1024 * kMebibyte : kMebibyte),
                             isLarge ? "GiB" : "MiB")
                   .str()
            << " in each step";
      }
  }

  static StringRef firstParameter(GroupOp group) {
    return cast<FlatSymbolRefAttr>(group.getParameters()[0]).getValue();
  }

  LogicalResult assign(GroupOp group, std::vector<Force> &forces, const StrategyModel &model) {
    auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
    bool matrix = hasMatrixSpace(rule);
    FailureOr<Force *> forced = forceOf(group, forces, matrix);
    if (failed(forced))
      return failure();
    if (!matrix) {
      StringRef reason = group.isOfModel() ? "numbers of all parameters, before the other groups"
                                           : "no operation needs a whole matrix";
      group.setReason(reason);
      report(group, true, "elementwise", nullptr, reason);
      for (StrategyAttrInterface strategy : strategies(&getContext()))
        if (isFast(getOperation()) || !strategy.roundsOtherwise())
          report(group, false, strategy.name(), nullptr, reason + ", so no blocks come together");
      return success();
    }
    GroupGeometry geometry(group);
    std::vector<Judgement> judgements = model.judge(group, geometry);
    const Judgement *best = *forced ? StrategyModel::find(judgements, (*forced)->strategy)
                                    : StrategyModel::choose(judgements);
    if (!best) {
      for (const Judgement &each : judgements)
        impossible.add(each, group);
      return success(); // checkRefusals emits one error for all groups
    }
    const Judgement &chosen = *best;
    if (!chosen.isLegal()) {
      illegal.add(chosen, group);
      return success();
    }
    StringRef name = chosen.strategy.name();
    std::string reason = chosen.reason;
    if (*forced)
      reason = ("forced by '" + Twine((*forced)->pattern.text()) + "=" + name + "'").str();
    group.setStrategyAttr(chosen.strategy);
    group.setPlanHops(chosen.hops);
    if (!chosen.slabs.factors.empty())
      group.setSlabsAttr(SlabShapeAttr::get(&getContext(), chosen.slabs));
    group.setReason(reason);
    if (!*forced)
      noteReductions(rule, chosen);
    report(group, true, name, &chosen, reason);
    for (const Judgement &other : judgements)
      if (&other != &chosen && (isFast(getOperation()) || !other.strategy.roundsOtherwise()))
        report(group, false, other.strategy.name(), other.isLegal() ? &other : nullptr,
               StrategyModel::whyNot(other, chosen, bool(*forced)));
    return success();
  }

  void runOnOperation() override {
    FailureOr<std::vector<Force>> forces =
        parseForces(getOperation(), SmallVector<std::string>(force.begin(), force.end()));
    if (failed(forces))
      return signalPassFailure();
    parameters.clear();
    for (auto parameter : getOperation().getOps<ParameterOp>())
      parameters[parameter.getSymNameAttr()] = parameter;
    impossible = illegal = {};
    reductions.clear();
    StrategyModel model(getOperation());
    for (auto group : getOperation().getOps<GroupOp>())
      if (!group.getStrategy() && failed(assign(group, *forces, model)))
        return signalPassFailure();
    if (failed(checkRefusals()))
      signalPassFailure();
    warnOfReductions();
    // A force that a later force overrides counts as applied. Each force that could apply to no parameter is
    // an error.
    for (const Force &f : *forces) {
      if (f.applied)
        continue;
      blameOptions(getOperation().emitError("expected strategy pattern \"")
                   << f.pattern.text() << "\" to match a parameter"
                   << (f.matched ? " whose rule has matrix operations, found only parameters that "
                                   "are stepped element by element, where no blocks come together"
                                 : ", found none"));
      signalPassFailure();
    }
  }

  llvm::DenseMap<StringAttr, ParameterOp> parameters; // by name: lookupParameter takes linear time
  Refusals impossible, illegal; // of groups without a legal strategy; of forces that are not legal
  /// The bytes that a rank moves for a reduction, by its location and kind.
  llvm::MapVector<std::pair<Location, Reduction>, double> reductions;
};

} // namespace
