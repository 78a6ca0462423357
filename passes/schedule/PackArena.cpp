//===- PackArena.cpp - First fit in decreasing order of size ---------------===//

#include "passes/schedule/PackArena.h"

#include "dialects/comm/Comm.h"
#include "dialects/optim/Saturate.h"

using namespace stepc;
using namespace stepc::schedule;

static int64_t align(int64_t bytes) {
  return saturatingAdd(bytes, comm::kAlignment - 1) / comm::kAlignment * comm::kAlignment;
}

int64_t schedule::packArena(std::vector<ArenaBuffer> &buffers) {
  std::vector<ArenaBuffer *> order;
  for (ArenaBuffer &buffer : buffers)
    order.push_back(&buffer);
  llvm::sort(order, [](ArenaBuffer *a, ArenaBuffer *b) {
    return std::tuple(-a->bytes, a->first, a) < std::tuple(-b->bytes, b->first, b);
  });
  // Copies of the placed buffers, sorted by offset. They are contiguous in memory, because for each buffer
  // this walks over all placed ones.
  std::vector<ArenaBuffer> placed;
  placed.reserve(buffers.size());
  int64_t arena = 0;
  for (ArenaBuffer *buffer : order) {
    int64_t offset = 0;
    for (const ArenaBuffer &other : placed) {
      if (other.last < buffer->first || buffer->last < other.first)
        continue; // never alive together
      if (saturatingAdd(offset, buffer->bytes) <= other.offset)
        break; // the gap in front of `other` is large enough
      offset = std::max(offset, align(saturatingAdd(other.offset, other.bytes)));
    }
    buffer->offset = offset;
    arena = std::max(arena, align(saturatingAdd(offset, buffer->bytes)));
    placed.insert(llvm::upper_bound(placed, *buffer,
                                    [](const ArenaBuffer &a, const ArenaBuffer &b) {
                                      return a.offset < b.offset;
                                    }),
                  *buffer);
  }
  return arena;
}
