//===- Collectives.cpp - What travels between ranks -----------------------===//

#include "runtime/plan/commands/ProgramChecks.h"

namespace stepc::plan {

std::string Start::check(ProgramChecks &checks) const {
  checks.begin();
  if (!isKnown(collective))
    return unknown("a kind of collective", collective);
  if (Check wrong = checkCommunicator(checks.plan, communicator); !wrong.empty())
    return wrong;
  for (const Operand *operand : {&sent, &received}) {
    if (operand->kind != OperandKind::Workspace)
      return "expected to send from the workspace and to receive there, found " +
             std::string(describe(operand->kind));
    if (operand->pool != -1)
      return "expected no pool of what is no batch, found pool " + std::to_string(operand->pool);
    if (Check wrong = checks.inWorkspace(operand->value, operand->bytes); !wrong.empty())
      return wrong;
  }
  return checks.optionalKernel(kernel);
}

void Start::effects(const Plan &, Effects &list) const {
  // Some elements for several peers are packed once and copied within the buffer before it is sent.
  list.push_back({&sent, 0, Access::Updates, Effect::Sent});
  list.push_back({&received, 1, Access::Writes, Effect::Received});
}

std::string Await::check(ProgramChecks &checks) const {
  if (Check wrong = checks.optionalKernel(kernel); !wrong.empty())
    return wrong;
  return checks.await(start, kernel != -1);
}

} // namespace stepc::plan
