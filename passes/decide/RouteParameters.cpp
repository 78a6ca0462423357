//===- RouteParameters.cpp - Give every parameter its route ----------------===//

#include "passes/decide/Passes.h"

#include "dialects/optim/Optim.h"
#include "passes/decide/RuleSizes.h"
#include "passes/decide/Selectors.h"
#include "passes/decide/SizeEvaluator.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

namespace stepc::decide {
#define GEN_PASS_DEF_ROUTEPARAMETERS
#include "passes/decide/Passes.h.inc"
} // namespace stepc::decide

namespace {

using decide::matches;
using decide::optionalOf;
using decide::Selector;
using decide::selectors;

struct Claim {
  RouteOp route;
  RuleOp rule;
  SmallVector<Selector> patterns, except;
};

void noteHowAxesAreMatrices(InFlightDiagnostic &diag, ParameterOp parameter) {
  if (parameter.getShape().size() > 2)
    diag.attachNote() << "leading axes that count matrices are its batch_axes, and axes that are "
                         "one row or column together are named by flatten";
}

class RouteParameters : public decide::impl::RouteParametersBase<RouteParameters> {
  void runOnOperation() override {
    std::vector<Claim> claims;
    // If a pattern is optional in one route, an equal except pattern of another route is no misspelling.
    SmallVector<Attribute> absent;
    for (auto route : getOperation().getOps<RouteOp>())
      llvm::append_range(absent, optionalOf(route));
    for (auto route : getOperation().getOps<RouteOp>()) {
      auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(route, route.getRuleAttr());
      claims.push_back({route, rule, selectors(route.getPatterns(), optionalOf(route)),
                        selectors(route.getExcept(), absent)});
    }
    bool failure = false;
    for (auto parameter : getOperation().getOps<ParameterOp>())
      if (!parameter.getRoute())
        failure |= failed(claimParameter(parameter, claims));
    // A pattern that matches only frozen parameters is not unused: the user may unfreeze them later.
    for (auto frozen : llvm::make_early_inc_range(getOperation().getOps<FrozenOp>())) {
      for (Claim &claim : claims) {
        matches(claim.patterns, frozen);
        matches(claim.except, frozen);
      }
      frozen.erase();
    }
    for (Claim &claim : claims)
      failure |= failed(checkUse(claim));
    llvm::StringSet<> depending; // routes whose rules have sizes, or are others for tall matrices
    for (Claim &claim : claims)
      if (claim.rule && (decide::hasRuleSizes(claim.rule) || claim.rule.getTall()))
        depending.insert(claim.route.getSymName());
    llvm::SmallPtrSet<Operation *, 4> taken;
    for (auto parameter : getOperation().getOps<ParameterOp>())
      if (depending.contains(parameter.getRoute().value_or(""))) {
        RuleOp rule = optim::ruleOf(parameter);
        taken.insert(rule);
        failure |= failed(checkOrientation(parameter, rule)) ||
                   (decide::hasRuleSizes(rule) && failed(decide::setRuleSizes(parameter, rule)));
      }
    dropTallRules(taken);
    if (failure)
      signalPassFailure();
  }

  /// Verifies that no block of a parameter takes another rule than the first, because their states are one
  /// tensor of the parameter.
  static LogicalResult checkOrientation(ParameterOp parameter, RuleOp rule) {
    RouteOp route = optim::lookupRoute(parameter, parameter.getRouteAttr());
    plan::Group group = parameter.toPlan();
    bool isWide = rule.getSymName() == route.getRule();
    if (isWide && !rule.getTall())
      return success();
    std::optional<plan::View> first;
    for (size_t part = 0; part < group.division.parts.size(); ++part) {
      group.parts = {int64_t(part)};
      plan::View block = group.matrix();
      first = first.value_or(block);
      if ((block.rows <= block.cols) != isWide)
        return parameter.emitError("parameter '")
               << parameter.getSymName() << "': expected blocks that all have at most as many rows "
               << "as columns, or all more, because optimizer " << route.getRule()
               << " is wide, found " << first->rows << " x " << first->cols << " and " << block.rows
               << " x " << block.cols;
    }
    return success();
  }

  /// Erases rules of tall matrices that no parameter takes.
  void dropTallRules(const llvm::SmallPtrSetImpl<Operation *> &taken) {
    for (auto rule : llvm::make_early_inc_range(getOperation().getOps<RuleOp>())) {
      if (!rule.getTall())
        continue;
      auto tall = SymbolTable::lookupNearestSymbolFrom<RuleOp>(rule, rule.getTallAttr());
      if (taken.contains(tall))
        continue;
      rule.removeTallAttr();
      tall.erase();
    }
  }

  /// Emits an error for each pattern that matches nothing (a remark if it is optional), and a warning for
  /// each such except pattern: most are misspelt.
  static LogicalResult checkUse(Claim &claim) {
    LogicalResult result = success();
    for (Selector &selector : claim.patterns) {
      if (selector.used)
        continue;
      if (selector.optional) {
        remark::missed(claim.route.getLoc(), remark::RemarkOpts::name("optional-pattern-unmatched")
                                                 .category("optim-route-parameters"))
            << remark::metric("route", claim.route.getSymName())
            << remark::metric("pattern", selector.pattern.text())
            << remark::reason("no parameter has such a name");
        continue;
      }
      auto diag = claim.route.emitError("expected pattern \"")
                  << selector.pattern.text() << "\" of route " << claim.route.getSymName()
                  << " to match a parameter, found none";
      diag.attachNote()
          << "patterns followed by 'if present', or given with --if-present, may match "
             "nothing";
      result = diag;
    }
    for (Selector &selector : claim.except)
      if (!selector.used && !selector.optional)
        claim.route.emitWarning("except pattern \"")
            << selector.pattern.text() << "\" of route " << claim.route.getSymName()
            << " matches no parameter";
    return result;
  }

