#include "test/unit/runtime/Harness.h"

#include "gtest/gtest.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <map>
#include <thread>
#include <unistd.h>

namespace stepc::test {
namespace {

struct Shape {
  int64_t rows, cols;
  bool sharded;
};
constexpr Shape kShapes[kParameters] = {{6, 4, true},  {6, 4, true},     {3, 1, true},
                                        {5, 1, false}, {70, 1000, true}, {4, 1, true},
                                        {8, 6, true},  {8, 6, true},     {8, 6, true}};

float startValue(int64_t parameter, int64_t element) {
  return float(parameter + 1) + 0.125f * float(element % 17);
}

float gradientValue(int64_t parameter, int64_t element, int64_t step) {
  return 0.25f * float((element * 7 + parameter * 3 + step * 5) % 23) - 2.0f;
}

std::string copyOfModule() {
  static int count = 0;
  std::string path =
      std::filesystem::temp_directory_path() /
      ("stepc-runtime-" + std::to_string(getpid()) + "-" + std::to_string(count++) + ".so");
  std::filesystem::copy_file(STEPC_TEST_MODULE, path,
                             std::filesystem::copy_options::overwrite_existing);
  return path;
}

} // namespace

const stepc_library *load(int32_t world, const std::string &fault) {
  static std::mutex mutex;
  static std::map<std::pair<int32_t, std::string>, const stepc_library *> loaded;
  std::lock_guard<std::mutex> lock(mutex);
  const stepc_library *&library = loaded[{world, fault}];
  if (library)
    return library;
  setenv("STEPC_TEST_WORLD", std::to_string(world).c_str(), 1);
  setenv("STEPC_TEST_FAULT", fault.c_str(), 1);
  std::string path = copyOfModule();
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::filesystem::remove(path);
  if (!handle) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::abort();
  }
  auto table = reinterpret_cast<const stepc_library *(*)()>(dlsym(handle, "stepc_library_table"));
  return library = table();
}

Trainer::Trainer(const stepc_library *library, stepc_instance *instance)
    : library(library), instance(instance), parameters(kParameters), gradients(kParameters),
      moments(kParameters), steps(kParameters, 0), firstElement(kParameters, 0) {
  // Ranks hold equal chunks, the last ones short: recover the shard's place from its shape.
  for (int64_t p = 0; p < kParameters; ++p) {
    auto info = sized<stepc_parameter_info>();
    EXPECT_EQ(library->parameter_info(instance, p, &info), STEPC_OK);
    int64_t elements = 1;
    for (int32_t axis = 0; axis < info.axes; ++axis)
      elements *= info.local_shape[axis];
    parameters[p].resize(elements);
    gradients[p].resize(elements);
    moments[p].resize(elements);
  }
}

void Trainer::bindAll() {
  for (int64_t p = 0; p < kParameters; ++p) {
    int64_t bytes = int64_t(parameters[p].size()) * 4;
    EXPECT_EQ(library->bind_parameter(instance, p, bytes ? parameters[p].data() : nullptr, bytes),
              STEPC_OK)
        << error();
    if (p < W0) {
      EXPECT_EQ(library->bind_state(instance, p, 0, bytes ? moments[p].data() : nullptr, bytes),
                STEPC_OK)
          << error();
    }
  }
  EXPECT_EQ(library->bind_steps(instance, steps.data(), STEPC_MEMORY_HOST), STEPC_OK);
  EXPECT_EQ(library->set_hyperparameter(instance, DecayAsk, "lr", 0.25), STEPC_OK);
  bindGradients();
}

void Trainer::bindGradients() {
  std::vector<const void *> pointers;
  for (const auto &gradient : gradients)
    pointers.push_back(gradient.empty() ? nullptr : gradient.data());
  EXPECT_EQ(library->bind_gradients(instance, pointers.data(), kParameters), STEPC_OK) << error();
}

void Trainer::fillGradients(int64_t step) {
  for (int64_t p = 0; p < kParameters; ++p)
    for (size_t i = 0; i < gradients[p].size(); ++i)
      gradients[p][i] = gradientValue(p, firstElement[p] + int64_t(i), step);
}

void Trainer::place(int rank, int size) {
  for (int64_t p = 0; p < kParameters; ++p) {
    const Shape &shape = kShapes[p];
    int64_t chunk = (shape.rows + size - 1) / size;
    firstElement[p] = shape.sharded ? std::min(shape.rows, chunk * rank) * shape.cols : 0;
    for (size_t i = 0; i < parameters[p].size(); ++i)
      parameters[p][i] = startValue(p, firstElement[p] + int64_t(i));
  }
}

