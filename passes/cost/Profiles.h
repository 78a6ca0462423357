//===- Profiles.h - Figures of machines, by name ----------------*- C++ -*-===//
#ifndef STEPC_PASSES_COST_PROFILES_H
#define STEPC_PASSES_COST_PROFILES_H

#include "passes/cost/Cluster.h"

#include <string_view>

namespace stepc::cost {

/// All that have a name; docs/clusters.md says where each figure is from.
const std::vector<Cluster> &profiles();
/// The one of that name, or null.
const Cluster *findProfile(std::string_view name);
/// Of what a library is made for: a rank with a share of a server's cores.
const Cluster &cpuProfile();
/// Of a GPU of this compute capability (90 of sm_90a): those of its generation that train.
const Cluster &gpuProfile(int64_t capability);

} // namespace stepc::cost

#endif
