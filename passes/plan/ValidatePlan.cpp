//===- ValidatePlan.cpp - An inconsistent plan as an error of the IR -------===//

#include "passes/plan/ValidatePlan.h"

#include "runtime/plan/Validate.h"

using namespace mlir;
using namespace stepc;

LogicalResult stepc::validatePlan(ModuleOp module, const ProgramPlan &program, StringRef expected) {
  int64_t wrongGroup = -1;
  std::string error = plan::validate(program.plan, wrongGroup);
  if (error.empty())
    return success();
  if (wrongGroup < 0)
    return module.emitOpError(expected) << error;
  // A plan has its groups in the order of the module.
  auto group = *std::next(module.getOps<optim::GroupOp>().begin(), wrongGroup);
  return group.emitOpError(expected) << error;
}
