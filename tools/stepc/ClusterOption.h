//===- ClusterOption.h - The cluster that a plan is chosen for --*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_CLUSTEROPTION_H
#define STEPC_TOOLS_STEPC_CLUSTEROPTION_H

#include "frontends/manifest/ManifestCluster.h"
#include "tools/stepc/Options.h"
#include "tools/stepc/Report.h"

namespace stepc::driver {

/// The profile for the target of the options, or for the first of several targets. Levels that know of no
/// target are decided once for all of them. A CPU in the place of a GPU has the GPU's kernels for products;
/// manifest::Cluster::resolve says when they count.
cost::Cluster profileOf(const CompileOptions &options);

/// Reads what `--cluster` names: a profile, a file, or the JSON itself, for these meshes. Returns nothing
/// after an error, which was printed.
std::optional<manifest::Cluster>
readClusterOption(const std::string &text, llvm::ArrayRef<plan::Mesh> meshes, Report &report);

} // namespace stepc::driver

#endif
