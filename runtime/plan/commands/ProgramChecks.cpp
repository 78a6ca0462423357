//===- ProgramChecks.cpp - What makes a program safe to walk --------------===//

#include "runtime/plan/commands/ProgramChecks.h"
#include "runtime/geometry/Geometry.h"
#include "runtime/plan/Tables.h"

namespace stepc::plan {

std::string_view describe(OperandKind kind) {
  constexpr std::string_view texts[] = {"a part of the workspace",
                                        "scalars",
                                        "parameters",
                                        "gradients",
                                        "a state",
                                        "a line",
                                        "a batch"};
  return isKnown(kind) ? texts[static_cast<size_t>(kind)] : "an unknown operand";
}

State Operand::elements(const Plan &plan, const Group &group) const {
  if (kind == OperandKind::State)
    return at(at(plan.rules, group.rule).states, value);
  return {"", kind == OperandKind::Gradients ? group.gradientType : group.parameterType};
}

ProgramChecks::ProgramChecks(const Plan &plan)
    : plan(plan), starts(plan.starts()), awaited(starts.size()), calls(plan.kernels.size()) {}

Check ProgramChecks::run(int64_t &which) {
  for (which = 0; which < static_cast<int64_t>(plan.commands.size()); ++which) {
    const Command &each = at(plan.commands, which);
    number = which;
    if (Check wrong = command(each); !wrong.empty())
      return "command " + std::to_string(which) + " (" + std::string(name(each)) + "): " + wrong;
  }
  --which;
  for (size_t i = 0; i < awaited.size(); ++i)
    if (!awaited[i])
      return "expected each collective to be awaited, found that number " + std::to_string(i) +
             " never is";
  for (size_t i = 0; i < plan.commands.size(); ++i)
    if (std::holds_alternative<AdvanceSteps>(plan.commands[i]) != (i + 1 == plan.commands.size()))
      return "expected the last command, and no other, to advance the step counts, found "
             "command " +
             std::to_string(i);
  if (plan.commands.empty())
    return "expected commands, found none";
  // Where kernels count steps, the host knows neither counts nor conditions.
  for (const Command &each : plan.commands)
    if (const auto *skip = std::get_if<Skip>(&each);
        skip &&
        skip->kernel.isNone() != std::get<AdvanceSteps>(plan.commands.back()).kernel.isNone())
      return "expected a kernel that skips steps exactly if a kernel counts them";
  for (const Kernel &kernel : plan.kernels)
    if (Check wrong = kernel.launch ? checkLaunch(*kernel.launch) : Check(); !wrong.empty())
      return "kernel " + kernel.name + ": " + wrong;
  for (size_t i = 0; i < calls.size(); ++i)
    if (calls[i].empty())
      return "expected each kernel to be called by some command, found that kernel " +
             plan.kernels[i].name + " is by none";
  return {};
}

Check ProgramChecks::command(const Command &command) {
  kind = static_cast<int64_t>(command.index());
  return std::visit([&](const auto &each) { return each.check(*this); }, command);
}

Check ProgramChecks::kernel(KernelNumber kernel, std::vector<int64_t> call) {
  if (!inside(kernel, plan.kernels))
    return outside("kernel", kernel, plan.kernels);
  call.insert(call.begin(), kind);
  std::vector<int64_t> &known = calls[static_cast<size_t>(kernel.value)];
  if (known.empty())
    known = call;
  return known == call
             ? Check()
             : "expected kernel " + at(plan.kernels, kernel).name +
                   " to be called as by an earlier command, found other items or operands";
}

Check ProgramChecks::optionalKernel(KernelNumber kernel, std::vector<int64_t> call) {
  return kernel == -1 ? Check() : this->kernel(kernel, std::move(call));
}

Check ProgramChecks::ofKind(std::string_view expected, TableKind found) {
  return "expected a table of kind " + std::string(expected) + ", found one of " +
         std::string(name(found));
}

Check ProgramChecks::table(TableNumber table, TableKind kind) const {
  if (!inside(table, plan.tables))
    return outside("table", table, plan.tables);
  TableKind found = at(plan.tables, table).kind;
  return found == kind ? Check() : ofKind(name(kind), found);
}

Check ProgramChecks::inWorkspace(int64_t offset, int64_t bytes) const {
  int64_t all = plan.workspaceBytes();
  if (offset < 0 || bytes < 0 || bytes > all || offset > all - bytes)
    return "expected operands inside of the workspace of " + std::to_string(all) +
           " bytes, found " + std::to_string(bytes) + " bytes from byte " + std::to_string(offset);
  if (offset % kAlignment)
    return "expected operands at multiples of " + std::to_string(kAlignment) +
           " bytes, found one at byte " + std::to_string(offset);
  return {};
}

Check ProgramChecks::operand(const Operand &operand, const Group &group,
                             const Place *shards) const {
  if (operand.pool != -1 && operand.kind != OperandKind::Workspace)
    return "expected no pool of what is no batch, found pool " + std::to_string(operand.pool);
  switch (operand.kind) {
  case OperandKind::Workspace:
  case OperandKind::Line:
    return inWorkspace(operand.value, operand.bytes);
  case OperandKind::Batch:
    return "expected what chunks and parameters have, found a batch, which is for products and "
           "functions of blocks";
  case OperandKind::Scalars: {
    auto rows = static_cast<int64_t>(group.parameters.size());
    if (operand.bytes < 0 || (rows > 0 && operand.bytes > plan.workspaceBytes() / rows))
      return "expected scalars that fit in the workspace of " +
             std::to_string(plan.workspaceBytes()) + " bytes, found " +
             std::to_string(operand.bytes) + " bytes for each of " + std::to_string(rows) +
             " parameters";
    return inWorkspace(operand.value, operand.bytes * rows);
  }
  case OperandKind::State: {
    const Rule &rule = at(plan.rules, group.rule);
    if (!inside(operand.value, rule.states))
      return outside("state", operand.value, rule.states);
    if (!stateExists(group, at(rule.states, operand.value)))
      return "expected a state that group " + group.name + " has, found " +
             at(rule.states, operand.value).name;
    [[fallthrough]];
  }
  case OperandKind::Parameters:
  case OperandKind::Gradients:
    if (!shards)
      return "expected no shards, because it visits none of their elements, found those of the " +
             std::string(name(operand.whose(group)));
    return shardsOf(group, operand.whose(group)) == shards->from
               ? Check()
               : "expected shards that stand in " + name(shards->from) + ", found those of the " +
                     std::string(name(operand.whose(group)));
  }
  return unknown("a kind of operand", operand.kind);
}

Check ProgramChecks::placed(const Operand &operand, const Place &place, int64_t blockBytes) const {
  Check wrong = packed(operand, place);
  return wrong.empty() ? pooled(operand, place, blockBytes) : wrong;
}

Check ProgramChecks::pooled(const Operand &operand, const Place &place, int64_t blockBytes) const {
  if (operand.pool == -1)
    return {};
  if (!inside(operand.pool, plan.pools))
    return outside("pool", operand.pool, plan.pools);
  const Pool &pool = at(plan.pools, operand.pool);
  if (!inside(operand.member, pool.members))
    return outside("member of pool " + std::to_string(operand.pool), operand.member, pool.members);
  const Pool::Batch &member = at(pool.members, operand.member);
  if (place.isBatch() && place.segment == member.segment &&
      (blockBytes == -1 || blockBytes == member.blockBytes) && operand.value == pool.offset &&
      operand.bytes == pool.bytes)
    return {};
  return "expected member " + std::to_string(operand.member) + " of pool " +
         std::to_string(operand.pool) + " in that pool, found another";
}

/// Checks that an operand of a packed place names the start with which the place's value travels.
Check ProgramChecks::packed(const Operand &operand, const Place &place) const {
  if (!place.isMoving())
    return operand.start == -1 ? Check()
                               : "expected no start of what is not packed, found start " +
                                     std::to_string(operand.start);
  if (!inside(operand.start, starts))
    return outside("start", operand.start, starts);
  const Start &start = *at(starts, operand.start);
  if (!inside(operand.traveller, start.tables))
    return outside("value of start " + std::to_string(operand.start), operand.traveller,
                   start.tables);
  const Table &travels = at(plan.tables, at(start.tables, operand.traveller));
  bool received = place.end == End::Received;
  const Operand &buffer = received ? start.received : start.sent;
  if (place == (received ? travels.to : travels.from) && buffer.value == operand.value &&
      buffer.bytes == operand.bytes)
    return {};
  return "expected value " + std::to_string(operand.traveller) + " of start " +
         std::to_string(operand.start) + " in that start's buffer, found another";
}

Check ProgramChecks::side(const Operand &operand, const Place &place, int64_t elementBytes) const {
  const Group &group = at(plan.groups, at(plan.segments, place.segment).group);
  if ((operand.kind == OperandKind::Workspace) == place.isBound())
    return std::string("expected ") +
           (place.isBound() ? "shards where its table has shards"
                            : "a part of the workspace where its table has no shards") +
           ", found " + std::string(describe(operand.kind));
  if (Check wrong = this->operand(operand, group, place.isBound() ? &place : nullptr);
      !wrong.empty())
    return wrong;
  if (!place.isBound()) {
    View view = computedView(group, place.value);
    return placed(operand, place, view.rows * view.cols * elementBytes);
  }
  State of = operand.elements(plan, group);
  if (byteSize(of.dtype) == elementBytes && of.kind == place.value)
    return {};
  return "expected " + std::string(name(place.value)) + " elements of " +
         std::to_string(elementBytes) + " bytes, as its table has, found the " +
         std::string(name(operand.whose(group))) + "'s: " + std::string(name(of.kind)) + " of " +
         std::string(name(of.dtype));
}

Check ProgramChecks::await(StartNumber start, bool hasKernel) {
  if (start < 0 || start >= started)
    return "expected a collective that is under way, found number " + std::to_string(start);
  auto number = static_cast<size_t>(start.value);
  if (awaited[number])
    return "expected each collective to be awaited once, found number " + std::to_string(number) +
           " again";
  if ((starts[number]->kernel == -1) == hasKernel)
    return "expected a kernel exactly where its start has one";
  awaited[number] = true;
  return {};
}

std::string validateProgram(const Plan &plan, int64_t *command) {
  int64_t which = 0;
  std::string wrong = ProgramChecks(plan).run(which);
  if (command)
    *command = which;
  return wrong;
}

} // namespace stepc::plan
