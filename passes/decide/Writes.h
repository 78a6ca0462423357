//===- Writes.h - Where a rule's results are stored -------------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_WRITES_H
#define STEPC_PASSES_DECIDE_WRITES_H

#include "dialects/optim/Optim.h"

namespace stepc::decide {

/// One entry per yielded value of a rule whose operations have spaces: the space that stores
/// it (matrix: rows, cols and one states), or nothing when it is unchanged.
///
/// `out` recomputes what it needs of `in` from the shards. That is right as long as no old value it
/// reads was overwritten in `in`; a new state stored in `in` as f32 may be read back instead of
/// recomputed.
optim::Writes decideWrites(optim::RuleOp rule);

} // namespace stepc::decide

#endif
