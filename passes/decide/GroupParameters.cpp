//===- GroupParameters.cpp - Collect equal parameters ----------------------===//

#include "passes/decide/Passes.h"

#include "dialects/optim/Optim.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace stepc::optim;

namespace stepc::decide {
#define GEN_PASS_DEF_GROUPPARAMETERS
#include "passes/decide/Passes.h.inc"
} // namespace stepc::decide

namespace {

class GroupParameters : public stepc::decide::impl::GroupParametersBase<GroupParameters> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!module.getOps<GroupOp>().empty())
      return; // grouped already
    llvm::StringMap<FlatSymbolRefAttr> rules;
    for (auto route : module.getOps<RouteOp>())
      rules[route.getSymName()] = route.getRuleAttr();
    llvm::MapVector<Attribute, SmallVector<Attribute>> groups;
    Builder builder(&getContext());
    for (auto parameter : module.getOps<ParameterOp>()) {
      if (!parameter.getRoute()) {
        parameter.emitError("expected a route, found none: run optim-route-parameters first");
        return signalPassFailure();
      }
      Attribute key = builder.getArrayAttr(
          {rules.lookup(*parameter.getRoute()), parameter.getShapeAttr(), parameter.getBatchAttr(),
           parameter.getTypeAttr(), parameter.getGradientAttr(), parameter.getMeshAttr(),
           parameter.getPlacementsAttr()});
      groups[key].push_back(FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
    }
    OpBuilder at = OpBuilder::atBlockEnd(module.getBody());
    for (auto [index, entry] : llvm::enumerate(groups))
      GroupOp::create(at, module.getLoc(), builder.getStringAttr("group." + Twine(index)),
                      cast<FlatSymbolRefAttr>(cast<ArrayAttr>(entry.first)[0]),
                      builder.getArrayAttr(entry.second), StrategyAttr(), DenseI64ArrayAttr(),
                      StringAttr());
  }
};

} // namespace
