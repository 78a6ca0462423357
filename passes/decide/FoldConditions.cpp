//===- FoldConditions.cpp - Decide what a group's sizes and type say -------===//

#include "passes/decide/CutSpaces.h"
#include "passes/decide/Passes.h"
#include "passes/decide/SizeEvaluator.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/RegionUtils.h"

#include <map>

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

namespace stepc::decide {
#define GEN_PASS_DEF_FOLDCONDITIONS
#include "passes/decide/Passes.h.inc"
} // namespace stepc::decide

namespace {

using stepc::decide::SizeEvaluator;

class FoldConditions : public stepc::decide::impl::FoldConditionsBase<FoldConditions> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    std::map<std::tuple<Operation *, std::vector<SizeEvaluator::Decision>, bool>, RuleOp> copies;
    for (auto group : module.getOps<GroupOp>()) {
      auto rule = symbols.lookup<RuleOp>(group.getRule());
      if (rule.getWrittenAttr() || group.getStrategy())
        continue; // decided already
      auto sizes = rule.getBody().getArguments().take_back(3);
      plan::Group planned = group.toPlan();
      std::vector<SizeEvaluator::Decision> decisions =
          SizeEvaluator(rule.getBody().front(), sizes, planned).decisions;
      bool isExact = planned.parameterType == plan::DType::F32 && rule.getParameterRounding();
      if (decisions.empty() && !isExact)
        continue;
      auto [known, isNew] = copies.try_emplace({rule, decisions, isExact});
      if (isNew) {
        known->second = folded(rule, decisions, isExact);
        symbols.insert(known->second, std::next(rule->getIterator()));
      }
      group.setRuleAttr(FlatSymbolRefAttr::get(known->second));
      auto options =
          remark::RemarkOpts::name("conditions-folded").category("optim-fold-conditions");
      remark::passed(group.getLoc(), options)
          << remark::metric("group", group.getSymName())
          << remark::metric("rule", rule.getSymName())
          << remark::metric("operations", decisions.size() + isExact);
    }
  }

  /// Replaces the result of a rounding by `exact` wherever it is widened to the type of `exact`.
  static void replaceWidened(Operation *rounding, Value exact) {
    for (Operation *wide : llvm::make_early_inc_range(rounding->getUsers()))
      if (isa<arith::ExtFOp>(wide) && wide->getResult(0).getType() == exact.getType())
        wide->getResult(0).replaceAllUsesWith(exact);
  }

  /// Replaces a state's old value, rounded to the state's own type, by itself: it has this type already. So a
  /// state that keeps its value is not stored.
  static void dropRoundings(RuleOp copy) {
    for (unsigned i = 0, e = copy.getNumStates(); i < e; ++i) {
      Value state = copy.getStateArgument(i);
      for (Operation *narrow : state.getUsers())
        if (isa<arith::TruncFOp>(narrow) &&
            getElementTypeOrSelf(narrow->getResult(0)) == copy.getState(i).getType())
          replaceWidened(narrow, state);
    }
  }

  /// A copy of a rule in which each of these operations is replaced by one of its operands. If `isExact`, the
  /// new parameter is not rounded by chance.
  static RuleOp folded(RuleOp rule, ArrayRef<SizeEvaluator::Decision> decisions, bool isExact) {
    RuleOp copy = stepc::decide::copyOf(rule, ".folded");
    for (auto [number, op] : llvm::enumerate(copy.getBody().front()))
      if (!decisions.empty() && decisions.front().operation == int64_t(number)) {
        op.getResult(0).replaceAllUsesWith(op.getOperand(unsigned(decisions.front().operand)));
        decisions = decisions.drop_front();
      }
    dropRoundings(copy);
    if (isExact) {
      StochasticOp rounding = copy.getParameterRounding();
      replaceWidened(rounding, rounding.getSource());
    }
    IRRewriter rewriter(rule.getContext());
    (void)runRegionDCE(rewriter, copy.getBody());
    stepc::decide::cutSpaces(copy, {});
    return copy;
  }
};

} // namespace
