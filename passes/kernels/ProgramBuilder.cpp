//===- ProgramBuilder.cpp - The scheduled step as commands -----------------===//

#include "passes/kernels/ProgramBuilder.h"

#include "dialects/optim/Saturate.h"
#include "passes/kernels/BlockKernels.h"
#include "passes/kernels/GpuChips.h"
#include "passes/kernels/TargetShape.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace stepc::kernels {

/// Whether an operation becomes no command, because it only gives handles and sizes to its users.
static bool isHandle(Operation *op) {
  return isa<comm::WorldOp, comm::CommunicatorOp, comm::HyperparametersOp, comm::StepsOp,
             comm::ActiveOp, comm::ShardsOp, comm::ExtentOp, comm::BufferOp, memref::CastOp,
             arith::ConstantOp, func::ReturnOp>(op);
}

LogicalResult ProgramBuilder::lower(Block &step) {
  b.setInsertionPointToEnd(module.getBody());
  SmallVector<Attribute> pools;
  for (const plan::Pool &pool : program.plan.pools)
    pools.push_back(exec::toAttribute(b.getContext(), program.plan, pool));
  auto made = exec::ProgramOp::create(b, module.getLoc(), program.plan.arenaBytes, /*scratch=*/0,
                                      target.chunkElements(),
                                      pools.empty() ? ArrayAttr() : b.getArrayAttr(pools));
  b.createBlock(&made.getBody());
  for (Operation &op : step)
    if (!isHandle(&op) && failed(lower(&op)))
      return failure();
  made.setScratch(scratchBytes);
  return success();
}

LogicalResult ProgramBuilder::lower(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](comm::StageOp op) { return lowerStage(op); })
      .Case([&](comm::ScalarsOp op) { return lowerScalars(op); })
      .Case([&](comm::CopyOp op) { return lowerCopy(op); })
      .Case([&](comm::SumOp op) { return lowerSum(op); })
      .Case([&](comm::CollectOp op) { return lowerCollect(op); })
      .Case([&](comm::SkipOp op) { return lowerSkip(op); })
      .Case([&](comm::StartOp op) { return lowerStart(op); })
      .Case([&](comm::WaitOp op) { return lowerWait(op); })
      .Case([&](comm::AdvanceStepsOp op) {
        exec::AdvanceStepsOp::create(b, op.getLoc(), FlatSymbolRefAttr());
        return success();
      })
      .Case([&](optim::ProductOp op) { return lowerProduct(op); })
      .Case([&](optim::ApplyOp op) { return lowerApply(op); })
      .Default([](Operation *op) {
        return op->emitOpError("expected operations of a scheduled program, found one that no "
                               "command or kernel computes");
      });
}

//===----------------------------------------------------------------------===//
// What commands read and write
//===----------------------------------------------------------------------===//

FailureOr<exec::WorkspaceAttr> ProgramBuilder::workspaceOf(Operation *user, Value value) {
  while (auto cast = value.getDefiningOp<memref::CastOp>())
    value = cast.getSource();
  if (auto buffer = value.getDefiningOp<comm::BufferOp>()) {
    if (auto pool = program.pools.find(buffer); pool != program.pools.end())
      return exec::WorkspaceAttr::get(b.getContext(), buffer.getOffset(), buffer.getBytes(),
                                      /*start=*/std::nullopt, /*traveller=*/0, pool->second,
                                      int64_t(cast<OpResult>(value).getResultNumber()));
    if (!comm::placeOf(value).isMoving())
      return exec::WorkspaceAttr::get(b.getContext(), buffer.getOffset(), buffer.getBytes());
    FailureOr<std::pair<comm::StartOp, int64_t>> travel = comm::startOf(user, value);
    if (failed(travel))
      return failure();
    return exec::WorkspaceAttr::get(b.getContext(), buffer.getOffset(), buffer.getBytes(),
                                    travel->first.getOrder(), travel->second, /*pool=*/std::nullopt,
                                    /*member=*/0);
  }
  return emitError(value.getLoc())
         << "expected a buffer of the workspace or shards, found " << value.getType();
}

FailureOr<exec::LineAttr> ProgramBuilder::lineOf(Operation *user, Value value) {
  FailureOr<exec::WorkspaceAttr> place = workspaceOf(user, value);
  if (failed(place))
    return failure();
  return exec::LineAttr::get(b.getContext(), place->getOffset(), place->getBytes());
}

FailureOr<exec::OperandAttrInterface> ProgramBuilder::operandOf(Operation *user, Value value) {
  if (auto shards = value.getDefiningOp<comm::ShardsOp>())
    return exec::OperandAttrInterface(
        exec::ShardsAttr::get(b.getContext(), shards.getKind(), shards.getStateAttr()));
  FailureOr<exec::WorkspaceAttr> place = workspaceOf(user, value);
  if (failed(place))
    return failure();
  return exec::OperandAttrInterface(*place);
}

