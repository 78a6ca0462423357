//===- Collectives.h - What travels between ranks ---------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_PLAN_COMMANDS_COLLECTIVES_H
#define STEPC_RUNTIME_PLAN_COMMANDS_COLLECTIVES_H

#include "runtime/plan/commands/Effect.h"

namespace stepc::plan {

class ProgramChecks;

/// Begins a collective: the values of tables of messages travel together. The n-th start of a program is
/// collective n on all ranks.
struct Start {
  static constexpr std::string_view kName = "start";
  CollectiveKind collective = CollectiveKind::Exchange;
  Communicator communicator = {};
  std::vector<TableNumber> tables;
  Operand sent, received;
  KernelNumber kernel; // puts seals on messages that the host may not touch

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("kernel", self.kernel);
    visit("collective", self.collective);
    visit("communicator", self.communicator);
    visit("tables", self.tables);
    visit("sent", self.sent);
    visit("received", self.received);
  }
  std::string check(ProgramChecks &) const;
  void effects(const Plan &, Effects &) const;
};

/// Waits for a collective.
struct Await {
  static constexpr std::string_view kName = "await";
  StartNumber start;
  KernelNumber kernel; // compares the seals of the messages that came

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("kernel", self.kernel);
    visit("exchange", self.start);
  }
  std::string check(ProgramChecks &) const;
  void effects(const Plan &, Effects &) const {}
};

} // namespace stepc::plan

#endif
