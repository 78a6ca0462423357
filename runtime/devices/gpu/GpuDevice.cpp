//===- GpuDevice.cpp - A device table over a GPU ----------------------------===//
//
// What kernels read of the host stands in one piece of the GPU's memory: first what binds and steps change,
// which each step uploads in one copy, then what stays. The copy leaves from staging memory that the
// GPU reads later, so there is a ring of it, and a place is used again when its copy has gone. Kernels find
// all that changes there, so a step is the same commands each time, and a graph can hold it.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/gpu/GpuDevice.h"

#include <array>
#include <cstring>

namespace stepc::runtime {
namespace {

/// How many steps may be under way before the host waits for the first of them.
constexpr size_t kRing = 8;

class GpuState : public DeviceState {
public:
  explicit GpuState(std::unique_ptr<Gpu> given, size_t events) : gpu(std::move(given)) {
    for (size_t i = 0; i < events; ++i)
      this->events.push_back(gpu->makeEvent());
    for (Slot &slot : ring)
      slot.uploaded = gpu->makeEvent();
  }

  ~GpuState() override {
    for (Slot &slot : ring) {
      if (slot.isUsed)
        gpu->synchronize(slot.uploaded);
      gpu->destroy(slot.uploaded);
      gpu->releaseStaging(slot.staging);
    }
    for (Gpu::Event *event : events)
      gpu->destroy(event);
    gpu->releaseStaging(marks);
    gpu->release(numbers);
    gpu->release(mirror);
  }

  bool lend(std::vector<HostList> &lists) {
    int64_t bytes = 0;
    std::vector<int64_t> offsets(lists.size());
    for (bool changes : {true, false}) {
      for (size_t i = 0; i < lists.size(); ++i)
        if (lists[i].changes == changes) {
          offsets[i] = bytes;
          bytes = plan::aligned(bytes + lists[i].bytes);
        }
      if (changes)
        changing = bytes;
    }
    mirror = static_cast<char *>(gpu->allocate(bytes));
    auto *all = static_cast<char *>(gpu->allocateStaging(bytes));
    if (!mirror || !all) {
      gpu->releaseStaging(all);
      return false;
    }
    std::memset(all, 0, bytes);
    for (size_t i = 0; i < lists.size(); ++i) {
      lists[i].address = mirror + offsets[i];
      if (lists[i].bytes > 0)
        std::memcpy(all + offsets[i], lists[i].data, lists[i].bytes);
      if (lists[i].changes)
        sources.push_back({lists[i], offsets[i]});
    }
    uploadAndWait(mirror, all, bytes);
    gpu->releaseStaging(all);
    for (Slot &slot : ring)
      if (!(slot.staging = static_cast<char *>(gpu->allocateStaging(changing))))
        return false;
    return true;
  }

  void begin(bool isCaptured) {
    gpu->join(isCaptured);
    if (!isCaptured)
      upload();
  }

  /// All steps that one graph holds read the same lists: what replays would find of those of a step before is
  /// what the last one left.
  std::string prepareCapture(std::string &problem) {
    uint64_t number = gpu->captureNumber();
    if (number == lastCapture)
      return isUploaded() ? ""
                          : "expected what was bound for the step before, which the same graph "
                            "holds, found other memory bound";
    gpu->synchronize(upload().uploaded);
    problem = gpu->takeProblem();
    if (problem.empty())
      lastCapture = number;
    return {};
  }

  void refresh() {
    gpu->join(false);
    upload();
    gpu->leave();
  }

  /// Numbers that the GPU copies to `marks` stand in its memory, each twice: a graph can hold such a copy.
  int32_t *openMarks(int64_t values) {
    int64_t bytes = 2 * values * int64_t(sizeof(int32_t));
    marks = static_cast<int32_t *>(gpu->allocateStaging(2 * sizeof(int32_t)));
    numbers = static_cast<int32_t *>(gpu->allocate(bytes));
    auto *all = static_cast<int32_t *>(gpu->allocateStaging(bytes));
    if (marks && numbers && all) {
      marks[0] = marks[1] = 0;
      for (int64_t i = 0; i < 2 * values; ++i)
        all[i] = int32_t(i / 2);
      uploadAndWait(numbers, all, bytes);
    }
    gpu->releaseStaging(all);
    return numbers && all ? marks : nullptr;
  }
  void mark(Stream stream, int32_t value) {
    gpu->download(stream, marks, numbers + 2 * value, 2 * sizeof(int32_t));
  }