FailureOr<exec::BatchAttr> ProgramBuilder::batchOf(Operation *user, Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type || !type.getLayout().isIdentity() || type.getRank() != 3 || type.isDynamicDim(1) ||
      type.isDynamicDim(2))
    return emitError(value.getLoc())
           << "expected a contiguous memref of a batch of blocks of static extents, found "
           << value.getType();
  if (comm::placeOf(value).getSymbol() != comm::segmentOfBatch(user))
    return user->emitOpError("expected computed blocks of segment ")
           << comm::segmentOfBatch(user) << ", found " << type;
  FailureOr<exec::WorkspaceAttr> place = workspaceOf(user, value);
  if (failed(place))
    return failure();
  auto block = RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
  return exec::BatchAttr::get(b.getContext(), place->getOffset(), place->getBytes(), block,
                              place->getPool(), place->getMember());
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
  for (Value value : made->operands) {
    FailureOr<exec::OperandAttrInterface> operand = operandOf(op, value);
    if (failed(operand))
      return failure();
    if (op.isLine(value))
      operand = exec::OperandAttrInterface(*lineOf(op, value));
    if (value == op.getScalars())
      operand = exec::OperandAttrInterface(scalarsOf(cast<exec::WorkspaceAttr>(*operand), value));
    operands.push_back(*operand);
  }
  exec::DispatchChunksOp::create(b, op.getLoc(), FlatSymbolRefAttr::get(made->kernel),
                                 b.getArrayAttr({tableOf(program.table(op))}),
                                 b.getArrayAttr(operands));
  return success();
}

LogicalResult ProgramBuilder::lowerScalars(comm::ScalarsOp op) {
  FailureOr<func::FuncOp> kernel = cache.scalars(op);
  FailureOr<exec::WorkspaceAttr> place = workspaceOf(op, op.getInit());
  if (failed(kernel) || failed(place))
    return failure();
  SmallVector<Attribute> operands{scalarsOf(*place, op.getInit())};
  for (Value numbers : op.getNumbers()) {
    FailureOr<exec::WorkspaceAttr> of = workspaceOf(op, numbers);
    if (failed(of))
      return failure();
    operands.push_back(comm::placeOf(numbers).isScalars() ? Attribute(scalarsOf(*of, numbers))
                                                          : Attribute(*lineOf(op, numbers)));
  }
  exec::DispatchParametersOp::create(b, op.getLoc(), FlatSymbolRefAttr::get(*kernel),
                                     b.getArrayAttr({op.getGroupAttr()}), b.getArrayAttr(operands));
  return success();
}

LogicalResult ProgramBuilder::sizeScratch(Operation *op, exec::BatchOpInterface made) {
  int64_t each = target.scratchBytesPerBlock(made), bound = scratchBoundPerBlock(op);
  if (each > bound)
    return op->emitOpError("expected a target that needs at most ")
           << bound << " bytes of scratch per block, which the workspace allows for, found "
           << each;
  made.setScratch(each);
  if (each > 0)
    scratchBytes = std::max(
        scratchBytes, saturatingMul(each, mostBlocks(ProgramPlan::find(program.segments,
                                                                       comm::segmentOfBatch(op)))));
  return success();
}

LogicalResult ProgramBuilder::lowerProduct(optim::ProductOp op) {
  FailureOr<exec::BatchAttr> lhs = batchOf(op, op.getLhs()), rhs = batchOf(op, op.getRhs());
  FailureOr<exec::BatchAttr> out = batchOf(op, op.getInit());
  FailureOr<exec::BatchAttr> addend = exec::BatchAttr();
  if (op.getAddend())
    addend = batchOf(op, op.getAddend());
  if (failed(lhs) || failed(rhs) || failed(out) || failed(addend))
    return failure();
  auto accumulation = exec::AccumulationAttr::get(
      b.getContext(), target.accumulation(lhs->getType(), rhs->getType()));
  auto made = exec::ProductOp::create(
      b, op.getLoc(), accumulation, *lhs, *rhs, *addend, *out, op.getAlphaAttr(), op.getBetaAttr(),
      op.getTransposeLhsAttr(), op.getTransposeRhsAttr(), op.getSymmetricAttr(), op.getShiftAttr(),
      /*joins=*/UnitAttr(), /*pinned=*/ArrayAttr(), tableOf(program.table(op)),
      /*scratch=*/b.getI64IntegerAttr(0), /*kernels=*/ArrayAttr());
  remarkKernel(op);
  return sizeScratch(op, made);
}

