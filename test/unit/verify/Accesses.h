//===- Accesses.h - What an operation does to memory ------------*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_VERIFY_ACCESSES_H
#define STEPC_TEST_UNIT_VERIFY_ACCESSES_H

#include "dialects/comm/Comm.h"
#include "dialects/optim/Optim.h"

namespace stepc::test {

using namespace mlir;

/// What an operation does to a memory: a buffer, or the shards of a segment.
struct Access {
  const void *buffer;
  std::string shards;
  bool writes;
  bool conflicts(const Access &other) const {
    return buffer == other.buffer && shards == other.shards && (writes || other.writes);
  }
};

/// Of whose blocks an operation is.
inline FlatSymbolRefAttr segmentOf(Operation *op) {
  if (auto stage = dyn_cast<comm::StageOp>(op))
    return stage.getSegmentAttr();
  if (auto copy = dyn_cast<comm::CopyOp>(op))
    return copy.getSegmentAttr();
  return comm::segmentOfBatch(op);
}

/// All that an operation reads and writes; of a wait, what its collective does.
inline SmallVector<Access> accesses(Operation *op) {
  SmallVector<Access> result;
  auto add = [&](Value value, bool writes) {
    std::string shards;
    if (auto handle = value.getDefiningOp<comm::ShardsOp>())
      shards = std::to_string(int64_t(handle.getKind())) + handle.getState().value_or("").str() +
               segmentOf(op).getValue().str();
    result.push_back({shards.empty() ? value.getAsOpaquePointer() : nullptr, shards, writes});
  };
  if (auto wait = dyn_cast<comm::WaitOp>(op)) {
    auto start = wait.getToken().getDefiningOp<comm::StartOp>();
    for (Value value : start.getSends())
      add(value, false);
    for (Value value : start.getReceives())
      add(value, true);
    return result;
  }
  SmallVector<MemoryEffects::EffectInstance> instances;
  cast<MemoryEffectOpInterface>(op).getEffects(instances);
  for (auto &instance : instances)
    if (Value value = instance.getValue())
      add(value, isa<MemoryEffects::Write>(instance.getEffect()));
  return result;
}

} // namespace stepc::test

#endif
