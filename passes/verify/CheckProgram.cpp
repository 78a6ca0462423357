//===- CheckProgram.cpp - Commands compute what the rules say --------------===//
//
// Runs the commands of level 5 (`exec`) on terms. Each value in the workspace, and each version of the
// shards, is a term: the expression that computed it. A kernel is run by evaluating its function on terms. At
// the end the shards must hold what the rules yield.
//
//===----------------------------------------------------------------------===//

#include "passes/verify/CheckProgram.h"

#include "dialects/exec/Exec.h"
#include "runtime/sums/Parts.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;
using plan::OperandKind;

ProgramCheck::ProgramCheck(const plan::Plan &plan, ModuleOp module, EffectsOf effectsOf)
    : plan(plan), module(module), effectsOf(std::move(effectsOf)), symbols(module),
      versions(plan, module), workspace(plan.arenaBytes) {}

LogicalResult ProgramCheck::run(ArrayRef<Operation *> commands) {
  for (auto [command, op] : llvm::zip_equal(plan.commands, commands)) {
    user = op;
    workspace.advance(op);
    accesses.clear();
    usesScratch = false;
    if (!std::visit([&](const auto &each) { return execute(each); }, command) ||
        !checkEffects(command))
      return failure();
  }
  if (versions.skipped() && !hasSkipped)
    return user->emitOpError("expected a command before it that skips the step when the model says "
                             "so, found none");
  return success(workspace.checkAllRead() && succeeded(versions.checkAllBlocks(module)) &&
                 succeeded(versions.check()));
}

bool ProgramCheck::execute(const plan::Await &command) {
  workspace.land(command.start);
  return true;
}

bool ProgramCheck::execute(const plan::AdvanceSteps &) { return true; }

/// Effects are an upper bound of what a command does to memory. The runtime and the simulator rely on this
/// bound, so a command that does more is refused. The proof uses effects for nothing else.
bool ProgramCheck::checkEffects(const plan::Command &command) {
  llvm::DenseMap<const plan::Operand *, Accesses> declared;
  bool declaresScratch = false, declaresFlight = false;
  for (const plan::Effect &effect :
       effectsOf ? effectsOf(plan, command) : plan::effects(plan, command)) {
    declaresScratch |= !effect.operand;
    declaresFlight |= effect.isInFlight();
    Accesses &all = declared[effect.operand];
    all.reads |= effect.reads();
    all.writes |= effect.writes();
  }
  auto refuse = [&](const char *what) {
    user->emitOpError("expected effects that name all that the command does, found that it ")
        << what;
    return false;
  };
  for (auto [operand, found] : accesses) {
    Accesses said = declared.lookup(operand);
    if (found.reads && !said.reads)
      return refuse("reads an operand that they do not say to be read");
    if (found.writes && !said.writes)
      return refuse("writes an operand that they do not say to be written");
  }
  if (usesScratch && !declaresScratch)
    return refuse("uses scratch that they do not name");
  if (std::holds_alternative<plan::Start>(command) && !declaresFlight)
    return refuse("leaves memory in flight that they do not say to be");
  return true;
}

Held *ProgramCheck::read(const plan::Operand &operand, const Site &site, int64_t table,
                         bool along) {
  accesses[&operand].reads = true;
  return workspace.read(site, table, along);
}

Held *ProgramCheck::write(const plan::Operand &operand, Held value, int64_t table) {
  accesses[&operand].writes = true;
  return workspace.write(std::move(value), table);
}

//===----------------------------------------------------------------------===//
// What commands read and write
//===----------------------------------------------------------------------===//

const plan::Group &ProgramCheck::groupOf(int64_t segment) const {
  return plan.groups[plan.segments[segment].group];
}

/// Commands do nothing on a segment without blocks, so they are not checked there.
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
  if (writes && !checkSkipped(group))
    return nullptr;
  (writes ? accesses[&operand].writes : accesses[&operand].reads) = true;
  Version &version = versions.at(place.segment, targetOf(operand, group));
  Type stored = versions.terms.elementOf(version.term);
  if (kind == place.value && stored == element)
    return &version;
  user->emitOpError("expected ") << plan::name(place.value) << " shards of " << element
                                 << ", found " << plan::name(kind) << " shards of " << stored;
  return nullptr;
}

