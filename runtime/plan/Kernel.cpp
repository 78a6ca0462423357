//===- Kernel.cpp - How a device starts a kernel ---------------------------===//

#include "runtime/plan/Kernel.h"

#include <tuple>

namespace stepc::plan {

// No GPU allows more.
constexpr int64_t kMostThreads = 1024, kMostCluster = 16, kMostBytes = int64_t(1) << 20;

std::string checkLaunch(const LaunchShape &launch) {
  if (!isKnown(launch.grid))
    return "expected a grid of items, threads, resident or lists, found number " +
           std::to_string(static_cast<int64_t>(launch.grid));
  for (auto [what, found, least, most] :
       {std::tuple("threads", launch.threads, int64_t(1), kMostThreads),
        std::tuple("blocks of a cluster", launch.cluster, int64_t(1), kMostCluster),
        std::tuple("bytes of static shared memory", launch.staticBytes, int64_t(0), kMostBytes),
        std::tuple("bytes of dynamic shared memory", launch.dynamicBytes, int64_t(0), kMostBytes)})
    if (found < least || found > most)
      return "expected " + std::to_string(least) + " to " + std::to_string(most) + " " + what +
             ", found " + std::to_string(found);
  return {};
}

std::string checkLimits(const LaunchShape &launch, const BlockLimits &limits) {
  if (launch.threads > limits.threads)
    return "blocks of at most " + std::to_string(limits.threads) + " threads, found " +
           std::to_string(launch.threads);
  if (launch.cluster > limits.cluster)
    return limits.cluster == 1
               ? "no clusters, found clusters of " + std::to_string(launch.cluster) + " blocks"
               : "clusters of at most " + std::to_string(limits.cluster) + " blocks, found " +
                     std::to_string(launch.cluster);
  if (launch.sharedBytes() > limits.sharedBytes)
    return "at most " + std::to_string(limits.sharedBytes) +
           " bytes of shared memory for a block, found " + std::to_string(launch.sharedBytes());
  return {};
}

} // namespace stepc::plan
