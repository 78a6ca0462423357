//===- ExecToPlan.cpp - Commands of a program to those of a plan -----------===//

#include "dialects/exec/Exec.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::exec;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static FailureOr<int64_t> find(Operation *op, const Numbering::Index &index, FlatSymbolRefAttr name,
                               StringRef what) {
  auto found = index.find(name.getAttr());
  if (found != index.end())
    return found->second;
  return op->emitOpError("expected ") << what << " of the program, found none named " << name;
}

FailureOr<int64_t> Numbering::group(Operation *op, FlatSymbolRefAttr name) {
  return find(op, groups, name, "a group");
}

FailureOr<int64_t> Numbering::segment(Operation *op, FlatSymbolRefAttr name) {
  return find(op, segments, name, "a segment");
}

FailureOr<plan::Communicator> Numbering::communicator(Operation *op, comm::CommunicatorAttr ranks) {
  FailureOr<int64_t> mesh = find(op, meshes, ranks.getMesh(), "a mesh");
  if (failed(mesh))
    return failure();
  return ranks.toPlan(*mesh);
}

FailureOr<int64_t> Numbering::table(Operation *op, TableAttr attribute) {
  auto [known, isNew] = tables.try_emplace(attribute, plan.tables.size());
  if (!isNew)
    return known->second;
  comm::PlaceAttr from = attribute.getFrom(), to = attribute.getTo() ? attribute.getTo() : from;
  FailureOr<int64_t> source = segment(op, from.getSymbol()), target = segment(op, to.getSymbol());
  if (failed(source) || failed(target))
    return failure();
  plan.tables.push_back(
      {attribute.getKind(), from.toPlan(*source), to.toPlan(*target), attribute.getElementBytes()});
  return int64_t(plan.tables.size()) - 1;
}

TableAttr exec::toAttribute(MLIRContext *context, const plan::Plan &plan,
                            const plan::Table &table) {
  auto place = [&](const plan::Place &place) {
    auto segment = FlatSymbolRefAttr::get(context, plan.segments[place.segment].name);
    return comm::PlaceAttr::get(segment, place);
  };
  return TableAttr::get(context, table.kind, place(table.from),
                        table.to == table.from ? comm::PlaceAttr() : place(table.to),
                        table.elementBytes);
}

LogicalResult Numbering::pool(Operation *op, PoolAttr attribute) {
  plan::Pool pool{attribute.getOffset(), attribute.getBytes(), {}};
  for (MemberAttr member : attribute.getMembers()) {
    FailureOr<int64_t> of = segment(op, member.getSegment());
    if (failed(of))
      return failure();
    pool.members.push_back({*of, member.getBytes()});
  }
  plan.pools.push_back(std::move(pool));
  return success();
}

PoolAttr exec::toAttribute(MLIRContext *context, const plan::Plan &plan, const plan::Pool &pool) {
  SmallVector<MemberAttr> members;
  for (const plan::Pool::Member &member : pool.members)
    members.push_back(MemberAttr::get(
        context, FlatSymbolRefAttr::get(context, plan.segments[member.segment].name),
        member.blockBytes));
  return PoolAttr::get(context, pool.offset, pool.bytes, members);
}

int64_t Numbering::kernel(FlatSymbolRefAttr name) {
  auto [known, isNew] = kernels.try_emplace(name.getAttr(), plan.kernels.size());
  if (isNew)
    plan.kernels.push_back(name.getValue().str());
  return known->second;
}

FailureOr<int64_t> Numbering::token(Operation *op, Value token) {
  auto known = tokens.find(token);
  if (known != tokens.end())
    return known->second;
  return op->emitOpError("expected a collective that was started before");
}

