//===- CheckForm.cpp - What may stand in a scheduled program --------------===//

#include "passes/verify/Verify.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;

/// What the words of level 4 are, beside operations without memory.
static bool isKnown(Operation &op) {
  if (isa<comm::WorldOp, comm::CommunicatorOp, comm::HyperparametersOp, comm::StepsOp,
          comm::ActiveOp, comm::ShardsOp, comm::ExtentOp, comm::BufferOp, comm::ScalarsOp,
          comm::StageOp, comm::CopyOp, comm::SumOp, comm::StartOp, comm::WaitOp,
          comm::AdvanceStepsOp, optim::ProductOp, optim::BlockReduceOp, func::ReturnOp>(op))
    return true;
  auto hasMemory = [](Type type) { return isa<ShapedType>(type); };
  return op.getNumRegions() == 0 && isPure(&op) && llvm::none_of(op.getOperandTypes(), hasMemory) &&
         llvm::none_of(op.getResultTypes(), hasMemory);
}

static LogicalResult checkMemory(Operation *op) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (effects && effects.hasEffect<MemoryEffects::Allocate>())
    return op->emitOpError("expected no allocation past level scheduled, because every buffer has "
                           "its place in the workspace, found ")
           << op->getResultTypes();
  if (isa<memref::CopyOp>(op))
    return op->emitOpError("expected no copy past level scheduled, found one of ")
           << op->getOperandTypes();
  for (Type type : llvm::concat<Type>(SmallVector<Type>(op->getOperandTypes()),
                                      SmallVector<Type>(op->getResultTypes())))
    if (isa<TensorType>(type))
      return op->emitOpError("expected no tensors past level scheduled, because each would become "
                             "an allocation, found ")
             << type;
  return success();
}

static LogicalResult checkToken(comm::StartOp start) {
  SmallVector<Operation *> waits(start.getToken().getUsers());
  if (waits.size() == 1 && isa<comm::WaitOp>(waits.front()) &&
      waits.front()->getBlock() == start->getBlock())
    return success();
  auto diag = start.emitOpError("expected one comm.wait for its token, found ") << waits.size();
  for (Operation *wait : waits)
    diag.attachNote(wait->getLoc()) << "the token is used here";
  return diag;
}

/// Step counts advance once, and after all that reads them: the last thing that a step does.
static LogicalResult checkAdvance(func::FuncOp step) {
  comm::AdvanceStepsOp advance;
  for (Operation &op : step.getBody().front().without_terminator()) {
    if (advance) {
      auto diag = op.emitOpError("expected nothing behind the advance of the steps, because what "
                                 "fails before it does not count as a step");
      diag.attachNote(advance.getLoc()) << "the steps advance here";
      return diag;
    }
    advance = dyn_cast<comm::AdvanceStepsOp>(op);
  }
  if (advance)
    return success();
  return step.emitOpError("expected one comm.advance_steps, found none");
}

/// Says where the collective stands whose turn it is. Ranks of two communicators that start theirs in different orders
/// never meet.
static LogicalResult refuseOrder(comm::StartOp start, int64_t order) {
  auto diag = start.emitOpError("expected order ")
              << order << ", because all ranks start collectives in program order, found "
              << start.getOrder();
  for (auto other : start->getBlock()->getOps<comm::StartOp>()) {
    if (int64_t(other.getOrder()) != order)
      continue;
    Diagnostic &note = diag.attachNote(other.getLoc());
    note << "the collective of order " << order << " is here";
    if (other.getCommunicator() != start.getCommunicator())
      note << ", on another communicator: a rank of both would wait in the one for ranks that "
              "wait in the other";
    break;
  }
  return diag;
}

FailureOr<func::FuncOp> verify::checkForm(ModuleOp module) {
  if (StringAttr level = comm::levelOf(module))
    if (level != "scheduled")
      return module.emitOpError("expected level scheduled, found ") << level.getValue();
  func::FuncOp step;
  bool fine = true;
  for (Operation &op : *module.getBody()) {
    if (isa<FunctionOpInterface>(op)) {
      if (step || !isa<func::FuncOp>(op)) {
        auto diag = op.emitOpError("expected one function, @step, found another");
        if (step)
          diag.attachNote(step.getLoc()) << "the step is here";
        return failure();
      }
      step = cast<func::FuncOp>(op);
    }
    // A rule's body is what the user wrote; its tensors were never memory.
    if (!isa<optim::RuleOp>(op))
      op.walk([&](Operation *inner) { fine = fine && succeeded(checkMemory(inner)); });
  }
  if (!fine)
    return failure();
  if (!step || step.getSymName() != "step" || step.isExternal()) {
    auto diag = module.emitOpError("expected a function @step with a body, found ");
    return !step                         ? diag << "no function"
           : step.getSymName() != "step" ? diag << "@" << step.getSymName()
                                         : diag << "no body";
  }
  if (!step.getBody().hasOneBlock())
    return step.emitOpError("expected straight-line code, found more than one block");

  int64_t order = 0;
  for (Operation &op : step.getBody().front()) {
    if (!isKnown(op)) {
      op.emitOpError("expected operations of a scheduled program, found one that is none");
      fine = false;
    }
    for (Region &region : op.getRegions())
      region.walk([&](Operation *inner) {
        if (!isa<comm::StartOp, comm::WaitOp>(inner))
          return;
        inner->emitOpError("expected collectives in the step itself, because all ranks meet in "
                           "them, found one in a region");
        fine = false;
      });
    auto start = dyn_cast<comm::StartOp>(op);
    if (!start)
      continue;
    if (int64_t(start.getOrder()) != order)
      return refuseOrder(start, order);
    fine &= succeeded(checkToken(start));
    ++order;
  }
  if (!fine || failed(checkAdvance(step)))
    return failure();
  return step;
}
