//===- StubDriver.cpp - NVIDIA's driver, as far as a step sees it ------------===//
//
// A library of its own (CMakeLists.txt), so that all that runs in a process finds one driver: compiled steps,
// by StubDevice.cpp, and the transport. Everything is carried out by the host (StubStreams.h). What a
// driver would refuse, or what a step must not do, is an error here: a call without a current context,
// memory, streams or events that are not there, and memory or handles that are made, or waited for,
// within a step.
//
//   STEPC_STUB_CALLS  a file that is told of each step how often the driver was called
//   STEPC_STUB_LOG    a file that is told the name of each call, NCCL's too
//   STEPC_STUB_LAUNCHES  a file that is told how each kernel was started
//   STEPC_STUB_FAILS  <function>:<n>: its n-th call, from 0, fails, as a fault that tests plant
//   STEPC_STUB_CHIP   the GPU's chip, 80 unless told
//   STEPC_STUB_STUCK     a kernel with bounded waits, which writes that it has waited for barrier 5
//   STEPC_STUB_VERSION   the driver's, 13000 unless told
//   STEPC_STUB_CLUSTERS  clusters that the GPU runs at a time
//   STEPC_STUB_FOREIGN   streams are of another context
//   STEPC_STUB_EMPTY     kernels and copies do nothing, so that what is left is the time of the host
//
//===----------------------------------------------------------------------===//

#include "test/devices/StubState.h"

#include "runtime/emulated/TileProducts.h"

