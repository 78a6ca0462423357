//===- Profiles.cpp - Figures of machines, by name -------------------------===//
//
// docs/clusters.md names the source of every figure, and says which are measured.
//
//===----------------------------------------------------------------------===//

#include "passes/cost/Profiles.h"

namespace stepc::cost {
namespace {

/// NCCL's messages over NVLink and over InfiniBand.
constexpr Link nvlink(double bandwidth) { return {7.5e-6, 0.5e-6, bandwidth}; }
constexpr Link infiniBand(double bandwidth) { return {22e-6, 1e-6, bandwidth}; }
constexpr double kLaunch = 3e-6; // of a GPU's kernel

/// GPUs in domains of NVLink. InfiniBand connects the domains.
Cluster gpus(const char *name, int64_t domain, double nvlinkBandwidth, double networkBandwidth,
             Device device) {
  device.overlaps = true;
  return {name,
          {{"nvlink", domain, nvlink(nvlinkBandwidth)},
           {"network", Level::kAll, infiniBand(networkBandwidth)}},
          device};
}

} // namespace

const std::vector<Cluster> &profiles() {
  static const std::vector<Cluster> all = {
      // 16 threads, together with 10¹² operations and 100 GB per second. 100 Gbit/s and 20 µs to every
      // other rank, one message after another. With more threads, each thread has less work per wave,
      // so many waves would cost more time.
      {"cpu",
       {{"network", Level::kAll, {20e-6, 20e-6, 12.5e9}}},
       {.flops = 1e12, .memory = 100e9, .capacity = 64e9, .launch = 5e-6, .threads = 16}},
      gpus("a100", 8, 230e9, 24.2e9,
           {.flops = 254e12,
            .memory = 1.61e12,
            .capacity = 80e9,
            .launch = kLaunch,
            .threads = 108}),
      gpus(
          "h100", 8, 370e9, 48.5e9,
          {.flops = 645e12, .memory = 2.9e12, .capacity = 80e9, .launch = kLaunch, .threads = 132}),
      gpus("h200", 8, 370e9, 48.5e9,
           {.flops = 780e12,
            .memory = 4.3e12,
            .capacity = 141e9,
            .launch = kLaunch,
            .threads = 132}),
      gpus(
          "b200", 8, 730e9, 48.5e9,
          {.flops = 1610e12, .memory = 6e12, .capacity = 180e9, .launch = kLaunch, .threads = 148}),
      gpus(
          "gb200", 72, 730e9, 48.5e9,
          {.flops = 1790e12, .memory = 6e12, .capacity = 186e9, .launch = kLaunch, .threads = 148}),
      gpus(
          "gb300", 72, 730e9, 97e9,
          {.flops = 1790e12, .memory = 6e12, .capacity = 279e9, .launch = kLaunch, .threads = 148}),
  };
  return all;
}

const Cluster *findProfile(std::string_view name) {
  for (const Cluster &cluster : profiles())
    if (cluster.profile == name)
      return &cluster;
  return nullptr;
}

const Cluster &cpuProfile() { return *findProfile("cpu"); }

const Cluster &gpuProfile(int64_t capability) {
  return *findProfile(capability < 90     ? "a100"
                      : capability < 100  ? "h100"
                      : capability == 103 ? "gb300"
                                          : "b200");
}

} // namespace stepc::cost
