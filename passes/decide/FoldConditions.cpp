//===- FoldConditions.cpp - Decide what depends on a block's sizes alone --===//

#include "passes/decide/CutSpaces.h"
#include "passes/decide/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

namespace stepc::decide {
#define GEN_PASS_DEF_FOLDCONDITIONS
#include "passes/decide/Passes.h.inc"
} // namespace stepc::decide

namespace {

/// An operation on tensors whose result is one of its operands, by their numbers.
struct Decision {
  int64_t operation, operand;
  auto operator<=>(const Decision &) const = default;
};

/// Evaluates what follows from a block's sizes and literals alone, in f64 as a step does. Operations that two
/// machines may round differently, such as powers and logarithms, are left to the step.
class SizeEvaluator {
public:
  SizeEvaluator(RuleOp rule, const plan::Group &group) {
    auto sizes = rule.getBody().getArguments().take_back(3);
    numbers[sizes[0]] = double(group.rows());
    numbers[sizes[1]] = double(group.cols());
    numbers[sizes[2]] = group.numel();
    for (auto [number, op] : llvm::enumerate(rule.getBody().front().without_terminator()))
      if (op.getNumResults() == 1)
        visit(&op, int64_t(number));
  }

  std::vector<Decision> decisions;

private:
  std::optional<double> numberOf(Value value) const {
    auto known = numbers.find(value);
    return known == numbers.end() ? std::nullopt : std::optional(known->second);
  }
  std::optional<bool> truthOf(Value value) const {
    auto known = truths.find(value);
    return known == truths.end() ? std::nullopt : std::optional(known->second);
  }
  /// Notes that the result is the operand with this number.
  void choose(Operation *op, int64_t number, int64_t operand) {
    Value chosen = op->getOperand(unsigned(operand)), result = op->getResult(0);
    if (isa<RankedTensorType>(result.getType()))
      decisions.push_back({number, operand});
    if (std::optional<double> known = numberOf(chosen))
      numbers[result] = *known;
    if (std::optional<bool> known = truthOf(chosen))
      truths[result] = *known;
  }

  void visit(Operation *op, int64_t number) {
    Value result = op->getResult(0);
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](arith::ConstantOp constant) { visitConstant(constant); })
        .Case([&](SplatOp splat) {
          std::optional<double> known = numberOf(splat->getOperand(0));
          if (known && splat.getType().getElementType().isF32())
            numbers[result] = double(float(*known));
        })
        .Case([&](BroadcastOp broadcast) {
          if (std::optional<double> known = numberOf(broadcast->getOperand(0)))
            numbers[result] = *known;
          if (std::optional<bool> known = truthOf(broadcast->getOperand(0)))
            truths[result] = *known;
        })
        .Case([&](arith::CmpFOp compare) {
          std::optional<double> a = numberOf(compare.getLhs()), b = numberOf(compare.getRhs());
          if (a && b)
            truths[result] =
                arith::applyCmpPredicate(compare.getPredicate(), APFloat(*a), APFloat(*b));
        })
        .Case([&](arith::SelectOp select) {
          if (std::optional<bool> known = truthOf(select.getCondition()))
            choose(op, number, *known ? 1 : 2);
        })
        .Case<arith::AndIOp, arith::OrIOp>([&](Operation *logic) {
          // One operand may decide alone. If it does not, the result is the other operand.
          bool decides = isa<arith::OrIOp>(logic);
          std::optional<bool> a = truthOf(logic->getOperand(0)), b = truthOf(logic->getOperand(1));
          if (a == decides || b == decides)
            truths[result] = decides;
          else if (a || b)
            choose(op, number, a ? 1 : 0);
        })
        .Case([&](arith::XOrIOp differs) {
          std::optional<bool> a = truthOf(differs.getLhs()), b = truthOf(differs.getRhs());
          if (a && b)
            truths[result] = *a != *b;
        })
        .Default([&](Operation *op) {
          if (result.getType().isF64())
            visitArithmetic(op);
        });
  }

  void visitConstant(arith::ConstantOp op) {
    Attribute value = op.getValue();
    if (auto splat = dyn_cast<SplatElementsAttr>(value))
      value = splat.getSplatValue<Attribute>();
    if (auto number = dyn_cast<FloatAttr>(value))
      numbers[op.getResult()] = number.getValueAsDouble();
    else if (auto truth = dyn_cast<BoolAttr>(value))
      truths[op.getResult()] = truth.getValue();
  }

  void visitArithmetic(Operation *op) {
    SmallVector<double> x;
    for (Value operand : op->getOperands()) {
      std::optional<double> known = numberOf(operand);
      if (!known)
        return;
      x.push_back(*known);
    }
    // std::max and std::min differ from the operations for a NaN, and for 0 and -0.
    bool areOrdered = x.size() == 2 && (x[0] < x[1] || x[0] > x[1] || (x[0] == x[1] && x[0] != 0));
    double &result = numbers[op->getResult(0)];
    bool isKnown =
        llvm::TypeSwitch<Operation *, bool>(op)
            .Case([&](arith::AddFOp) { return result = x[0] + x[1], true; })
            .Case([&](arith::SubFOp) { return result = x[0] - x[1], true; })
            .Case([&](arith::MulFOp) { return result = x[0] * x[1], true; })
            .Case([&](arith::DivFOp) { return result = x[0] / x[1], true; })
            .Case([&](arith::NegFOp) { return result = -x[0], true; })
            .Case([&](math::SqrtOp) { return result = std::sqrt(x[0]), true; })
            .Case([&](math::AbsFOp) { return result = std::fabs(x[0]), true; })
            .Case([&](arith::MaximumFOp) { return result = std::max(x[0], x[1]), areOrdered; })
            .Case([&](arith::MinimumFOp) { return result = std::min(x[0], x[1]), areOrdered; })
            .Default([](Operation *) { return false; });
    if (!isKnown)
      numbers.erase(op->getResult(0));
  }

  llvm::DenseMap<Value, double> numbers; ///< of scalars, and of tensors of equal elements
  llvm::DenseMap<Value, bool> truths;
};

