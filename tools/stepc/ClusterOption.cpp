//===- ClusterOption.cpp - The cluster that a plan is chosen for -----------===//

#include "tools/stepc/ClusterOption.h"

#include "passes/cost/Profiles.h"
#include "passes/kernels/GpuChips.h"
#include "passes/kernels/Target.h"

using namespace stepc;
using llvm::StringRef;

cost::Cluster driver::profileOf(const CompileOptions &options) {
  StringRef first = options.targets.empty() ? StringRef("cpu") : options.targets.front();
  llvm::Expected<std::unique_ptr<kernels::Target>> target = kernels::targetOfText(first);
  if (!target) {
    llvm::consumeError(target.takeError()); // the check of the options reports this error
    return cost::cpuProfile();
  }
  std::optional<GpuTarget> gpu = gpuOfChip((*target)->chip());
  if (!gpu)
    return cost::cpuProfile();
  cost::Cluster cluster =
      isCuda((*target)->chip()) ? cost::gpuProfile(gpu->number()) : cost::cpuProfile();
  cluster.device.products = gpu->products();
  return cluster;
}

std::optional<manifest::Cluster> driver::readClusterOption(const std::string &text,
                                                           llvm::ArrayRef<plan::Mesh> meshes,
                                                           Report &report) {
  if (cost::findProfile(text)) {
    manifest::Cluster cluster;
    cluster.profile = text;
    return cluster;
  }
  std::string name = "--cluster";
  std::optional<StringRef> json = text;
  if (!StringRef(text).starts_with("{")) {
    name = text;
    json = report.read(name, "a cluster", kMostTable);
  }
  if (!json)
    return std::nullopt;
  manifest::ErrorList errors;
  std::optional<manifest::Cluster> cluster = manifest::readCluster(*json, name, meshes, errors);
  report.errors(errors);
  return cluster;
}
