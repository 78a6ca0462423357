//===- AssignArena.cpp - One static workspace ------------------------------===//

#include "passes/schedule/Passes.h"

#include "dialects/comm/Comm.h"
#include "passes/plan/PlanFromIR.h"
#include "runtime/plan/Tables.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;

namespace stepc::schedule {
#define GEN_PASS_DEF_ASSIGNARENA
#include "passes/schedule/Passes.h.inc"
} // namespace stepc::schedule

namespace {

constexpr int64_t kAlignment = 64;
int64_t align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// A buffer, when it lives (positions of its first and last use) and where it is placed.
struct Buffer {
  memref::AllocOp alloc;
  int64_t bytes, first, last, offset;
};

class AssignArena : public schedule::impl::AssignArenaBase<AssignArena> {
  void runOnOperation() override {
    getOperation()->setAttr(kLevelAttr, StringAttr::get(&getContext(), "scheduled"));
    FailureOr<ProgramPlan> program = planFromModule(getOperation());
    if (failed(program))
      return signalPassFailure();
    for (auto step : getOperation().getOps<func::FuncOp>())
      if (failed(assign(step, *program)))
        return signalPassFailure();
  }

  LogicalResult assign(func::FuncOp step, const ProgramPlan &program) {
    llvm::DenseMap<Operation *, int64_t> position;
    int64_t next = 0;
    for (Operation &op : step.getBody().front())
      position[&op] = next++;
    std::vector<Buffer> buffers;
    llvm::DenseMap<Operation *, int64_t> extents; // ExtentOp → largest of any rank
    for (auto alloc : step.getOps<memref::AllocOp>()) {
      FailureOr<int64_t> bytes = largest(alloc, program, extents);
      if (failed(bytes))
        return failure();
      Buffer buffer{alloc, *bytes, next, -1, 0};
      for (Operation *user : alloc->getUsers()) {
        buffer.first = std::min(buffer.first, position.at(user));
        buffer.last = std::max(buffer.last, position.at(user));
        if (auto start = dyn_cast<StartOp>(user)) // in flight until the wait
          for (Operation *wait : start.getToken().getUsers())
            buffer.last = std::max(buffer.last, position.at(wait));
      }
      buffers.push_back(buffer);
    }
    int64_t arena = pack(buffers);
    auto limit = getOperation()->getAttrOfType<IntegerAttr>(kLimitAttr);
    if (limit && arena > limit.getInt())
      return step.emitError("expected a workspace within the limit of ")
             << limit.getInt() << " bytes per rank, found that this schedule needs " << arena;
    for (Buffer &buffer : buffers) {
      OpBuilder builder(buffer.alloc);
      auto placed = BufferOp::create(builder, buffer.alloc->getLoc(), buffer.alloc.getType(),
                                     buffer.offset, buffer.bytes, buffer.alloc.getDynamicSizes());
      buffer.alloc->replaceAllUsesWith(placed);
      buffer.alloc->erase();
    }
    step->setAttr(kArenaAttr, Builder(&getContext()).getI64IntegerAttr(arena));
    return success();
  }

  /// The bytes of a buffer on the rank that needs most.
  FailureOr<int64_t> largest(memref::AllocOp alloc, const ProgramPlan &program,
                             llvm::DenseMap<Operation *, int64_t> &extents) {
    MemRefType type = alloc.getType();
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    for (int64_t size : type.getShape())
      if (!ShapedType::isDynamic(size))
        bytes *= size;
    for (Value size : alloc.getDynamicSizes()) {
      auto extent = size.getDefiningOp<ExtentOp>();
      if (!extent)
        return alloc.emitError("expected sizes from comm.extent, found another value");
      auto [it, isNew] = extents.try_emplace(extent, 0);
      if (isNew) {
        const plan::Plan &plan = program.plan;
        int64_t segment = ProgramPlan::find(program.segments, extent.getSegmentAttr());
        if (segment < 0)
          return extent.emitOpError("expected a segment, found no comm.segment named ")
                 << extent.getSegmentAttr();
        const plan::Group &group = plan.groups[plan.segments[segment].group];
        for (int64_t rank = 0, e = plan.world().size(); rank < e; ++rank)
          it->second =
              std::max(it->second,
                       plan::layoutElements(plan, segment, plan::Direction(extent.getDirection()),
                                            plan::ValueKind(extent.getValue()),
                                            plan::Layout(extent.getLayout()), rank));
        if (extent.getLayout() == Layout::Blocks && group.rows() * group.cols() > 0)
          it->second /= group.rows() * group.cols();
      }
      bytes *= it->second;
    }
    return bytes;
  }

  /// First fit in decreasing order of size; returns the workspace's bytes.
  static int64_t pack(std::vector<Buffer> &buffers) {
    std::vector<Buffer *> order;
    for (Buffer &buffer : buffers)
      if (buffer.last >= 0)
        order.push_back(&buffer);
    llvm::sort(order, [](Buffer *a, Buffer *b) {
      return std::tuple(-a->bytes, a->first, a) <
             std::tuple(-b->bytes, b->first, b); // by size, then as written
    });
    std::vector<Buffer *> placed; // by offset
    int64_t arena = 0;
    for (Buffer *buffer : order) {
      int64_t offset = 0;
      for (Buffer *other : placed) {
        if (other->last < buffer->first || buffer->last < other->first)
          continue; // never alive together
        if (offset + buffer->bytes <= other->offset)
          break; // the gap in front of it is large enough
        offset = std::max(offset, align(other->offset + other->bytes));
      }
      buffer->offset = offset;
      arena = std::max(arena, align(offset + buffer->bytes));
      placed.insert(llvm::upper_bound(placed, buffer,
                                      [](Buffer *a, Buffer *b) { return a->offset < b->offset; }),
                    buffer);
    }
    return arena;
  }
};

} // namespace
