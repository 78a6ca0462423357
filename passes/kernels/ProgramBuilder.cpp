//===- ProgramBuilder.cpp - The scheduled step as commands -----------------===//

#include "passes/kernels/ProgramBuilder.h"
#include "passes/cost/Saturate.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace stepc::kernels {

/// Handles and sizes: their users ask for what they need.
static bool isHandle(Operation *op) {
  return isa<comm::WorldOp, comm::ShardsOp, comm::ExtentOp, comm::BufferOp, memref::CastOp,
             arith::ConstantOp, func::ReturnOp>(op);
}

LogicalResult ProgramBuilder::lower(Block &step) {
  b.setInsertionPointToEnd(module.getBody());
  auto made = exec::ProgramOp::create(b, module.getLoc(), program.plan.arenaBytes);
  b.createBlock(&made.getBody());
  for (Operation &op : step)
    if (!isHandle(&op) && failed(lower(&op)))
      return failure();
  exec::AdvanceStepsOp::create(b, module.getLoc());
  made.setScratch(scratchBytes);
  return success();
}

LogicalResult ProgramBuilder::lower(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](comm::StageOp op) { return lowerStage(op); })
      .Case([&](comm::ScalarsOp op) { return lowerScalars(op); })
      .Case([&](comm::CopyOp op) { return lowerCopy(op); })
      .Case([&](comm::StartOp op) { return lowerStart(op); })
      .Case([&](comm::WaitOp op) { return lowerWait(op); })
      .Case(
          [&](optim::ProductOp op) { return lowerBatch(op, target.product(cache.symbols(), op)); })
      .Case([&](optim::BlockReduceOp op) {
        return lowerBatch(op, target.blockReduce(cache.symbols(), op));
      })
      .Default([](Operation *op) {
        return op->emitOpError(
            "expected operations of a scheduled program, this one has no kernel");
      });
}

//===----------------------------------------------------------------------===//
// What commands read and write
//===----------------------------------------------------------------------===//

FailureOr<exec::WorkspaceAttr> ProgramBuilder::workspaceOf(Value value) {
  while (auto cast = value.getDefiningOp<memref::CastOp>())
    value = cast.getSource();
  if (auto buffer = value.getDefiningOp<comm::BufferOp>())
    return exec::WorkspaceAttr::get(b.getContext(), buffer.getOffset(), buffer.getBytes());
  return emitError(value.getLoc())
         << "expected a buffer of the workspace or shards, found " << value.getType();
}

FailureOr<exec::OperandAttrInterface> ProgramBuilder::operandOf(Value value) {
  if (auto shards = value.getDefiningOp<comm::ShardsOp>())
    return exec::OperandAttrInterface(
        exec::ShardsAttr::get(b.getContext(), shards.getKind(), shards.getStateAttr()));
  FailureOr<exec::WorkspaceAttr> place = workspaceOf(value);
  if (failed(place))
    return failure();
  return exec::OperandAttrInterface(*place);
}

