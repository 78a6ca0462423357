//===- GpuDevice.cpp - A device table over a GPU ----------------------------===//

#include "runtime/devices/gpu/GpuDevice.h"
#include "runtime/devices/gpu/GpuState.h"
#include "runtime/text/Text.h"

#include <algorithm>

namespace stepc::runtime {
namespace {

GpuState &stateOf(DeviceContext &context) { return static_cast<GpuState &>(*context.state); }
Gpu &gpuOf(DeviceContext &context) { return *stateOf(context).gpu; }

/// Moves the GPU's problem to the context, where the walker looks.
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
  // A stream-ordered allocator may give memory that the trainer's stream still reads: write it behind that
  // stream.
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
  if (work.product >= 0) {
    gpuOf(context).multiply(stream, work);
    notice(context);
    return;
  }
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

void *report(DeviceContext &context, int64_t bytes) {
  void *memory = stateOf(context).openReport(bytes);
  notice(context);
  return memory;
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

int64_t lists(DeviceContext &context, const Launch &launch) { return gpuOf(context).lists(launch); }

std::string mapMatrices(DeviceContext &context, const MatrixStack &stack, stepc_tensor_map &map) {
  gpuOf(context).mapMatrices(stack, map);
  return gpuOf(context).takeProblem();
}

std::string prepare(DeviceContext &context, BatchWork &work) {
  gpuOf(context).prepare(work);
  return gpuOf(context).takeProblem();
}

} // namespace

void Gpu::mapMatrices(const MatrixStack &stack, stepc_tensor_map &map) {
  if (std::string wrong = checkStack(stack); !wrong.empty())
    return fail(wrong);
  makeMap(stack, map);
}

std::string openGpuDevice(DeviceContext &context, const stepc_options &options, OpenGpu openGpu) {
  std::string problem;
  std::unique_ptr<Gpu> gpu = openGpu(context, options, problem);
  if (!gpu)
    return problem;
  auto state = std::make_unique<GpuState>(std::move(gpu), 2 * context.plan.starts().size());
  problem = state->gpu->takeProblem();
  context.library = state->gpu->library();
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
          report,
          hasOwnMemory ? checkPointer : nullptr,
          checkLaunch,
          &kGraphs,
          looksForRaces ? declare : nullptr,
          prepare,
          lists,
          mapMatrices};
}

} // namespace stepc::runtime
