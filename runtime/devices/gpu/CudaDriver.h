//===- CudaDriver.h - What is used of NVIDIA's driver ------------*- C++ -*-===//
//
// Types and functions of the CUDA driver API (docs.nvidia.com/cuda/cuda-driver-api). They are declared here,
// so that a library needs neither CUDA's headers when it is built nor the driver when it is linked. Each
// function is in its oldest version that still exists, whose layouts are equal on all drivers.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_DEVICES_GPU_CUDADRIVER_H
#define STEPC_RUNTIME_DEVICES_GPU_CUDADRIVER_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace stepc::runtime::cuda {

using Result = int; // CUresult; 0: success
using DeviceNumber = int;
using Address = uint64_t; // CUdeviceptr
using Context = struct ContextOpaque *;
using Module = struct ModuleOpaque *;
using Function = struct FunctionOpaque *;
using StreamHandle = struct StreamOpaque *;
using EventHandle = struct EventOpaque *;
using GraphHandle = struct GraphOpaque *;
using GraphExecHandle = struct GraphExecOpaque *; // a graph that is ready to run
using UserObject = struct UserObjectOpaque *;

inline constexpr Result kNotFound = 500, kNotReady = 600;
inline constexpr int kMajor = 75, kMinor = 76; // CU_DEVICE_ATTRIBUTE_COMPUTE_…
inline constexpr int kMultiprocessors = 16;    // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
inline constexpr int kBlockThreads = 1;        // CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK
inline constexpr int kBlockSharedBytes = 97;   // …_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
inline constexpr int kDynamicBytes = 8;        // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
inline constexpr int kMemoryType = 2, kIsManaged = 8, kOrdinal = 9; // CU_POINTER_ATTRIBUTE_…
inline constexpr unsigned kDeviceMemory = 2;                        // CU_MEMORYTYPE_DEVICE
inline constexpr unsigned kNonBlocking = 1, kDisableTiming = 2;     // of streams, of events
inline constexpr int kRelaxed = 2;                                  // CU_STREAM_CAPTURE_MODE_…
inline constexpr int kNone = 0, kInvalidated = 2;                   // CU_STREAM_CAPTURE_STATUS_…
inline constexpr unsigned kNoDestructorSync = 1, kMove = 1; // of user objects, of references

/// CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, …_PROGRAMMATIC_STREAM_SERIALIZATION.
inline constexpr int kClusterDimension = 4, kDependent = 6;

/// CUlaunchAttribute, of which two kinds are used.
struct LaunchAttribute {
  int id = 0;
  char padding[4] = {};
  union {
    unsigned cluster[3];
    int isDependent;
    char bytes[64];
  };

  static LaunchAttribute ofCluster(int64_t blocks) {
    LaunchAttribute made;
    made.id = kClusterDimension;
    made.cluster[0] = unsigned(blocks);
    made.cluster[1] = made.cluster[2] = 1;
    return made;
  }
  /// Lets the kernel begin while the kernel before it in the stream ends. It must wait for that kernel
  /// itself.
  static LaunchAttribute ofDependent() {
    LaunchAttribute made;
    made.id = kDependent;
    made.isDependent = 1;
    return made;
  }
};
/// Values of a tensor map: CU_TENSOR_MAP_DATA_TYPE_…, …_SWIZZLE_128B, …_L2_PROMOTION_L2_256B.
inline constexpr int kMapF16 = 6, kMapF32 = 7, kMapBF16 = 9, kSwizzle128 = 3, kPromote256 = 3;

/// CUlaunchConfig.
struct LaunchConfig {
  unsigned grid[3], block[3], sharedBytes;
  StreamHandle stream;
  LaunchAttribute *attributes;
  unsigned count;
};

