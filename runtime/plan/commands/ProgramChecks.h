//===- ProgramChecks.h - What the checks of commands share ------*- C++ -*-===//
//
// Internal to the plan. A program that passes names only tables, groups, kernels and states that exist. It
// stays in the workspace, and awaits each collective once, after its start. The verifier proves what
// kernels compute.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_PLAN_COMMANDS_PROGRAMCHECKS_H
#define STEPC_RUNTIME_PLAN_COMMANDS_PROGRAMCHECKS_H

#include "runtime/plan/Checks.h"

#include <concepts>

namespace stepc::plan {

/// Checks a program command by command. Each function returns what is wrong, or an empty string.
class ProgramChecks {
public:
  explicit ProgramChecks(const Plan &plan);

  /// Checks all commands. Sets `which` to the number of the command that is wrong.
  Check run(int64_t &which);

  /// Checks that a kernel exists and is called as earlier commands call it, because its code fits one way
  /// of calling. `call` is a list of numbers that differs between ways.
  Check kernel(KernelNumber kernel, std::vector<int64_t> call = {});
  /// Like `kernel`, for commands that have a kernel on some devices only.
  Check optionalKernel(KernelNumber kernel, std::vector<int64_t> call = {});
  /// Whether a table exists and is of that kind.
  Check table(TableNumber table, TableKind kind) const;
  /// Checks an operand of a command on a group. `shards` are the shards whose elements the command visits,
  /// or null.
  Check operand(const Operand &operand, const Group &group, const Place *shards) const;
  /// `placed` checks that an operand names the start with which a packed value travels, and its pool;
  /// `pooled` checks the pool alone. `blockBytes` is the size of a block in the command, or -1 if the plan
  /// does not say it.
  Check placed(const Operand &operand, const Place &place, int64_t blockBytes) const;
  Check pooled(const Operand &operand, const Place &place, int64_t blockBytes) const;
  Check inWorkspace(int64_t offset, int64_t bytes) const;
  /// Checks one side of a copy or a sum.
  Check side(const Operand &operand, const Place &place, int64_t elementBytes) const;
  /// `begin` counts a start; `await` checks and records the await of a start.
  void begin() { ++started; }
  Check await(StartNumber start, bool hasKernel);

  const Group &groupOf(TableNumber table) const {
    return at(plan.groups, at(plan.segments, at(plan.tables, table).from.segment).group);
  }
  static Check ofKind(std::string_view expected, TableKind found);

  const Plan &plan;
  int64_t number = 0; ///< of the command that is being checked

private:
  Check packed(const Operand &operand, const Place &place) const;
  Check command(const Command &command);

  std::vector<const Start *> starts;
  int64_t started = 0;
  int64_t kind = 0; // of the command that is being checked
  std::vector<bool> awaited;
  std::vector<std::vector<int64_t>> calls; // by kernel: how it is called
};

} // namespace stepc::plan

#endif
