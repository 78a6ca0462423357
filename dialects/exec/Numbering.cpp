//===- Numbering.cpp - The numbers by which a plan knows symbols -----------===//

#include "dialects/exec/Exec.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::exec;

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
  for (const plan::Pool::Batch &member : pool.members)
    members.push_back(MemberAttr::get(
        context, FlatSymbolRefAttr::get(context, plan.segments[member.segment].name),
        member.blockBytes));
  return PoolAttr::get(context, pool.offset, pool.bytes, members);
}

// Without a name there is no kernel: for some commands only some devices need one.
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
