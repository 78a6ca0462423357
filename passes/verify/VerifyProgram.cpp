//===- VerifyProgram.cpp - Proves level 5 for all ranks --------------------===//

#include "passes/plan/PlanOfProgram.h"
#include "passes/verify/CheckProgram.h"
#include "passes/verify/Passes.h"

#include "mlir/IR/Remarks.h"
#include "mlir/IR/Threading.h"
#include "llvm/Support/MathExtras.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;

namespace stepc::verify {
#define GEN_PASS_DEF_VERIFYPROGRAM
#include "passes/verify/Passes.h.inc"
} // namespace stepc::verify

//===----------------------------------------------------------------------===//
// Segments, the workspace limit, and the sizes of operands
//===----------------------------------------------------------------------===//

static std::string describeBlock(const plan::Plan &plan, int64_t group, int64_t block) {
  const plan::Group &g = plan.groups[group];
  int64_t each = viewOf(g, plan::ValueKind::Full).blocks;
  return plan::describeBlock(g, block % each) + "parameter '" +
         plan.parameters[g.parameters[block / each]].name + "'";
}

/// Checks that each block of a group stands in at most one segment. This includes segments that no command
/// names.
static LogicalResult checkSegments(const plan::Plan &plan, ModuleOp module) {
  SmallVector<comm::SegmentOp> segments(module.getOps<comm::SegmentOp>());
  std::vector<llvm::DenseMap<int64_t, int64_t>> segmentOf(plan.groups.size());
  for (auto [index, segment] : llvm::enumerate(plan.segments)) {
    std::vector<int64_t> blocks = segment.blocks;
    for (int64_t block = 0, e = blockCountOf(plan.groups[segment.group]); segment.all && block < e;
         ++block)
      blocks.push_back(block);
    for (int64_t block : blocks) {
      auto [found, added] = segmentOf[segment.group].try_emplace(block, int64_t(index));
      if (added)
        continue;
      auto diag = segments[index].emitOpError("expected each block in one segment, found ")
                  << describeBlock(plan, segment.group, block) << " in another";
      diag.attachNote(segments[found->second].getLoc()) << "the other segment is here";
      return diag;
    }
  }
  return success();
}

static LogicalResult checkLimit(const plan::Plan &plan, exec::ProgramOp program, ModuleOp module) {
  auto limit = module->getAttrOfType<IntegerAttr>(comm::kLimitAttr);
  if (!limit || plan.workspaceBytes() <= limit.getInt())
    return success();
  auto diag = program.emitOpError("expected a workspace within the limit of ")
              << limit.getInt() << " bytes per rank, found " << plan.workspaceBytes() << " bytes";
  diag.attachNote(module.getLoc()) << "the limit is set here";
  return diag;
}

/// Multiplies, and saturates instead of wrapping around: sizes in an edited text may be any number.
static int64_t times(int64_t a, int64_t b) {
  int64_t result;
  return llvm::MulOverflow(a, b, result) ? std::numeric_limits<int64_t>::max() : result;
}

/// Checks that every operand is large enough on the rank that needs most.
static LogicalResult checkNeeds(ArrayRef<Need> needs, TableProof &proof) {
  bool fine = true;
  llvm::DenseMap<int64_t, Reach> mostBlocks;
  llvm::SmallPtrSet<Operation *, 8> refused;
  for (const Need &need : needs) {
    Reach reach{0, 0};
    bool travels = need.unit == Need::Sent || need.unit == Need::Received;
    if (travels)
      reach = need.unit == Need::Sent ? proof.startReach(need.index).sent
                                      : proof.startReach(need.index).received;
    if (need.unit == Need::From)
      reach = proof.reach(need.index).from;
    if (need.unit == Need::To)
      reach = proof.reach(need.index).to;
    if (need.unit == Need::Blocks) {
      auto [found, added] = mostBlocks.try_emplace(need.index);
      if (added)
        found->second = proof.mostComputed(need.index);
      reach = {times(found->second.most, need.elements), found->second.rank};
    }
    int64_t bytes = times(reach.most, travels ? 1 : need.elementBytes);
    if (bytes <= need.bytes || !refused.insert(need.user).second)
      continue;
    need.user->emitOpError("expected at least ") << bytes << " bytes, which rank " << reach.rank
                                                 << " needs, found " << need.bytes << " bytes";
    fine = false;
  }
  return success(fine);
}

