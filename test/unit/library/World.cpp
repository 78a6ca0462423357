//===- World.cpp - Compiled libraries on in-process ranks ------------------===//

#include "test/unit/library/World.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <thread>

namespace stepc::test {

const stepc_library *open(const std::string &path) {
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void *table = handle ? dlsym(handle, "stepc_library_table") : nullptr;
  if (!table) {
    std::fprintf(stderr, "cannot load %s: %s\n", path.c_str(), dlerror());
    std::exit(2);
  }
  return reinterpret_cast<const stepc_library *(*)()>(table)();
}

static int64_t byteSize(const std::string &dtype) {
  return dtype == "f32" ? 4 : dtype == "f64" ? 8 : 2;
}

static int64_t elements(const int64_t *shape, int32_t axes) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < axes; ++axis)
    count *= shape[axis];
  return count;
}

/// Numbers from -1 to 1 without any library's generator: the same everywhere.
static float number(uint64_t seed) {
  uint64_t z = seed + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return float(double((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1);
}

/// Fills f32 shards, and the upper halves of f32 numbers into bf16 ones (f16 takes them as they
/// are).
static void fill(Buffer &buffer, int64_t itemBytes, uint64_t seed) {
  for (int64_t i = 0; i < buffer.bytes / itemBytes; ++i) {
    float value = number(seed * 1000003 + uint64_t(i));
    char *at = buffer.data.get() + i * itemBytes;
    std::memcpy(at, reinterpret_cast<char *>(&value) + (4 - itemBytes), size_t(itemBytes));
  }
}

Rank::Rank(const stepc_library *library, stepc_instance *instance)
    : library(library), instance(instance) {
  int64_t count = library->parameter_count();
  parameters.resize(count);
  gradients.resize(count);
  states.resize(count);
  claimed.assign(count, 0);
  steps.assign(count, 0);
  for (int64_t p = 0; p < count; ++p) {
    auto info = sized<stepc_parameter_info>();
    library->parameter_info(instance, p, &info);
    if (!info.member)
      continue;
    int64_t local = elements(info.local_shape, info.axes);
    claimed[p] = local * byteSize(info.dtype);
    parameters[p] = Buffer(claimed[p]);
    fill(parameters[p], byteSize(info.dtype), uint64_t(p) + 7);
    gradients[p] =
        Buffer(elements(info.gradient_local_shape, info.axes) * byteSize(info.gradient_dtype));
    for (int32_t s = 0; s < info.states; ++s) {
      auto state = sized<stepc_state_info>();
      library->state_info(instance, p, s, &state);
      states[p].emplace_back(elements(state.local_shape, state.axes) * byteSize(state.dtype));
    }
  }
}

int32_t Rank::bind() {
  for (int64_t p = 0; p < int64_t(parameters.size()); ++p) {
    auto info = sized<stepc_parameter_info>();
    library->parameter_info(instance, p, &info);
    if (!info.member)
      continue;
    if (int32_t status = library->bind_parameter(instance, p, parameters[p].get(), claimed[p]))
      return status;
    if (int32_t status =
            library->bind_gradient(instance, p, gradients[p].get(), gradients[p].bytes))
      return status;
    for (int32_t s = 0; s < int32_t(states[p].size()); ++s)
      if (int32_t status =
              library->bind_state(instance, p, s, states[p][s].get(), states[p][s].bytes))
        return status;
  }
  return library->bind_steps(instance, steps.data(), STEPC_MEMORY_HOST);
}

void Rank::fillGradients(int rank, int64_t step) {
  for (int64_t p = 0; p < int64_t(gradients.size()); ++p) {
    auto info = sized<stepc_parameter_info>();
    library->parameter_info(instance, p, &info);
    fill(gradients[p], byteSize(info.gradient_dtype), uint64_t((step * 64 + rank) * 4096 + p));
  }
}

std::vector<Created> runWorld(const std::vector<const stepc_library *> &libraries,
                              const Options &options,
                              const std::function<void(Rank &, int)> &body) {
  int32_t size = options.size ? options.size : libraries[0]->world_size();
  std::vector<stepc_transport> transports(size, sized<stepc_transport>());
  std::vector<Created> created(size);
  if (libraries[0]->in_process_world(size, transports.data())) {
    std::fprintf(stderr, "cannot make a world of %d ranks\n", size);
    std::exit(2);
  }
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.emplace_back([&, rank] {
      const stepc_library *library = libraries[rank % libraries.size()];
      auto own = sized<stepc_options>();
      own.abi_version = STEPC_ABI_VERSION;
      own.transport = &transports[rank];
      own.threads = options.threads;
      own.timeout_seconds = options.timeout;
      if (options.change)
        options.change(rank, own);
      stepc_instance *instance = nullptr;
      char error[1024] = "";
      created[rank].status = library->create(&own, &instance, error, sizeof(error));
      created[rank].message = error;
      if (created[rank].status) {
        // Still the caller's.
        if (transports[rank].destroy)
          transports[rank].destroy(transports[rank].context);
        return;
      }
      {
        Rank self(library, instance);
        body(self, rank);
      }
      library->destroy(instance);
    });
  for (std::thread &rank : ranks)
    rank.join();
  return created;
}

static uint64_t addToHash(uint64_t hash, const void *data, int64_t bytes) {
  for (int64_t i = 0; i < bytes; ++i)
    hash = (hash ^ static_cast<const unsigned char *>(data)[i]) * 0x100000001b3u;
  return hash;
}

uint64_t train(const stepc_library *library, const Options &options, int64_t steps,
               std::string &error) {
  std::vector<uint64_t> hashes(library->world_size(), 0xcbf29ce484222325u);
  std::mutex mutex;
  auto fail = [&](const std::string &message) {
    std::lock_guard<std::mutex> lock(mutex);
    if (error.empty())
      error = message;
  };
  std::vector<Created> created = runWorld({library}, options, [&](Rank &self, int rank) {
    if (self.bind())
      return fail(self.error());
    for (int64_t step = 0; step < steps; ++step) {
      self.fillGradients(rank, step);
      if (library->step(self.instance))
        return fail(self.error());
    }
    uint64_t &hash = hashes[rank];
    for (const Buffer &buffer : self.parameters)
      hash = addToHash(hash, buffer.get(), buffer.bytes);
    for (const auto &of : self.states)
      for (const Buffer &buffer : of)
        hash = addToHash(hash, buffer.get(), buffer.bytes);
    hash = addToHash(hash, self.steps.data(), int64_t(self.steps.size() * sizeof(int64_t)));
  });
  for (const Created &one : created)
    if (one.status)
      fail(one.message);
  return addToHash(0xcbf29ce484222325u, hashes.data(), int64_t(hashes.size() * sizeof(uint64_t)));
}

} // namespace stepc::test
