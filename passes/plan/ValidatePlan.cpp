//===- ValidatePlan.cpp - An inconsistent plan as an error of the IR -------===//

#include "passes/plan/ValidatePlan.h"

#include "dialects/optim/NamePattern.h"
#include "dialects/optim/Optim.h"

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

LogicalResult stepc::blameParameters(ModuleOp module, const ProgramPlan &program) {
  int64_t wrongGroup = -1;
  std::string error = plan::validate(program.plan, wrongGroup);
  if (error.empty())
    return success();
  if (wrongGroup < 0)
    return module.emitError("expected parameters within a plan's limits: ") << error;
  auto group = *std::next(module.getOps<optim::GroupOp>().begin(), wrongGroup);
  SmallVector<StringRef> names;
  SmallVector<optim::ParameterOp> parameters;
  constexpr size_t shown = 3;
  for (auto name : group.getParameters().getAsRange<FlatSymbolRefAttr>()) {
    names.push_back(name.getValue());
    if (parameters.size() < shown)
      parameters.push_back(optim::lookupParameter(group, name));
  }
  // Users know parameters but no groups, so the text does not name the group.
  StringRef reason = error;
  reason.consume_front(("group " + group.getSymName() + ": ").str());
  InFlightDiagnostic diag = parameters.front().emitError();
  diag << (names.size() == 1 ? "parameter " : "parameters of one shape and placement, ")
       << nameSome(names) << ": " << reason;
  for (optim::ParameterOp other : ArrayRef(parameters).drop_front())
    diag.attachNote(other.getLoc()) << "parameter '" << other.getSymName() << "' is one of them";
  return diag;
}
