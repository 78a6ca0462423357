//===- StubState.h - What the driver that is the host knows ------*- C++ -*-===//
//
// Of all ranks, which are threads: memory, streams and events; how often each function was called, and whether
// a call is one that a step must not make.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TEST_DEVICES_STUBSTATE_H
#define STEPC_TEST_DEVICES_STUBSTATE_H

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

// Of StubDriver.cpp alone.
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
  static const bool isEmpty = std::getenv("STEPC_STUB_EMPTY");
  if (isEmpty)
    return;
  world().streams.enqueue(stream, [work = std::move(work)] {
    work();
    return true;
  });
}

/// The kernel of STEPC_STUB_STUCK, and its variable.
Function stuckKernel = nullptr;
Address stuckWord = 0;
bool isStuck(std::string_view kernel) {
  const char *given = std::getenv("STEPC_STUB_STUCK");
  return given && kernel == given;
}

thread_local int64_t entered = 0, inStep = 0, called = 0, found = 0;
thread_local int captureMode = 0;

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

/// What may wait is forbidden while a graph is captured, but for threads that say that they know better.
Result beginWaiting(const char *name) {
  Result result = begin(name);
  bool isForbidden = captureMode != kRelaxed && world().streams.breakCapture();
  return isForbidden ? StubStreams::kUnsupported : result;
}

/// Not within a step.
Result beginSetup(const char *name) {
  Result result = beginWaiting(name);
  return inStep ? kInStep : result;
}

bool isKnown(Address address, size_t bytes) {
  if (isLent(address, bytes) || address == reinterpret_cast<Address>(&stuckWord))
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
  bool isPerThread, takesLists;

  Result run(int64_t blocks, int64_t threads, int64_t cluster, void **parameters,
             StreamHandle stream) const {
    std::vector<void *> values;
    for (; *parameters; ++parameters)
      values.push_back(*static_cast<void **>(*parameters));
    int64_t items = takesLists ? blocks / cluster : blocks;
    if (isPerThread || (cluster > 1 && !takesLists)) {
      items = reinterpret_cast<int64_t>(values.back());
      // Blocks of a resident grid share out more items than they are.
      int64_t each = isPerThread ? threads : 1, most = blocks * each;
      if (items <= most - cluster * each || (isPerThread && items > most))
        return kInvalidValue;
    }
    enqueue(stream, [kernel = function, values = std::move(values), items] {
      FloatModes modes;
      kernel(values.data(), 0, items);
    });
    return 0;
  }
};

/// Whether each thread of a kernel takes a parameter. The driver knows a kernel by its name alone. If several
/// kernels would have one name, the later ones end with a number.
bool isPerThread(std::string_view name) {
  if (size_t last = name.find_last_not_of("0123456789");
      last + 1 < name.size() && name[last] == '_')
    name = name.substr(0, last);
  return name.ends_with("_scalars") || name == "stepc_advance_steps" || name == "stepc_skip";
}

int chip() {
  const char *given = std::getenv("STEPC_STUB_CHIP");
  return given ? std::atoi(given) : 80;
}

/// Notes how a kernel is started.
void noteLaunch(unsigned blocks, unsigned threads, unsigned cluster, unsigned dynamicBytes,
                bool isDependent = false) {
  const char *path = std::getenv("STEPC_STUB_LAUNCHES");
  if (!path)
    return;
  std::lock_guard lock(world().mutex);
  std::FILE *file = std::fopen(path, "a");
  std::fprintf(file, "%u blocks, %u threads, cluster %u, %u bytes%s\n", blocks, threads, cluster,
               dynamicBytes, isDependent ? ", dependent" : "");
  std::fclose(file);
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

} // namespace
} // namespace stepc::runtime::cuda

#endif
