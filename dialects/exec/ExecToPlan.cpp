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

/// No kernel without a name: some devices alone have one for a command.
plan::KernelNumber Numbering::kernel(FlatSymbolRefAttr name) {
  if (!name)
    return {};
  auto [known, isNew] = kernels.try_emplace(name.getAttr(), plan.kernels.size());
  if (isNew)
    plan.kernels.push_back({name.getValue().str(), std::nullopt});
  return known->second;
}

FailureOr<int64_t> Numbering::token(Operation *op, Value token) {
  auto known = tokens.find(token);
  if (known != tokens.end())
    return known->second;
  return op->emitOpError("expected a collective that was started before");
}

LogicalResult Numbering::operand(Operation *op, Attribute operand, int64_t group,
                                 plan::Operand &made) {
  FailureOr<plan::Operand> lowered = cast<OperandAttrInterface>(operand).lower(op, plan, group);
  if (failed(lowered))
    return failure();
  made = *lowered;
  return success();
}

LogicalResult Numbering::operands(Operation *op, ArrayRef<Attribute> operands, int64_t group,
                                  std::vector<plan::Operand> &made) {
  for (Attribute each : operands)
    if (failed(operand(op, each, group, made.emplace_back())))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

FailureOr<plan::Command> DispatchChunksOp::lower(Numbering &numbering) {
  plan::DispatchChunks command;
  command.kernel = numbering.kernel(getKernelAttr());
  size_t each = getArgs().size() / getTables().size();
  for (auto [index, attribute] : llvm::enumerate(getTables().getAsRange<TableAttr>())) {
    FailureOr<int64_t> table = numbering.table(*this, attribute);
    plan::DispatchChunks::Run &run = command.runs.emplace_back();
    if (failed(table) ||
        failed(numbering.operands(*this, getArgs().getValue().slice(index * each, each),
                                  numbering.groupOf(*table), run.operands)))
      return failure();
    run.table = *table;
  }
  return plan::Command(command);
}

FailureOr<plan::Command> DispatchParametersOp::lower(Numbering &numbering) {
  plan::DispatchParameters command;
  command.kernel = numbering.kernel(getKernelAttr());
  size_t each = getArgs().size() / getGroups().size();
  for (auto [index, name] : llvm::enumerate(getGroups().getAsRange<FlatSymbolRefAttr>())) {
    FailureOr<int64_t> group = numbering.group(*this, name);
    plan::DispatchParameters::Run &run = command.runs.emplace_back();
    if (failed(group) ||
        failed(numbering.operands(*this, getArgs().getValue().slice(index * each, each), *group,
                                  run.operands)))
      return failure();
    run.group = *group;
  }
  return plan::Command(command);
}

/// Lowers what products and reductions have in common.
template <typename Op>
static FailureOr<int64_t> lowerMatrix(Op op, Numbering &numbering, plan::MatrixCommand &command) {
  FailureOr<int64_t> table = numbering.table(op, op.getTable());
  if (failed(table))
    return failure();
  command.table = *table;
  if (op.getKernels())
    for (auto kernel : op.getKernelsAttr().template getAsRange<KernelAttr>())
      command.kernels.push_back({numbering.kernel(kernel.getSymbol()), kernel.getItems()});
  command.scratchBytes = op.getScratch();
  return numbering.groupOf(*table);
}

FailureOr<plan::Command> ProductOp::lower(Numbering &numbering) {
  plan::Product command;
  FailureOr<int64_t> group = lowerMatrix(*this, numbering, command);
  if (failed(group) || failed(numbering.operand(*this, getLhs(), *group, command.lhs)) ||
      failed(numbering.operand(*this, getRhs(), *group, command.rhs)) ||
      (getAddend() &&
       failed(numbering.operand(*this, *getAddend(), *group, command.addend.emplace()))) ||
      failed(numbering.operand(*this, getOut(), *group, command.out)))
    return failure();
  command.accumulation = getAccumulation();
  command.alpha = getAlpha().convertToDouble();
  command.beta = getBeta().convertToDouble();
  command.transposeLhs = getTransposeLhs();
  command.transposeRhs = getTransposeRhs();
  command.symmetric = getSymmetric();
  if (getPinned())
    for (auto each : getPinnedAttr().getAsRange<PinnedAlgorithmAttr>())
      command.pinned.push_back(each.getValue());
  return plan::Command(command);
}

FailureOr<plan::Command> ReduceOp::lower(Numbering &numbering) {
  plan::Reduce command;
  FailureOr<int64_t> group = lowerMatrix(*this, numbering, command);
  if (failed(group) || failed(numbering.operand(*this, getSource(), *group, command.source)) ||
      failed(numbering.operand(*this, getOut(), *group, command.out)))
    return failure();
  command.reduction = getKind();
  command.exponent = getExponent();
  return plan::Command(command);
}

/// Lowers what copies and sums have in common.
template <typename Op, typename Command>
static LogicalResult lowerMove(Op op, Numbering &numbering, Command &command) {
  FailureOr<int64_t> table = numbering.table(op, op.getTable());
  if (failed(table))
    return failure();
  command.table = *table;
  command.kernel = numbering.kernel(op.getKernelAttr());
  int64_t group = numbering.groupOf(*table);
  return success(succeeded(numbering.operand(op, op.getSource(), group, command.source)) &&
                 succeeded(numbering.operand(op, op.getTarget(), group, command.target)));
}

FailureOr<plan::Command> CopyOp::lower(Numbering &numbering) {
  plan::Copy command;
  if (failed(lowerMove(*this, numbering, command)))
    return failure();
  return plan::Command(command);
}

FailureOr<plan::Command> SumOp::lower(Numbering &numbering) {
  plan::Sum command;
  if (failed(lowerMove(*this, numbering, command)))
    return failure();
  command.type = *optim::toPlan(getType());
  command.divisor = getDivisor();
  return plan::Command(command);
}

FailureOr<plan::Command> StartOp::lower(Numbering &numbering) {
  plan::Start command;
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
  if (failed(numbering.operand(*this, getSource(), /*group=*/-1, command.sent)) ||
      failed(numbering.operand(*this, getTarget(), /*group=*/-1, command.received)))
    return failure();
  command.kernel = numbering.kernel(getKernelAttr());
  return plan::Command(command);
}

FailureOr<plan::Command> AwaitOp::lower(Numbering &numbering) {
  FailureOr<int64_t> start = numbering.token(*this, getToken());
  if (failed(start))
    return failure();
  plan::KernelNumber kernel = numbering.kernel(getKernelAttr());
  return plan::Command(plan::Await{*start, kernel});
}

FailureOr<plan::Command> AdvanceStepsOp::lower(Numbering &numbering) {
  return plan::Command(plan::AdvanceSteps{numbering.kernel(getKernelAttr())});
}