void ProgramBuilder::remarkKernel(optim::ProductOp op) {
  std::optional<GpuTarget> gpu = gpuOfChip(target.chip());
  if (!gpu || !gpu->hasWarpgroups())
    return;
  std::string why = checkWarpgroups(op);
  int64_t segment = ProgramPlan::find(program.segments, comm::segmentOfBatch(op));
  const std::string &group = program.plan.groups[program.plan.segments[segment].group].name;
  cost::BlockProduct shape = blockProductOf(op);
  if (why.empty() || !remarked.emplace(group, shape).second)
    return;
  auto options =
      remark::RemarkOpts::name("product-not-on-warpgroups").category("comm-lower-to-exec");
  remark::missed(op.getLoc(), options)
      << remark::reason("{0}", why) << remark::metric("group", group)
      << remark::metric("m", shape.m) << remark::metric("n", shape.n)
      << remark::metric("k", shape.k);
}

LogicalResult ProgramBuilder::lowerApply(optim::ApplyOp op) {
  SmallVector<Attribute> sources;
  for (Value value : op.getSources()) {
    FailureOr<exec::BatchAttr> source = batchOf(op, value);
    if (failed(source))
      return failure();
    sources.push_back(*source);
  }
  FailureOr<exec::BatchAttr> out = batchOf(op, op.getInit());
  if (failed(out))
    return failure();
  auto made = exec::ApplyOp::create(b, op.getLoc(), op.getFunction(), b.getArrayAttr(sources), *out,
                                    tableOf(program.table(op)),
                                    /*scratch=*/b.getI64IntegerAttr(0), /*kernels=*/ArrayAttr());
  return failed(checkBlockKernels(made)) ? failure() : sizeScratch(op, made);
}

//===----------------------------------------------------------------------===//
// Memory and messages
//===----------------------------------------------------------------------===//

LogicalResult ProgramBuilder::lowerCopy(comm::CopyOp op) {
  FailureOr<exec::OperandAttrInterface> from = operandOf(op, op.getSource());
  FailureOr<exec::OperandAttrInterface> to = operandOf(op, op.getDestination());
  if (failed(from) || failed(to))
    return failure();
  exec::CopyOp::create(b, op.getLoc(), tableOf(program.table(op)), *from, *to,
                       /*kernel=*/nullptr);
  return success();
}

LogicalResult ProgramBuilder::lowerSum(comm::SumOp op) {
  FailureOr<exec::WorkspaceAttr> from = workspaceOf(op, op.getSource());
  FailureOr<exec::WorkspaceAttr> to = workspaceOf(op, op.getInit());
  if (failed(from) || failed(to))
    return failure();
  exec::SumOp::create(b, op.getLoc(), TypeAttr::get(comm::elementOf(op.getInit())),
                      op.getDivisorAttr(), op.getReductionAttr(), tableOf(program.table(op)), *from,
                      *to,
                      /*kernel=*/nullptr);
  return success();
}

LogicalResult ProgramBuilder::lowerCollect(comm::CollectOp op) {
  SmallVector<Attribute> tables, sources;
  for (auto [table, source] : llvm::zip_equal(program.tables.lookup(op), op.getSources())) {
    FailureOr<exec::LineAttr> line = lineOf(op, source);
    if (failed(line))
      return failure();
    tables.push_back(tableOf(table));
    sources.push_back(*line);
  }
  FailureOr<exec::LineAttr> target = lineOf(op, op.getInit());
  if (failed(target))
    return failure();
  exec::CollectOp::create(b, op.getLoc(), op.getReduction(), b.getArrayAttr(tables),
                          b.getArrayAttr(sources), *target, /*kernel=*/nullptr);
  return success();
}

LogicalResult ProgramBuilder::lowerSkip(comm::SkipOp op) {
  FailureOr<exec::LineAttr> value = lineOf(op, op.getValue());
  if (failed(value))
    return failure();
  exec::SkipOp::create(b, op.getLoc(), *value, /*kernel=*/nullptr);
  return success();
}

LogicalResult ProgramBuilder::lowerStart(comm::StartOp op) {
  SmallVector<Attribute> tables;
  for (int64_t table : program.tables.lookup(op))
    tables.push_back(tableOf(table));
  // All values that are sent stand in one buffer, and so do all that are received.
  auto buffer = [&](OperandRange values) {
    auto first = values.empty() ? nullptr : values.front().getDefiningOp<comm::BufferOp>();
    return exec::WorkspaceAttr::get(b.getContext(), first ? first.getOffset() : 0,
                                    first ? first.getBytes() : 0);
  };
  auto start = exec::StartOp::create(
      b, op.getLoc(), exec::TokenType::get(b.getContext()), op.getKind(),
      comm::ranksOf(op.getCommunicator()).value_or(nullptr), b.getArrayAttr(tables),
      buffer(op.getSends()), buffer(op.getReceives()), FlatSymbolRefAttr());
  tokens.map(op.getToken(), start.getToken());
  return success();
}

LogicalResult ProgramBuilder::lowerWait(comm::WaitOp op) {
  Value token = tokens.lookupOrNull(op.getToken());
  if (!token)
    return op.emitOpError("expected the token of a comm.start, found ") << op.getToken();
  exec::AwaitOp::create(b, op.getLoc(), token, FlatSymbolRefAttr());
  return success();
}

} // namespace stepc::kernels
