//===- OptimDialect.cpp - Registration and conversions --------------------===//

#include "dialects/optim/Optim.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

#include "dialects/optim/OptimAttrInterfaces.cpp.inc"
#include "dialects/optim/OptimDialect.cpp.inc"
#include "dialects/optim/OptimEnums.cpp.inc"
#include "dialects/optim/OptimOpInterfaces.cpp.inc"

namespace {
/// The strategies of this dialect. Among strategies of equal cost the first in the list is chosen.
struct Strategies : StrategyListInterface {
  using StrategyListInterface::StrategyListInterface;
  SmallVector<StrategyAttrInterface> strategies() const override {
    MLIRContext *context = getContext();
    return {LocalAttr::get(context),  OwnerAttr::get(context), SubgroupGatherAttr::get(context),
            GatherAttr::get(context), AgrsAttr::get(context),  HierarchicalAttr::get(context),
            SlabsAttr::get(context)};
  }
};
} // namespace

void OptimDialect::initialize() {
  registerAttributes();
  addInterfaces<Strategies>();
  addOperations<
#define GET_OP_LIST
#include "dialects/optim/OptimOps.cpp.inc"
      >();
}

LogicalResult OptimDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == kSpaceAttr) {
    if (isa<SpaceAttr>(attribute.getValue()))
      return success();
    return op->emitOpError("expected optim.space of #optim.space, found ") << attribute.getValue();
  }
  if (name == kWritesAttr) {
    auto writes = dyn_cast<ArrayAttr>(attribute.getValue());
    if (writes && llvm::all_of(writes, llvm::IsaPred<SpaceAttr, UnitAttr>))
      return success();
    return op->emitOpError("expected optim.writes of #optim.space or unit, found ")
           << attribute.getValue();
  }
  if (name == kCutAttr) {
    if (isa<UnitAttr>(attribute.getValue()) && isa<ReduceOp>(op))
      return success();
    return op->emitOpError("expected optim.cut, a unit, on a reduction, found ")
           << attribute.getValue();
  }
  if (name == kNumberAttr) {
    auto number = dyn_cast<IntegerAttr>(attribute.getValue());
    if (number && number.getInt() >= 0 && isa<SplatOp, ReduceOp, ModelStateOp>(op) &&
        isa<ModelOp>(op->getParentOp()))
      return success();
    return op->emitOpError("expected optim.number of 0 or more, on a splat, a reduction or a state "
                           "of a model, found ")
           << attribute.getValue();
  }
  if ((name == kMaxPeersAttr || name == kStateLimitAttr) && isa<ModuleOp>(op)) {
    auto number = dyn_cast<IntegerAttr>(attribute.getValue());
    if (number && number.getType().isInteger(64) && number.getInt() > 0)
      return success();
    return op->emitOpError("expected ")
           << name << " of an i64 above 0, found " << attribute.getValue();
  }
  if (name == kKeptOwnersAttr && isa<ModuleOp>(op)) {
    auto owners = dyn_cast<DictionaryAttr>(attribute.getValue());
    auto isRanks = [](NamedAttribute each) {
      auto ranks = dyn_cast<DenseI64ArrayAttr>(each.getValue());
      return ranks && llvm::all_of(ranks.asArrayRef(), [](int64_t rank) { return rank >= -1; });
    };
    if (owners && llvm::all_of(owners, isRanks))
      return success();
    return op->emitOpError("expected ")
           << name << " of lists of ranks by parameter, -1 for none, found "
           << attribute.getValue();
  }
  return op->emitOpError("expected an attribute of the dialect optim, found ") << name;
}

std::optional<plan::DType> optim::toPlan(Type type) {
  if (type.isF32())
    return plan::DType::F32;
  if (type.isBF16())
    return plan::DType::BF16;
  if (type.isF16())
    return plan::DType::F16;
  if (type.isF64())
    return plan::DType::F64;
  return std::nullopt;
}

Type optim::toType(MLIRContext *context, plan::DType type) {
  switch (type) {
  case plan::DType::F32:
    return Float32Type::get(context);
  case plan::DType::BF16:
    return BFloat16Type::get(context);
  case plan::DType::F16:
    return Float16Type::get(context);
  case plan::DType::F64:
    return Float64Type::get(context);
  }
  llvm_unreachable("unknown storage type");
}

std::optional<ValueKind> optim::kindOf(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasRank() || shaped.getRank() < 2)
    return std::nullopt;
  if (auto ranked = dyn_cast<RankedTensorType>(type))
    if (auto kind = dyn_cast_if_present<KindAttr>(ranked.getEncoding()))
      return kind.getValue();
  bool oneRow = shaped.getDimSize(shaped.getRank() - 2) == 1;
  bool oneCol = shaped.getDimSize(shaped.getRank() - 1) == 1;
  if (oneRow && oneCol)
    return ValueKind::One;
  if (oneCol)
    return ValueKind::Rows;
  if (oneRow)
    return ValueKind::Cols;
  return ValueKind::Full;
}

RankedTensorType optim::tensorType(ValueKind kind, Type element) {
  auto extent = [](int64_t of) { return of < 0 ? ShapedType::kDynamic : of; };
  auto encoding = kind.isStored() ? KindAttr() : KindAttr::get(element.getContext(), kind);
  return RankedTensorType::get({extent(kind.rows), extent(kind.cols)}, element, encoding);
}
