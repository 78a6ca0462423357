//===- Profiles.h - Figures of machines, by name ----------------*- C++ -*-===//
#ifndef STEPC_PASSES_COST_PROFILES_H
#define STEPC_PASSES_COST_PROFILES_H

#include "passes/cost/Cluster.h"

#include <string_view>

namespace stepc::cost {

/// All clusters that have a name; docs/clusters.md says where each figure is from.
const std::vector<Cluster> &profiles();
/// The profile of that name, or null.
const Cluster *findProfile(std::string_view name);
/// The profile for CPUs: a rank has a share of a server's cores.
const Cluster &cpuProfile();
/// The profile for GPUs of this compute capability (90 for sm_90a). It describes a GPU for training of the
/// same generation.
const Cluster &gpuProfile(int64_t capability);

} // namespace stepc::cost

#endif
