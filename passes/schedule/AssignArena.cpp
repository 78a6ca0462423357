//===- AssignArena.cpp - Decide the places in one static workspace ---------===//

#include "passes/schedule/Passes.h"

#include "dialects/comm/Comm.h"
#include "passes/cost/Saturate.h"
#include "passes/plan/StepScratch.h"
#include "passes/schedule/PackArena.h"
#include "runtime/plan/Tables.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;
using stepc::schedule::ArenaBuffer;

namespace stepc::schedule {
#define GEN_PASS_DEF_ASSIGNARENA
#include "passes/schedule/Passes.h.inc"
} // namespace stepc::schedule

namespace {

/// The most that any rank needs, asked once per kind of extent.
class Extents {
public:
  explicit Extents(const ProgramPlan &program)
      : mostBlocks(program), program(program), expander(program.plan),
        ranks(program.plan.world().size()) {}

  int64_t largest(ExtentOp op) {
    int64_t segment = program.segments.lookup(op.getSegmentAttr().getAttr());
    // Blocks are counted whatever the value: its elements would not tell how many there are.
    if (op.getLayout() == Layout::Blocks)
      return mostBlocks(segment);
    std::array<int64_t, 4> key = {segment, int64_t(op.getDirection()), int64_t(op.getValue()),
                                  int64_t(op.getLayout())};
    auto [it, isNew] = known.try_emplace(key, 0);
    for (int64_t rank = 0; isNew && rank < ranks; ++rank)
      it->second =
          std::max(it->second, expander.layoutElements(segment, plan::Direction(op.getDirection()),
                                                       plan::ValueKind(op.getValue()),
                                                       plan::Layout(op.getLayout()), rank));
    return it->second;
  }

  MostBlocks mostBlocks;

private:
  const ProgramPlan &program;
  plan::Expander expander;
  int64_t ranks;
  std::map<std::array<int64_t, 4>, int64_t> known;
};

class AssignArena : public schedule::impl::AssignArenaBase<AssignArena> {
  void runOnOperation() override {
    FailureOr<ProgramPlan> program = planFromModule(getOperation());
    if (failed(program))
      return signalPassFailure();
    Extents extents(*program);
    for (auto step : getOperation().getOps<func::FuncOp>())
      if (failed(assign(step, *program, extents)))
        return signalPassFailure();
  }

  LogicalResult assign(func::FuncOp step, const ProgramPlan &program, Extents &extents) {
    llvm::DenseMap<Operation *, int64_t> position;
    for (auto [index, op] : llvm::enumerate(step.getBody().front()))
      position[&op] = index;
    SmallVector<memref::AllocOp> allocs(step.getOps<memref::AllocOp>());
    std::vector<ArenaBuffer> buffers;
    int64_t together = 0;
    for (memref::AllocOp alloc : allocs) {
      FailureOr<int64_t> bytes = largest(alloc, extents);
      if (failed(bytes))
        return failure();
      together = saturatingAdd(together, *bytes);
      buffers.push_back(lifetime(alloc, *bytes, position));
    }
    int64_t arena = schedule::packArena(buffers);
    int64_t scratch = scratchBound(program, step, std::ref(extents.mostBlocks));
    int64_t workspace = saturatingAdd(arena, scratch);
    auto limit = getOperation()->getAttrOfType<IntegerAttr>(kLimitAttr);
    if (limit && workspace > limit.getInt())
      return blameInput(step.emitError("expected a workspace within the limit of ")
                        << limit.getInt() << " bytes per rank, found that this schedule needs "
                        << arena << ", and up to " << scratch << " of scratch");
    if (workspace > plan::kMostArenaBytes)
      return blameInput(step.emitError("expected a workspace of at most 2^50 bytes per rank, found "
                                       "that this schedule needs more"));
    Builder builder(&getContext());
    for (auto [alloc, buffer] : llvm::zip_equal(allocs, buffers)) {
      alloc->setAttr(kOffsetAttr, builder.getI64IntegerAttr(buffer.offset));
      alloc->setAttr(kBytesAttr, builder.getI64IntegerAttr(buffer.bytes));
    }
    step->setAttr(kArenaAttr, builder.getI64IntegerAttr(arena));
    remark::passed(step.getLoc(),
                   remark::RemarkOpts::name("workspace-assigned").category("comm-assign-arena"))
        << remark::metric("buffers", buffers.size()) << remark::metric("arena-bytes", arena)
        << remark::metric("scratch-bytes-at-most", scratch)
        << remark::metric("buffer-bytes", together);
    return success();
  }

  /// From its first to its last use; what is in flight is used until the wait.
  static ArenaBuffer lifetime(memref::AllocOp alloc, int64_t bytes,
                              const llvm::DenseMap<Operation *, int64_t> &position) {
    if (alloc->use_empty())
      return {bytes, position.at(alloc), position.at(alloc)};
    ArenaBuffer buffer{bytes, int64_t(position.size()), -1};
    for (Operation *user : alloc->getUsers()) {
      buffer.first = std::min(buffer.first, position.at(user));
      buffer.last = std::max(buffer.last, position.at(user));
      if (auto start = dyn_cast<StartOp>(user))
        for (Operation *wait : start.getToken().getUsers())
          buffer.last = std::max(buffer.last, position.at(wait));
    }
    return buffer;
  }

  /// The bytes of a buffer on the rank that needs most.
  static FailureOr<int64_t> largest(memref::AllocOp alloc, Extents &extents) {
    MemRefType type = alloc.getType();
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    for (int64_t size : type.getShape())
      if (!ShapedType::isDynamic(size))
        bytes = saturatingMul(bytes, size);
    for (Value size : alloc.getDynamicSizes()) {
      auto extent = size.getDefiningOp<ExtentOp>();
      if (!extent)
        return alloc.emitError("expected sizes from comm.extent, found another value");
      bytes = saturatingMul(bytes, extents.largest(extent));
    }
    return bytes;
  }
};

} // namespace
