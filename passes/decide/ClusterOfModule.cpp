//===- ClusterOfModule.cpp - The cluster that a module is planned for ------===//

#include "passes/decide/ClusterOfModule.h"

#include "dialects/optim/Optim.h"
#include "passes/cost/Profiles.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

static_assert(ClusterLevelAttr::kAll == cost::Level::kAll);

cost::Cluster decide::clusterOf(ModuleOp module) {
  auto ops = module.getOps<ClusterOp>();
  if (ops.empty())
    return cost::cpuProfile();
  ClusterOp op = *ops.begin();
  cost::Cluster cluster;
  cluster.profile = op.getProfile().value_or("").str();
  for (auto level : op.getLevels().getAsRange<ClusterLevelAttr>())
    cluster.levels.push_back(
        {level.getName().str(),
         level.getRanks(),
         {level.getLatency().convertToDouble(), level.getGap().convertToDouble(),
          level.getBandwidth().convertToDouble()}});
  DeviceAttr device = op.getDevice();
  cluster.device = {device.getFlops().convertToDouble(),
                    device.getMemory().convertToDouble(),
                    device.getCapacity().convertToDouble(),
                    device.getLaunch().convertToDouble(),
                    double(device.getThreads()),
                    device.getOverlaps(),
                    device.getProducts()};
  return cluster;
}

void decide::setCluster(ModuleOp module, const cost::Cluster &cluster, Location location) {
  for (auto op : llvm::make_early_inc_range(module.getOps<ClusterOp>()))
    op.erase();
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  SmallVector<Attribute> levels;
  for (const cost::Level &level : cluster.levels)
    levels.push_back(ClusterLevelAttr::get(builder.getContext(), level.name, level.ranks,
                                           APFloat(level.link.latency), APFloat(level.link.gap),
                                           APFloat(level.link.bandwidth)));
  const cost::Device &device = cluster.device;
  ClusterOp::create(builder, location,
                    cluster.profile.empty() ? StringAttr() : builder.getStringAttr(cluster.profile),
                    builder.getArrayAttr(levels),
                    DeviceAttr::get(builder.getContext(), APFloat(device.flops),
                                    APFloat(device.memory), APFloat(device.capacity),
                                    APFloat(device.launch), int64_t(device.threads),
                                    device.overlaps, device.products));
}
