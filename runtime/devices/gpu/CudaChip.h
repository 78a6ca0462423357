//===- CudaChip.h - Which GPU it is, and the code for it ---------*- C++ -*-===//
#ifndef STEPC_RUNTIME_DEVICES_GPU_CUDACHIP_H
#define STEPC_RUNTIME_DEVICES_GPU_CUDACHIP_H

#include "runtime/devices/Device.h"
#include "runtime/devices/gpu/CudaDriver.h"

namespace stepc::runtime::cuda {

/// What the driver says of a GPU.
struct Chip {
  DeviceNumber device = 0;
  std::string name; ///< "NVIDIA H200"
  int major = 0, minor = 0;
  int blockThreads = 0, blockSharedBytes = 0; ///< the most that a GPU block can have
  int multiprocessors = 0;

  int64_t number() const { return 10 * major + minor; } ///< 90 for sm_90
};

/// Asks the driver about GPU number `ordinal`. Returns what went wrong; empty if nothing did.
std::string askChip(const Driver &, int32_t ordinal, Chip &chip);

/// The code that a chip runs.
struct ChosenImage {
  size_t program = 0; ///< its number in the library
  const stepc_image *image = nullptr;
};

/// Chooses among the images of all programs. Machine code runs on its own chip and on later chips of its
/// generation. If its chip's name ends in 'a', it runs on this chip alone. For other chips the driver
/// compiles the newest PTX that fits. Returns why no image fits, or which bytes differ from their hash; empty
/// if one fits.
std::string chooseImage(const Chip &, const LibraryPrograms &, ChosenImage &chosen);

} // namespace stepc::runtime::cuda

#endif
