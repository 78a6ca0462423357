//===- Dispatch.h - Kernels over chunks and over parameters -----*- C++ -*-===//
#ifndef STEPC_RUNTIME_PLAN_COMMANDS_DISPATCH_H
#define STEPC_RUNTIME_PLAN_COMMANDS_DISPATCH_H

#include "runtime/plan/commands/Effect.h"

namespace stepc::plan {

class ProgramChecks;

/// Runs a kernel over the chunks of tables. All runs have operands of the same kinds.
struct DispatchChunks {
  static constexpr std::string_view kName = "chunks";
  struct Run {
    TableNumber table;
    std::vector<Operand> operands;

    template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
      visit("table", self.table);
      visit("operands", self.operands);
    }
  };
  KernelNumber kernel;
  std::vector<Run> runs;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("kernel", self.kernel);
    visit("runs", self.runs);
  }
  std::string check(ProgramChecks &) const;
  void effects(const Plan &, Effects &) const;
};

/// Runs a kernel over the parameters of groups, whose scalars it writes. Behind the table of scalars, the
/// operands of a group are numbers of the model that the kernel reads.
struct DispatchParameters {
  static constexpr std::string_view kName = "parameters";
  struct Run {
    GroupNumber group;
    std::vector<Operand> operands;

    template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
      visit("group", self.group);
      visit("operands", self.operands);
    }
  };
  KernelNumber kernel;
  std::vector<Run> runs;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("kernel", self.kernel);
    visit("runs", self.runs);
  }
  std::string check(ProgramChecks &) const;
  void effects(const Plan &, Effects &) const;
};

/// Leaves all parameters out of the rest of the step if a number of f32 in the workspace is not 0. Some
/// devices have a kernel for that, because the host does not know the number.
struct Skip {
  static constexpr std::string_view kName = "skip";
  KernelNumber kernel;
  Operand value;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("kernel", self.kernel);
    visit("value", self.value);
  }
  std::string check(ProgramChecks &) const;
  void effects(const Plan &, Effects &) const;
};

/// Adds 1 to the step counts of all parameters that the step did not skip. Some devices have a kernel for
/// that.
struct AdvanceSteps {
  static constexpr std::string_view kName = "advance_steps";
  KernelNumber kernel;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("kernel", self.kernel);
  }
  std::string check(ProgramChecks &) const;
  void effects(const Plan &, Effects &) const {}
};

} // namespace stepc::plan

#endif
