//===- CheckWorkspace.cpp - Room for all, and none shared in time ---------===//

#include "passes/plan/StepScratch.h"
#include "passes/verify/Verify.h"

#include "llvm/Support/MathExtras.h"

#include <queue>

using namespace mlir;
using namespace stepc;
using namespace stepc::verify;

static LogicalResult checkLimits(const ProgramPlan &program, ModuleOp module, func::FuncOp step,
                                 TableProof &proof) {
  if (!step->hasAttr(comm::kArenaAttr))
    return step.emitOpError("expected ")
           << comm::kArenaAttr << ", the workspace per rank, found none";
  int64_t arena = program.plan.arenaBytes;
  if (auto limit = module->getAttrOfType<IntegerAttr>(comm::kLimitAttr)) {
    int64_t scratch = scratchBound(
        program, step, [&](int64_t segment) { return proof.mostComputed(segment).most; });
    uint64_t workspace = llvm::SaturatingAdd<uint64_t>(arena, scratch);
    if (workspace > uint64_t(limit.getInt())) {
      auto diag = step.emitOpError("expected a workspace within the limit of ")
                  << limit.getInt() << " bytes per rank, found " << workspace << ": " << arena
                  << ", and a bound of " << scratch << " on scratch";
      diag.attachNote(module.getLoc()) << "the limit is set here";
      return diag;
    }
  }
  bool fine = true;
  for (comm::BufferOp buffer : step.getOps<comm::BufferOp>())
    if (llvm::SaturatingAdd(buffer.getOffset(), buffer.getBytes()) >
        uint64_t(std::max<int64_t>(arena, 0))) {
      buffer.emitOpError("expected a buffer inside of the workspace of ")
          << arena << " bytes, found one that ends at byte "
          << llvm::SaturatingAdd(buffer.getOffset(), buffer.getBytes());
      fine = false;
    }
  return success(fine);
}

/// Types in an edited text may say anything: no product wraps around.
static int64_t times(int64_t a, int64_t b) {
  int64_t result;
  return llvm::MulOverflow(a, b, result) ? std::numeric_limits<int64_t>::max() : result;
}

LogicalResult verify::checkNeeds(ArrayRef<Need> needs, TableProof &proof) {
  bool fine = true;
  llvm::DenseMap<int64_t, Reach> mostBlocks;
  llvm::SmallPtrSet<Operation *, 8> refused;
  for (const Need &need : needs) {
    Reach reach{need.elements, 0};
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
    if (bytes <= need.bytes || !refused.insert(need.holder).second)
      continue;
    auto diag = need.holder->emitOpError("expected at least ")
                << bytes << " bytes, which rank " << reach.rank << " needs, found " << need.bytes
                << " bytes";
    if (need.holder != need.user)
      diag.attachNote(need.user->getLoc()) << "used here";
    fine = false;
  }
  return success(fine);
}

LogicalResult verify::checkPools(const plan::Plan &plan, ArrayRef<Operation *> poolOps,
                                 TableProof &proof) {
  for (size_t pool = 0; pool < plan.pools.size(); ++pool)
    if (std::string wrong = proof.checkPool(int64_t(pool)); !wrong.empty())
      return poolOps[pool]->emitOpError() << wrong << " (pool " << pool << ")";
  return success();
}

/// A sweep over time. Living buffers are apart, so a new one can only meet its neighbours.
static LogicalResult checkApart(std::vector<Life> lives) {
  auto offset = [](const Life &life) { return int64_t(life.buffer().getOffset()); };
  auto end = [&](const Life &life) { return offset(life) + int64_t(life.buffer().getBytes()); };
  llvm::sort(lives, [&](const Life &a, const Life &b) {
    return std::pair(a.begin, offset(a)) < std::pair(b.begin, offset(b));
  });
  std::map<int64_t, const Life *> living; // by offset
  auto endsLater = [](const Life *a, const Life *b) { return a->end > b->end; };
  std::priority_queue<const Life *, std::vector<const Life *>, decltype(endsLater)> ending(
      endsLater);
  // Of one pool, or one side of a start: other proofs have shown that they are apart.
  auto standBeside = [](const Life &a, const Life &b) {
    Value one = a.value, other = b.value;
    if (a.buffer() == b.buffer())
      return true;
    return comm::placeOf(one).isMoving() && comm::placeOf(other).isMoving() &&
           comm::placeOf(one).getEnd() == comm::placeOf(other).getEnd() &&
           comm::startOf(a.writer, one)->first == comm::startOf(b.writer, other)->first;
  };
  for (const Life &life : lives) {
    if (offset(life) == end(life))
      continue;
    for (; !ending.empty() && ending.top()->end < life.begin; ending.pop())
      if (auto found = living.find(offset(*ending.top()));
          found != living.end() && found->second == ending.top())
        living.erase(found);
    auto next = living.lower_bound(offset(life));
    bool isLonger = true; // than another value in the same buffer
    for (auto neighbour : {next, next == living.begin() ? living.end() : std::prev(next)}) {
      if (neighbour == living.end())
        continue;
      const Life &other = *neighbour->second;
      // In its own buffer an operation may overwrite what it reads element by element.
      if (other.value == life.value || offset(other) >= end(life) || offset(life) >= end(other))
        continue;
      if (standBeside(life, other)) {
        isLonger = life.end > other.end;
        continue;
      }
      int64_t from = std::max(offset(life), offset(other)), to = std::min(end(life), end(other));
      auto diag = life.writer->emitOpError("expected a buffer of its own, found bytes ")
                  << from << " to " << to << " of the workspace shared with a value that lives";
      diag.attachNote(life.buffer().getLoc()) << "the buffer is here";
      diag.attachNote(other.buffer().getLoc()) << "the other buffer is here";
      diag.attachNote(other.writer->getLoc()) << "the other value is written here";
      diag.attachNote(other.lastUser->getLoc()) << "it is last used here";
      return diag;
    }
    if (!isLonger)
      continue;
    living[offset(life)] = &life;
    ending.push(&life);
  }
  return success();
}

LogicalResult verify::checkWorkspace(const ProgramPlan &program, ModuleOp module, func::FuncOp step,
                                     const StepFacts &facts, TableProof &proof) {
  SmallVector<Operation *> poolOps(program.plan.pools.size());
  for (auto [op, pool] : program.pools)
    poolOps[pool] = op;
  if (failed(checkLimits(program, module, step, proof)) || failed(checkNeeds(facts.needs, proof)) ||
      failed(checkPools(program.plan, poolOps, proof)))
    return failure();
  return checkApart(facts.lives);
}
