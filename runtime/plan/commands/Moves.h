//===- Moves.h - Copies and sums on one rank --------------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_PLAN_COMMANDS_MOVES_H
#define STEPC_RUNTIME_PLAN_COMMANDS_MOVES_H

#include "runtime/plan/commands/Effect.h"

namespace stepc::plan {

class ProgramChecks;

/// Copies the rows of a table. Some devices have a kernel for that.
struct Copy {
  static constexpr std::string_view kName = "copy";
  TableNumber table;
  Operand source, target;
  KernelNumber kernel;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("kernel", self.kernel);
    visit("table", self.table);
    visit("source", self.source);
    visit("target", self.target);
  }
  std::string check(ProgramChecks &) const;
  void effects(const Plan &, Effects &) const;
};

/// Adds up the contributions of a table's rows in f32 in their order, divides by `divisor` and rounds once to
/// `type`. With a reduction, contributions are parts of lines of `divisor` terms: exact sums or maxima
/// (runtime/sums/Parts.h). It then writes the results in f32.
struct Sum {
  static constexpr std::string_view kName = "sum";
  TableNumber table;
  Operand source, target;
  KernelNumber kernel;
  DType type = DType::F32;
  int64_t divisor = 1;
  std::optional<Reduction> reduction;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("kernel", self.kernel);
    visit("table", self.table);
    visit("source", self.source);
    visit("target", self.target);
    visit("type", self.type);
    visit("divisor", self.divisor);
    visit("reduction", self.reduction);
  }
  std::string check(ProgramChecks &) const;
  void effects(const Plan &, Effects &) const;
};

/// Adds up a rank's parts of a number of the whole model, which stages of all groups wrote. Parts of
/// parameters that the step skips are left out. The sum becomes the rank's part of the model's own line.
struct Collect {
  static constexpr std::string_view kName = "collect";
  struct Run {
    TableNumber table;
    Operand source;

    template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
      visit("table", self.table);
      visit("source", self.source);
    }
  };
  std::vector<Run> runs;
  Operand target;
  KernelNumber kernel;
  Reduction reduction = Reduction::Sum;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("kernel", self.kernel);
    visit("runs", self.runs);
    visit("target", self.target);
    visit("reduction", self.reduction);
  }
  std::string check(ProgramChecks &) const;
  void effects(const Plan &, Effects &) const;
};

} // namespace stepc::plan

#endif
