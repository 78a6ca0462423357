//===- AssignArena.cpp - Decide offsets in one static workspace ------------===//

#include "passes/schedule/Passes.h"

#include "dialects/comm/Comm.h"
#include "dialects/optim/Saturate.h"
#include "passes/plan/ProductForms.h"
#include "passes/plan/StepScratch.h"
#include "passes/schedule/PackArena.h"
#include "runtime/plan/Tables.h"
#include "runtime/text/Plural.h"

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

/// The largest sizes on any rank. The size of each place is computed once.
class Extents {
public:
  explicit Extents(const ProgramPlan &program)
      : mostBlocks(program), program(program), expander(program.plan),
        ranks(program.plan.world().size()) {}

  int64_t largest(ExtentOp op) {
    PlaceAttr place = op.getPlace();
    int64_t segment = program.segments.lookup(place.getSymbol().getAttr());
    // The extent of a batch is its number of blocks, not of elements.
    if (place.isBatch())
      return mostBlocks(segment);
    auto [it, isNew] = known.try_emplace(place, 0);
    for (int64_t rank = 0; isNew && rank < ranks; ++rank)
      it->second = std::max(it->second, expander.elements(place.toPlan(segment), rank));
    return it->second;
  }

  /// The most bytes of a pool on any rank; `members` are its batches in their order.
  int64_t largest(ArrayRef<memref::AllocOp> members) {
    plan::Pool pool;
    for (memref::AllocOp member : members) {
      MemRefType type = member.getType();
      int64_t bytes = type.getElementTypeBitWidth() / 8;
      for (int64_t size : type.getShape().drop_front())
        bytes = saturatingMul(bytes, size);
      pool.members.push_back({program.segments.lookup(placeOf(type).getSymbol().getAttr()), bytes});
    }
    int64_t bytes = 0;
    for (int64_t rank = 0; rank < ranks; ++rank)
      bytes = std::max(bytes, expander.pool(pool, rank).bytes);
    return bytes;
  }

  /// The most bytes that a start sends and receives on any rank.
  std::pair<int64_t, int64_t> largest(StartOp op) {
    std::pair<int64_t, int64_t> bytes;
    const auto &start = std::get<plan::Start>(program.plan.commands[op.getOrder()]);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      auto made = expander.start(start, rank);
      bytes.first = std::max(bytes.first, made->sent.bytes);
      bytes.second = std::max(bytes.second, made->received.bytes);
    }
    return bytes;
  }

  MostBlocks mostBlocks;

private:
  const ProgramPlan &program;
  plan::Expander expander;
  int64_t ranks;
  llvm::DenseMap<PlaceAttr, int64_t> known;
};

/// Finds batches that can share a pool. A run is a sequence of operations of one kind, none of which reads
/// what another one of them writes. Batches whose first uses are in one run and whose last uses are in one
/// run form a pool, because they live at the same time. If chains do their products one after another, all
/// products count as one run. So for batches with a product at one end, only the other end decides. If chains
/// stand side by side, products of one form that stand next to each other are in one run, so that they can
/// share a launch.
class PoolFinder {
public:
  PoolFinder(Block &step, bool sideBySide) {
    SmallVector<Operation *> ops;
    for (Operation &op : step)
      if (!isMemoryEffectFree(&op) && !isa<memref::AllocOp>(op))
        ops.push_back(&op);
    llvm::DenseSet<Value> written;
    auto reads = [&](Operation *op) {
      return llvm::any_of(op->getOperands(), [&](Value v) { return written.contains(v); });
    };
    size_t together = 0; // behind the last of the products of one form
    int64_t run = 0;
    for (size_t i = 0; i < ops.size(); ++i) {
      Operation *op = ops[i];
      bool follows = i > 0 && ops[i - 1]->getName() == op->getName();
      if (i >= together && sideBySide && isa<optim::ProductOp>(op)) {
        together = endOfForm(ops, i);
        follows &= llvm::none_of(ArrayRef(ops).slice(i, together - i), reads);
      } else {
        follows &= !reads(op);
      }
      if (!follows) {
        ++run;
        written.clear();
        firstOf[run] = op;
      }
      runOf[op] = isa<optim::ProductOp>(op) && !sideBySide ? 0 : run;
      if (auto writes = dyn_cast<DestinationStyleOpInterface>(op))
        written.insert_range(writes.getDpsInits());
    }
  }

