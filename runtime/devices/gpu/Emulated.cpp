//===- Emulated.cpp - A GPU that is this machine -----------------------------===//
//
// Memory is the host's. Kernels are those of a GPU, compiled for this machine. Commands on the two streams
// are queued. They are carried out when the trainer's stream would go on, in an order that is drawn from a
// seed. Only the streams and their events limit this order, so tests find a step whose bits depend on more.
//
//   STEPC_EMULATED_SEED  the seed, a whole number; each rank and step draws an order of its own. Without
//                        a seed the stream of kernels goes first whenever it can.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/StreamQueues.h"
#include "runtime/devices/gpu/GpuDevice.h"
#include "runtime/devices/gpu/WatchedGpu.h"
#include "runtime/emulated/Seed.h"
#include "runtime/emulated/TileProducts.h"
#include "runtime/host/FloatModes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace stepc::runtime {

struct Gpu::Event {
  int64_t last = -1; ///< number of the last record; -1 if none
};

namespace {

void runKernel(void *argument, int64_t first, int64_t last) {
  FloatModes modes;
  const Launch &launch = *static_cast<const Launch *>(argument);
  launch.kernel(launch.arguments, first, last);
}

class Emulated : public Gpu {
public:
  Emulated(Parallel &parallel, std::optional<uint64_t> seed) : parallel(parallel), seed(seed) {}

  void *allocate(int64_t bytes) override {
    constexpr size_t kAlignment = 256;
    void *memory = nullptr;
    if (posix_memalign(&memory, kAlignment, size_t(std::max<int64_t>(bytes, 1))) != 0)
      return nullptr;
    return memory;
  }
  void release(void *memory) override { std::free(memory); }
  void *allocateStaging(int64_t bytes) override { return allocate(bytes); }
  void releaseStaging(void *memory) override { std::free(memory); }

  std::string checkLaunch(const Launch &launch) const override {
    return launch.kernel ? "" : "expected a kernel for each command, found none";
  }

  int64_t lists(const Launch &) const override { return drawnClusters(seed); }
  void makeMap(const MatrixStack &stack, stepc_tensor_map &map) override {
    writeMap(stack.address, {stack.columns, stack.rows, stack.matrices}, map);
  }

  void launch(Stream stream, const Launch &launch) override {
    streams.add(stream, [this, &launch] {
      parallel.run(runKernel, const_cast<Launch *>(&launch), launch.items, 1);
    });
  }
  void fill(Stream stream, void *memory, int64_t bytes) override {
    streams.add(stream, [=] { std::memset(memory, 0, size_t(bytes)); });
  }
  void upload(Stream stream, void *to, const void *staging, int64_t bytes) override {
    move(stream, to, staging, bytes);
  }
  void download(Stream stream, void *staging, const void *from, int64_t bytes) override {
    move(stream, staging, from, bytes);
  }
  void move(Stream stream, void *to, const void *from, int64_t bytes) override {
    streams.add(stream, [=] { std::memcpy(to, from, size_t(bytes)); });
  }
  void call(Stream stream, void (*function)(void *), void *argument) override {
    streams.add(stream, [=] { function(argument); });
  }

  Event *makeEvent() override { return new Event; }
  void destroy(Event *event) override { delete event; }
  void record(Stream stream, Event *event) override { event->last = streams.record(stream); }
  void wait(Stream stream, Event *event) override {
    if (event->last >= 0)
      streams.wait(stream, event->last);
  }
  void synchronize(Event *) override { carryOut(); }

  void join(bool) override { carryOut(); }
  void leave() override { carryOut(); }
  void abandon() noexcept override { streams.clear(); }
  bool isDone() override { return true; }
  void drain() override {}

  // Carries out first what was enqueued before, because the graph does not hold it.
  void beginGraph() override { carryOut(); }
  void endGraph() override {
    step = streams;
    streams.clear();
  }
  void replay() override {
    carryOut();
    streams = step;
  }
  void forgetGraph() noexcept override { step.clear(); }

private:
  void carryOut() {
    StreamQueues::Random random(seed.value_or(0) * 1000003 + rounds++);
    if (!streams.carryOut(random, seed ? StreamQueues::drawBias(random) : 0))
      fail("the streams of the emulated GPU wait for each other");
  }

  Parallel &parallel;
  const std::optional<uint64_t> seed;
  uint64_t rounds = 0;
  StreamQueues streams;
  StreamQueues step; // as it was recorded
};

/// Null if the environment has a seed that is no number; `problem` then says so.
std::unique_ptr<Gpu> makeEmulated(const DeviceContext &opened, const stepc_options &,
                                  std::string &problem) {
  std::optional<uint64_t> seed = emulatedSeed(problem);
  return problem.empty() ? std::make_unique<Emulated>(opened.parallel, seed) : nullptr;
}

std::string open(DeviceContext &context, const stepc_options &options) {
  return openGpuDevice(context, options, makeEmulated);
}

std::string openWatched(DeviceContext &context, const stepc_options &options) {
  return openGpuDevice(
      context, options,
      [](const DeviceContext &opened, const stepc_options &given, std::string &problem) {
        std::unique_ptr<Gpu> gpu = makeEmulated(opened, given, problem);
        return gpu ? watchForRaces(std::move(gpu), opened.plan) : nullptr;
      });
}

} // namespace
} // namespace stepc::runtime

extern "C" const stepc_device_table stepc_device_emulated =
    stepc::runtime::gpuDeviceTable("emulated", STEPC_DEVICE_CPU, false, stepc::runtime::open);
extern "C" const stepc_device_table stepc_device_emulated_races = stepc::runtime::gpuDeviceTable(
    "emulated", STEPC_DEVICE_CPU, false, stepc::runtime::openWatched, /*looksForRaces=*/true);
