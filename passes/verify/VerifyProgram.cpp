//===- VerifyProgram.cpp - Proves level 5 for all ranks --------------------===//

#include "passes/plan/PlanOfProgram.h"
#include "passes/verify/CheckProgram.h"
#include "passes/verify/Passes.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;

namespace stepc::verify {
#define GEN_PASS_DEF_VERIFYPROGRAM
#include "passes/verify/Passes.h.inc"
} // namespace stepc::verify

static LogicalResult checkLimit(const plan::Plan &plan, exec::ProgramOp program, ModuleOp module) {
  auto limit = module->getAttrOfType<IntegerAttr>(comm::kLimitAttr);
  if (!limit || plan.workspaceBytes() <= limit.getInt())
    return success();
  auto diag = program.emitOpError("expected a workspace within the limit of ")
              << limit.getInt() << " bytes per rank, found " << plan.workspaceBytes() << " bytes";
  diag.attachNote(module.getLoc()) << "the limit is set here";
  return diag;
}

LogicalResult verify::verifyProgram(ModuleOp module, int64_t provenRowElements) {
  FailureOr<plan::Plan> plan = planOfProgram(module);
  if (failed(plan))
    return failure();
  exec::ProgramOp program = *module.getOps<exec::ProgramOp>().begin();
  SmallVector<Operation *> commands;
  for (Operation &op : program.getBody().front())
    commands.push_back(&op);
  ProgramCheck check(*plan, module);
  if (failed(checkLimit(*plan, program, module)) || failed(checkSegments(*plan, module)) ||
      failed(check.run(commands)))
    return failure();
  TableProof proof(*plan, runtimeExpand);
  // What computed blocks need is of level 5, too: scratch is a target's.
  if (plan->chunkElements == provenRowElements)
    llvm::erase_if(check.facts.needs, [](const Need &need) { return need.unit != Need::Blocks; });
  else if (failed(proveTables(proof, check.facts, module.getContext())))
    return failure();
  SmallVector<Operation *> poolOps(plan->pools.size(), program);
  return success(succeeded(checkNeeds(check.facts.needs, proof)) &&
                 succeeded(checkPools(*plan, poolOps, proof)));
}

namespace stepc::verify {
namespace {
struct VerifyProgram : impl::VerifyProgramBase<VerifyProgram> {
  using VerifyProgramBase::VerifyProgramBase;

  void runOnOperation() override {
    if (failed(verifyProgram(getOperation(), provenRowElements)))
      signalPassFailure();
  }
};
} // namespace
} // namespace stepc::verify
