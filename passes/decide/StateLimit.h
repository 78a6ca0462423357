//===- StateLimit.h - Owners that obey a limit of states' bytes -*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_STATELIMIT_H
#define STEPC_PASSES_DECIDE_STATELIMIT_H

#include "passes/decide/OwnerTable.h"

namespace stepc::decide {

/// The bytes of states that each global rank has, whoever owns the blocks of `owned`: states by their
/// placements, and states that stay with blocks of all other groups.
cost::Loads fixedStateBytes(mlir::ModuleOp module, llvm::ArrayRef<optim::GroupOp> owned);

/// Whether no rank has more than the module's `optim.state_limit` bytes of states with these bases of the
/// groups' blocks.
bool obeysStateLimit(mlir::ModuleOp module, llvm::ArrayRef<optim::GroupOp> groups,
                     const cost::Cluster &cluster, llvm::ArrayRef<std::vector<int64_t>> bases);

/// Changes the bases of groups' blocks (a list per group, one base per block) so that no rank has more than
/// the module's `optim.state_limit` bytes of states. Leaves them as they are if that holds already. Emits an
/// error if no such bases are found. `fixed` are the loads that do not depend on the bases, in picoseconds.
mlir::LogicalResult obeyStateLimit(mlir::ModuleOp module, llvm::ArrayRef<optim::GroupOp> groups,
                                   const cost::Cluster &cluster, const cost::Loads &fixed,
                                   std::vector<std::vector<int64_t>> &bases);

} // namespace stepc::decide

#endif
