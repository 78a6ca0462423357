//===- AssignStrategies.cpp - Choose each group's strategy -----------------===//

#include "passes/decide/Passes.h"

#include "dialects/optim/Optim.h"
#include "passes/decide/GroupGeometry.h"

#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

namespace stepc::decide {
#define GEN_PASS_DEF_ASSIGNSTRATEGIES
#include "passes/decide/Passes.h.inc"
} // namespace stepc::decide

using namespace stepc::decide;

namespace {

struct Force {
  std::string text;
  llvm::GlobPattern glob;
  Strategy strategy;
  bool used = false;
};

class AssignStrategies : public stepc::decide::impl::AssignStrategiesBase<AssignStrategies> {
public:
  using AssignStrategiesBase::AssignStrategiesBase;

private:
  LogicalResult parseForces(SmallVectorImpl<Force> &forces) {
    ModuleOp module = getOperation();
    for (const std::string &text : force) {
      auto [pattern, name] = StringRef(text).rsplit('=');
      std::optional<Strategy> strategy = symbolizeStrategy(name);
      if (name.empty() || !strategy || *strategy == Strategy::Elementwise)
        return module.emitError("expected a strategy as PATTERN=local, PATTERN=owner or PATTERN=gather, found \"")
               << text << "\"";
      llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern);
      if (!glob)
        return module.emitError("expected a pattern, found \"")
               << pattern << "\": " << llvm::toString(glob.takeError());
      forces.push_back({pattern.str(), std::move(*glob), *strategy});
    }
    return success();
  }

  /// The last force that matches each parameter of the group; they must agree.
  FailureOr<Force *> forceOf(GroupOp group, SmallVectorImpl<Force> &forces) {
    Force *chosen = nullptr;
    StringRef first;
    for (auto [index, attr] : llvm::enumerate(group.getParameters())) {
      StringRef name = cast<FlatSymbolRefAttr>(attr).getValue();
      Force *last = nullptr;
      for (Force &f : forces)
        if (f.glob.match(name)) {
          last = &f;
          f.used = true;
        }
      if (index == 0) {
        chosen = last;
        first = name;
      } else if ((last ? last->strategy : Strategy::Elementwise) !=
                 (chosen ? chosen->strategy : Strategy::Elementwise)) {
        return group.emitError("expected one strategy for the parameters of group ")
               << group.getSymName() << ", found that '" << first << "' and '" << name
               << "' are forced to different ones";
      }
    }
    return chosen;
  }

  LogicalResult assign(GroupOp group, SmallVectorImpl<Force> &forces) {
    auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(group, group.getRuleAttr());
    FailureOr<Force *> forced = forceOf(group, forces);
    if (failed(forced))
      return failure();
    auto set = [&](Strategy strategy, const Twine &reason) {
      group.setStrategyAttr(StrategyAttr::get(&getContext(), strategy));
      group.setReasonAttr(StringAttr::get(&getContext(), reason));
      return success();
    };
    if (!hasMatrixSpace(rule)) {
      if (*forced)
        return group.emitError("expected a rule with matrix operations to force a strategy on '")
               << cast<FlatSymbolRefAttr>(group.getParameters()[0]).getValue() << "', found rule "
               << rule.getSymName() << ", which needs no communication";
      return set(Strategy::Elementwise, "no operation needs a whole matrix");
    }
    GroupGeometry geometry(group);
    bool whole = geometry::blocksAreWhole(geometry.group, geometry.mesh);
    if (*forced) {
      Strategy strategy = (*forced)->strategy;
      if (strategy == Strategy::Local && !whole)
        return group.emitError("expected whole blocks on every rank to force local on '")
               << cast<FlatSymbolRefAttr>(group.getParameters()[0]).getValue() << "', found placements "
               << describe(group.getExemplar().getPlacements()) << " that cut them";
      return set(strategy, "forced by '" + (*forced)->text + "=" + stringifyStrategy(strategy) + "'");
    }
    if (whole)
      return set(Strategy::Local, "each block is whole on its rank");
    return set(Strategy::Owner, "blocks span ranks: exact routes to a balanced owner");
  }

  void runOnOperation() override {
    SmallVector<Force> forces;
    if (failed(parseForces(forces)))
      return signalPassFailure();
    for (auto group : getOperation().getOps<GroupOp>())
      if (!group.getStrategy() && failed(assign(group, forces)))
        return signalPassFailure();
    for (Force &f : forces)
      if (!f.used) {
        getOperation().emitError("expected strategy pattern \"")
            << f.text << "\" to match a parameter, found none";
        return signalPassFailure();
      }
  }
};

} // namespace
