//===- ProductForms.cpp - Products of blocks, as costs are asked ----------===//

#include "passes/plan/ProductForms.h"

#include "runtime/plan/TileLists.h"

using namespace mlir;

namespace stepc {

static plan::TiledOperands tiledOperands(optim::ProductOp product) {
  auto stored = [](Value batch) {
    auto type = cast<ShapedType>(batch.getType());
    return plan::StoredMatrix{*optim::toPlan(type.getElementType()), type.getDimSize(1),
                              type.getDimSize(2)};
  };
  plan::TiledOperands operands{
      stored(product.getLhs()), stored(product.getRhs()), {}, stored(product.getInit())};
  if (product.getAddend())
    operands.addend = stored(product.getAddend());
  return operands;
}

cost::BlockProduct blockProductOf(optim::ProductOp product) {
  auto [m, n, k] = product.getSizes();
  Type lhs = getElementTypeOrSelf(product.getLhs()), rhs = getElementTypeOrSelf(product.getRhs());
  return {m,
          n,
          k,
          product.getSymmetric(),
          bool(product.getAddend()),
          lhs == rhs && lhs.getIntOrFloatBitWidth() == 16,
          plan::checkTiles(tiledOperands(product)).empty()};
}

std::string checkWarpgroups(optim::ProductOp product) {
  std::string wrong = plan::checkTiles(tiledOperands(product));
  return wrong.empty() ? cost::checkExtents(blockProductOf(product)) : wrong;
}

cost::LaunchForm formOf(optim::ProductOp product) {
  auto type = [](Value batch) { return *optim::toPlan(getElementTypeOrSelf(batch)); };
  return {{type(product.getLhs()), type(product.getRhs()), type(product.getInit()),
           product.getTransposeLhs(), product.getTransposeRhs(), product.getSymmetric()},
          cost::isForWarpgroups(blockProductOf(product))};
}

} // namespace stepc