namespace stepc::runtime::cuda {
namespace {

const Driver kDriver = {
    [](unsigned) -> Result { return 0; },
    [](int *version) -> Result {
      const char *given = std::getenv("STEPC_STUB_VERSION");
      return *version = given ? std::atoi(given) : 13000, 0;
    },
    [](Result result, const char **name) -> Result {
      *name = result == kNoMemory    ? "CUDA_ERROR_OUT_OF_MEMORY"
              : result == kInStep    ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
              : result == kNoContext ? "CUDA_ERROR_INVALID_CONTEXT"
                                     : "CUDA_ERROR_INVALID_VALUE";
      return 0;
    },
    [](Result, const char **text) -> Result { return *text = "said the stub", 0; },
    [](int *count) -> Result { return *count = 1, begin("cuDeviceGetCount", false); },
    [](DeviceNumber *device, int ordinal) -> Result { return *device = ordinal, 0; },
    [](char *name, int length, DeviceNumber) -> Result {
      std::snprintf(name, size_t(length), "stub");
      return 0;
    },
    [](int *value, int attribute, DeviceNumber) -> Result {
      *value = attribute == kMajor              ? chip() / 10
               : attribute == kMinor            ? chip() % 10
               : attribute == kMultiprocessors  ? 108
               : attribute == kBlockThreads     ? 1024
               : attribute == kBlockSharedBytes ? (chip() < 90 ? 163 : 227) * 1024
                                                : -1;
      return 0;
    },
    [](Context *context, DeviceNumber) -> Result {
      *context = reinterpret_cast<Context>(&world());
      return begin("cuDevicePrimaryCtxRetain", false);
    },
    [](DeviceNumber) -> Result { return 0; },
    [](Context) -> Result { return ++entered, begin("cuCtxPushCurrent_v2", false); },
    [](Context *) -> Result { return --entered, begin("cuCtxPopCurrent_v2", false); },
    [](unsigned count, const int *attributes, void **values, Address address) -> Result {
      Result result = begin("cuPointerGetAttributes", false);
      tellOwner(count, attributes, values, address);
      return result;
    },
    [](Address *memory, size_t bytes) -> Result {
      if (Result wrong = beginSetup("cuMemAlloc_v2"))
        return wrong;
      return make(reinterpret_cast<void **>(memory), bytes);
    },
    [](Address memory) -> Result {
      if (Result wrong = beginSetup("cuMemFree_v2"))
        return wrong;
      return drop(reinterpret_cast<void *>(memory));
    },
    [](void **memory, size_t bytes) -> Result {
      if (Result wrong = beginSetup("cuMemAllocHost_v2"))
        return wrong;
      return make(memory, bytes);
    },
    [](void *memory) -> Result {
      if (Result wrong = beginSetup("cuMemFreeHost"))
        return wrong;
      return drop(memory);
    },
    [](Address memory, unsigned char value, size_t bytes, StreamHandle stream) -> Result {
      if (Result wrong = begin("cuMemsetD8Async"))
        return wrong;
      if (!isKnown(memory, bytes) || !isKnown(stream))
        return kInvalidValue;
      enqueue(stream, [=] { std::memset(reinterpret_cast<void *>(memory), value, bytes); });
      return 0;
    },
    [](Address to, const void *from, size_t bytes, StreamHandle stream) -> Result {
      return copy("cuMemcpyHtoDAsync_v2", to, from, bytes, stream);
    },
    [](Address to, Address from, size_t bytes, StreamHandle stream) -> Result {
      return copy("cuMemcpyDtoDAsync_v2", to, reinterpret_cast<const void *>(from), bytes, stream);
    },
    [](void *to, Address from, size_t bytes, StreamHandle stream) -> Result {
      return copy("cuMemcpyDtoHAsync_v2", reinterpret_cast<Address>(to),
                  reinterpret_cast<const void *>(from), bytes, stream);
    },
    [](StreamHandle *stream, unsigned) -> Result {
      if (Result wrong = beginSetup("cuStreamCreate"))
        return wrong;
      return make(stream);
    },
    [](StreamHandle stream) -> Result { return drop(stream); },
    [](StreamHandle stream, EventHandle event, unsigned) -> Result {
      if (Result wrong = begin("cuStreamWaitEvent"))
        return wrong;
      noteWait(stream);
      if (!isKnown(stream) || !event || !isKnown(event))
        return kInvalidHandle;
      return world().streams.wait(stream, event);
    },
    [](StreamHandle stream) -> Result {
      if (Result wrong = beginSetup("cuStreamSynchronize"))
        return wrong;
      if (!isKnown(stream))
        return kInvalidHandle;
      world().streams.synchronize(stream);
      return 0;
    },
    [](StreamHandle, Context *context) -> Result {
      *context = std::getenv("STEPC_STUB_FOREIGN") ? nullptr : reinterpret_cast<Context>(&world());
      return begin("cuStreamGetCtx");
    },
    [](EventHandle *event, unsigned) -> Result {
      if (Result wrong = beginSetup("cuEventCreate"))
        return wrong;
      return make(event);
    },
    [](EventHandle event) -> Result { return drop(event); },
    [](EventHandle event, StreamHandle stream) -> Result {
      if (Result wrong = begin("cuEventRecord"))
        return wrong;
      noteRecord(stream);
      if (!isKnown(stream) || !event || !isKnown(event))
        return kInvalidHandle;
      world().streams.record(event, stream);
      return 0;
    },
    [](EventHandle event) -> Result {
      if (Result wrong = beginWaiting("cuEventQuery"))
        return wrong;
      if (!event || !isKnown(event))
        return kInvalidHandle;
      if (world().streams.isCaptured(event))
        return StubStreams::kCaptured;
      return world().streams.isDone(event) ? 0 : kNotReady;
    },
    // Of an event that is long past, as those of the ring are, this does not wait.
    [](EventHandle event) -> Result {
      if (Result wrong = beginWaiting("cuEventSynchronize"))
        return wrong;
      if (!event || !isKnown(event))
        return kInvalidHandle;
      if (world().streams.isCaptured(event))
        return StubStreams::kCaptured;
      world().streams.synchronizeEvent(event);
      return 0;
    },
    [](Module *module, const void *image) -> Result {
      found = 0;
      *module = reinterpret_cast<Module>(const_cast<void *>(image));
      return beginSetup("cuModuleLoadData");
    },
    [](Module) -> Result { return 0; },
    // Asked for in the plan's order. An image is the program's list of them (StubDevice.cpp).
    [](Function *function, Module module, const char *name) -> Result {
      *function = reinterpret_cast<Function>(
          new HostKernel{reinterpret_cast<const stepc_kernel *>(module)[found++], isPerThread(name),
                         std::string_view(name).starts_with("stepc_tiles_")});
      if (isStuck(name))
        stuckKernel = *function;
      return beginSetup("cuModuleGetFunction");
    },
    [](Address *address, size_t *bytes, Module, const char *name) -> Result {
      if (Result wrong = beginSetup("cuModuleGetGlobal_v2"))
        return wrong;
      constexpr std::string_view kEnding = "_stuck";
      std::string_view kernel(name);
      if (!kernel.ends_with(kEnding) || !isStuck(kernel.substr(0, kernel.size() - kEnding.size())))
        return kNotFound;
      *bytes = sizeof stuckWord;
      *address = reinterpret_cast<Address>(&stuckWord);
      return 0;
    },
    [](Function function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
       unsigned sharedBytes, StreamHandle stream, void **parameters, void **) -> Result {
      if (Result wrong = begin("cuLaunchKernel"))
        return wrong;
      if (!function || blocks == 0 || threads == 0 || threads > 1024 || !isKnown(stream))
        return kInvalidValue;
      noteLaunch(blocks, threads, 1, sharedBytes);
      return reinterpret_cast<HostKernel *>(function)->run(blocks, threads, 1, parameters, stream);
    },
    [](const LaunchConfig *config, Function function, void **parameters, void **) -> Result {
      if (Result wrong = begin("cuLaunchKernelEx"))
        return wrong;
      unsigned blocks = config->grid[0], threads = config->block[0];
      if (!function || config->count < 1 || threads == 0 || threads > 1024 ||
          !isKnown(config->stream))
        return kInvalidValue;
      unsigned cluster = 1;
      bool isDependent = false;
      for (unsigned i = 0; i < config->count; ++i) {
        const LaunchAttribute &attribute = config->attributes[i];
        if (attribute.id != kClusterDimension && attribute.id != kDependent)
          return kInvalidValue;
        if (attribute.id == kClusterDimension)
          cluster = attribute.cluster[0];
        else
          isDependent = attribute.isDependent == 1;
      }
      // Kernels of tiles alone wait for the kernels before them.
      if (blocks == 0 || blocks % cluster || chip() < 90 ||
          (isDependent && !reinterpret_cast<HostKernel *>(function)->takesLists))
        return kInvalidValue;
      noteLaunch(blocks, threads, cluster, config->sharedBytes, isDependent);
      if (function == stuckKernel && stuckWord)
        *reinterpret_cast<uint32_t *>(stuckWord) = 6; // barrier 5
      return reinterpret_cast<HostKernel *>(function)->run(blocks, threads, cluster, parameters,
                                                           config->stream);
    },
    [](Function function, int attribute, int value) -> Result {
      if (Result wrong = beginSetup("cuFuncSetAttribute"))
        return wrong;
      return function && attribute == kDynamicBytes && value > 0 ? 0 : kInvalidValue;
    },
    [](int *blocks, Function, int threads, size_t) -> Result {
      *blocks = 2048 / threads;
      return beginSetup("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    },
    [](int *clusters, Function, const LaunchConfig *config) -> Result {
      // Two multiprocessors for a cluster of two.
      const char *given = std::getenv("STEPC_STUB_CLUSTERS");
      *clusters = given ? std::atoi(given) : 108 / int(config->attributes->cluster[0]);
      return beginSetup("cuOccupancyMaxActiveClusters");
    },
    [](void *map, int type, unsigned rank, void *address, const uint64_t *sizes,
       const uint64_t *strides, const unsigned *box, const unsigned *, int, int swizzle, int,
       int) -> Result {
      if (Result wrong = beginSetup("cuTensorMapEncodeTiled"))
        return wrong;
      bool isWide = type == kMapF32;
      uint64_t elementBytes = isWide ? 4 : 2;
      bool isFit = (isWide || type == kMapF16 || type == kMapBF16) && rank == 3 &&
                   swizzle == kSwizzle128 && reinterpret_cast<uintptr_t>(map) % 64 == 0 &&
                   strides[0] == elementBytes * sizes[0] && strides[1] == strides[0] * sizes[1] &&
                   box[0] == 128 / elementBytes && box[1] <= 256 && box[1] >= 1 && box[2] == 1;
      auto bytes = strides[1] * sizes[2];
      isFit &= reinterpret_cast<uintptr_t>(address) % 16 == 0 && strides[0] % 16 == 0;
      if (!isFit || bytes == 0 || !isKnown(reinterpret_cast<Address>(address), bytes))
        return kInvalidValue;
      writeMap(address, {int64_t(sizes[0]), int64_t(sizes[1]), int64_t(sizes[2])},
               *static_cast<stepc_tensor_map *>(map));
      return 0;
    },
    [](int *mode) -> Result {
      std::swap(*mode, captureMode);
      return begin("cuThreadExchangeStreamCaptureMode", false);
    },
    [](StreamHandle stream, int mode) -> Result {
      if (Result wrong = beginSetup("cuStreamBeginCapture_v2"))
        return wrong;
      return isKnown(stream) ? world().streams.beginCapture(stream, mode) : kInvalidHandle;
    },
    [](StreamHandle stream, GraphHandle *out) -> Result {
      std::shared_ptr<StubGraph> graph;
      Result wrong = world().streams.endCapture(stream, graph);
      *out = wrong ? nullptr : reinterpret_cast<GraphHandle>(new StubGraph(*graph));
      Result planted = begin("cuStreamEndCapture");
      return planted ? planted : wrong;
    },
    [](StreamHandle stream, int *status, uint64_t *number, GraphHandle *out, const void **,
       size_t *) -> Result {
      auto graph = world().streams.captureOf(stream);
      *status = !graph ? kNone : graph->isBroken ? kInvalidated : 1;
      *number = graph ? graph->number : 0;
      *out = reinterpret_cast<GraphHandle>(graph.get());
      return begin("cuStreamGetCaptureInfo_v2");
    },
    [](GraphExecHandle *exec, GraphHandle graph, unsigned long long) -> Result {
      if (Result wrong = beginSetup("cuGraphInstantiateWithFlags"))
        return wrong;
      *exec =
          reinterpret_cast<GraphExecHandle>(new StubExec(*reinterpret_cast<StubGraph *>(graph)));
      return 0;
    },
    [](GraphExecHandle exec, StreamHandle stream) -> Result {
      if (Result wrong = begin("cuGraphLaunch"))
        return wrong;
      if (!exec || !isKnown(stream) || world().streams.captureOf(stream))
        return kInvalidValue;
      reinterpret_cast<StubExec *>(exec)->launch(world().streams, stream);
      return 0;
    },
    [](GraphHandle graph) -> Result {
      delete reinterpret_cast<StubGraph *>(graph);
      return begin("cuGraphDestroy", false);
    },
    [](GraphExecHandle exec) -> Result {
      for (const void *handle : reinterpret_cast<StubExec *>(exec)->handles())
        world().streams.forget(handle);
      delete reinterpret_cast<StubExec *>(exec);
      return begin("cuGraphExecDestroy", false);
    },
    [](UserObject *object, void *given, void (*destroy)(void *), unsigned, unsigned) -> Result {
      if (Result wrong = begin("cuUserObjectCreate"))
        return wrong;
      // As NVIDIA's driver: later, in a thread of its own.
      auto later = [destroy](void *object) {
        std::thread([destroy, object] {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          destroy(object);
        }).detach();
      };
      *object = reinterpret_cast<UserObject>(new std::shared_ptr<void>(given, later));
      return 0;
    },
    [](UserObject object, unsigned) -> Result {
      delete reinterpret_cast<std::shared_ptr<void> *>(object);
      return begin("cuUserObjectRelease");
    },
    [](GraphHandle graph, UserObject object, unsigned, unsigned flags) -> Result {
      if (Result wrong = begin("cuGraphRetainUserObject"))
        return wrong;
      if (!graph || flags != kMove)
        return kInvalidValue;
      auto *one = reinterpret_cast<std::shared_ptr<void> *>(object);
      reinterpret_cast<StubGraph *>(graph)->objects.push_back(std::move(*one));
      delete one;
      return 0;
    },
};

} // namespace
} // namespace stepc::runtime::cuda

// For tests in this process: a stream of the trainer's, what STEPC_STUB_FAILS says, and how often a function was
// called.
extern "C" __attribute__((visibility("default"))) void *stepc_stub_stream() {
  stepc::runtime::cuda::StreamHandle stream = nullptr;
  stepc::runtime::cuda::make(&stream);
  return stream;
}
extern "C" __attribute__((visibility("default"))) void stepc_stub_fail(const char *call) {
  using namespace stepc::runtime::cuda;
  std::lock_guard lock(world().mutex);
  world().fails = call;
}
extern "C" __attribute__((visibility("default"))) int64_t stepc_stub_calls(const char *name) {
  using namespace stepc::runtime::cuda;
  std::lock_guard lock(world().mutex);
  return world().calls[name];
}

extern "C" __attribute__((visibility("default"))) const StubDriver *stepc_stub_driver() {
  using namespace stepc::runtime::cuda;
  static const StubDriver stub = {
      &kDriver,
      [](const char *name, bool isSetup) { return isSetup ? beginSetup(name) : begin(name); },
      [](const void *address, size_t bytes) {
        return isKnown(reinterpret_cast<Address>(address), bytes);
      },
      [](StreamHandle stream) { return isKnown(stream); }, world().streams};
  return &stub;
}