/// A site at the operand's bytes. The caller sets its layout: place, extents and type.
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

/// Notes a way if the value was received: table `consumer` unpacks it.
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

Site ProgramCheck::batchSite(const plan::MatrixCommand &command, const plan::Operand &operand) {
  return blocks(operand, plan.tables[command.table].from.segment, {operand.rows, operand.cols},
                typeOf(operand.type));
}

/// Returns the terms that a command on computed blocks reads, or nullopt after an error.
std::optional<SmallVector<Term>>
ProgramCheck::readBatches(const plan::MatrixCommand &command,
                          ArrayRef<const plan::Operand *> operands) {
  use(command.table);
  SmallVector<Term> terms;
  for (const plan::Operand *operand : operands) {
    Held *value = read(*operand, batchSite(command, *operand), 0, /*along=*/false);
    if (!value)
      return std::nullopt;
    terms.push_back(value->terms[0]);
  }
  if (command.scratchBytes) {
    usesScratch = true;
    need(Need::Blocks, plan.tables[command.table].from.segment, plan.scratchBytes,
         command.scratchBytes, 1);
  }
  return terms;
}

bool ProgramCheck::execute(const plan::Product &command) {
  if (isEmpty(plan.tables[command.table].from.segment))
    return true;
  std::optional<SmallVector<Term>> terms = readBatches(command, {&command.lhs, &command.rhs});
  if (!terms)
    return false;
  auto [m, n, k] = command.sizes();
  Terms::Product product{
      (*terms)[0], (*terms)[1], std::nullopt,  command.transposeLhs, command.transposeRhs, m,
      n,           k,           command.alpha, command.beta};
  if (command.addend) {
    // Element (r, c) of the addend is read for element (r, c) of the result, so both may share bytes. A
    // symmetric product also writes element (c, r), so its addend may not.
    Held *value = read(*command.addend, batchSite(command, *command.addend), 0, !command.symmetric);
    if (!value)
      return false;
    product.addend = value->terms[0];
  }
  product.shift = command.shift;
  product.isMirrored = command.symmetric;
  Term made = versions.terms.product(product, typeOf(command.out.type));
  return write(command.out, {batchSite(command, command.out), {made}}, 0);
}

bool ProgramCheck::execute(const plan::Apply &command) {
  if (isEmpty(plan.tables[command.table].from.segment))
    return true;
  SmallVector<const plan::Operand *> sources;
  SmallVector<Extents> extents;
  for (const plan::Operand &source : command.sources) {
    sources.push_back(&source);
    extents.push_back({source.rows, source.cols});
  }
  std::optional<SmallVector<Term>> terms = readBatches(command, sources);
  if (!terms)
    return false;
  const plan::Operand &out = command.out;
  Term made = versions.terms.apply(cast<exec::ApplyOp>(user).getFunction(), *terms, extents,
                                   {out.rows, out.cols}, typeOf(out.type));
  return write(out, {batchSite(command, out), {made}}, 0);
}

//===----------------------------------------------------------------------===//
// Memory and messages
//===----------------------------------------------------------------------===//

bool ProgramCheck::execute(const plan::Copy &command) {
  int64_t index = command.table;
  const plan::Table &table = plan.tables[index];
  const plan::Operand &source = command.source, &target = command.target;
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
        read(source, staged(source, table.from, element, Need::From, index), 0, /*along=*/false);
    if (!value)
      return false;
    complete(*value, index);
    term = value->terms[0];
  }
  if (!table.to.isBound()) {
    Site site = staged(target, table.to, element, Need::To, index);
    if (leavesZeros(plan, table)) {
      // The command does not read here. The proof does, because the table leaves some elements as they are.
      Held *before = workspace.read(site, 0, /*along=*/true);
      if (!before)
        return false;
      term = versions.terms.written(term, before->terms[0]);
    }
    return write(target, {site, {term}, nullptr, index}, 0);
  }
  Version *version = shards(target, table.to, element, /*writes=*/true);
  if (version)
    *version = {term, user};
  return version;
}

