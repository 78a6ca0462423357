//===- Cpu.cpp - The CPU as a device ----------------------------------------===//
#include "runtime/devices/InOrder.h"

namespace stepc::runtime {
namespace {

void runCompiled(const DeviceContext &, const Launch &launch, int64_t first, int64_t last) {
  launch.kernel(launch.arguments, first, last);
}

} // namespace
} // namespace stepc::runtime

using namespace stepc::runtime;

extern "C" constinit const stepc_device_table stepc_device_cpu = InOrder<runCompiled>::table(
    "cpu", [](DeviceContext &, const stepc_options &) { return std::string(); });