  std::unique_ptr<Gpu> gpu;
  std::vector<Gpu::Event *> events; // of the program

private:
  void uploadAndWait(void *to, const void *staging, int64_t bytes) {
    gpu->upload(Stream::Compute, to, staging, bytes);
    gpu->record(Stream::Compute, ring[0].uploaded);
    gpu->synchronize(ring[0].uploaded);
  }

  struct Slot {
    char *staging = nullptr;
    Gpu::Event *uploaded = nullptr;
    bool isUsed = false;
  };
  struct Source {
    HostList list;
    int64_t offset;
  };

  /// What changes, as it is now.
  const Slot &upload() {
    Slot &slot = ring[next++ % kRing];
    if (slot.isUsed)
      gpu->synchronize(slot.uploaded);
    for (const Source &source : sources)
      if (source.list.bytes > 0)
        gpu->stage(slot.staging + source.offset, source.list.data, source.list.bytes);
    gpu->upload(Stream::Compute, mirror, slot.staging, changing);
    gpu->record(Stream::Compute, slot.uploaded);
    slot.isUsed = true;
    return slot;
  }
  bool isUploaded() const {
    const Slot &last = ring[(next - 1) % kRing];
    for (const Source &source : sources)
      if (source.list.bytes > 0 &&
          std::memcmp(last.staging + source.offset, source.list.data, source.list.bytes) != 0)
        return false;
    return true;
  }