  /// Whether the blocks of a parameter have sizes that the route takes. Fails if some have and others do not.
  static FailureOr<bool> hasSize(RouteOp route, ParameterOp parameter) {
    Value condition = route.getCondition();
    if (!condition)
      return true;
    Block &body = route.getWhere().front();
    plan::Group group = parameter.toPlan();
    std::optional<plan::View> taken, left;
    for (size_t part = 0; part < std::max<size_t>(group.division.parts.size(), 1); ++part) {
      if (!group.division.parts.empty())
        group.parts = {int64_t(part)};
      std::optional<bool> holds =
          decide::SizeEvaluator(body, body.getArguments(), group).truthOf(condition);
      if (!holds)
        return route.emitError("expected a condition that follows from rows, cols and numel");
      (*holds ? taken : left) = group.matrix();
      if (taken && left) {
        auto diag = parameter.emitError("expected route ")
                    << route.getSymName() << " to take all blocks of parameter '"
                    << parameter.getSymName()
                    << "' or none, found a condition that takes blocks of " << taken->rows << " x "
                    << taken->cols << " and not of " << left->rows << " x " << left->cols;
        diag.attachNote(route.getLoc()) << "the condition is here";
        return failure();
      }
    }
    return taken.has_value();
  }

  LogicalResult claimParameter(ParameterOp parameter, std::vector<Claim> &claims) {
    SmallVector<Claim *> found;
    for (Claim &claim : claims) {
      if (claim.route.getRest())
        continue;
      // Both lists are always matched, so that each pattern's use is known.
      bool named = claim.patterns.empty() || matches(claim.patterns, parameter);
      bool excepted = matches(claim.except, parameter);
      if (!named || excepted)
        continue;
      if (claim.route.getMatrix() && !parameter.isMatrix()) {
        if (parameter.getShape().size() < 3)
          continue;
        auto diag =
            parameter.emitError("expected two axes, or declared batch axes, for parameter '")
            << parameter.getSymName() << "' of shape [" << parameter.getShape()
            << "] that a matrix route names, found " << parameter.getShape().size()
            << " axes that nothing declares";
        diag.attachNote()
            << "if it is a stack of matrices, declare its leading axes as batch axes in the "
               "manifest";
        diag.attachNote(claim.route.getLoc())
            << "if its axes are the rows and columns of one matrix (a convolution, say), 'flatten' "
               "says so, in the manifest or in a blocks statement; else except it from route "
            << claim.route.getSymName();
        return failure();
      }
      FailureOr<bool> isOfSize = hasSize(claim.route, parameter);
      if (failed(isOfSize))
        return failure();
      if (*isOfSize)
        found.push_back(&claim);
    }
    if (found.empty())
      for (Claim &claim : claims)
        if (claim.route.getRest() && !matches(claim.except, parameter))
          found.push_back(&claim);
    if (found.empty()) {
      auto diag = parameter.emitError("expected a route for parameter '")
                  << parameter.getSymName() << "' of shape [" << parameter.getShape()
                  << "], found none that claims it";
      auto rest = llvm::find_if(claims, [](Claim &claim) { return claim.route.getRest(); });
      if (rest != claims.end())
        diag.attachNote(rest->route.getLoc())
            << "route " << rest->route.getSymName() << " for the rest excepts it";
      else
        diag.attachNote() << "a claim for 'rest' takes every parameter that no other takes";
      return diag;
    }
    if (found.size() > 1) {
      auto diag = parameter.emitError("expected one route for parameter '")
                  << parameter.getSymName() << "' of shape [" << parameter.getShape() << "], found "
                  << found.size();
      for (Claim *claim : found)
        diag.attachNote(claim->route.getLoc())
            << "route " << claim->route.getSymName() << " claims it";
      return diag;
    }
    Claim &claim = *found.front();
    if (claim.rule.getNeedsMatrix() && !parameter.isMatrix()) {
      auto diag = parameter.emitError("expected a matrix for rule ")
                  << claim.rule.getSymName() << ", found parameter '" << parameter.getSymName()
                  << "' of shape [" << parameter.getShape() << "]";
      diag.attachNote(claim.route.getLoc()) << "route " << claim.route.getSymName() << " claims it";
      noteHowAxesAreMatrices(diag, parameter);
      return diag;
    }
    StochasticOp rounding;
    if (parameter.getType().isF16())
      rounding = claim.rule.getParameterRounding();
    if (rounding) {
      auto diag = parameter.emitError("parameter '")
                  << parameter.getSymName()
                  << "': expected a bf16 or f32 parameter, because optimizer "
                  << claim.rule.getSymName() << " rounds it by chance, found f16";
      diag.attachNote(rounding.getLoc()) << "it is rounded here";
      diag.attachNote(claim.route.getLoc()) << "route " << claim.route.getSymName() << " claims it";
      return diag;
    }
    if (parameter.getShape().size() > 2 && !parameter.isMatrix() && !claim.rule.isElementwise()) {
      auto diag =
          parameter.emitError(
              "expected a matrix, a vector or a declared stack of matrices for rule ")
          << claim.rule.getSymName()
          << ", which has a value per tensor (a reduction, a state or a metric), found parameter '"
          << parameter.getSymName() << "' of shape [" << parameter.getShape() << "]";
      diag.attachNote(claim.route.getLoc()) << "route " << claim.route.getSymName() << " claims it";
      noteHowAxesAreMatrices(diag, parameter);
      return diag;
    }
    parameter.setRouteAttr(FlatSymbolRefAttr::get(claim.route.getSymNameAttr()));
    return success();
  }
};

} // namespace
