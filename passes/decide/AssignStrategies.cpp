//===- AssignStrategies.cpp - Choose each group's strategy -----------------===//

#include "passes/decide/Passes.h"

#include "dialects/optim/Optim.h"
#include "passes/decide/Forces.h"
#include "passes/decide/GroupGeometry.h"

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

  LogicalResult set(GroupOp group, Strategy strategy, const Twine &reason) {
    group.setStrategyAttr(StrategyAttr::get(&getContext(), strategy));
    group.setReasonAttr(StringAttr::get(&getContext(), reason));
    remark::passed(group.getLoc(), remarkOf("strategy-chosen"))
        << remark::metric("group", group.getSymName())
        << remark::metric("first-parameter",
                          cast<FlatSymbolRefAttr>(group.getParameters()[0]).getValue())
        << remark::metric("strategy", stringifyStrategy(strategy))
        << remark::reason("{0}", reason.str());
    return success();
  }

  /// Says why each of the others was not chosen.
  static void refuseOthers(GroupOp group, const GroupGeometry *geometry, bool whole) {
    for (Strategy strategy :
         {Strategy::Elementwise, Strategy::Local, Strategy::Owner, Strategy::Gather}) {
      if (strategy == group.getStrategy())
        continue;
      std::string why;
      if (!geometry)
        why = "no operation needs a whole matrix: nothing has to travel";
      else if (strategy == Strategy::Elementwise)
        why = "the rule has operations that need whole matrices";
      else if (strategy == Strategy::Local && !whole)
        why = "placements " + describe(group.getExemplar().getPlacements()) + " cut the blocks";
      else if (group.getStrategy() == Strategy::Local && whole)
        why = "each block is whole on its rank: nothing has to travel";
      else if (strategy == Strategy::Gather && group.getStrategy() == Strategy::Owner)
        why = "all " + std::to_string(geometry->mesh.ranks.size()) +
              " ranks would receive and compute every block";
      else
        why = "another one is forced";
      remark::missed(group.getLoc(), remarkOf("strategy-refused"))
          << remark::metric("group", group.getSymName())
          << remark::metric("strategy", stringifyStrategy(strategy)) << remark::reason("{0}", why);
    }
  }

  LogicalResult assign(GroupOp group, std::vector<Force> &forces) {
    auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
    bool matrix = hasMatrixSpace(rule);
    FailureOr<Force *> forced = forceOf(group, forces, matrix);
    if (failed(forced))
      return failure();
    if (!matrix) {
      (void)set(group, Strategy::Elementwise, "no operation needs a whole matrix");
      refuseOthers(group, nullptr, false);
      return success();
    }
    GroupGeometry geometry(group);
    bool whole = geometry::blocksAreWhole(geometry.group, geometry.mesh);
    if (failed(choose(group, *forced, whole)))
      return failure();
    refuseOthers(group, &geometry, whole);
    return success();
  }

  LogicalResult choose(GroupOp group, Force *forced, bool whole) {
    if (forced) {
      Strategy strategy = forced->strategy;
      if (strategy == Strategy::Local && !whole)
        return blameOptions(
            group.emitError("expected whole blocks on every rank to force local on '")
            << cast<FlatSymbolRefAttr>(group.getParameters()[0]).getValue()
            << "', found placements " << describe(group.getExemplar().getPlacements())
            << " that cut them");
      return set(group, strategy,
                 "forced by '" + forced->pattern.text() + "=" + stringifyStrategy(strategy) + "'");
    }
    if (whole)
      return set(group, Strategy::Local, "each block is whole on its rank");
    return set(group, Strategy::Owner, "blocks span ranks: exact routes to a balanced owner");
  }

  void runOnOperation() override {
    FailureOr<std::vector<Force>> forces =
        parseForces(getOperation(), SmallVector<std::string>(force.begin(), force.end()));
    if (failed(forces))
      return signalPassFailure();
    parameters.clear();
    for (auto parameter : getOperation().getOps<ParameterOp>())
      parameters[parameter.getSymNameAttr()] = parameter;
    for (auto group : getOperation().getOps<GroupOp>())
      if (!group.getStrategy() && failed(assign(group, *forces)))
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
