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
  int blockThreads = 0, blockSharedBytes = 0; ///< the most that a block can have
  int multiprocessors = 0;

  int64_t number() const { return 10 * major + minor; } ///< 90 for sm_90
};

/// Asks the driver for the GPU of that number. The text says what went wrong.
std::string askChip(const Driver &, int32_t ordinal, Chip &chip);

/// The code that a chip runs.
struct ChosenImage {
  size_t program = 0; ///< among those of the library
  const stepc_image *image = nullptr;
};

/// Chooses among the images of all programs. Machine code runs on its own chip and on later ones of its
/// generation, unless the chip's name ends in 'a'. For other chips the driver makes code from PTX, the newest
/// that there is. The text says why no image can be taken; each is compared with its hash before.
std::string chooseImage(const Chip &, const LibraryPrograms &, ChosenImage &chosen);

} // namespace stepc::runtime::cuda

#endif