  /// The first operation of a product's run if chains stand side by side, otherwise the product itself.
  Operation *beginOf(optim::ProductOp product) const {
    int64_t run = runOf.at(product);
    return run == 0 ? product.getOperation() : firstOf.at(run);
  }

  /// The pools, each with two batches or more, in the order of their allocations.
  SmallVector<SmallVector<memref::AllocOp>> find(ArrayRef<memref::AllocOp> allocs) const {
    llvm::MapVector<std::pair<int64_t, int64_t>, SmallVector<memref::AllocOp>> pools;
    for (memref::AllocOp alloc : allocs) {
      PlaceAttr place = placeOf(alloc.getType());
      if (!place || !place.isBatch() || alloc.use_empty())
        continue;
      SmallVector<Operation *> users(alloc->getUsers());
      auto isBefore = [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); };
      int64_t first = runOf.at(*llvm::min_element(users, isBefore));
      int64_t last = runOf.at(*llvm::max_element(users, isBefore));
      if (first != last)
        pools[{first, last}].push_back(alloc);
    }
    SmallVector<SmallVector<memref::AllocOp>> found;
    for (auto &[runs, members] : pools)
      if (members.size() > 1)
        found.push_back(std::move(members));
    return found;
  }

private:
  /// Returns the end of a run of products of one form that begins at `begin`. None of them reads what another
  /// one writes.
  static size_t endOfForm(ArrayRef<Operation *> ops, size_t begin) {
    cost::LaunchForm form = formOf(cast<optim::ProductOp>(ops[begin]));
    llvm::DenseSet<Value> written;
    for (size_t end = begin; end < ops.size(); ++end) {
      auto product = dyn_cast<optim::ProductOp>(ops[end]);
      if (!product || formOf(product) != form ||
          llvm::any_of(product->getOperands(), [&](Value v) { return written.contains(v); }))
        return end;
      written.insert(product.getInit());
    }
    return ops.size();
  }

  llvm::DenseMap<Operation *, int64_t> runOf;
  llvm::DenseMap<int64_t, Operation *> firstOf;
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
    PoolFinder runs(step.getBody().front(), getOperation()->hasAttr(kSideBySideAttr));
    llvm::DenseMap<Operation *, int64_t> position;
    for (auto [index, op] : llvm::enumerate(step.getBody().front())) {
      position[&op] = index;
      // One launch may serve the products of a run, so they happen at the same time.
      if (auto product = dyn_cast<optim::ProductOp>(op))
        position[&op] = position.at(runs.beginOf(product));
    }
    SmallVector<memref::AllocOp> allocs(step.getOps<memref::AllocOp>());
    std::vector<ArenaBuffer> buffers;
    llvm::DenseMap<Value, size_t> bufferOf;
    // All sends of a start share one buffer, and so do all its receives. The buffer lives from the first use
    // of any of these values to the last.
    for (auto start : step.getOps<StartOp>()) {
      if (!program.tables.contains(start))
        return start.emitOpError("expected collectives in @step alone, found one in @")
               << step.getSymName();
      auto [sent, received] = extents.largest(start);
      for (auto [values, bytes] :
           {std::pair(start.getSends(), sent), std::pair(start.getReceives(), received)}) {
        ArenaBuffer &shared = buffers.emplace_back();
        shared = {bytes, int64_t(position.size()), -1};
        for (Value value : values) {
          include(shared, value, position);
          bufferOf[value] = buffers.size() - 1;
        }
      }
    }
    SmallVector<SmallVector<memref::AllocOp>> pools = runs.find(allocs);
    for (ArrayRef<memref::AllocOp> members : pools) {
      for (memref::AllocOp member : members) {
        if (failed(checkSizes(member)))
          return failure();
        bufferOf[member] = buffers.size();
      }
      ArenaBuffer &shared = buffers.emplace_back();
      shared = {extents.largest(members), int64_t(position.size()), -1};
      for (memref::AllocOp member : members)
        include(shared, member, position);
    }
    for (memref::AllocOp alloc : allocs) {
      if (!bufferOf.try_emplace(alloc, buffers.size()).second)
        continue;
      FailureOr<int64_t> bytes = largest(alloc, extents);
      if (failed(bytes))
        return failure();
      ArenaBuffer &buffer = buffers.emplace_back();
      buffer = {*bytes, int64_t(position.size()), -1};
      include(buffer, alloc, position);
    }
    int64_t together = 0;
    for (const ArenaBuffer &buffer : buffers)
      together = saturatingAdd(together, buffer.bytes);
    int64_t arena = schedule::packArena(buffers);
    int64_t scratch = scratchBound(program, step, std::ref(extents.mostBlocks));
    int64_t workspace = saturatingAdd(arena, scratch);
    auto limit = getOperation()->getAttrOfType<IntegerAttr>(kLimitAttr);
    if (limit && workspace > limit.getInt())
      return blameWorkspace(
          step.emitError("expected a workspace within the limit of ")
              << limit.getInt() << " bytes per rank, found that this schedule, in " << countWaves()
              << ", needs " << workspace << ": " << arena << ", and a bound of " << scratch
              << " on scratch; other waves, which --waves forces, may need less",
          workspace);
    if (workspace > plan::kMostArenaBytes)
      return blameInput(step.emitError("expected a workspace of at most 2^50 bytes per rank, found "
                                       "that this schedule needs more"));
    Builder builder(&getContext());
    for (auto [number, members] : llvm::enumerate(pools))
      for (memref::AllocOp member : members)
        member->setAttr(kPoolAttr, builder.getI64IntegerAttr(int64_t(number)));
    for (memref::AllocOp alloc : allocs) {
      const ArenaBuffer &buffer = buffers[bufferOf.lookup(alloc)];
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

  std::string countWaves() {
    int64_t waves = 1;
    for (auto segment : getOperation().getOps<SegmentOp>())
      waves = std::max(waves, int64_t(segment.getWave().value_or(0)) + 1);
    return plural(waves, "wave");
  }

  /// Lets a buffer live from a value's first to its last use. A start uses its values until its wait.
  static void include(ArenaBuffer &buffer, Value value,
                      const llvm::DenseMap<Operation *, int64_t> &position) {
    auto use = [&](Operation *op) {
      buffer.first = std::min(buffer.first, position.at(op));
      buffer.last = std::max(buffer.last, position.at(op));
    };
    if (value.use_empty())
      use(value.getDefiningOp());
    for (Operation *user : value.getUsers()) {
      use(user);
      if (auto start = dyn_cast<StartOp>(user))
        llvm::for_each(start.getToken().getUsers(), use);
    }
  }

  /// The bytes of a buffer on the rank that needs most.
  static FailureOr<int64_t> largest(memref::AllocOp alloc, Extents &extents) {
    MemRefType type = alloc.getType();
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    for (int64_t size : type.getShape())
      if (!ShapedType::isDynamic(size))
        bytes = saturatingMul(bytes, size);
    if (failed(checkSizes(alloc)))
      return failure();
    for (Value size : alloc.getDynamicSizes())
      bytes = saturatingMul(bytes, extents.largest(size.getDefiningOp<ExtentOp>()));
    return bytes;
  }

  static LogicalResult checkSizes(memref::AllocOp alloc) {
    for (Value size : alloc.getDynamicSizes())
      if (!size.getDefiningOp<ExtentOp>())
        return alloc.emitError("expected sizes from comm.extent, found another value");
    return success();
  }
};

} // namespace
