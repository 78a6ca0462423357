//===- VerifyPlan.cpp - Proves level 4 for all ranks ----------------------===//

#include "passes/plan/ValidatePlan.h"
#include "passes/verify/Passes.h"
#include "passes/verify/Verify.h"

#include "mlir/IR/Remarks.h"
#include "mlir/IR/Threading.h"

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;

namespace stepc::verify {
#define GEN_PASS_DEF_VERIFYPLAN
#include "passes/verify/Passes.h.inc"
} // namespace stepc::verify

Expand verify::runtimeExpand(const plan::Plan &plan) {
  auto expander = std::make_shared<plan::Expander>(plan);
  return {[&plan, expander](int64_t table, int64_t rank) {
            return expander->common(plan.tables[table], rank);
          },
          [starts = plan.starts(), expander](int64_t start, int64_t rank) {
            return expander->start(*starts[start], rank);
          },
          [&plan, expander](int64_t pool, int64_t rank) {
            return expander->pool(plan.pools[pool], rank);
          }};
}

/// Segments are sets: their blocks are told apart before they are counted.
static LogicalResult checkPlan(const ProgramPlan &program, ModuleOp module) {
  for (comm::SegmentOp segment : module.getOps<comm::SegmentOp>()) {
    llvm::SmallDenseSet<int64_t> seen;
    for (int64_t block : segment.getBlocks().value_or(ArrayRef<int64_t>()))
      if (!seen.insert(block).second)
        return segment.emitOpError("expected distinct blocks, found ") << block << " twice";
  }
  return validatePlan(module, program, "expected a consistent plan: ");
}

LogicalResult verify::proveTables(TableProof &proof, const StepFacts &facts, MLIRContext *context,
                                  size_t many) {
  constexpr unsigned kMostWorkers = 4; // each has tables of its own, of some hundred MiB
  size_t workers =
      proof.tableCount() < many ? 1 : std::clamp(context->getNumThreads(), 1u, kMostWorkers);
#ifdef __GLIBC__
  // Each worker allocates in an arena of its own, and does not reuse what the passes before freed in that of
  // the main thread: this gives those pages back.
  if (workers > 1)
    malloc_trim(0);
#endif
  std::vector<Fault> faults = proof.prove(
      facts.program, workers, [&](size_t count, const std::function<void(size_t)> &work) {
        parallelFor(context, 0, count, work);
      });
  for (const Fault &fault : faults) {
    Operation *op = facts.userOf.lookup(fault.table);
    auto diag = op->emitOpError() << fault.message;
    if (Operation *other = facts.userOf.lookup(fault.other); other && fault.other >= 0)
      diag.attachNote(other->getLoc()) << "for this operation";
  }
  return success(faults.empty());
}

LogicalResult verify::verifyPlan(ModuleOp module, MakeExpand makeExpand, int64_t rowElements,
                                 size_t many) {
  FailureOr<func::FuncOp> step = checkForm(module);
  if (failed(step))
    return failure();
  FailureOr<ProgramPlan> program = planFromModule(module);
  if (failed(program) || failed(checkPlan(*program, module)))
    return failure();
  FailureOr<StepFacts> facts = checkFlow(*program, *step);
  if (failed(facts) || failed(checkCoverage(*program, module, *step)) ||
      failed(checkValues(*program, module, *step)))
    return failure();
  program->plan.chunkElements = rowElements;
  TableProof proof(program->plan, makeExpand ? std::move(makeExpand) : MakeExpand(runtimeExpand));
  if (failed(proveTables(proof, *facts, module.getContext(), many)) ||
      failed(checkWorkspace(*program, module, *step, *facts, proof)))
    return failure();
  const Proven &proven = proof.proven();
  remark::analysis(step->getLoc(),
                   remark::RemarkOpts::name("plan-proven").category("comm-verify-plan"))
      << remark::metric("ranks", proven.ranks) << remark::metric("blocks", proven.blocks)
      << remark::metric("routed-elements", proven.routedElements)
      << remark::metric("exchanges", program->plan.starts().size())
      << remark::metric("messages", proven.messages) << remark::metric("bytes", proven.bytes)
      << remark::metric("workspace-bytes", program->plan.arenaBytes);
  return success();
}

namespace stepc::verify {
namespace {
struct VerifyPlan : impl::VerifyPlanBase<VerifyPlan> {
  using VerifyPlanBase::VerifyPlanBase;

  void runOnOperation() override {
    if (failed(verifyPlan(getOperation(), {}, rowElements)))
      signalPassFailure();
  }
};
} // namespace
} // namespace stepc::verify
