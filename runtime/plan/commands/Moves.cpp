//===- Moves.cpp - Copies and sums on one rank ----------------------------===//

#include "runtime/plan/commands/ProgramChecks.h"
#include "runtime/sums/Parts.h"

namespace stepc::plan {

/// The bytes of an element that a move reads, and of one that it writes.
static std::pair<int64_t, int64_t> bytesOf(const Plan &plan, const Copy &move) {
  int64_t bytes = at(plan.tables, move.table).elementBytes;
  return {bytes, bytes};
}
static std::pair<int64_t, int64_t> bytesOf(const Plan &plan, const Sum &move) {
  int64_t bytes = at(plan.tables, move.table).elementBytes;
  return {bytes, move.reduction ? byteSize(DType::F32) : bytes};
}

template <typename Move>
static Check checkMove(const Move &move, TableKind kind, ProgramChecks &checks) {
  if (Check wrong = checks.table(move.table, kind); !wrong.empty())
    return wrong;
  const Table &table = at(checks.plan.tables, move.table);
  auto [read, written] = bytesOf(checks.plan, move);
  if (Check wrong = checks.side(move.source, table.from, read); !wrong.empty())
    return wrong;
  if (Check wrong = checks.side(move.target, table.to, written); !wrong.empty())
    return wrong;
  return checks.optionalKernel(move.kernel);
}

template <typename Move> static void listMove(const Plan &plan, const Move &move, Effects &list) {
  auto [read, written] = bytesOf(plan, move);
  list.push_back({&move.source, 0, Access::Reads, Effect::From, move.table, {}, 0, read});
  list.push_back({&move.target, 1, Access::Writes, Effect::To, move.table, {}, 0, written});
}

std::string Copy::check(ProgramChecks &checks) const {
  return checkMove(*this, TableKind::Copy, checks);
}
void Copy::effects(const Plan &plan, Effects &list) const { listMove(plan, *this, list); }

std::string Sum::check(ProgramChecks &checks) const {
  if (divisor < 1)
    return "expected a divisor of 1 or more, found " + std::to_string(divisor);
  if (Check wrong = checkMove(*this, TableKind::Sum, checks); !wrong.empty())
    return wrong;
  const Table &rows = at(checks.plan.tables, table);
  if (reduction.has_value() != (rows.from.from == Distribution::LineParts))
    return "expected a reduction where parts of lines are added up, and there alone";
  int64_t bytes = rows.elementBytes;
  if (reduction) {
    if (!isKnown(*reduction))
      return "expected a known reduction, found another";
    int64_t each = sums::bytesOf(*reduction);
    return type == DType::F32 && bytes % each == 0
               ? Check()
               : "expected sums of " + std::to_string(each) + " bytes that become f32, found " +
                     std::to_string(bytes) + " bytes and " + std::string(name(type));
  }
  return byteSize(type) == bytes ? Check()
                                 : "expected elements of " + std::to_string(bytes) +
                                       " bytes, as its table has, found " + std::string(name(type));
}
void Sum::effects(const Plan &plan, Effects &list) const { listMove(plan, *this, list); }

std::string Collect::check(ProgramChecks &checks) const {
  const Plan &plan = checks.plan;
  if (plan.model < 0)
    return "expected a plan of a specification with a model, found another";
  if (!isKnown(reduction))
    return "expected a known reduction, found another";
  int64_t bytes = sums::bytesOf(reduction);
  const Group &group = at(plan.groups, plan.groupOfModel());
  auto isHere = [](const Operand &operand) { return operand.kind == OperandKind::Line; };
  for (const Run &run : runs) {
    if (Check wrong = checks.table(run.table, TableKind::Collect); !wrong.empty())
      return wrong;
    if (int64_t found = at(plan.tables, run.table).elementBytes; found != bytes)
      return "expected sums of " + std::to_string(bytes) + " bytes, found " + std::to_string(found);
    if (!isHere(run.source))
      return "expected parts in the workspace, found " + std::string(describe(run.source.kind));
    if (Check wrong = checks.operand(run.source, checks.groupOf(run.table), nullptr);
        !wrong.empty())
      return wrong;
  }
  if (!isHere(target) || target.bytes < bytes)
    return "expected a target of a line with " + std::to_string(bytes) + " bytes, found another";
  if (Check wrong = checks.operand(target, group, nullptr); !wrong.empty())
    return wrong;
  return checks.optionalKernel(kernel);
}

void Collect::effects(const Plan &, Effects &list) const {
  for (size_t k = 0; k < runs.size(); ++k) {
    Effect effect{&runs[k].source, static_cast<int64_t>(k), Access::Reads};
    effect.table = runs[k].table;
    list.push_back(effect);
  }
  list.push_back({&target, static_cast<int64_t>(runs.size()), Access::Writes});
}

} // namespace stepc::plan
