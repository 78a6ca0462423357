//===- MoveTable.h - Bytes by what they travel for --------------*- C++ -*-===//
#ifndef STEPC_PASSES_EXPLAIN_MOVETABLE_H
#define STEPC_PASSES_EXPLAIN_MOVETABLE_H

#include "passes/plan/MoveKinds.h"

#include "llvm/Support/raw_ostream.h"

namespace stepc::explain {

/// Prints what all ranks send for each group, by its name, with a column for each kind of move. Prints
/// nothing if all that travels goes to where blocks are computed, and back.
void printMoveKinds(const std::vector<std::pair<std::string, plan::BytesByKind>> &groups,
                    llvm::raw_ostream &os);

} // namespace stepc::explain

#endif
