//===- GpuDevice.h - A device table over a GPU -------------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_DEVICES_GPU_GPUDEVICE_H
#define STEPC_RUNTIME_DEVICES_GPU_GPUDEVICE_H

#include "runtime/devices/gpu/Gpu.h"

namespace stepc::runtime {

/// Opens a GPU for an instance; null with the reason.
using OpenGpu = std::unique_ptr<Gpu> (*)(const DeviceContext &, const stepc_options &,
                                         std::string &problem);

/// `open` of a device table, with the GPU that `openGpu` gives.
std::string openGpuDevice(DeviceContext &context, const stepc_options &options, OpenGpu openGpu);

/// A table with all other functions. Of a GPU with memory of its own messages stand on its stream.
stepc_device_table gpuDeviceTable(const char *name, int32_t kind, bool hasOwnMemory,
                                  std::string (*open)(DeviceContext &, const stepc_options &),
                                  bool looksForRaces = false);

} // namespace stepc::runtime

#endif
