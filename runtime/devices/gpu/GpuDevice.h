//===- GpuDevice.h - A device table over a GPU -------------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_DEVICES_GPU_GPUDEVICE_H
#define STEPC_RUNTIME_DEVICES_GPU_GPUDEVICE_H

#include "runtime/devices/gpu/Gpu.h"

namespace stepc::runtime {

/// Opens a GPU for an instance. Null if it cannot; `problem` then says why.
using OpenGpu = std::unique_ptr<Gpu> (*)(const DeviceContext &, const stepc_options &,
                                         std::string &problem);

/// The function `open` of a device table, for the GPU that `openGpu` opens.
std::string openGpuDevice(DeviceContext &context, const stepc_options &options, OpenGpu openGpu);

/// A device table with `open` and all other functions. If the GPU has its own memory, messages are on its
/// stream.
stepc_device_table gpuDeviceTable(const char *name, int32_t kind, bool hasOwnMemory,
                                  std::string (*open)(DeviceContext &, const stepc_options &),
                                  bool looksForRaces = false);

} // namespace stepc::runtime

#endif