/// A table of scalars at a place in the workspace.
static exec::ScalarsAttr scalarsOf(exec::WorkspaceAttr place, Value table) {
  return exec::ScalarsAttr::get(place.getContext(), place.getOffset(),
                                cast<ShapedType>(table.getType()).getDimSize(1));
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

LogicalResult ProgramBuilder::lowerStage(comm::StageOp op) {
  FailureOr<StageKernel> made = cache.stage(op);
  if (failed(made))
    return failure();
  SmallVector<Attribute> operands;
  for (const KernelArgument &argument : made->arguments) {
    if (argument.kind == KernelArgument::BlockRows) {
      operands.push_back(exec::BlockRowsAttr::get(b.getContext()));
      continue;
    }
    FailureOr<exec::OperandAttrInterface> operand = operandOf(argument.value);
    if (failed(operand))
      return failure();
    if (argument.kind == KernelArgument::Scalars)
      operand = exec::OperandAttrInterface(
          scalarsOf(cast<exec::WorkspaceAttr>(*operand), argument.value));
    operands.push_back(*operand);
  }
  exec::DispatchChunksOp::create(b, op.getLoc(), FlatSymbolRefAttr::get(made->kernel),
                                 b.getArrayAttr({tableOf(program.table(op))}),
                                 b.getArrayAttr(operands));
  return success();
}

LogicalResult ProgramBuilder::lowerScalars(comm::ScalarsOp op) {
  FailureOr<LLVM::LLVMFuncOp> kernel = cache.scalars(op);
  FailureOr<exec::WorkspaceAttr> place = workspaceOf(op.getInit());
  if (failed(kernel) || failed(place))
    return failure();
  exec::DispatchParametersOp::create(b, op.getLoc(), FlatSymbolRefAttr::get(*kernel),
                                     b.getArrayAttr({op.getGroupAttr()}),
                                     b.getArrayAttr({scalarsOf(*place, op.getInit())}));
  return success();
}

template <typename Op>
LogicalResult ProgramBuilder::lowerBatch(Op op, FailureOr<BatchKernels> kernels) {
  if (failed(kernels))
    return failure();
  int64_t each = kernels->scratchBytesPerBlock, bound = scratchBoundPerBlock(op), bytes = 0;
  if (each > bound)
    return op.emitOpError("expected kernels that need at most ")
           << bound << " bytes of scratch per block, which the workspace allows for, found "
           << each;
  if (each > 0)
    bytes = saturatingMul(
        each, mostBlocks(ProgramPlan::find(program.segments, comm::segmentOfBatch(op))));
  scratchBytes = std::max(scratchBytes, bytes);
  auto scratch = exec::WorkspaceAttr::get(b.getContext(), program.plan.scratchOffset(), bytes);
  for (const KernelLaunch &made : kernels->launches) {
    SmallVector<Attribute> operands;
    for (Value buffer : made.buffers) {
      FailureOr<exec::WorkspaceAttr> place = scratch;
      if (buffer)
        place = workspaceOf(buffer);
      if (failed(place))
        return failure();
      operands.push_back(*place);
    }
    exec::DispatchBlocksOp::create(
        b, op.getLoc(), FlatSymbolRefAttr::get(made.kernel), tableOf(program.table(op)),
        b.getI64IntegerAttr(made.itemsPerBlock), b.getArrayAttr(operands));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Memory and messages
//===----------------------------------------------------------------------===//

LogicalResult ProgramBuilder::lowerCopy(comm::CopyOp op) {
  FailureOr<exec::OperandAttrInterface> from = operandOf(op.getSource());
  FailureOr<exec::OperandAttrInterface> to = operandOf(op.getDestination());
  if (failed(from) || failed(to))
    return failure();
  exec::CopyOp::create(b, op.getLoc(), tableOf(program.table(op)), *from, *to);
  return success();
}

LogicalResult ProgramBuilder::lowerStart(comm::StartOp op) {
  SmallVector<Attribute> tables, sends, receives;
  for (int64_t table : program.tables.lookup(op))
    tables.push_back(tableOf(table));
  for (auto [values, places] :
       {std::pair(op.getSends(), &sends), std::pair(op.getReceives(), &receives)})
    for (Value value : values) {
      FailureOr<exec::WorkspaceAttr> place = workspaceOf(value);
      if (failed(place))
        return failure();
      places->push_back(*place);
    }
  auto start = exec::StartOp::create(b, op.getLoc(), exec::TokenType::get(b.getContext()),
                                     op.getKind(), b.getArrayAttr(tables), b.getArrayAttr(sends),
                                     b.getArrayAttr(receives));
  tokens.map(op.getToken(), start.getToken());
  return success();
}

LogicalResult ProgramBuilder::lowerWait(comm::WaitOp op) {
  Value token = tokens.lookupOrNull(op.getToken());
  if (!token)
    return op.emitOpError("expected the token of a comm.start, found ") << op.getToken();
  exec::AwaitOp::create(b, op.getLoc(), token);
  return success();
}

} // namespace stepc::kernels
