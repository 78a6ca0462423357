//===- ClusterOfModule.h - The cluster that a module is planned for -*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_CLUSTEROFMODULE_H
#define STEPC_PASSES_DECIDE_CLUSTEROFMODULE_H

#include "passes/cost/Cluster.h"

#include "mlir/IR/BuiltinOps.h"

namespace stepc::decide {

/// The module's `optim.cluster`; the CPU's profile where it has none.
cost::Cluster clusterOf(mlir::ModuleOp module);

/// Makes it the module's `optim.cluster`, before all that follows, in the place of another.
void setCluster(mlir::ModuleOp module, const cost::Cluster &cluster, mlir::Location location);

} // namespace stepc::decide

#endif