void Trainer::collect(std::vector<std::vector<float>> &whole) const {
  for (int64_t p = 0; p < kParameters; ++p)
    std::copy(parameters[p].begin(), parameters[p].end(), whole[p].begin() + firstElement[p]);
}

std::vector<uint8_t> Trainer::halfStepped() const {
  std::vector<uint8_t> flags(kParameters);
  EXPECT_EQ(library->half_stepped(instance, flags.data(), kParameters), STEPC_OK);
  return flags;
}

stepc_counters Trainer::executed() const {
  auto counters = sized<stepc_counters>();
  library->counters(instance, &counters, nullptr);
  return counters;
}

stepc_counters Trainer::planned() const {
  auto counters = sized<stepc_counters>();
  library->counters(instance, nullptr, &counters);
  return counters;
}

std::vector<stepc_transport> transportsOf(const stepc_library *library, int32_t size) {
  std::vector<stepc_transport> transports(size, sized<stepc_transport>());
  EXPECT_EQ(library->in_process_world(size, transports.data()), STEPC_OK);
  return transports;
}

stepc_options defaultOptions() {
  auto options = sized<stepc_options>();
  options.abi_version = STEPC_ABI_VERSION;
  options.threads = 1;
  options.timeout_seconds = 20;
  return options;
}

void runWorld(int32_t size, const Options &given, const std::function<void(Trainer &, int)> &body) {
  const stepc_library *library = load(size, given.fault);
  std::vector<stepc_transport> transports(size);
  if (given.connect)
    given.connect(transports);
  else
    transports = transportsOf(library, size);
  std::vector<std::thread> ranks;
  for (int32_t rank = 0; rank < size; ++rank)
    ranks.emplace_back([&, rank] {
      stepc_options options = defaultOptions();
      options.transport = &transports[rank];
      options.threads = given.threads;
      options.timeout_seconds = given.timeout;
      options.parallel_for = given.parallelFor;
      options.parallel_context = given.parallelContext;
      options.allocate = given.allocate;
      options.deallocate = given.deallocate;
      options.allocator_context = given.allocatorContext;
      stepc_instance *instance = nullptr;
      char error[512] = "";
      int32_t status = library->create(&options, &instance, error, sizeof(error));
      if (status) {
        if (!given.createMayFail)
          ADD_FAILURE() << "create: " << status << ": " << error;
        transports[rank].destroy(transports[rank].context);
        return;
      }
      Trainer trainer(library, instance);
      trainer.place(rank, size);
      body(trainer, rank);
      library->destroy(instance);
    });
  for (std::thread &rank : ranks)
    rank.join();
}

std::vector<Created> createWorld(const std::vector<const stepc_library *> &libraries,
                                 const stepc_options &given) {
  int32_t size = int32_t(libraries.size());
  std::vector<stepc_transport> transports = transportsOf(libraries[0], size);
  std::vector<Created> results(size);
  std::vector<std::thread> ranks;
  for (int32_t rank = 0; rank < size; ++rank)
    ranks.emplace_back([&, rank] {
      stepc_options options = given;
      options.transport = &transports[rank];
      stepc_instance *instance = nullptr;
      char error[512] = "";
      results[rank].status = libraries[rank]->create(&options, &instance, error, sizeof(error));
      results[rank].message = error;
      if (instance)
        libraries[rank]->destroy(instance);
      else
        transports[rank].destroy(transports[rank].context);
    });
  for (std::thread &rank : ranks)
    rank.join();
  return results;
}

std::vector<std::vector<float>> wholeParameters() {
  std::vector<std::vector<float>> whole;
  for (const Shape &shape : kShapes)
    whole.emplace_back(shape.rows * shape.cols);
  return whole;
}

std::vector<std::vector<float>> expectedParameters(int64_t steps) {
  std::vector<std::vector<float>> whole = wholeParameters();
  for (int64_t p = 0; p < kParameters; ++p)
    for (size_t i = 0; i < whole[p].size(); ++i) {
      float param = startValue(p, i), m = 0;
      float lr = p == Ask ? 0.25f : 0.5f, keep = p == Ask ? 0.5f : 0.25f;
      for (int64_t step = 1; step <= steps; ++step) {
        float grad = gradientValue(p, i, step);
        m = keep * m + grad;
        param -= p >= W0 ? 0.125f * (2 * grad) : lr * m / float(step);
      }
      whole[p][i] = param;
    }
  return whole;
}

} // namespace stepc::test
