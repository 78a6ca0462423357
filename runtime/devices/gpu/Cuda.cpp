//===- Cuda.cpp - A GPU behind NVIDIA's driver -------------------------------===//
//
// All that may wait or allocate happens when an instance is made or destroyed. These are the device's primary
// context, which PyTorch uses too, the module with the chip's machine code, streams and events. A step only
// enqueues, and the trainer's stream waits for it.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/gpu/CudaChip.h"
#include "runtime/devices/gpu/CudaGraph.h"
#include "runtime/devices/gpu/CudaPointers.h"
#include "runtime/devices/gpu/GpuDevice.h"
#include "runtime/devices/gpu/LibraryProducts.h"
#include "runtime/plan/TileLists.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <climits>
#include <cstdlib>

namespace stepc::runtime {

struct Gpu::Event {
  cuda::EventHandle handle = nullptr;
};

namespace {

using namespace cuda;

constexpr size_t kMostParameters = 64; // a kernel's, one of which stays null

size_t parameterCount(const Launch &launch) {
  return size_t(launch.argumentCount) + launch.shape->getsItems();
}

class Cuda : public Gpu {
public:
  Cuda(const cuda::Driver &driver, StreamHandle trainers)
      : driver(driver), trainers(trainers), graph(driver) {}

  ~Cuda() override {
    if (!context)
      return;
    enter();
    graph.forget();
    products.close();
    for (StreamHandle stream : streams)
      if (stream) {
        driver.cuStreamSynchronize(stream);
        driver.cuStreamDestroy_v2(stream);
      }
    for (Event *event : {&begun, &done[0], &done[1], &captured[0], &captured[1]})
      if (event->handle)
        driver.cuEventDestroy_v2(event->handle);
    if (module)
      driver.cuModuleUnload(module);
    for (const BoundedKernel &kernel : bounded)
      driver.cuMemFreeHost(kernel.stuck);
    exit();
    driver.cuDevicePrimaryCtxRelease_v2(chip.device);
  }

  /// Opens all that an instance needs but memory. `takeProblem()` then says what is missing.
  void open(const DeviceContext &opened, const stepc_options &options) {
    ordinal = options.device_ordinal;
    ChosenImage chosen;
    std::string problem = readMostClusters();
    if (problem.empty())
      problem = readDependentLaunches();
    if (problem.empty())
      problem = askChip(driver, ordinal, chip);
    if (problem.empty())
      problem = chooseImage(chip, {opened.plan.name, {&opened.program}}, chosen);
    if (!problem.empty())
      return fail(problem);
    if (!check("entering the context", driver.cuDevicePrimaryCtxRetain(&context, chip.device)))
      return;
    enter();
    checkTrainersStream();
    if (check("asking the trainer's stream", graph.ask(trainers, capture)) && capture.number) {
      exit();
      return fail("expected a stream that no graph captures, found one that a graph does");
    }
    for (StreamHandle &stream : streams)
      check("making a stream", driver.cuStreamCreate(&stream, kNonBlocking));
    for (Event *event : {&begun, &done[0], &done[1], &captured[0], &captured[1]})
      check("making an event", driver.cuEventCreate(&event->handle, kDisableTiming));
    if (check(format("loading the kernels for %s", chosen.image->chip).c_str(),
              driver.cuModuleLoadData(&module, chosen.image->code)))
      for (const plan::Kernel &kernel : opened.plan.kernels)
        openKernel(kernel);
    openProducts(opened.plan);
    exit();
  }

  void *allocate(int64_t bytes) override {
    Address memory = 0;
    enter();
    check("allocating memory", driver.cuMemAlloc_v2(&memory, size_t(std::max<int64_t>(bytes, 1))));
    exit();
    return reinterpret_cast<void *>(memory);
  }
  void release(void *memory) override {
    enter();
    if (memory)
      driver.cuMemFree_v2(addressOf(memory));
    exit();
  }
  void *allocateStaging(int64_t bytes) override {
    void *memory = nullptr;
    enter();
    check("allocating staging memory",
          driver.cuMemAllocHost_v2(&memory, size_t(std::max<int64_t>(bytes, 1))));
    exit();
    return memory;
  }
  void releaseStaging(void *memory) override {
    enter();
    if (memory)
      driver.cuMemFreeHost(memory);
    exit();
  }

  std::string checkPointer(const void *pointer, int32_t memory) override {
    return pointers.check(pointer, memory, ordinal);
  }

