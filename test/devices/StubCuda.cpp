//===- StubCuda.cpp - The driver that is the host, by the driver's own names --===//
//
// libcuda.so.1, as far as examples/gpu_trainer.cpp is linked with it, and benchmarks/pin_products.py loads it.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/gpu/CudaDriver.h"

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace stepc::runtime::cuda;

static const Driver &all() {
  std::string problem;
  static const Driver *const found = driver(problem);
  if (!found) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return *found;
}

#define STEPC_FORWARD(name, parameters, arguments)                                                 \
  extern "C" __attribute__((visibility("default"))) Result name parameters {                       \
    return all().name arguments;                                                                   \
  }

STEPC_FORWARD(cuInit, (unsigned flags), (flags))
STEPC_FORWARD(cuGetErrorName, (Result result, const char **name), (result, name))
STEPC_FORWARD(cuGetErrorString, (Result result, const char **text), (result, text))
STEPC_FORWARD(cuDeviceGetCount, (int *count), (count))
STEPC_FORWARD(cuDeviceGet, (DeviceNumber * device, int ordinal), (device, ordinal))
STEPC_FORWARD(cuDeviceGetAttribute, (int *value, int attribute, DeviceNumber device),
              (value, attribute, device))
STEPC_FORWARD(cuDevicePrimaryCtxRetain, (Context * context, DeviceNumber device), (context, device))
STEPC_FORWARD(cuDevicePrimaryCtxRelease_v2, (DeviceNumber device), (device))
STEPC_FORWARD(cuMemAlloc_v2, (Address * memory, size_t bytes), (memory, bytes))
STEPC_FORWARD(cuMemFree_v2, (Address memory), (memory))
STEPC_FORWARD(cuMemAllocHost_v2, (void **memory, size_t bytes), (memory, bytes))
STEPC_FORWARD(cuMemFreeHost, (void *memory), (memory))
STEPC_FORWARD(cuMemcpyHtoDAsync_v2,
              (Address to, const void *from, size_t bytes, StreamHandle stream),
              (to, from, bytes, stream))
STEPC_FORWARD(cuMemcpyDtoHAsync_v2, (void *to, Address from, size_t bytes, StreamHandle stream),
              (to, from, bytes, stream))
STEPC_FORWARD(cuStreamCreate, (StreamHandle * stream, unsigned flags), (stream, flags))
STEPC_FORWARD(cuStreamSynchronize, (StreamHandle stream), (stream))
STEPC_FORWARD(cuStreamDestroy_v2, (StreamHandle stream), (stream))
STEPC_FORWARD(cuEventCreate, (EventHandle * event, unsigned flags), (event, flags))
STEPC_FORWARD(cuEventDestroy_v2, (EventHandle event), (event))
STEPC_FORWARD(cuEventRecord, (EventHandle event, StreamHandle stream), (event, stream))
STEPC_FORWARD(cuEventQuery, (EventHandle event), (event))

extern "C" __attribute__((visibility("default"))) Result cuCtxSetCurrent(Context context) {
  return all().cuCtxPushCurrent_v2(context);
}