/// The functions, by their names in cuda.h. If the header maps a name to `…_v2`, the name has the suffix
/// here.
struct Driver {
  Result (*cuInit)(unsigned flags);
  Result (*cuDriverGetVersion)(int *version);
  Result (*cuGetErrorName)(Result, const char **name);
  Result (*cuGetErrorString)(Result, const char **text);
  Result (*cuDeviceGetCount)(int *count);
  Result (*cuDeviceGet)(DeviceNumber *, int ordinal);
  Result (*cuDeviceGetName)(char *name, int length, DeviceNumber);
  Result (*cuDeviceGetAttribute)(int *value, int attribute, DeviceNumber);
  Result (*cuDevicePrimaryCtxRetain)(Context *, DeviceNumber);
  Result (*cuDevicePrimaryCtxRelease_v2)(DeviceNumber);
  Result (*cuCtxPushCurrent_v2)(Context);
  Result (*cuCtxPopCurrent_v2)(Context *);
  /// All answers are 0 for memory that the driver does not know. The call needs no context.
  Result (*cuPointerGetAttributes)(unsigned count, const int *attributes, void **values, Address);
  Result (*cuMemAlloc_v2)(Address *, size_t bytes);
  Result (*cuMemFree_v2)(Address);
  Result (*cuMemAllocHost_v2)(void **, size_t bytes);
  Result (*cuMemFreeHost)(void *);
  Result (*cuMemsetD8Async)(Address, unsigned char value, size_t bytes, StreamHandle);
  Result (*cuMemcpyHtoDAsync_v2)(Address to, const void *from, size_t bytes, StreamHandle);
  Result (*cuMemcpyDtoDAsync_v2)(Address to, Address from, size_t bytes, StreamHandle);
  Result (*cuMemcpyDtoHAsync_v2)(void *to, Address from, size_t bytes, StreamHandle);
  Result (*cuStreamCreate)(StreamHandle *, unsigned flags);
  Result (*cuStreamDestroy_v2)(StreamHandle);
  Result (*cuStreamWaitEvent)(StreamHandle, EventHandle, unsigned flags);
  Result (*cuStreamSynchronize)(StreamHandle);
  Result (*cuStreamGetCtx)(StreamHandle, Context *);
  Result (*cuEventCreate)(EventHandle *, unsigned flags);
  Result (*cuEventDestroy_v2)(EventHandle);
  Result (*cuEventRecord)(EventHandle, StreamHandle);
  Result (*cuEventQuery)(EventHandle);
  Result (*cuEventSynchronize)(EventHandle);
  Result (*cuModuleLoadData)(Module *, const void *image);
  Result (*cuModuleUnload)(Module);
  Result (*cuModuleGetFunction)(Function *, Module, const char *name);
  /// kNotFound if the module has no such variable.
  Result (*cuModuleGetGlobal_v2)(Address *, size_t *bytes, Module, const char *name);
  Result (*cuLaunchKernel)(Function, unsigned gridX, unsigned gridY, unsigned gridZ,
                           unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                           StreamHandle, void **parameters, void **extra);
  Result (*cuLaunchKernelEx)(const LaunchConfig *, Function, void **parameters, void **extra);
  Result (*cuFuncSetAttribute)(Function, int attribute, int value);
  /// How many GPU blocks of a kernel one multiprocessor holds at a time.
  Result (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int *blocks, Function, int threads,
                                                        size_t dynamicBytes);
  /// How many clusters of such a launch run at a time.
  Result (*cuOccupancyMaxActiveClusters)(int *clusters, Function, const LaunchConfig *);
  /// `map`: 128 bytes at a multiple of 64. Sizes and boxes are in elements, strides in bytes.
  Result (*cuTensorMapEncodeTiled)(void *map, int type, unsigned rank, void *address,
                                   const uint64_t *sizes, const uint64_t *strides,
                                   const unsigned *box, const unsigned *elementStrides,
                                   int interleave, int swizzle, int promotion, int outside);
  Result (*cuThreadExchangeStreamCaptureMode)(int *mode);
  Result (*cuStreamBeginCapture_v2)(StreamHandle, int mode);
  Result (*cuStreamEndCapture)(StreamHandle, GraphHandle *);
  Result (*cuStreamGetCaptureInfo_v2)(StreamHandle, int *status, uint64_t *id, GraphHandle *,
                                      const void **dependencies, size_t *count);
  Result (*cuGraphInstantiateWithFlags)(GraphExecHandle *, GraphHandle, unsigned long long flags);
  Result (*cuGraphLaunch)(GraphExecHandle, StreamHandle);
  Result (*cuGraphDestroy)(GraphHandle);
  Result (*cuGraphExecDestroy)(GraphExecHandle);
  Result (*cuUserObjectCreate)(UserObject *, void *object, void (*destroy)(void *),
                               unsigned references, unsigned flags);
  Result (*cuUserObjectRelease)(UserObject, unsigned references);
  Result (*cuGraphRetainUserObject)(GraphHandle, UserObject, unsigned references, unsigned flags);
};

/// NVIDIA's driver, loaded and initialized once per library. If the process has loaded it already, this is
/// the same one. Null if it is missing; `problem` then says what is missing.
const Driver *driver(std::string &problem);

/// "CUDA_ERROR_OUT_OF_MEMORY, out of memory".
std::string describe(const Driver &, Result);

} // namespace stepc::runtime::cuda

#endif
