//===- Writes.h - Where a rule's results are stored -------------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_WRITES_H
#define STEPC_PASSES_DECIDE_WRITES_H

#include "dialects/optim/Optim.h"

namespace stepc::decide {

/// For each yielded value of a rule whose operations have spaces: the space that stores the value, or nullopt
/// if the value does not change. States that stay with blocks are stored in matrix space.
///
/// `out` recomputes values of `in` from the shards. That is right if `in` has overwritten no old value that
/// `out` reads. A new state that `in` stores as f32 may be read back instead of recomputed.
optim::Writes decideWrites(optim::RuleOp rule);

} // namespace stepc::decide

#endif
