//===- ClusterOption.h - The cluster that a plan is chosen for --*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_CLUSTEROPTION_H
#define STEPC_TOOLS_STEPC_CLUSTEROPTION_H

#include "frontends/manifest/ManifestCluster.h"
#include "tools/stepc/Options.h"
#include "tools/stepc/Report.h"

namespace stepc::driver {

/// The profile of what a library is made for: of several targets, of the first one. What is decided
/// above the target's level is decided once for all of them.
const cost::Cluster &profileOf(const CompileOptions &options);

/// What `--cluster` names: a profile, a file, or the JSON itself, for these meshes. Nothing after
/// an error.
std::optional<manifest::Cluster>
readClusterOption(const std::string &text, llvm::ArrayRef<plan::Mesh> meshes, Report &report);

} // namespace stepc::driver

#endif
