//===- ExpandModel.cpp - What rules compute of the whole model -------------===//

#include "passes/decide/Passes.h"

#include "dialects/optim/Optim.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/RegionUtils.h"

#include <set>

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

namespace stepc::decide {
#define GEN_PASS_DEF_EXPANDMODEL
#include "passes/decide/Passes.h.inc"
} // namespace stepc::decide

namespace {

class ExpandModel : public stepc::decide::impl::ExpandModelBase<ExpandModel> {
  void runOnOperation() override {
    ModelOp model = findModel(getOperation());
    if (!model)
      return;
    IRRewriter rewriter(&getContext());
    (void)runRegionDCE(rewriter, model.getBody());
    int64_t numbers = giveNumbers(model);
    if (failed(checkNumel(model)) || failed(addParameter(model)))
      return signalPassFailure();
    for (auto rule : getOperation().getOps<RuleOp>()) {
      if (rule.getSymName() != kModelName) // whose rule was made of it
        expand(rule, model);
      DominanceInfo dominance(rule);
      eliminateCommonSubExpressions(rewriter, dominance, rule);
      (void)runRegionDCE(rewriter, rule.getBody());
    }
    remark::passed(model.getLoc(),
                   remark::RemarkOpts::name("model-expanded").category("optim-expand-model"))
        << remark::metric("numbers", numbers);
  }

  /// Gives numbers to the reductions and states of the model, and to the scalars that meet its tensors. A
  /// literal needs none.
  static int64_t giveNumbers(ModelOp model) {
    int64_t number = 0;
    for (Operation &op : model.getBody().front()) {
      auto splat = dyn_cast<SplatOp>(op);
      if (isa<ReduceOp, ModelStateOp>(op) ||
          (splat && !matchPattern(splat.getScalar(), m_Constant())))
        op.setAttr(kNumberAttr, Builder(op.getContext()).getI64IntegerAttr(number++));
    }
    return number;
  }

  /// Refuses what would depend on how many elements a step takes, if steps may leave parameters out.
  LogicalResult checkNumel(ModelOp model) {
    for (auto reduce : model.getBody().getOps<ReduceOp>()) {
      if (reduce.getKind() != plan::Reduction::Mean && reduce.getKind() != plan::Reduction::Rms)
        continue;
      for (auto route : getOperation().getOps<RouteOp>())
        if (route.getMissingGrad() == plan::MissingGrad::Skip) {
          auto diag =
              reduce.emitError("expected no ")
              << plan::name(reduce.getKind())
              << " of the whole model beside missing_grad = skip, which changes the number of "
                 "its elements, found one";
          diag.attachNote(route.getLoc()) << "this route may leave parameters out";
          return diag;
        }
    }
    return success();
  }

  /// Refuses a name of what will stand for the model.
  template <typename Op> LogicalResult checkNames(StringRef what) {
    for (auto op : getOperation().getOps<Op>())
      if (op.getSymName() == kModelName)
        return op.emitError("expected no ")
               << what << " named '" << kModelName
               << "' beside a model, whose step count and numbers have this name";
    return success();
  }

