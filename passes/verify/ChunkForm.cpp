//===- ChunkForm.cpp - What a kernel over chunks does ----------------------===//

#include "passes/verify/ChunkForm.h"

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;

/// Returns the value itself if it is a memref argument of the kernel, otherwise null.
static BlockArgument argumentOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && isa<MemRefType>(argument.getType()) ? argument : BlockArgument();
}

static std::optional<ChunkForm::Operand> readOperand(BlockArgument view, AffineMap map) {
  using Reach = ChunkForm::Reach;
  auto isAxis = [&](unsigned axis) {
    return map.getNumResults() == 1 && map.getResult(0) == getAffineDimExpr(axis, map.getContext());
  };
  Type element = cast<MemRefType>(view.getType()).getElementType();
  ChunkForm::Operand made{view.getArgNumber(), element, Reach::Element};
  if (map.isIdentity())
    return made;
  if (map.getNumResults() == 0)
    made.reach = Reach::Block;
  else if (isAxis(0))
    made.reach = Reach::Row;
  else if (isAxis(1))
    made.reach = Reach::Column;
  else
    return std::nullopt;
  return made;
}

/// Returns the column of the scalars that a value was loaded from, or nullopt if it is no such load.
static std::optional<int64_t> columnOf(Value value) {
  auto load = value.getDefiningOp<memref::LoadOp>();
  if (!load || load.getIndices().size() != 1)
    return std::nullopt;
  BlockArgument row = argumentOf(load.getMemRef());
  std::optional<int64_t> column = getConstantIntValue(load.getIndices()[0]);
  return row && row.getArgNumber() == 0 ? column : std::nullopt;
}

static bool isReduced(linalg::GenericOp generic, unsigned axis) {
  return generic.getIteratorTypesArray()[axis] == utils::IteratorType::reduction;
}

FailureOr<ChunkForm> verify::readChunkKernel(func::FuncOp kernel) {
  linalg::GenericOp generic;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    auto found = dyn_cast<linalg::GenericOp>(op);
    if ((found && generic) || (!found && !isa<arith::ConstantOp, memref::LoadOp>(op)))
      return op.emitOpError(
          "expected in a kernel over chunks one linalg.generic, and loads of scalars before it");
    generic = found ? found : generic;
  }
  auto reduction = kernel->getAttrOfType<comm::ReductionAttr>(exec::kReductionAttr);
  auto sums = kernel->getAttrOfType<IntegerAttr>(exec::kSumsAttr);
  bool isOfBlocks = reduction && sums && generic && generic.getNumParallelLoops() == 0;
  if (!generic || generic.getNumLoops() != 2 ||
      (!isOfBlocks && generic.getNumParallelLoops() != (reduction ? 1 : 2)))
    return kernel.emitOpError(
        "expected in a kernel over chunks one linalg.generic over the rows and columns of a chunk");
  ChunkForm form;
  form.arguments = kernel.getNumArguments();
  form.body = generic.getBody();
  if (reduction)
    form.reduction = reduction.getValue();
  if (sums)
    form.sums = sums.getInt();
  for (OpOperand &operand : generic->getOpOperands()) {
    AffineMap map = generic.getMatchingIndexingMap(&operand);
    bool isOut = generic.isDpsInit(&operand);
    if (BlockArgument view = argumentOf(operand.get()); view && (isOut || form.columns.empty()))
      if (std::optional<ChunkForm::Operand> read = readOperand(view, map);
          read && (!isOut || (read->reach == ChunkForm::Reach::Element) == !reduction)) {
        (isOut ? form.writes : form.reads).push_back(*read);
        continue;
      }
    std::optional<int64_t> column = isOut ? std::nullopt : columnOf(operand.get());
    if (!column)
      return generic.emitOpError("expected in a kernel over chunks views of its arguments, and "
                                 "behind them columns of the first, found operand ")
             << operand.getOperandNumber() << " by " << AffineMapAttr::get(map);
    form.columns.push_back(*column);
  }
  // The axis that is reduced is not that of the line.
  if (form.reduction) {
    using Reach = ChunkForm::Reach;
    Reach reach = form.writes.size() == 1 ? form.writes[0].reach : Reach::Element;
    if (!(reach == Reach::Row && isReduced(generic, 1) && !isOfBlocks) &&
        !(reach == Reach::Column && isReduced(generic, 0) && !isOfBlocks) &&
        !(reach == Reach::Block && isOfBlocks))
      return generic.emitOpError(
          "expected a kernel that reduces to write one value per row or column");
  }
  return form;
}
