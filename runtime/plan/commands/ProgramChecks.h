//===- ProgramChecks.h - What the checks of commands share ------*- C++ -*-===//
//
// Internal to the plan. A program that passes names tables, groups, kernels and states that are there, stays
// in the workspace, and awaits each collective once, after its start. The verifier proves what kernels
// compute.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_COMMANDS_PROGRAMCHECKS_H
#define STEPC_RUNTIME_PLAN_COMMANDS_PROGRAMCHECKS_H

#include "runtime/plan/Checks.h"

#include <concepts>

namespace stepc::plan {

/// Checks a program command by command. Each function says what is wrong, or nothing.
class ProgramChecks {
public:
  explicit ProgramChecks(const Plan &plan);

  /// `which` becomes the command that is wrong.
  Check run(int64_t &which);

  /// Whether a kernel exists, and is called as by earlier commands. A kernel is code for one way to be
  /// called: a command that calls it otherwise names a wrong one. `call` lists what tells ways apart.
  Check kernel(KernelNumber kernel, std::vector<int64_t> call = {});
  /// As `kernel`, for a command that has one on some devices only.
  Check optionalKernel(KernelNumber kernel, std::vector<int64_t> call = {});
  /// Whether a table exists and is of that kind.
  Check table(TableNumber table, TableKind kind) const;
  /// Operands of a command on a group. `shards`: of which the command visits elements, or null.
  Check operand(const Operand &operand, const Group &group, const Place *shards) const;
  /// What travels with a start, and batches in pools: whether an operand that stands there names that.
  /// `blockBytes`: the size of a block to the command; -1 where that is not in the plan.
  Check placed(const Operand &operand, const Place &place, int64_t blockBytes) const;
  Check pooled(const Operand &operand, const Place &place, int64_t blockBytes) const;
  Check inWorkspace(int64_t offset, int64_t bytes) const;
  /// The two sides of a copy or a sum.
  Check side(const Operand &operand, const Place &place, int64_t elementBytes) const;
  /// Numbers the next start, and notes an await.
  void begin() { ++started; }
  Check await(StartNumber start, bool hasKernel);

  const Group &groupOf(TableNumber table) const {
    return at(plan.groups, at(plan.segments, at(plan.tables, table).from.segment).group);
  }
  static Check ofKind(std::string_view expected, TableKind found);

  const Plan &plan;

private:
  Check packed(const Operand &operand, const Place &place) const;
  Check command(const Command &command);

  std::vector<const Start *> starts;
  int64_t started = 0;
  int64_t kind = 0; // of the command at hand
  std::vector<bool> awaited;
  std::vector<std::vector<int64_t>> calls; // by kernel: how it is called
};

} // namespace stepc::plan

#endif