  std::array<Slot, kRing> ring;
  size_t next = 0;
  uint64_t lastCapture = 0;
  std::vector<Source> sources; // what changes
  int64_t changing = 0;        // bytes
  char *mirror = nullptr;      // of all lists
  int32_t *marks = nullptr, *numbers = nullptr;
};

GpuState &stateOf(DeviceContext &context) { return static_cast<GpuState &>(*context.state); }
Gpu &gpuOf(DeviceContext &context) { return *stateOf(context).gpu; }

/// Puts what went wrong where the walker looks.
void notice(DeviceContext &context) {
  std::string problem = gpuOf(context).takeProblem();
  if (context.failure.empty())
    context.failure = std::move(problem);
}

bool allocate(DeviceContext &context, Memory &memory, int64_t bytes, const stepc_options &options) {
  Gpu &gpu = gpuOf(context);
  if (!memory.adopt(
          bytes, options,
          [](void *owner, int64_t size) { return static_cast<Gpu *>(owner)->allocate(size); },
          [](void *owner, void *base, int64_t) { static_cast<Gpu *>(owner)->release(base); },
          &gpu)) {
    notice(context);
    return false;
  }
  context.failure = gpu.checkPointer(memory.data(), STEPC_MEMORY_DEVICE);
  if (!context.failure.empty())
    return false;
  // An allocator in stream order may give what the trainer's stream still reads.
  gpu.join(false);
  gpu.fill(Stream::Compute, memory.data(), bytes);
  gpu.leave();
  notice(context);
  return context.failure.empty();
}

bool allocateZeros(DeviceContext &context, Memory &memory, int64_t bytes) {
  return allocate(context, memory, bytes, {});
}

std::string lend(DeviceContext &context, std::vector<HostList> &lists) {
  if (stateOf(context).lend(lists))
    return gpuOf(context).takeProblem();
  return "expected memory for the tables of this rank, found none: " + gpuOf(context).takeProblem();
}

void begin(DeviceContext &context) {
  stateOf(context).begin(context.isCaptured);
  notice(context);
}

void start(DeviceContext &context, Stream stream, const Launch &launch) {
  Gpu &gpu = gpuOf(context);
  if (launch.items > 0)
    gpu.launch(stream, launch);
  notice(context);
}

void launchKernel(DeviceContext &context, Stream stream, const Launch &launch) {
  ++context.executed.launches;
  context.executed.chunks += launch.items;
  start(context, stream, launch);
}

void compute(DeviceContext &context, Stream stream, const BatchWork &work) {
  ++context.executed.launches;
  context.executed.chunks += work.blocks;
  for (const Launch &kernel : work.kernels)
    start(context, stream, kernel);
}

void copyRows(DeviceContext &context, Stream stream, const RowCopy &copy) {
  ++context.executed.launches;
  context.executed.chunks += copy.count;
  start(context, stream, copy.launch);
}

void moveBytes(DeviceContext &context, Stream stream, const char *from, char *to, int64_t bytes) {
  gpuOf(context).move(stream, to, from, bytes);
  notice(context);
}

void call(DeviceContext &context, Stream stream, void (*function)(void *), void *argument) {
  gpuOf(context).call(stream, function, argument);
  notice(context);
}

void record(DeviceContext &context, Stream stream, int64_t event) {
  gpuOf(context).record(stream, stateOf(context).events[size_t(event)]);
  notice(context);
}

void wait(DeviceContext &context, Stream stream, int64_t event) {
  gpuOf(context).wait(stream, stateOf(context).events[size_t(event)]);
  notice(context);
}

void finish(DeviceContext &context) {
  gpuOf(context).leave();
  notice(context);
}

bool poll(DeviceContext &context) {
  bool isDone = gpuOf(context).isDone();
  notice(context);
  return isDone;
}

void drain(DeviceContext &context) {
  if (!context.state)
    return;
  gpuOf(context).drain();
  notice(context);
}

void abandon(DeviceContext &context) noexcept { gpuOf(context).abandon(); }

void *streamHandle(DeviceContext &context, Stream stream) {
  return gpuOf(context).streamHandle(stream);
}

int32_t *marks(DeviceContext &context, int64_t values) {
  int32_t *words = stateOf(context).openMarks(values);
  notice(context);
  return words;
}

void mark(DeviceContext &context, Stream stream, int32_t value) {
  stateOf(context).mark(stream, value);
  notice(context);
}

void beginGraph(DeviceContext &context) {
  gpuOf(context).beginGraph();
  notice(context);
}

void endGraph(DeviceContext &context) {
  gpuOf(context).endGraph();
  notice(context);
}

void replay(DeviceContext &context) {
  gpuOf(context).replay();
  notice(context);
}

void forgetGraph(DeviceContext &context) noexcept {
  if (context.state)
    gpuOf(context).forgetGraph();
}

bool isCaptured(DeviceContext &context) {
  bool found = gpuOf(context).captureNumber() != 0;
  notice(context);
  return found;
}

std::string prepareCapture(DeviceContext &context) {
  return stateOf(context).prepareCapture(context.failure);
}

int64_t living(DeviceContext &context) { return gpuOf(context).livingGraphs(); }

void refresh(DeviceContext &context) {
  stateOf(context).refresh();
  notice(context);
}

void declare(DeviceContext &context, void (*uses)(void *, MemoryUses &), void *argument) {
  gpuOf(context).declare(uses, argument);
}

constexpr stepc_graph_table kGraphs = {beginGraph, endGraph,       replay, forgetGraph,
                                       isCaptured, prepareCapture, living, refresh};

std::string checkPointer(DeviceContext &context, const void *pointer, int32_t memory) {
  return gpuOf(context).checkPointer(pointer, memory);
}

std::string checkLaunch(DeviceContext &context, const Launch &launch) {
  return gpuOf(context).checkLaunch(launch);
}

} // namespace

std::string openGpuDevice(DeviceContext &context, const stepc_options &options, OpenGpu openGpu) {
  std::string problem;
  std::unique_ptr<Gpu> gpu = openGpu(context, options, problem);
  if (!gpu)
    return problem;
  auto state = std::make_unique<GpuState>(std::move(gpu), 2 * context.plan.starts().size());
  problem = state->gpu->takeProblem();
  context.state = std::move(state);
  return problem;
}

stepc_device_table gpuDeviceTable(const char *name, int32_t kind, bool hasOwnMemory,
                                  std::string (*open)(DeviceContext &, const stepc_options &),
                                  bool looksForRaces) {
  return {name,
          kind,
          open,
          allocate,
          allocateZeros,
          lend,
          begin,
          launchKernel,
          compute,
          copyRows,
          moveBytes,
          call,
          record,
          wait,
          finish,
          poll,
          drain,
          abandon,
          hasOwnMemory ? streamHandle : nullptr,
          marks,
          mark,
          hasOwnMemory ? checkPointer : nullptr,
          checkLaunch,
          &kGraphs,
          looksForRaces ? declare : nullptr};
}

} // namespace stepc::runtime
