//===- CheckProgram.cpp - Commands compute what the rules say --------------===//
//
// Runs the commands of level exec on terms, over the bytes of the workspace. Each value that stands there,
// and each version of the shards, is the expression that computed it. A kernel is run by evaluating its
// function on terms. At the end the shards must hold what the rules yield.
//
//===----------------------------------------------------------------------===//

#include "passes/verify/CheckProgram.h"

#include "dialects/exec/Exec.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;
using plan::OperandKind;

ProgramCheck::ProgramCheck(const plan::Plan &plan, ModuleOp module)
    : plan(plan), module(module), symbols(module), versions(plan, module),
      workspace(plan.arenaBytes) {}

LogicalResult ProgramCheck::run(ArrayRef<Operation *> commands) {
  for (auto [command, op] : llvm::zip_equal(plan.commands, commands)) {
    user = op;
    workspace.advance(op);
    if (!execute(command))
      return failure();
  }
  return success(workspace.checkAllRead() && succeeded(versions.checkAllBlocks(module)) &&
                 succeeded(versions.check()));
}

bool ProgramCheck::execute(const plan::Command &command) {
  switch (command.kind) {
  case plan::CommandKind::Chunks:
    return chunks(command);
  case plan::CommandKind::Parameters:
    return parameters(command);
  case plan::CommandKind::Product:
  case plan::CommandKind::Reduce:
    return batch(command);
  case plan::CommandKind::Copy:
    return copy(command);
  case plan::CommandKind::Sum:
    return sum(command);
  case plan::CommandKind::Start:
    return start(command);
  case plan::CommandKind::Await:
    workspace.land(command.index);
    return true;
  case plan::CommandKind::AdvanceSteps:
    return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// What commands read and write
//===----------------------------------------------------------------------===//

const plan::Group &ProgramCheck::groupOf(int64_t segment) const {
  return plan.groups[plan.segments[segment].group];
}

/// Nothing happens on an empty segment, so nothing is wrong there.
bool ProgramCheck::isEmpty(int64_t segment) const {
  return !plan.segments[segment].all && plan.segments[segment].blocks.empty();
}

int64_t ProgramCheck::targetOf(const plan::Operand &operand, const plan::Group &group) const {
  if (operand.kind == OperandKind::Parameters)
    return 0;
  return operand.kind == OperandKind::State ? 1 + operand.value
                                            : 1 + int64_t(plan.rules[group.rule].states.size());
}

Version *ProgramCheck::shards(const plan::Operand &operand, const plan::Place &place, Type element,
                              bool writes) {
  const plan::Group &group = groupOf(place.segment);
  const plan::State *state =
      operand.kind == OperandKind::State ? &plan.rules[group.rule].states[operand.value] : nullptr;
  plan::ValueKind kind = state ? state->kind : plan::ValueKind::Full;
  if (writes && operand.kind == OperandKind::Gradients) {
    user->emitOpError("expected writes of parameters and states, because gradients belong to the "
                      "trainer, found one of the gradient");
    return nullptr;
  }
  Version &version = versions.at(place.segment, targetOf(operand, group));
  Type stored = versions.terms.elementOf(version.term);
  if (kind == place.value && stored == element)
    return &version;
  user->emitOpError("expected ") << plan::name(place.value) << " shards of " << element
                                 << ", found " << plan::name(kind) << " shards of " << stored;
  return nullptr;
}

/// Where an operand stands; not yet how.
static Site siteAt(const plan::Operand &operand) {
  Site site{operand.value, operand.bytes};
  site.start = operand.start;
  site.traveller = operand.traveller;
  site.pool = operand.pool;
  site.member = operand.member;
  return site;
}

Site ProgramCheck::blocks(const plan::Operand &operand, int64_t segment, Extents block,
                          Type element) {
  auto place = plan::Place::resting(segment, plan::ValueKind::Full, plan::Distribution::Blocks);
  int64_t size = element.getIntOrFloatBitWidth() / 8;
  need(Need::Blocks, segment, operand.bytes, block.rows * block.cols, size);
  Site site = siteAt(operand);
  site.place = place;
  site.block = block;
  site.element = element;
  return site;
}

Site ProgramCheck::staged(const plan::Operand &operand, const plan::Place &place, Type element,
                          Need::Unit unit, int64_t table) {
  if (place.isBatch()) {
    plan::View view = computedOf(groupOf(place.segment), place.value);
    return blocks(operand, place.segment, {view.rows, view.cols}, element);
  }
  if (!place.isMoving())
    need(unit, table, operand.bytes, 0, element.getIntOrFloatBitWidth() / 8);
  Site site = siteAt(operand);
  site.place = place;
  site.element = element;
  return site;
}

void ProgramCheck::need(Need::Unit unit, int64_t index, int64_t bytes, int64_t elements,
                        int64_t size) {
  facts.needs.push_back({unit, bytes, size, user, index, elements});
}

TableUse &ProgramCheck::use(int64_t table) {
  if (facts.userOf.try_emplace(table, user).second) {
    useIndex[table] = facts.program.uses.size();
    facts.program.uses.push_back({table});
  }
  return facts.program.uses[useIndex[table]];
}

/// What was received is unpacked by `consumer`: a way is complete.
void ProgramCheck::complete(const Held &value, int64_t consumer) {
  if (value.message >= 0 && ways.insert({value.producer, value.message, consumer}).second)
    facts.program.ways.push_back({value.producer, value.message, consumer});
}

Type ProgramCheck::typeOf(plan::DType type) const {
  return optim::toType(user->getContext(), type);
}

//===----------------------------------------------------------------------===//
// Matrix space
//===----------------------------------------------------------------------===//

bool ProgramCheck::batch(const plan::Command &command) {
  int64_t segment = plan.tables[command.tables[0]].from.segment;
  if (isEmpty(segment))
    return true;
  use(command.tables[0]);
  bool isProduct = command.kind == plan::CommandKind::Product;
  const plan::Batch &does = command.batch;
  SmallVector<Term> terms;
  auto siteOf = [&](const plan::Operand &operand) {
    return blocks(operand, segment, {operand.rows, operand.cols}, typeOf(operand.type));
  };
  for (auto [i, operand] : llvm::enumerate(ArrayRef(command.operands).drop_back())) {
    // The addend is read where the result goes, except for the half that is mirrored.
    bool along = isProduct && i == 2 && !does.symmetric;
    Held *value = workspace.read(siteOf(operand), 0, along);
    if (!value)
      return false;
    terms.push_back(value->terms[0]);
  }
  if (does.scratchBytes)
    need(Need::Blocks, segment, plan.scratchBytes, does.scratchBytes, 1);
  const plan::Operand &first = command.operands[0], &out = command.operands.back();
  Extents extents{out.rows, out.cols};
  Term made;
  if (isProduct) {
    Terms::Product product{
        terms[0],          terms[1],     std::nullopt, does.transposeLhs,
        does.transposeRhs, extents.rows, extents.cols, does.transposeLhs ? first.rows : first.cols,
        does.alpha,        does.beta};
    if (terms.size() > 2)
      product.addend = terms[2];
    made = versions.terms.product(product, typeOf(out.type));
    if (does.symmetric && !versions.terms.isSymmetric(made)) {
      user->emitOpError("expected a product that equals its transpose, because half of it is "
                        "mirrored, found one of other matrices");
      return false;
    }
  } else {
    made = versions.terms.reduce(does.reduction, terms[0], {first.rows, first.cols}, extents,
                                 does.exponent);
  }
  return workspace.write({siteOf(out), {made}}, 0);
}

//===----------------------------------------------------------------------===//
// Memory and messages
//===----------------------------------------------------------------------===//

bool ProgramCheck::copy(const plan::Command &command) {
  int64_t index = command.tables[0];
  const plan::Table &table = plan.tables[index];
  const plan::Operand &source = command.operands[0], &target = command.operands[1];
  if (isEmpty(table.from.segment))
    return true;
  use(index);
  const plan::Group &group = groupOf(table.from.segment);
  Type element =
      table.from.isBound()
          ? versions.terms.elementOf(versions.at(table.from.segment, targetOf(source, group)).term)
          : workspace.elementAt(siteAt(source));
  if (!checkSize(table, element))
    return false;
  Term term;
  if (table.from.isBound()) {
    Version *version = shards(source, table.from, element, /*writes=*/false);
    if (!version)
      return false;
    term = version->term;
  } else {
    Held *value =
        workspace.read(staged(source, table.from, element, Need::From, index), 0, /*along=*/false);
    if (!value)
      return false;
    complete(*value, index);
    term = value->terms[0];
  }
  if (!table.to.isBound()) {
    Site site = staged(target, table.to, element, Need::To, index);
    if (leavesZeros(plan, table)) {
      Held *before = workspace.read(site, 0, /*along=*/true);
      if (!before)
        return false;
      term = versions.terms.written(term, before->terms[0]);
    }
    return workspace.write({site, {term}, nullptr, index}, 0);
  }
  Version *version = shards(target, table.to, element, /*writes=*/true);
  if (version)
    *version = {term, user};
  return version;
}

bool ProgramCheck::sum(const plan::Command &command) {
  int64_t index = command.tables[0];
  const plan::Table &table = plan.tables[index];
  const plan::Operand &source = command.operands[0], &target = command.operands[1];
  if (isEmpty(table.from.segment))
    return true;
  use(index);
  Type element = cast<exec::SumOp>(user).getType();
  Held *value =
      workspace.read(staged(source, table.from, element, Need::From, index), 0, /*along=*/false);
  if (!value)
    return false;
  complete(*value, index);
  Term term = versions.terms.sum(value->terms[0], command.index);
  return workspace.write(
      {staged(target, table.to, element, Need::To, index), {term}, nullptr, index}, 0);
}

/// Elements of the size that a table moves. Without a value there is none of any.
bool ProgramCheck::checkSize(const plan::Table &table, Type element) {
  if (element && element.getIntOrFloatBitWidth() == table.elementBytes * 8)
    return true;
  auto diag = user->emitOpError("expected to move elements of ")
              << table.elementBytes << " bytes, ";
  if (element)
    diag << "found " << element;
  else
    diag << "found no value written where it moves from";
  return false;
}

bool ProgramCheck::start(const plan::Command &command) {
  const plan::Operand &source = command.operands[0], &target = command.operands[1];
  int64_t number = started++;
  std::vector<Held> arriving;
  for (auto [i, index] : llvm::enumerate(command.tables)) {
    const plan::Table &table = plan.tables[index];
    if (isEmpty(table.from.segment))
      continue;
    auto traveller = int64_t(i);
    Type element =
        workspace.elementAt({.offset = source.value, .start = number, .traveller = traveller});
    if (!checkSize(table, element))
      return false;
    auto siteOf = [&](const plan::Operand &buffer, const plan::Place &place) {
      return Site{buffer.value, buffer.bytes, place, {0, 0}, -1, 1, element, number, traveller};
    };
    Held *value = workspace.read(siteOf(source, table.from), 0, /*along=*/false);
    if (!value)
      return false;
    value->flight = number;
    value->carrier = user;
    arriving.push_back({siteOf(target, table.to), value->terms, nullptr, value->producer, index});
    facts.userOf.try_emplace(index, user);
  }
  need(Need::Sent, number, source.bytes, 0, 1);
  need(Need::Received, number, target.bytes, 0, 1);
  for (Held &value : arriving) {
    Held *made = workspace.write(std::move(value), 0);
    if (!made)
      return false;
    made->flight = number;
    made->carrier = user;
  }
  return true;
}
