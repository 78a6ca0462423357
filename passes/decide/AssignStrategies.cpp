//===- AssignStrategies.cpp - Choose each group's strategy -----------------===//

#include "passes/decide/Passes.h"

#include "dialects/optim/Optim.h"
#include "passes/decide/Forces.h"
#include "passes/decide/StrategyModel.h"

#include "mlir/IR/Remarks.h"

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
  /// The force of the group's parameters, which must agree (optim-group-parameters saw to it) where
  /// the rule has matrix operations; elsewhere none.
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
        continue; // a wide pattern may name parameters that need no communication
      if (index == 0) {
        chosen = last;
        first = name;
      } else if (bool(last) != bool(chosen) || (last && last->strategy != chosen->strategy)) {
        auto text = [](Force *force) {
          return force ? stringifyStrategy(force->strategy) : "nothing";
        };
        return blameOptions(group.emitError("expected one strategy for the parameters of group ")
                            << group.getSymName() << ", found '" << first << "' forced to "
                            << text(chosen) << " and '" << name << "' to " << text(last));
      }
    }
    return chosen;
  }

  static remark::RemarkOpts remarkOf(StringRef name) {
    return remark::RemarkOpts::name(name).category("optim-assign-strategies");
  }

  void set(GroupOp group, Strategy strategy, const Twine &reason, const Judgement *judgement) {
    group.setStrategyAttr(StrategyAttr::get(&getContext(), strategy));
    group.setReasonAttr(StringAttr::get(&getContext(), reason));
    auto remark = remark::passed(group.getLoc(), remarkOf("strategy-chosen"));
    remark << remark::metric("group", group.getSymName())
           << remark::metric("first-parameter",
                             cast<FlatSymbolRefAttr>(group.getParameters()[0]).getValue())
           << remark::metric("strategy", stringifyStrategy(strategy));
    if (judgement)
      remark << remark::metric("modelled-ns", nanoseconds(*judgement));
    remark << remark::reason("{0}", reason.str());
  }

  static int64_t nanoseconds(const Judgement &judgement) {
    return cost::picoseconds(judgement.seconds) / 1000;
  }

  /// Says of each of the others why it was not chosen, and what it would take.
  static void refuse(GroupOp group, Strategy strategy, const Twine &why,
                     const Judgement *judgement) {
    auto remark = remark::missed(group.getLoc(), remarkOf("strategy-refused"));
    remark << remark::metric("group", group.getSymName())
           << remark::metric("strategy", stringifyStrategy(strategy));
    if (judgement)
      remark << remark::metric("modelled-ns", nanoseconds(*judgement));
    remark << remark::reason("{0}", why.str());
  }

  static constexpr Strategy kAll[] = {Strategy::Elementwise, Strategy::Local, Strategy::Owner,
                                      Strategy::Gather};

  LogicalResult assign(GroupOp group, std::vector<Force> &forces, const StrategyModel &model) {
    auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
    bool matrix = hasMatrixSpace(rule);
    FailureOr<Force *> forced = forceOf(group, forces, matrix);
    if (failed(forced))
      return failure();
    if (!matrix) {
      set(group, Strategy::Elementwise, "no operation needs a whole matrix", nullptr);
      for (Strategy strategy : ArrayRef(kAll).drop_front())
        refuse(group, strategy, "no operation needs a whole matrix: nothing has to travel",
               nullptr);
      return success();
    }
    GroupGeometry geometry(group);
    Judgements judgements = model.judge(group, geometry);
    Strategy chosen = *forced ? (*forced)->strategy : StrategyModel::choose(judgements);
    const Judgement &judgement = judgements[chosen];
    if (!judgement.isLegal())
      return blameOptions(group.emitError("expected whole blocks on every rank to force local on '")
                          << cast<FlatSymbolRefAttr>(group.getParameters()[0]).getValue()
                          << "', found placements " << describe(group.getExemplar().getPlacements())
                          << " that cut them");
    bool whole = judgements[Strategy::Local].isLegal();
    set(group, chosen,
        *forced ? "forced by '" + (*forced)->pattern.text() + "=" + stringifyStrategy(chosen) + "'"
                : Twine(reasonOf(chosen, whole)),
        &judgement);
    for (Strategy strategy : kAll) {
      if (strategy == chosen)
        continue;
      const Judgement &other = judgements[strategy];
      if (!other.isLegal())
        refuse(group, strategy, other.refusal, nullptr);
      else
        refuse(group, strategy,
               *forced                             ? "another one is forced"
               : other.seconds < judgement.seconds ? "it repeats work and saves less than a tenth"
                                                   : "it is modelled to take no less time",
               &other);
    }
    return success();
  }

  static StringRef reasonOf(Strategy chosen, bool whole) {
    switch (chosen) {
    case Strategy::Local:
      return "each block is whole on its rank";
    case Strategy::Owner:
      return whole ? "ranks divide the blocks and share the results: modelled to take less time"
                   : "blocks span ranks: exact routes to a balanced owner";
    case Strategy::Gather:
      return "every rank computes every block: modelled to take less time";
    case Strategy::Elementwise:
      break;
    }
    return "";
  }

  void runOnOperation() override {
    FailureOr<std::vector<Force>> forces =
        parseForces(getOperation(), SmallVector<std::string>(force.begin(), force.end()));
    if (failed(forces))
      return signalPassFailure();
    parameters.clear();
    for (auto parameter : getOperation().getOps<ParameterOp>())
      parameters[parameter.getSymNameAttr()] = parameter;
    StrategyModel model(getOperation());
    for (auto group : getOperation().getOps<GroupOp>())
      if (!group.getStrategy() && failed(assign(group, *forces, model)))
        return signalPassFailure();
    // A force that later ones override has applied, too; each that never could is named.
    for (const Force &f : *forces) {
      if (f.applied)
        continue;
      blameOptions(getOperation().emitError("expected strategy pattern \"")
                   << f.pattern.text() << "\" to match a parameter"
                   << (f.matched
                           ? " whose rule has matrix operations, found only parameters that need "
                             "no communication"
                           : ", found none"));
      signalPassFailure();
    }
  }

  llvm::DenseMap<StringAttr, ParameterOp> parameters; // by name: looking each up is linear
};

} // namespace