  std::string checkLaunch(const Launch &launch) const override {
    if (launch.number < 0 || launch.number >= int64_t(functions.size()) || !launch.shape)
      return "expected a kernel for each command, found none";
    // The list of parameters ends with null.
    if (parameterCount(launch) >= kMostParameters)
      return format("expected a kernel of at most %zu arguments, found %zu", kMostParameters - 1,
                    parameterCount(launch));
    if (blockCount(launch) > INT_MAX)
      return format("expected at most %d blocks of a kernel, found %lld", INT_MAX,
                    (long long)blockCount(launch));
    return {};
  }

  void *streamHandle(Stream stream) override { return at(stream); }

  int64_t lists(const Launch &launch) const override {
    int64_t cluster = launch.shape->cluster;
    int64_t blocks = functions[size_t(launch.number)].residentBlocks;
    if (launch.besideMessages)
      blocks -= plan::kMessageBlocks;
    return std::clamp(blocks / cluster, int64_t(1), mostClusters);
  }
  void makeMap(const MatrixStack &stack, stepc_tensor_map &map) override {
    const int64_t elementBytes = byteSize(stack.type);
    const int type = stack.type == plan::DType::F32   ? kMapF32
                     : stack.type == plan::DType::F16 ? kMapF16
                                                      : kMapBF16;
    alignas(64) stepc_tensor_map made{};
    uint64_t rowBytes = uint64_t(stack.columns * elementBytes);
    uint64_t sizes[] = {uint64_t(stack.columns), uint64_t(stack.rows), uint64_t(stack.matrices)};
    uint64_t strides[] = {rowBytes, rowBytes * uint64_t(stack.rows)};
    unsigned box[] = {unsigned(plan::boxColumns(stack.type)), unsigned(stack.boxRows), 1},
             every[] = {1, 1, 1};
    enter();
    if (check("describing matrices",
              driver.cuTensorMapEncodeTiled(&made, type, 3, const_cast<void *>(stack.address),
                                            sizes, strides, box, every, /*interleave=*/0,
                                            kSwizzle128, kPromote256, /*outside=*/0)))
      map = made;
    exit();
  }
  void launch(Stream stream, const Launch &launch) override {
    void *parameters[kMostParameters] = {};
    int64_t items = launch.items;
    for (int64_t i = 0; i < launch.argumentCount; ++i)
      parameters[i] = const_cast<void **>(&launch.arguments[i]);
    const plan::LaunchShape &shape = *launch.shape;
    if (shape.getsItems())
      parameters[launch.argumentCount] = &items;
    auto blocks = unsigned(blockCount(launch)), threads = unsigned(shape.threads);
    auto dynamic = unsigned(shape.dynamicBytes);
    cuda::Function function = functions[size_t(launch.number)].handle;
    LaunchAttribute attributes[2];
    unsigned count = 0;
    if (shape.cluster > 1)
      attributes[count++] = LaunchAttribute::ofCluster(shape.cluster);
    if (isDependent(launch))
      attributes[count++] = LaunchAttribute::ofDependent();
    if (count == 0) {
      check("starting a kernel", driver.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1,
                                                       dynamic, at(stream), parameters, nullptr));
      return;
    }
    LaunchConfig config{{blocks, 1, 1}, {threads, 1, 1}, dynamic, at(stream), attributes, count};
    check("starting a kernel", driver.cuLaunchKernelEx(&config, function, parameters, nullptr));
  }
  ProductLibrary library() const override { return products.found(); }
  void prepare(BatchWork &work) override {
    if (!products.found().choices)
      return;
    enter();
    fail(products.prepare(work, at(Stream::Compute)));
    if (work.product >= 0)
      check("multiplying zeros", driver.cuStreamSynchronize(at(Stream::Compute)));
    exit();
  }
  void multiply(Stream stream, const BatchWork &work) override {
    fail(products.multiply(work, at(stream)));
  }
  void fill(Stream stream, void *memory, int64_t bytes) override {
    enter();
    check("clearing memory",
          driver.cuMemsetD8Async(addressOf(memory), 0, size_t(bytes), at(stream)));
    exit();
  }
  void upload(Stream stream, void *to, const void *staging, int64_t bytes) override {
    enter();
    check("copying to the GPU",
          driver.cuMemcpyHtoDAsync_v2(addressOf(to), staging, size_t(bytes), at(stream)));
    exit();
  }
  void download(Stream stream, void *staging, const void *from, int64_t bytes) override {
    enter();
    check("copying from the GPU",
          driver.cuMemcpyDtoHAsync_v2(staging, addressOf(from), size_t(bytes), at(stream)));
    exit();
  }
  void move(Stream stream, void *to, const void *from, int64_t bytes) override {
    check("copying on the GPU",
          driver.cuMemcpyDtoDAsync_v2(addressOf(to), addressOf(from), size_t(bytes), at(stream)));
  }
  /// Calls the function at once: it enqueues what it begins.
  void call(Stream, void (*function)(void *), void *argument) override { function(argument); }

