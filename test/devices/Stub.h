//===- Stub.h - What the stand-ins for the driver, NCCL and cuBLASLt share ---===//
#ifndef STEPC_TEST_DEVICES_STUB_H
#define STEPC_TEST_DEVICES_STUB_H

#include "runtime/devices/gpu/CudaDriver.h"
#include "test/devices/StubStreams.h"

#include <dlfcn.h>

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

/// The stand-in in the shared library of that path; null where there is none, of which dlerror() tells.
inline const StubDriver *loadStubDriver(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  auto entry = reinterpret_cast<const StubDriver *(*)()>(
      library ? dlsym(library, "stepc_stub_driver") : nullptr);
  return entry ? entry() : nullptr;
}

namespace stepc::runtime::cuda {
/// Answers cuPointerGetAttributes (StubMemory.cpp).
void tellOwner(unsigned count, const int *attributes, void **values, Address);
/// Whether a test says that so many bytes are a GPU's.
bool isLent(Address, size_t bytes);
} // namespace stepc::runtime::cuda

#endif