bool ProgramCheck::execute(const plan::Sum &command) {
  int64_t index = command.table;
  const plan::Table &table = plan.tables[index];
  if (isEmpty(table.from.segment))
    return true;
  use(index);
  Type element = typeOf(command.type), read = element;
  if (command.reduction)
    read = comm::lineSumsType(user->getContext(), *command.reduction,
                              table.elementBytes / sums::bytesOf(*command.reduction));
  Held *value =
      this->read(command.source, staged(command.source, table.from, read, Need::From, index), 0,
                 /*along=*/false);
  if (!value)
    return false;
  complete(*value, index);
  Term term = command.reduction
                  ? versions.terms.finish(value->terms[0], *command.reduction, command.divisor)
                  : versions.terms.sum(value->terms[0], command.divisor);
  return write(command.target,
               {staged(command.target, table.to, element, Need::To, index), {term}, nullptr, index},
               0);
}

bool ProgramCheck::execute(const plan::Collect &command) {
  if (hasSkipped) {
    user->emitOpError("expected sums of the whole model before the step may be skipped, because a "
                      "skipped step leaves all parts out, found one behind that");
    return false;
  }
  Type element = comm::lineSumsType(user->getContext(), command.reduction, /*count=*/1);
  std::vector<std::pair<int64_t, Term>> parts;
  for (auto [index, run] : llvm::enumerate(command.runs)) {
    const plan::Table &table = plan.tables[run.table];
    if (isEmpty(table.from.segment))
      continue;
    use(run.table);
    need(Need::From, run.table, run.source.bytes, 0, table.elementBytes);
    Site site{.offset = run.source.value, .bytes = run.source.bytes, .place = table.from};
    site.element = element;
    Held *value = read(run.source, site, int64_t(index), /*along=*/false);
    if (!value)
      return false;
    parts.push_back({table.from.segment, value->terms[0]});
  }
  Term term = versions.terms.collected(command.reduction, parts, element);
  Site site = siteOfModel(command.target, plan::Distribution::LineParts, element);
  return write(command.target, {site, {term}}, 0);
}

Site ProgramCheck::siteOfModel(const plan::Operand &operand, plan::Distribution in,
                               Type element) const {
  Site site{.offset = operand.value, .bytes = operand.bytes};
  site.place = plan::Place::kept(segmentOfModel(), plan::ValueKind::One, in);
  site.element = element;
  return site;
}

bool ProgramCheck::execute(const plan::Skip &command) {
  std::optional<Term> wanted = versions.skipped();
  if (!wanted || hasSkipped) {
    user->emitOpError(hasSkipped ? "expected one such command in a step, found another"
                                 : "expected a model that skips steps, found one that does not");
    return false;
  }
  hasSkipped = true;
  Type f32 = Float32Type::get(module.getContext());
  Held *value = read(command.value, siteOfModel(command.value, plan::Distribution::Shards, f32), 0,
                     /*along=*/false);
  if (!value)
    return false;
  if (value->terms[0] == *wanted)
    return true;
  auto [inModel, inStep] = versions.terms.findDifference(*wanted, value->terms[0]);
  user->emitOpError("expected to skip the step when the model says so, with ")
      << versions.terms.describe(inModel) << ", found " << versions.terms.describe(inStep)
      << " in its place";
  return false;
}

bool ProgramCheck::checkSkipped(const plan::Group &group) {
  bool isOfModel = plan.isOfModel(group);
  if (!versions.skipped() || hasSkipped != isOfModel)
    return true;
  if (isOfModel)
    user->emitOpError("expected changes of the model's states before the step may be skipped, "
                      "because a skipped step also has them, found one behind that");
  else
    user->emitOpError("expected no change of parameters and states before the step may be "
                      "skipped, found one");
  return false;
}

/// Checks that `element` has the size that the table moves. A null type means that no value was found.
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

bool ProgramCheck::execute(const plan::Start &command) {
  const plan::Operand &source = command.sent, &target = command.received;
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
    Held *value = read(source, siteOf(source, table.from), 0, /*along=*/false);
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
    Held *made = write(target, std::move(value), 0);
    if (!made)
      return false;
    made->flight = number;
    made->carrier = user;
  }
  return true;
}