  Event *makeEvent() override {
    auto *event = new Event;
    enter();
    check("making an event", driver.cuEventCreate(&event->handle, kDisableTiming));
    exit();
    return event;
  }
  void destroy(Event *event) override {
    enter();
    if (event->handle)
      driver.cuEventDestroy_v2(event->handle);
    exit();
    delete event;
  }
  void record(Stream stream, Event *event) override {
    enter();
    check("recording an event", driver.cuEventRecord(event->handle, at(stream)));
    exit();
  }
  void wait(Stream stream, Event *event) override {
    check("waiting for an event", driver.cuStreamWaitEvent(at(stream), event->handle, 0));
  }
  void synchronize(Event *event) override {
    enter();
    CudaGraph::Relaxed relaxed(driver);
    check("waiting for the GPU", driver.cuEventSynchronize(event->handle));
    exit();
  }

  void join(bool isCaptured) override {
    enter();
    last = isCaptured ? captured : done;
    hasJoined =
        check("following the trainer's stream", driver.cuEventRecord(begun.handle, trainers));
    for (StreamHandle stream : streams)
      check("following the trainer's stream", driver.cuStreamWaitEvent(stream, begun.handle, 0));
    if (isCaptured)
      check("counting the trainer's graphs", graph.hold(capture));
  }
  void leave() override {
    for (size_t i = 0; i < 2 && hasJoined; ++i) {
      check("handing over", driver.cuEventRecord(last[i].handle, streams[i]));
      check("handing over", driver.cuStreamWaitEvent(trainers, last[i].handle, 0));
    }
    exit();
  }

  void abandon() noexcept override {
    for (; entered > 1; --entered)
      continue;
    exit();
  }
  bool isDone() override {
    enter();
    CudaGraph::Relaxed relaxed(driver);
    bool all = true;
    for (Event &event : done) {
      Result result = driver.cuEventQuery(event.handle);
      all &= result != kNotReady;
      if (result != kNotReady)
        check("carrying out a step", result);
    }
    exit();
    return all;
  }
  void drain() override {
    enter();
    CudaGraph::Relaxed relaxed(driver);
    for (Event &event : done)
      check("carrying out a step", driver.cuEventSynchronize(event.handle));
    exit();
  }

  void beginGraph() override {
    enter();
    check("recording a step", graph.begin(at(Stream::Compute)));
  }
  void endGraph() override {
    check("recording a step", graph.end(at(Stream::Compute)));
    exit();
  }
  void replay() override { check("replaying a step", graph.replay(at(Stream::Compute))); }
  void forgetGraph() noexcept override {
    enter();
    graph.forget();
    exit();
  }
  uint64_t captureNumber() override {
    enter();
    check("asking the trainer's stream", graph.ask(trainers, capture));
    if (capture.isBroken)
      fail("expected a stream that no graph captures, or one that does, found a capture that an "
           "earlier call broke");
    exit();
    return capture.number;
  }
  int64_t livingGraphs() const override { return graph.living(); }

private:
  static Address addressOf(const void *memory) { return reinterpret_cast<Address>(memory); }
  StreamHandle at(Stream stream) const { return streams[size_t(stream)]; }

  bool check(const char *doing, Result result) {
    if (result)
      fail(format("%s failed: %s%s", doing, describe(driver, result).c_str(),
                  whatIsStuck().c_str()));
    return result == 0;
  }

  /// Which kernel has ended by a trap, because it waited too long; empty if none has.
  std::string whatIsStuck() const {
    for (const BoundedKernel &kernel : bounded)
      if (uint32_t number = *static_cast<volatile uint32_t *>(kernel.stuck))
        return format("; kernel '%s' waited 2 s for its barrier %u", kernel.name.c_str(),
                      number - 1);
    return {};
  }