class FoldConditions : public stepc::decide::impl::FoldConditionsBase<FoldConditions> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    std::map<std::pair<Operation *, std::vector<Decision>>, RuleOp> copies;
    for (auto group : module.getOps<GroupOp>()) {
      auto rule = symbols.lookup<RuleOp>(group.getRule());
      if (rule.getWrittenAttr() || group.getStrategy())
        continue; // decided already
      std::vector<Decision> decisions = SizeEvaluator(rule, group.toPlan()).decisions;
      if (decisions.empty())
        continue;
      auto [known, isNew] = copies.try_emplace({rule, decisions});
      if (isNew) {
        known->second = folded(rule, decisions);
        symbols.insert(known->second, std::next(rule->getIterator()));
      }
      group.setRuleAttr(FlatSymbolRefAttr::get(known->second));
      auto options =
          remark::RemarkOpts::name("conditions-folded").category("optim-fold-conditions");
      remark::passed(group.getLoc(), options) << remark::metric("group", group.getSymName())
                                              << remark::metric("rule", rule.getSymName())
                                              << remark::metric("operations", decisions.size());
    }
  }

  /// Replaces a state's old value, rounded to the state's own type, by itself: it has this type already. So a
  /// state that keeps its value is not stored.
  static void dropRoundings(RuleOp copy) {
    for (unsigned i = 0, e = copy.getNumStates(); i < e; ++i) {
      Value state = copy.getStateArgument(i);
      for (Operation *narrow : state.getUsers())
        if (isa<arith::TruncFOp>(narrow) &&
            getElementTypeOrSelf(narrow->getResult(0)) == copy.getState(i).getType())
          for (Operation *wide : llvm::make_early_inc_range(narrow->getUsers()))
            if (isa<arith::ExtFOp>(wide) && wide->getResult(0).getType() == state.getType())
              wide->getResult(0).replaceAllUsesWith(state);
    }
  }

  /// A copy of a rule in which each of these operations is replaced by one of its operands.
  static RuleOp folded(RuleOp rule, ArrayRef<Decision> decisions) {
    RuleOp copy = stepc::decide::copyOf(rule, ".folded");
    for (auto [number, op] : llvm::enumerate(copy.getBody().front()))
      if (!decisions.empty() && decisions.front().operation == int64_t(number)) {
        op.getResult(0).replaceAllUsesWith(op.getOperand(unsigned(decisions.front().operand)));
        decisions = decisions.drop_front();
      }
    dropRoundings(copy);
    IRRewriter rewriter(rule.getContext());
    (void)runRegionDCE(rewriter, copy.getBody());
    stepc::decide::cutSpaces(copy, {});
    return copy;
  }
};

} // namespace
