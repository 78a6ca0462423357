//===- WatchedGpu.cpp - A GPU whose races are found -------------------------===//

#include "runtime/devices/gpu/WatchedGpu.h"

#include "runtime/emulated/Races.h"
#include "runtime/host/FloatModes.h"

#include <cstring>
#include <functional>
#include <map>

namespace stepc::runtime {
namespace {

class WatchedGpu : public Gpu {
public:
  WatchedGpu(std::unique_ptr<Gpu> gpu, const plan::Plan &plan) : gpu(std::move(gpu)), plan(plan) {}

  void *allocate(int64_t bytes) override { return gpu->allocate(bytes); }
  void release(void *memory) override { gpu->release(memory); }
  void *allocateStaging(int64_t bytes) override { return gpu->allocateStaging(bytes); }
  void releaseStaging(void *memory) override {
    races.forgetStaging(memory);
    gpu->releaseStaging(memory);
  }
  void stage(void *staging, const void *from, int64_t bytes) override {
    races.writeStaging(staging);
    gpu->stage(staging, from, bytes);
    settle();
  }

  std::string checkLaunch(const Launch &launch) const override { return gpu->checkLaunch(launch); }

  void declare(void (*uses)(void *, MemoryUses &), void *argument) override {
    declared = [=](MemoryUses &all) { uses(argument, all); };
  }

  void launch(Stream stream, const Launch &launch) override {
    // One thread runs all GPU blocks. `races` treats them as unordered, and other threads would add an order.
    add(stream, [this, stream, &launch, uses = declared] {
      begin(stream, uses, plan.kernels[size_t(launch.number)].name);
      FloatModes modes;
      Races::running = &races;
      launch.kernel(launch.arguments, 0, launch.items);
      Races::running = nullptr;
    });
  }
  int64_t lists(const Launch &launch) const override { return gpu->lists(launch); }
  void makeMap(const MatrixStack &stack, stepc_tensor_map &map) override {
    gpu->makeMap(stack, map);
    settle();
  }
  void fill(Stream stream, void *memory, int64_t bytes) override {
    add(stream, [=, this] {
      begin(stream, "a fill with zeros");
      races.touch(memory, bytes, /*writes=*/true);
    });
    gpu->fill(stream, memory, bytes);
  }
  void upload(Stream stream, void *to, const void *staging, int64_t bytes) override {
    add(stream, [=, this] {
      begin(stream, "an upload of the step's lists");
      races.touch(to, bytes, /*writes=*/true);
      races.readStaging(staging, bytes);
    });
    gpu->upload(stream, to, staging, bytes);
  }
  void download(Stream stream, void *staging, const void *from, int64_t bytes) override {
    add(stream, [=, this] {
      begin(stream, "a download");
      races.touch(from, bytes, /*writes=*/false);
    });
    gpu->download(stream, staging, from, bytes);
  }
  void move(Stream stream, void *to, const void *from, int64_t bytes) override {
    add(stream, [=, this, uses = declared] {
      begin(stream, uses);
      races.touch(from, bytes, /*writes=*/false);
      races.touch(to, bytes, /*writes=*/true);
    });
    gpu->move(stream, to, from, bytes);
  }
  void call(Stream stream, void (*function)(void *), void *argument) override {
    add(stream, [this, stream, uses = declared] {
      MemoryUses all = begin(stream, uses);
      for (const MemoryUse &use : all.carriedOut)
        races.touch(use.data, use.bytes, use.writes);
    });
    gpu->call(stream, function, argument);
  }

  Event *makeEvent() override { return gpu->makeEvent(); }
  void destroy(Event *event) override {
    records.erase(event);
    gpu->destroy(event);
  }
  void record(Stream stream, Event *event) override {
    auto clocks = std::make_shared<Clocks>();
    add(stream, [this, stream, clocks] { *clocks = races.clocksOf(size_t(stream)); });
    records[event] = clocks;
    gpu->record(stream, event);
  }
  void wait(Stream stream, Event *event) override {
    gpu->wait(stream, event);
    if (auto found = records.find(event); found != records.end())
      add(stream, [this, stream, clocks = found->second] { races.join(size_t(stream), *clocks); });
  }
  void synchronize(Event *event) override {
    gpu->synchronize(event);
    if (auto found = records.find(event); found != records.end())
      races.join(kHostOrder, *found->second);
    settle();
  }

  void join(bool isCaptured) override {
    gpu->join(isCaptured);
    hooks.clear();
    races.begin();
    settle();
  }
  void leave() override {
    gpu->leave();
    hooks.clear();
    races.leave();
    declared = nullptr;
    settle();
  }
  void abandon() noexcept override {
    gpu->abandon();
    hooks.clear();
  }
  bool isDone() override {
    bool isDone = gpu->isDone();
    if (isDone)
      waited();
    settle();
    return isDone;
  }
  void drain() override {
    gpu->drain();
    waited();
    settle();
  }

  void beginGraph() override {
    gpu->beginGraph();
    hooks.clear();
    settle();
  }
  void endGraph() override {
    gpu->endGraph();
    recorded = std::move(hooks);
    hooks.clear();
    settle();
  }
  void replay() override {
    gpu->replay();
    settle();
  }
  void forgetGraph() noexcept override {
    gpu->forgetGraph();
    recorded.clear();
  }
  uint64_t captureNumber() override { return gpu->captureNumber(); }
  int64_t livingGraphs() const override { return gpu->livingGraphs(); }

private:
  using Uses = std::function<void(MemoryUses &)>;

  /// Puts a function on a stream.
  void add(Stream stream, std::function<void()> run) {
    hooks.push_back(std::make_unique<std::function<void()>>(std::move(run)));
    gpu->call(
        stream, [](void *hook) { (*static_cast<std::function<void()> *>(hook))(); },
        hooks.back().get());
  }

  /// Begins the next command of a stream for `races`, when the stream reaches it. Only now asks what it uses.
  MemoryUses begin(Stream stream, const Uses &uses, const std::string &kernel = {}) {
    MemoryUses all;
    if (uses)
      uses(all);
    else
      all.command = "a command";
    races.beginCommand(size_t(stream), all, kernel);
    return all;
  }
  void begin(Stream stream, const char *name) {
    races.beginCommand(size_t(stream), {name, {}, {}});
  }

  void waited() {
    races.join(kHostOrder, races.clocksOf(0));
    races.join(kHostOrder, races.clocksOf(1));
  }

  void settle() {
    for (std::string problem : {gpu->takeProblem(), races.takeProblem()})
      if (!problem.empty())
        fail(problem);
  }

  const std::unique_ptr<Gpu> gpu;
  const plan::Plan &plan;
  Races races;
  Uses declared;
  using Hooks = std::vector<std::unique_ptr<std::function<void()>>>;
  Hooks hooks, recorded;                              // functions on the streams, and in the graph
  std::map<Event *, std::shared_ptr<Clocks>> records; // clocks at each event's last record
};

} // namespace

std::unique_ptr<Gpu> watchForRaces(std::unique_ptr<Gpu> gpu, const plan::Plan &plan) {
  return std::make_unique<WatchedGpu>(std::move(gpu), plan);
}

} // namespace stepc::runtime
