//===- Moves.cpp - Copies and sums on one rank ----------------------------===//

#include "runtime/plan/commands/ProgramChecks.h"

namespace stepc::plan {

template <typename Move>
static Check checkMove(const Move &move, TableKind kind, ProgramChecks &checks) {
  if (Check wrong = checks.table(move.table, kind); !wrong.empty())
    return wrong;
  const Table &table = at(checks.plan.tables, move.table);
  if (Check wrong = checks.side(move.source, table.from, table.elementBytes); !wrong.empty())
    return wrong;
  if (Check wrong = checks.side(move.target, table.to, table.elementBytes); !wrong.empty())
    return wrong;
  return checks.optionalKernel(move.kernel);
}

template <typename Move> static void listMove(const Plan &plan, const Move &move, Effects &list) {
  int64_t bytes = at(plan.tables, move.table).elementBytes;
  list.push_back({&move.source, 0, Access::Reads, Effect::From, move.table, {}, 0, bytes});
  list.push_back({&move.target, 1, Access::Writes, Effect::To, move.table, {}, 0, bytes});
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
  int64_t bytes = at(checks.plan.tables, table).elementBytes;
  return byteSize(type) == bytes ? Check()
                                 : "expected elements of " + std::to_string(bytes) +
                                       " bytes, as its table has, found " + std::string(name(type));
}
void Sum::effects(const Plan &plan, Effects &list) const { listMove(plan, *this, list); }

} // namespace stepc::plan
