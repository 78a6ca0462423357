//===- ClusterOfModule.h - The cluster that a module is planned for -*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_CLUSTEROFMODULE_H
#define STEPC_PASSES_DECIDE_CLUSTEROFMODULE_H

#include "passes/cost/Cluster.h"

#include "mlir/IR/BuiltinOps.h"

namespace stepc::decide {

/// The module's `optim.cluster`, or the CPU's profile if it has none.
cost::Cluster clusterOf(mlir::ModuleOp module);

/// Adds `cluster` as an `optim.cluster` in front of all other operations of the module, and erases any other.
void setCluster(mlir::ModuleOp module, const cost::Cluster &cluster, mlir::Location location);

} // namespace stepc::decide

#endif
