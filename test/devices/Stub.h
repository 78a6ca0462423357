//===- Stub.h - What the stand-ins for the driver and for NCCL share ---------===//
#ifndef STEPC_TEST_DEVICES_STUB_H
#define STEPC_TEST_DEVICES_STUB_H

#include "runtime/devices/gpu/CudaDriver.h"
#include "test/devices/StubStreams.h"

/// The functions of the driver, and what the stand-in for NCCL asks of it.
struct StubDriver {
  const stepc::runtime::cuda::Driver *functions;
  /// Counts a call, and says whether it fails: a fault that a test plants, no current context, or, of
  /// setting up, within a step.
  stepc::runtime::cuda::Result (*begin)(const char *name, bool isSetup);
  /// Whether memory of the GPU, or of staging, holds so many bytes there; whether a stream is there.
  bool (*isMemory)(const void *address, size_t bytes);
  bool (*isStream)(stepc::runtime::cuda::StreamHandle);
  StubStreams &streams;
};

namespace stepc::runtime::cuda {
/// Answers cuPointerGetAttributes (StubMemory.cpp).
void tellOwner(unsigned count, const int *attributes, void **values, Address);
/// Whether a test says that so many bytes are a GPU's.
bool isLent(Address, size_t bytes);
} // namespace stepc::runtime::cuda

#endif