LogicalResult Numbering::operands(Operation *op, ArrayRef<Attribute> operands, int64_t group,
                                  plan::Command &command) {
  for (Attribute operand : operands) {
    FailureOr<plan::Operand> made = cast<OperandAttrInterface>(operand).lower(op, plan, group);
    if (failed(made))
      return failure();
    command.operands.push_back(*made);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

FailureOr<plan::Command> DispatchChunksOp::lower(Numbering &numbering) {
  plan::Command command;
  command.kind = plan::CommandKind::Chunks;
  command.kernel = numbering.kernel(getKernelAttr());
  size_t each = getArgs().size() / getTables().size();
  for (auto [index, attribute] : llvm::enumerate(getTables().getAsRange<TableAttr>())) {
    FailureOr<int64_t> table = numbering.table(*this, attribute);
    if (failed(table) ||
        failed(numbering.operands(*this, getArgs().getValue().slice(index * each, each),
                                  numbering.groupOf(*table), command)))
      return failure();
    command.tables.push_back(*table);
  }
  return command;
}

/// What products and reductions have in common.
template <typename Op>
static FailureOr<plan::Command> lowerBatch(Op op, Numbering &numbering, plan::CommandKind kind) {
  FailureOr<int64_t> table = numbering.table(op, op.getTable());
  plan::Command command;
  command.kind = kind;
  if (failed(table) ||
      failed(numbering.operands(op, op.getBatches(), numbering.groupOf(*table), command)))
    return failure();
  command.tables = {*table};
  if (op.getKernels())
    for (auto kernel : op.getKernelsAttr().template getAsRange<KernelAttr>())
      command.batch.kernels.push_back({numbering.kernel(kernel.getSymbol()), kernel.getItems()});
  command.batch.scratchBytes = op.getScratch();
  return command;
}

FailureOr<plan::Command> ProductOp::lower(Numbering &numbering) {
  FailureOr<plan::Command> command = lowerBatch(*this, numbering, plan::CommandKind::Product);
  if (failed(command))
    return failure();
  plan::Batch &batch = command->batch;
  batch.accumulation = getAccumulation();
  batch.alpha = getAlpha().convertToDouble();
  batch.beta = getBeta().convertToDouble();
  batch.transposeLhs = getTransposeLhs();
  batch.transposeRhs = getTransposeRhs();
  batch.symmetric = getSymmetric();
  if (getPinned())
    for (auto each : getPinnedAttr().getAsRange<PinnedAlgorithmAttr>())
      batch.pinned.push_back(each.getValue());
  return command;
}

FailureOr<plan::Command> ReduceOp::lower(Numbering &numbering) {
  FailureOr<plan::Command> command = lowerBatch(*this, numbering, plan::CommandKind::Reduce);
  if (failed(command))
    return failure();
  command->batch.reduction = getKind();
  command->batch.exponent = getExponent();
  return command;
}

FailureOr<plan::Command> DispatchParametersOp::lower(Numbering &numbering) {
  plan::Command command;
  command.kind = plan::CommandKind::Parameters;
  command.kernel = numbering.kernel(getKernelAttr());
  size_t each = getArgs().size() / getGroups().size();
  for (auto [index, name] : llvm::enumerate(getGroups().getAsRange<FlatSymbolRefAttr>())) {
    FailureOr<int64_t> group = numbering.group(*this, name);
    if (failed(group) ||
        failed(numbering.operands(*this, getArgs().getValue().slice(index * each, each), *group,
                                  command)))
      return failure();
    command.groups.push_back(*group);
  }
  return command;
}

/// Numbers the kernel of a command that has one on some devices only.
template <typename Op>
static void numberKernel(Op op, Numbering &numbering, plan::Command &command) {
  if (FlatSymbolRefAttr kernel = op.getKernelAttr())
    command.kernel = numbering.kernel(kernel);
}

/// What copies and sums have in common.
template <typename Op>
static FailureOr<plan::Command> lowerRows(Op op, Numbering &numbering, plan::CommandKind kind) {
  FailureOr<int64_t> table = numbering.table(op, op.getTable());
  plan::Command command;
  command.kind = kind;
  Attribute ends[] = {op.getSource(), op.getTarget()};
  if (failed(table) || failed(numbering.operands(op, ends, numbering.groupOf(*table), command)))
    return failure();
  command.tables = {*table};
  numberKernel(op, numbering, command);
  return command;
}

FailureOr<plan::Command> CopyOp::lower(Numbering &numbering) {
  return lowerRows(*this, numbering, plan::CommandKind::Copy);
}

FailureOr<plan::Command> SumOp::lower(Numbering &numbering) {
  FailureOr<plan::Command> command = lowerRows(*this, numbering, plan::CommandKind::Sum);
  if (succeeded(command))
    command->index = getDivisor();
  return command;
}

FailureOr<plan::Command> StartOp::lower(Numbering &numbering) {
  plan::Command command;
  command.kind = plan::CommandKind::Start;
  command.collective = getKind();
  numbering.start(getToken());
  if (getCommunicator()) {
    FailureOr<plan::Communicator> ranks = numbering.communicator(*this, *getCommunicator());
    if (failed(ranks))
      return failure();
    command.communicator = *ranks;
  }
  for (TableAttr attribute : getTables().getAsRange<TableAttr>()) {
    FailureOr<int64_t> table = numbering.table(*this, attribute);
    if (failed(table))
      return failure();
    command.tables.push_back(*table);
  }
  Attribute ends[] = {getSource(), getTarget()};
  if (failed(numbering.operands(*this, ends, /*group=*/-1, command)))
    return failure();
  numberKernel(*this, numbering, command);
  return command;
}

FailureOr<plan::Command> AwaitOp::lower(Numbering &numbering) {
  FailureOr<int64_t> start = numbering.token(*this, getToken());
  if (failed(start))
    return failure();
  plan::Command command;
  command.kind = plan::CommandKind::Await;
  command.index = *start;
  numberKernel(*this, numbering, command);
  return command;
}

FailureOr<plan::Command> AdvanceStepsOp::lower(Numbering &numbering) {
  plan::Command command;
  command.kind = plan::CommandKind::AdvanceSteps;
  numberKernel(*this, numbering, command);
  return command;
}
