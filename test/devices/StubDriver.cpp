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
//   STEPC_STUB_FAILS  <function>:<n>: its n-th call, from 0, fails, as a fault that tests plant
//   STEPC_STUB_CHIP   the GPU's chip, 80 unless told
//   STEPC_STUB_CAPTURES  the trainer's stream is captured
//   STEPC_STUB_FOREIGN   streams are of another context
//
//===----------------------------------------------------------------------===//

#include "test/devices/Stub.h"

#include "runtime/host/FloatModes.h"
#include "runtime/text/Text.h"
#include "stepc/kernel_abi.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace stepc::runtime::cuda {
namespace {

constexpr Result kInvalidValue = 1, kNoMemory = 2, kNoContext = 201, kInvalidHandle = 400,
                 kInStep = 900;

/// Of all ranks, which are threads.
struct World {
  std::mutex mutex;
  std::map<Address, size_t> memory; // of the GPU and staging
  std::set<const void *> handles;   // streams and events
  std::map<std::string, int64_t> calls;
  std::string fails; // that a test of this process plants
  StubStreams streams;
  World() {
    handles.insert(nullptr); // the default stream
  }
};
World &world() {
  static World *const all = new World; // its threads outlive `main`
  return *all;
}

/// What cannot fail when its turn comes.
void enqueue(StreamHandle stream, std::function<void()> work) {
  world().streams.enqueue(stream, [work = std::move(work)] {
    work();
    return true;
  });
}

thread_local int64_t entered = 0, inStep = 0, called = 0, found = 0;

/// Counts a call, and says whether it fails.
Result begin(const char *name, bool needsContext = true) {
  ++called;
  static const std::string fails =
      std::getenv("STEPC_STUB_FAILS") ? std::getenv("STEPC_STUB_FAILS") : "";
  std::lock_guard lock(world().mutex);
  int64_t number = world().calls[name]++;
  static std::FILE *const log =
      std::getenv("STEPC_STUB_LOG") ? std::fopen(std::getenv("STEPC_STUB_LOG"), "a") : nullptr;
  if (log)
    std::fprintf(log, "%s\n", name);
  std::string call = format("%s:%lld", name, (long long)number);
  if (call == fails || call == world().fails)
    return kNoMemory;
  return needsContext && entered == 0 ? kNoContext : 0;
}

/// Not within a step.
Result beginSetup(const char *name) {
  Result result = begin(name);
  return inStep ? kInStep : result;
}

bool isKnown(Address address, size_t bytes) {
  if (isLent(address, bytes))
    return true;
  std::lock_guard lock(world().mutex);
  auto after = world().memory.upper_bound(address);
  if (bytes == 0 || after == world().memory.begin())
    return bytes == 0;
  auto [first, size] = *std::prev(after);
  return address + bytes <= first + size;
}

Result make(void **memory, size_t bytes) {
  if (posix_memalign(memory, 256, bytes) != 0)
    return kNoMemory;
  std::memset(*memory, 0xff, bytes);
  std::lock_guard lock(world().mutex);
  world().memory[reinterpret_cast<Address>(*memory)] = bytes;
  return 0;
}

Result drop(void *memory) {
  std::lock_guard lock(world().mutex);
  if (!world().memory.erase(reinterpret_cast<Address>(memory)))
    return kInvalidValue;
  std::free(memory);
  return 0;
}

template <typename Handle> Result make(Handle *out) {
  *out = reinterpret_cast<Handle>(new char);
  std::lock_guard lock(world().mutex);
  world().handles.insert(*out);
  return 0;
}
template <typename Handle> Result drop(Handle handle) {
  std::lock_guard lock(world().mutex);
  if (!handle || !world().handles.erase(handle))
    return kInvalidHandle;
  world().streams.forget(handle);
  delete reinterpret_cast<char *>(handle);
  return 0;
}
bool isKnown(const void *handle) {
  std::lock_guard lock(world().mutex);
  return world().handles.count(handle) > 0;
}

Result copy(const char *name, Address to, const void *from, size_t bytes, StreamHandle stream) {
  if (Result wrong = begin(name))
    return wrong;
  if (!isKnown(to, bytes) || !isKnown(reinterpret_cast<Address>(from), bytes) || !isKnown(stream))
    return kInvalidValue;
  enqueue(stream, [=] { std::memcpy(reinterpret_cast<void *>(to), from, bytes); });
  return 0;
}

/// A kernel of `emulated`: its items are blocks, or the threads of them that have a parameter.
struct HostKernel {
  stepc_kernel function;
  bool isPerThread;

  Result run(int64_t blocks, void **parameters, StreamHandle stream) const {
    std::vector<void *> values;
    for (; *parameters; ++parameters)
      values.push_back(*static_cast<void **>(*parameters));
    int64_t items = blocks;
    if (isPerThread) {
      items = reinterpret_cast<int64_t>(values.back());
      if (items <= STEPC_BLOCK_THREADS * (blocks - 1) || items > STEPC_BLOCK_THREADS * blocks)
        return kInvalidValue;
    }
    enqueue(stream, [kernel = function, values = std::move(values), items] {
      FloatModes modes;
      kernel(values.data(), 0, items);
    });
    return 0;
  }
};

/// What takes a parameter per thread; the driver knows a kernel by its name alone.
bool isPerThread(std::string_view name) {
  return name.ends_with("_scalars") || name == "stepc_advance_steps";
}

int chip() {
  const char *given = std::getenv("STEPC_STUB_CHIP");
  return given ? std::atoi(given) : 80;
}

/// A step begins when the trainer's stream is recorded and ends when it waits for the second stream.
void noteRecord(StreamHandle stream) {
  if (stream)
    return;
  inStep = 2;
  called = 1;
}
void noteWait(StreamHandle stream) {
  if (stream || !inStep || --inStep)
    return;
  if (const char *path = std::getenv("STEPC_STUB_CALLS")) {
    std::lock_guard lock(world().mutex);
    std::FILE *file = std::fopen(path, "a");
    std::fprintf(file, "%lld\n", (long long)called);
    std::fclose(file);
  }
}

const Driver kDriver = {
    [](unsigned) -> Result { return 0; },
    [](int *version) -> Result { return *version = 13000, 0; },
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
      *value = attribute == kMajor ? chip() / 10 : chip() % 10;
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
      world().streams.wait(stream, event);
      return 0;
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
    [](StreamHandle, int *status) -> Result {
      *status = std::getenv("STEPC_STUB_CAPTURES") ? 1 : 0;
      return begin("cuStreamIsCapturing");
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
      if (Result wrong = begin("cuEventQuery"))
        return wrong;
      if (!event || !isKnown(event))
        return kInvalidHandle;
      return world().streams.isDone(event) ? 0 : kNotReady;
    },
    // Of an event that is long past, as those of the ring are, this does not wait.
    [](EventHandle event) -> Result {
      if (Result wrong = begin("cuEventSynchronize"))
        return wrong;
      if (!event || !isKnown(event))
        return kInvalidHandle;
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
      *function = reinterpret_cast<Function>(new HostKernel{
          reinterpret_cast<const stepc_kernel *>(module)[found++], isPerThread(name)});
      return beginSetup("cuModuleGetFunction");
    },
    [](Function function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
       unsigned, StreamHandle stream, void **parameters, void **) -> Result {
      if (Result wrong = begin("cuLaunchKernel"))
        return wrong;
      if (!function || blocks == 0 || threads != STEPC_BLOCK_THREADS || !isKnown(stream))
        return kInvalidValue;
      return reinterpret_cast<HostKernel *>(function)->run(blocks, parameters, stream);
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
