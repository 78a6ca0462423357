//===- CudaPointers.h - Whose memory pointers of the trainer's are -*- C++ -*-===//
#ifndef STEPC_RUNTIME_DEVICES_GPU_CUDAPOINTERS_H
#define STEPC_RUNTIME_DEVICES_GPU_CUDAPOINTERS_H

#include "runtime/devices/gpu/CudaDriver.h"

#include <array>

namespace stepc::runtime::cuda {

class CudaPointers {
public:
  explicit CudaPointers(const Driver &driver) : driver(driver) {}

  /// Returns why a pointer does not lead to `memory` (a stepc_memory) of GPU number `ordinal`; empty if it
  /// does.
  std::string check(const void *pointer, int32_t memory, int ordinal);

private:
  const Driver &driver;
  // Pointers that were found to be this GPU's. Allocators give gradients the same few addresses again and
  // again, and an address of one GPU never becomes another GPU's.
  static constexpr Address kAlignment = 256;
  std::array<const void *, 4096> known{};
};

} // namespace stepc::runtime::cuda

#endif
