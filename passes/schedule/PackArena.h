//===- PackArena.h - Offsets for buffers that live at times -----*- C++ -*-===//
#ifndef STEPC_PASSES_SCHEDULE_PACKARENA_H
#define STEPC_PASSES_SCHEDULE_PACKARENA_H

#include <cstdint>
#include <vector>

namespace stepc::schedule {

/// A buffer, its life (positions of its first and last use, both included) and its offset.
struct ArenaBuffer {
  int64_t bytes = 0, first = 0, last = 0;
  int64_t offset = 0; ///< set by packArena, a multiple of comm::kAlignment
};

/// First fit in decreasing order of size: each buffer gets the lowest offset that is free while it lives.
/// Returns the bytes of the arena. The result is deterministic: of equally large buffers the earlier comes
/// first.
int64_t packArena(std::vector<ArenaBuffer> &buffers);

} // namespace stepc::schedule

#endif
