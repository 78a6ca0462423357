//===- CudaDriver.cpp - NVIDIA's driver, loaded when it is needed -----------===//

#include "runtime/devices/gpu/CudaDriver.h"
#include "runtime/text/Text.h"

#include <dlfcn.h>

namespace stepc::runtime::cuda {
namespace {

/// 12.0 is the oldest version that has all functions below.
constexpr int kLeastVersion = 12000;
constexpr const char *kName = "libcuda.so.1";

struct Loaded {
  Driver driver{};
  std::string problem;
  Loaded() {
    void *library = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      problem = format("expected NVIDIA's driver, found no %s (%s)", kName, dlerror());
      return;
    }
    auto load = [&](auto &function, const char *name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (!function && problem.empty())
        problem =
            format("expected the function %s in %s, found none: an older driver", name, kName);
    };
#define STEPC_LOAD(name) load(driver.name, #name)
    STEPC_LOAD(cuInit);
    STEPC_LOAD(cuDriverGetVersion);
    STEPC_LOAD(cuGetErrorName);
    STEPC_LOAD(cuGetErrorString);
    STEPC_LOAD(cuDeviceGetCount);
    STEPC_LOAD(cuDeviceGet);
    STEPC_LOAD(cuDeviceGetName);
    STEPC_LOAD(cuDeviceGetAttribute);
    STEPC_LOAD(cuDevicePrimaryCtxRetain);
    STEPC_LOAD(cuDevicePrimaryCtxRelease_v2);
    STEPC_LOAD(cuCtxPushCurrent_v2);
    STEPC_LOAD(cuCtxPopCurrent_v2);
    STEPC_LOAD(cuPointerGetAttributes);
    STEPC_LOAD(cuMemAlloc_v2);
    STEPC_LOAD(cuMemFree_v2);
    STEPC_LOAD(cuMemAllocHost_v2);
    STEPC_LOAD(cuMemFreeHost);
    STEPC_LOAD(cuMemsetD8Async);
    STEPC_LOAD(cuMemcpyHtoDAsync_v2);
    STEPC_LOAD(cuMemcpyDtoDAsync_v2);
    STEPC_LOAD(cuMemcpyDtoHAsync_v2);
    STEPC_LOAD(cuStreamCreate);
    STEPC_LOAD(cuStreamDestroy_v2);
    STEPC_LOAD(cuStreamWaitEvent);
    STEPC_LOAD(cuStreamSynchronize);
    STEPC_LOAD(cuStreamGetCtx);
    STEPC_LOAD(cuEventCreate);
    STEPC_LOAD(cuEventDestroy_v2);
    STEPC_LOAD(cuEventRecord);
    STEPC_LOAD(cuEventQuery);
    STEPC_LOAD(cuEventSynchronize);
    STEPC_LOAD(cuModuleLoadData);
    STEPC_LOAD(cuModuleUnload);
    STEPC_LOAD(cuModuleGetFunction);
    STEPC_LOAD(cuModuleGetGlobal_v2);
    STEPC_LOAD(cuLaunchKernel);
    STEPC_LOAD(cuLaunchKernelEx);
    STEPC_LOAD(cuFuncSetAttribute);
    STEPC_LOAD(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    STEPC_LOAD(cuOccupancyMaxActiveClusters);
    STEPC_LOAD(cuTensorMapEncodeTiled);
    STEPC_LOAD(cuThreadExchangeStreamCaptureMode);
    STEPC_LOAD(cuStreamBeginCapture_v2);
    STEPC_LOAD(cuStreamEndCapture);
    STEPC_LOAD(cuStreamGetCaptureInfo_v2);
    STEPC_LOAD(cuGraphInstantiateWithFlags);
    STEPC_LOAD(cuGraphLaunch);
    STEPC_LOAD(cuGraphDestroy);
    STEPC_LOAD(cuGraphExecDestroy);
    STEPC_LOAD(cuUserObjectCreate);
    STEPC_LOAD(cuUserObjectRelease);
    STEPC_LOAD(cuGraphRetainUserObject);
#undef STEPC_LOAD
    if (!problem.empty())
      return;
    int version = 0;
    if (Result wrong = driver.cuInit(0))
      problem = "NVIDIA's driver does not start: " + describe(driver, wrong);
    else if (Result wrong = driver.cuDriverGetVersion(&version))
      problem = "NVIDIA's driver tells no version: " + describe(driver, wrong);
    else if (version < kLeastVersion)
      problem = format("expected NVIDIA's driver for CUDA %d.%d or later, found %d.%d",
                       kLeastVersion / 1000, kLeastVersion % 1000 / 10, version / 1000,
                       version % 1000 / 10);
  }
};

} // namespace

const Driver *driver(std::string &problem) {
  static const Loaded loaded;
  problem = loaded.problem;
  return problem.empty() ? &loaded.driver : nullptr;
}

std::string describe(const Driver &driver, Result result) {
  const char *name = nullptr, *text = nullptr;
  driver.cuGetErrorName(result, &name);
  driver.cuGetErrorString(result, &text);
  return format("%s, %s", name ? name : std::to_string(result).c_str(), text ? text : "no text");
}

} // namespace stepc::runtime::cuda