/// Returns the first command that has a member of a pool among its operands, or the program if none has.
static Operation *firstUser(const plan::Plan &plan, exec::ProgramOp program, int64_t pool) {
  for (auto [command, op] : llvm::zip(plan.commands, program.getBody().front())) {
    bool isUser = false;
    plan::forEach<plan::Operand>(
        command, [&](const plan::Operand &operand) { isUser |= operand.pool == pool; });
    if (isUser)
      return &op;
  }
  return program;
}

/// Checks that the members of every pool lie inside of it and do not overlap, on every rank.
static LogicalResult checkPools(const plan::Plan &plan, exec::ProgramOp program,
                                TableProof &proof) {
  for (size_t pool = 0; pool < plan.pools.size(); ++pool)
    if (std::string wrong = proof.checkPool(int64_t(pool)); !wrong.empty())
      return firstUser(plan, program, int64_t(pool))->emitOpError()
             << wrong << " (pool " << pool << ")";
  return success();
}

//===----------------------------------------------------------------------===//
// The proof
//===----------------------------------------------------------------------===//

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
          },
          [expander](int64_t group, int64_t rank) { return expander->computedOf(group, rank); }};
}

/// Proves the plan's tables. An error is at the command that first uses the table. If all ranks together have
/// at least `many` tables, the context's threads share the work.
static LogicalResult proveTables(TableProof &proof, const StepFacts &facts, exec::ProgramOp program,
                                 size_t many) {
  MLIRContext *context = program.getContext();
  constexpr unsigned kMostWorkers = 4; // each expands its own tables, some hundred MiB
  size_t workers =
      proof.tableCount() < many ? 1 : std::clamp(context->getNumThreads(), 1u, kMostWorkers);
#ifdef __GLIBC__
  // Each worker allocates in its own arena of malloc, so it does not reuse pages that earlier passes freed in
  // the main thread's arena. This call gives those pages back to the system.
  if (workers > 1)
    malloc_trim(0);
#endif
  std::vector<Fault> faults = proof.prove(
      facts.program, workers, [&](size_t count, const std::function<void(size_t)> &work) {
        parallelFor(context, 0, count, work);
      });
  for (const Fault &fault : faults) {
    Operation *op = facts.userOf.lookup(fault.table);
    if (!op) // no command uses a table of a segment without blocks
      op = program;
    auto diag = op->emitOpError() << fault.message;
    if (Operation *other = facts.userOf.lookup(fault.other); other && fault.other >= 0)
      diag.attachNote(other->getLoc()) << "for this operation";
  }
  return success(faults.empty());
}

FailureOr<StepFacts> verify::checkCommands(const plan::Plan &plan, ModuleOp module,
                                           EffectsOf effectsOf) {
  exec::ProgramOp program = *module.getOps<exec::ProgramOp>().begin();
  SmallVector<Operation *> commands;
  for (Operation &op : program.getBody().front())
    commands.push_back(&op);
  ProgramCheck check(plan, module, std::move(effectsOf));
  if (failed(check.run(commands)))
    return failure();
  return std::move(check.facts);
}

LogicalResult verify::verifyProgram(ModuleOp module, MakeExpand makeExpand, size_t many) {
  FailureOr<plan::Plan> plan = planOfProgram(module);
  if (failed(plan))
    return failure();
  exec::ProgramOp program = *module.getOps<exec::ProgramOp>().begin();
  if (failed(checkLimit(*plan, program, module)) || failed(checkSegments(*plan, module)))
    return failure();
  FailureOr<StepFacts> facts = checkCommands(*plan, module);
  if (failed(facts))
    return failure();
  TableProof proof(*plan, makeExpand ? std::move(makeExpand) : MakeExpand(runtimeExpand));
  if (failed(proveTables(proof, *facts, program, many)) ||
      failed(checkNeeds(facts->needs, proof)) || failed(checkPools(*plan, program, proof)))
    return failure();
  const Proven &proven = proof.proven();
  remark::analysis(program->getLoc(),
                   remark::RemarkOpts::name("plan-proven").category("exec-verify-program"))
      << remark::metric("ranks", proven.ranks) << remark::metric("blocks", proven.blocks)
      << remark::metric("routed-elements", proven.routedElements)
      << remark::metric("exchanges", plan->starts().size())
      << remark::metric("messages", proven.messages) << remark::metric("bytes", proven.bytes)
      << remark::metric("workspace-bytes", plan->arenaBytes);
  return success();
}

namespace stepc::verify {
namespace {
struct VerifyProgram : impl::VerifyProgramBase<VerifyProgram> {
  void runOnOperation() override {
    if (failed(verifyProgram(getOperation())))
      signalPassFailure();
  }
};
} // namespace
} // namespace stepc::verify