  /// Tells a kernel whose waits are bounded where to write the number of a barrier.
  void openBounded(const std::string &kernel) {
    Address variable = 0;
    size_t bytes = 0;
    Result result =
        driver.cuModuleGetGlobal_v2(&variable, &bytes, module, plan::stuckSymbol(kernel).c_str());
    if (result == kNotFound)
      return;
    void *word = nullptr;
    if (!check("finding a kernel's variable", result) ||
        !check("allocating staging memory", driver.cuMemAllocHost_v2(&word, sizeof word)))
      return;
    // The copy reads the word's address from the word itself, which no kernel uses yet.
    std::memcpy(word, &word, sizeof word);
    check("copying to the GPU",
          driver.cuMemcpyHtoDAsync_v2(variable, word, sizeof word, at(Stream::Compute)));
    check("copying to the GPU", driver.cuStreamSynchronize(at(Stream::Compute)));
    std::memset(word, 0, sizeof word);
    bounded.push_back({kernel, static_cast<uint32_t *>(word)});
  }

  /// Finds a kernel in the module, and checks that the GPU has the threads and memory that it needs.
  void openKernel(const plan::Kernel &kernel) {
    OpenedKernel &opened = functions.emplace_back();
    if (!check(("finding kernel " + kernel.name).c_str(),
               driver.cuModuleGetFunction(&opened.handle, module, kernel.name.c_str())) ||
        !kernel.launch)
      return;
    const plan::LaunchShape &shape = *kernel.launch;
    std::string wrong =
        checkLimits(shape, {chip.blockThreads, chip.blockSharedBytes, chip.major >= 9 ? 8 : 1});
    if (!wrong.empty())
      return fail(format("kernel '%s' on sm_%d%d: expected %s", kernel.name.c_str(), chip.major,
                         chip.minor, wrong.c_str()));
    if (shape.dynamicBytes > 0)
      check("asking for shared memory",
            driver.cuFuncSetAttribute(opened.handle, kDynamicBytes, int(shape.dynamicBytes)));
    int resident = 0;
    if (shape.grid == plan::Grid::Resident &&
        check("asking how many blocks are resident",
              driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                  &resident, opened.handle, int(shape.threads), size_t(shape.dynamicBytes))))
      opened.residentBlocks =
          int64_t(resident) * chip.multiprocessors / shape.cluster * shape.cluster;
    if (shape.grid == plan::Grid::Lists) {
      opened.residentBlocks = shape.cluster * residentClusters(opened.handle, shape);
      openBounded(kernel.name);
    }
  }

  /// STEPC_MOST_CLUSTERS lets products run on fewer clusters than the GPU has. Results are the same.
  std::string readMostClusters() {
    const char *given = std::getenv("STEPC_MOST_CLUSTERS");
    if (!given)
      return {};
    char *end = nullptr;
    mostClusters = std::strtoll(given, &end, 10);
    return *given && !*end && mostClusters >= 1
               ? ""
               : format("expected a whole number of at least 1 in STEPC_MOST_CLUSTERS, found '%s'",
                        given);
  }

  /// STEPC_DEPENDENT_LAUNCHES=0 lets no kernel begin before the kernels before it are done. Results are the
  /// same.
  std::string readDependentLaunches() {
    constexpr int kLeastVersion = 12030; // older drivers do not capture such launches
    int version = 0;
    driver.cuDriverGetVersion(&version);
    std::string given = "1";
    if (const char *text = std::getenv("STEPC_DEPENDENT_LAUNCHES"); text && *text)
      given = text;
    launchesDependents = given == "1" && version >= kLeastVersion;
    return given == "0" || given == "1"
               ? ""
               : format("expected 0 or 1 in STEPC_DEPENDENT_LAUNCHES, found '%s'", given.c_str());
  }

  /// Whether a launch may begin while the kernel before it ends. Only kernels of tiles wait for that kernel
  /// (kernel_abi.h). Beside messages none begins early, because its blocks would hold multiprocessors that
  /// are left to messages.
  bool isDependent(const Launch &launch) const {
    return launchesDependents && launch.shape->grid == plan::Grid::Lists && !launch.besideMessages;
  }

  int64_t residentClusters(cuda::Function function, const plan::LaunchShape &shape) {
    LaunchAttribute cluster = LaunchAttribute::ofCluster(shape.cluster);
    LaunchConfig config{{unsigned(shape.cluster), 1, 1},
                        {unsigned(shape.threads), 1, 1},
                        unsigned(shape.dynamicBytes),
                        nullptr,
                        &cluster,
                        1};
    int clusters = 0;
    if (check("asking how many clusters are resident",
              driver.cuOccupancyMaxActiveClusters(&clusters, function, &config)) &&
        clusters < 1)
      fail(format(
          "expected a GPU that runs clusters of %lld blocks with %lld bytes of shared memory, "
          "found one that runs none",
          (long long)shape.cluster, (long long)shape.sharedBytes()));
    return clusters;
  }