  /// Adds the parameter that stands for the model, with its rule, route and mesh of all ranks.
  LogicalResult addParameter(ModelOp model) {
    ModuleOp module = getOperation();
    if (failed(checkNames<ParameterOp>("parameter")) || failed(checkNames<RuleOp>("rule")) ||
        failed(checkNames<RouteOp>("route")))
      return failure();
    std::set<int64_t> ranks;
    Operation *last = nullptr;
    for (auto parameter : module.getOps<ParameterOp>()) {
      last = parameter;
      if (MeshOp mesh = lookupMesh(parameter, parameter.getMeshAttr()))
        ranks.insert(mesh.getRanks().begin(), mesh.getRanks().end());
    }
    if (!last)
      return success();
    OpBuilder b(&getContext());
    b.setInsertionPointAfter(last);
    Location loc = model.getLoc();
    std::string meshName = kModelName.str();
    while (lookupMesh(model, FlatSymbolRefAttr::get(&getContext(), meshName)))
      meshName += '.';
    auto count = int64_t(ranks.size());
    SmallVector<int64_t> all(ranks.begin(), ranks.end());
    MeshOp::create(b, loc, b.getStringAttr(meshName), b.getStrArrayAttr({"ranks"}), ArrayRef(count),
                   ArrayRef(all));
    auto name = FlatSymbolRefAttr::get(&getContext(), kModelName);
    addRule(b, model);
    ArrayAttr none = b.getStrArrayAttr({});
    RouteOp::create(b, loc, kModelName, kModelName, /*matrix=*/false, /*rest=*/false,
                    b.getStrArrayAttr({kModelName}), /*optional=*/ArrayAttr(), none,
                    model.getDefaults(), plan::MissingGrad::Zero);
    auto f32 = TypeAttr::get(b.getF32Type());
    ParameterOp::create(b, loc, b.getStringAttr(kModelName), b.getDenseI64ArrayAttr(count),
                        b.getI64IntegerAttr(0),
                        /*flatten=*/IntegerAttr(), /*flatten_specified=*/UnitAttr(),
                        /*flatten_overridden=*/IntegerAttr(), f32, f32,
                        FlatSymbolRefAttr::get(&getContext(), meshName),
                        b.getArrayAttr({toAttribute(&getContext(), {plan::PlacementKind::Shard})}),
                        ArrayAttr(), ArrayAttr(), BlocksAttr(), /*specified=*/UnitAttr(),
                        /*overridden=*/BlocksAttr(), none, name, /*sizes=*/DenseI64ArrayAttr());
    return success();
  }

  /// The rule of the parameter that stands for the model. It changes the model's states alone.
  static void addRule(OpBuilder &b, ModelOp model) {
    Location loc = model.getLoc();
    auto rule = RuleOp::create(b, loc, b.getStringAttr(kModelName), model.getHyperparameters(),
                               model.getStates(), /*needs_matrix=*/UnitAttr(),
                               /*written=*/FlatSymbolRefAttr(), /*tall=*/FlatSymbolRefAttr(),
                               /*block_states=*/ArrayAttr());
    SmallVector<Type> types(2, tensorType(ValueKind::Full, b.getF32Type()));
    types.append(model.getStates().size(), tensorType(ValueKind::One, b.getF32Type()));
    types.append(model.getNumHyperparameters() + 4, b.getF64Type());
    OpBuilder::InsertionGuard guard(b);
    Block *body =
        b.createBlock(&rule.getBody(), {}, types, SmallVector<Location>(types.size(), loc));
    IRMapping made = model.inlineFor(b, body->getArgument(0), body->getArgument(1));
    SmallVector<Value> results{body->getArgument(0)};
    for (auto [index, value] : llvm::enumerate(model.getNewStates())) {
      auto state = value.getDefiningOp<ModelStateOp>();
      bool stays = state && state.getIndex() == int64_t(index);
      results.push_back(stays ? rule.getStateArgument(unsigned(index)) : made.lookup(value));
    }
    YieldOp::create(b, loc, results);
  }

  /// Lets a rule see the model's gradient, and compute the values that it reads.
  static void expand(RuleOp rule, ModelOp model) {
    OpBuilder b(&rule.getBody());
    Value gradient = rule.getGradientArgument();
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : gradient.getUses())
      uses.push_back(&use);
    IRMapping made = model.inlineFor(b, rule.getParameterArgument(), gradient);
    OperandRange yields = model.getBody().front().getTerminator()->getOperands();
    for (OpOperand *use : uses)
      use->set(made.lookup(yields[0]));
    for (auto value : llvm::make_early_inc_range(rule.getBody().getOps<ModelValueOp>())) {
      auto at = llvm::find(model.getValues(), value.getNameAttr()) - model.getValues().begin();
      value.replaceAllUsesWith(made.lookup(yields[1 + at]));
      value.erase();
    }
  }
};

} // namespace