  int64_t blockCount(const Launch &launch) const {
    const plan::LaunchShape &shape = *launch.shape;
    int64_t blocks = launch.items;
    if (shape.grid == plan::Grid::Threads)
      blocks = (launch.items + shape.threads - 1) / shape.threads;
    if (shape.grid == plan::Grid::Lists)
      return launch.items * shape.cluster;
    blocks = (blocks + shape.cluster - 1) / shape.cluster * shape.cluster;
    return shape.grid == plan::Grid::Resident
               ? std::min(blocks, functions[size_t(launch.number)].residentBlocks)
               : blocks;
  }

  void openProducts(const plan::Plan &plan) {
    fail(products.open(plan, chip.number(), chip.multiprocessors));
  }

  /// Between `enter` and `exit` the context is current in the calling thread. The calls nest.
  void enter() {
    if (entered++ == 0)
      isCurrent = check("entering the context", driver.cuCtxPushCurrent_v2(context));
  }
  void exit() {
    Context left;
    if (--entered == 0 && isCurrent)
      driver.cuCtxPopCurrent_v2(&left);
  }

  void checkTrainersStream() {
    Context theirs = nullptr;
    if (trainers &&
        check("asking the trainer's stream", driver.cuStreamGetCtx(trainers, &theirs)) &&
        theirs != context)
      fail("expected a stream of the GPU's primary context, found one of another context");
  }

  const cuda::Driver &driver;
  StreamHandle trainers; // null: the context's default stream
  int ordinal = 0;
  Chip chip;
  Context context = nullptr;
  Module module = nullptr;
  /// A kernel of the plan on this GPU.
  struct OpenedKernel {
    cuda::Function handle = nullptr;
    /// GPU blocks that fit at once, for resident grids and lists.
    int64_t residentBlocks = 0;
  };
  std::vector<OpenedKernel> functions; // in the plan's order
  /// A kernel whose waits are bounded, and a word of the host: 0, or one more than a barrier's number.
  struct BoundedKernel {
    std::string name;
    uint32_t *stuck;
  };
  std::vector<BoundedKernel> bounded;
  StreamHandle streams[2] = {};
  // The ends of a step on both streams. A captured step uses `captured`, because captured events cannot be
  // queried.
  Event begun, done[2], captured[2];
  Event *last = done;
  CudaGraph graph;
  CudaGraph::Capture capture; // as of the last question
  CudaPointers pointers{driver};
  LibraryProducts products;
  int64_t mostClusters = INT_MAX; // for lists of tiles
  bool launchesDependents = false;
  int64_t entered = 0;
  bool isCurrent = false, hasJoined = false;
};

std::unique_ptr<Gpu> openDriver(const DeviceContext &opened, const stepc_options &options,
                                std::string &problem) {
  std::unique_ptr<Cuda> gpu;
  if (const cuda::Driver *driver = cuda::driver(problem)) {
    gpu = std::make_unique<Cuda>(*driver, static_cast<StreamHandle>(options.stream));
    gpu->open(opened, options);
    problem = gpu->takeProblem();
  }
  return problem.empty() ? std::unique_ptr<Gpu>(std::move(gpu)) : nullptr;
}

std::string chooseProgram(const LibraryPrograms &library, const stepc_options &options,
                          size_t &chosen) {
  std::string problem;
  const cuda::Driver *driver = cuda::driver(problem);
  Chip chip;
  ChosenImage found;
  if (problem.empty())
    problem = askChip(*driver, options.device_ordinal, chip);
  if (problem.empty())
    problem = chooseImage(chip, library, found);
  chosen = found.program;
  return problem;
}

std::string openCuda(DeviceContext &context, const stepc_options &options) {
  return openGpuDevice(context, options, openDriver);
}

} // namespace
} // namespace stepc::runtime

extern "C" const stepc_device_table stepc_device_cuda = [] {
  stepc_device_table table =
      stepc::runtime::gpuDeviceTable("cuda", STEPC_DEVICE_CUDA, true, stepc::runtime::openCuda);
  table.choose = stepc::runtime::chooseProgram;
  return table;
}();
