// gpu_trainer.cpp - Trains a small network on several GPUs from C++, with CUDA's driver API and NCCL.
//
// Weights, gradients and states are on the GPU, and so is the optimizer step, which is compiled by stepc and
// called through its generated header. The passes forward and backward are on the host (gpu_trainer_network.h),
// to keep this short. Each rank is a process, on the GPU of its number, and holds some rows of each parameter
// and of its states (ZeRO):
//
//   gradients to the GPU -> reduce-scatter -> step -> all-gather -> weights to the host
//
// All of it is enqueued on one stream, and the host waits once a step, with a deadline. The trainer's own two
// collectives go by the transport that stepc has for NCCL, too. Build it, and run a process per rank; ranks
// meet by a file that is not there yet:
//
//   build/bin/stepc compile examples/gpu_trainer.optim --manifest examples/gpu_trainer_manifest.json
//     --target cuda:sm_80,sm_90a,sm_100a -o out
//   c++ -std=c++20 -O3 -Iout -Iruntime/include -I/usr/local/cuda/include examples/gpu_trainer.cpp
//     -Lout -lgpu_trainer -Lbuild/lib -lstepc_nccl -lcuda
//     -Wl,-rpath,$PWD/out -Wl,-rpath,$PWD/build/lib -o out/gpu_trainer
//   out/gpu_trainer 0 2 /tmp/meeting & out/gpu_trainer 1 2 /tmp/meeting
#include "gpu_trainer.h"
#include "gpu_trainer_cuda.h"
#include "gpu_trainer_network.h"
#include "stepc/nccl.h"
#include "stepc/sized.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kExamples = 64, kReport = 25;

using Clock = std::chrono::steady_clock;

/// One of the network's, on the GPU.
struct Parameter {
  int64_t index, rows, cols;
  Array weights, gradient; // whole
  Array mine;              // this rank's rows of the gradient, added over the ranks
  std::vector<float> part; // of a batch, its gradient
  std::vector<Array> states;

  Parameter(int64_t index, int64_t rows, int64_t cols, int ranks)
      : index(index), rows(rows), cols(cols), weights(rows * cols), gradient(rows * cols),
        mine(rows * cols / ranks), part(size_t(rows * cols)) {
    Random random{uint64_t(index) + 12345};
    for (int64_t i = 0; i < weights.count; ++i)
      weights.host[i] = cols == 1 ? 0.0f : float(random() / std::sqrt(double(cols)));
  }
};

std::vector<Parameter> makeParameters(int ranks) {
  constexpr int kWidth = Network::kWidth;
  std::vector<Parameter> all;
  all.reserve(gpu_trainer_parameters);
  all.emplace_back(gpu_trainer_parameter_in, kWidth, Network::kInputs, ranks);
  all.emplace_back(gpu_trainer_parameter_in_bias, kWidth, 1, ranks);
  all.emplace_back(gpu_trainer_parameter_hidden_0, kWidth, kWidth, ranks);
  all.emplace_back(gpu_trainer_parameter_hidden_0_bias, kWidth, 1, ranks);
  all.emplace_back(gpu_trainer_parameter_hidden_1, kWidth, kWidth, ranks);
  all.emplace_back(gpu_trainer_parameter_hidden_1_bias, kWidth, 1, ranks);
  all.emplace_back(gpu_trainer_parameter_out, Network::kArms, kWidth, ranks);
  return all;
}

Network networkOf(std::vector<Parameter> &parameters) {
  std::vector<Weights> all;
  for (Parameter &p : parameters)
    all.push_back({p.rows, p.cols, p.weights.host, p.part.data()});
  return Network(all);
}

struct Options {
  int rank = 0, ranks = 1, gpu = -1, steps = 200;
  std::filesystem::path file;
  double timeout = 120;
};

/// Ids of two worlds of NCCL, the library's and the trainer's. Rank 0 makes them, and all others find them in
/// a file, which is there whole or not at all.
struct Meeting {
  stepc_nccl_id library, trainer;
};

Meeting meet(const Options &options) {
  Meeting ids{};
  char error[1024] = "";
  if (options.rank == 0) {
    for (stepc_nccl_id *id : {&ids.library, &ids.trainer})
      if (stepc_nccl_unique_id(id, error, sizeof error))
        fail(std::string("making an id: ") + error);
    std::filesystem::path partial = options.file.string() + ".partial";
    std::ofstream(partial, std::ios::binary).write(reinterpret_cast<char *>(&ids), sizeof ids);
    std::error_code wrong;
    std::filesystem::create_hard_link(partial, options.file, wrong); // never over a file
    std::filesystem::remove(partial);
    if (wrong)
      fail("expected to make " + options.file.string() +
           ", for ranks to meet by: " + wrong.message());
    return ids;
  }
  auto begin = Clock::now();
  while (!std::filesystem::exists(options.file)) {
    if (std::chrono::duration<double>(Clock::now() - begin).count() > options.timeout)
      fail("rank 0 did not come");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (!std::ifstream(options.file, std::ios::binary)
           .read(reinterpret_cast<char *>(&ids), sizeof ids))
    fail("expected ids of NCCL in " + options.file.string() + ", found something else");
  return ids;
}

/// Where ranks have met, or could not, the next run finds nothing.
struct Removal {
  const Options &options;
  ~Removal() {
    std::error_code ignored;
    if (options.rank == 0)
      std::filesystem::remove(options.file, ignored);
  }
};

/// A world of NCCL; it ends with this, unless another has taken it over.
struct Transport {
  stepc_transport table = stepc::sized<stepc_transport>();
  bool isOwn = false;

  Transport(const stepc_nccl_id &id, const Options &options) {
    char error[1024] = "";
    if (stepc_nccl_transport(&id, options.rank, options.ranks, options.gpu, options.timeout, &table,
                             error, sizeof error))
      fail(std::string("meeting the other ranks: ") + error);
    isOwn = true;
  }
  Transport(const Transport &) = delete;
  ~Transport() {
    if (isOwn)
      table.destroy(table.context);
  }
  /// Enqueues operations, of which `make` fills in a parameter's.
  void enqueue(std::vector<Parameter> &parameters, CUstream stream,
               const std::function<void(Parameter &, stepc_operation &)> &make) {
    std::vector<stepc_operation> all;
    for (Parameter &p : parameters) {
      stepc_operation one{};
      one.peer = -1;
      one.bytes = p.mine.bytes();
      make(p, one);
      all.push_back(one);
    }
    stepc_operations group{sizeof(stepc_operations), sizeof(stepc_operation), all.data(),
                           int64_t(all.size()), stream};
    void *handle = nullptr;
    char error[1024] = "";
    if (table.start(table.context, &group, &handle, error, sizeof error))
      fail(std::string("a collective of the trainer: ") + error);
  }
  void expectNoProblem() {
    char error[1024] = "";
    if (table.test(table.context, nullptr, error, sizeof error) < 0)
      fail(std::string("a collective of the trainer: ") + error);
  }
};

class Optimizer {
public:
  Optimizer(const stepc_library *library, Transport &transport, const Gpu &gpu,
            const Options &given)
      : library(library) {
    auto options = stepc::sized<stepc_options>();
    options.abi_version = STEPC_ABI_VERSION;
    options.transport = &transport.table;
    options.device = STEPC_DEVICE_CUDA;
    options.device_ordinal = given.gpu;
    options.stream = gpu.stream;
    options.timeout_seconds = given.timeout;
    char error[1024] = "";
    if (library->create(&options, &instance, error, sizeof error))
      fail(std::string("create: ") + error);
    transport.isOwn = false;
  }
  Optimizer(const Optimizer &) = delete;
  ~Optimizer() { library->destroy(instance); }

  /// This rank's rows of the weights, in place, of the gradient, and of states, which are made.
  void bind(Parameter &p, const Options &options, CUstream stream) {
    auto info = stepc::sized<stepc_parameter_info>();
    check(library->parameter_info(instance, p.index, &info), "parameter_info");
    if (info.global_shape[0] != p.rows || (info.axes > 1 && info.global_shape[1] != p.cols) ||
        info.local_shape[0] * options.ranks != p.rows)
      fail(std::string(info.name) + ": expected the shape that the library was compiled for");
    void *weights = p.weights.at(options.rank * p.mine.count);
    check(library->bind_parameter(instance, p.index, weights, p.mine.bytes()), "bind_parameter");
    check(library->bind_gradient(instance, p.index, p.mine.at(0), p.mine.bytes()), "bind_gradient");
    p.states.reserve(size_t(info.states));
    for (int32_t s = 0; s < info.states; ++s) {
      auto state = stepc::sized<stepc_state_info>();
      check(library->state_info(instance, p.index, s, &state), "state_info");
      // All states of gpu_trainer.optim are f32 and shaped like their parameter.
      Array &values = p.states.emplace_back(p.mine.count);
      std::fill_n(values.host, values.count, float(state.init));
      values.upload(stream);
      check(library->bind_state(instance, p.index, s, values.at(0), values.bytes()), "bind_state");
    }
  }
  void bindSteps(int64_t *taken) {
    check(library->bind_steps(instance, taken, STEPC_MEMORY_HOST), "bind_steps");
  }
  /// Times the default of each route. What is set holds for steps that are enqueued afterwards.
  void setRate(double factor) {
    for (int64_t route = 0; route < gpu_trainer_routes; ++route)
      check(library->set_hyperparameter(instance, route, "lr",
                                        factor * library->hyperparameter_default(route, 0)),
            "set_hyperparameter");
  }
  void enqueue() { check(library->enqueue(instance), "step"); }
  bool isDone() {
    int32_t done = 0;
    check(library->poll(instance, &done), "step");
    return done != 0;
  }
  void abort(const char *reason) { library->abort(instance, reason); }

private:
  void check(int32_t status, const char *doing) {
    if (status)
      fail(std::string(doing) + ": " + library->last_error(instance));
  }

  const stepc_library *library;
  stepc_instance *instance = nullptr;
};

struct Trainer {
  const Options &options;
  Gpu gpu;
  std::vector<Parameter> parameters;
  Network network;
  std::vector<int64_t> taken; // steps, by parameter
  Drain drain;
  Transport transport;                  // the trainer's own
  std::unique_ptr<Optimizer> optimizer; // ends before all that it uses

  Trainer(const Options &options, const Meeting &meeting)
      : options(options), gpu(options.gpu), parameters(makeParameters(options.ranks)),
        network(networkOf(parameters)), taken(gpu_trainer_parameters), drain{gpu},
        transport(meeting.trainer, options) {
    Transport own(meeting.library, options);
    optimizer = std::make_unique<Optimizer>(gpu_trainer_library(), own, gpu, options);
    for (Parameter &p : parameters) {
      p.weights.upload(gpu.stream);
      optimizer->bind(p, options, gpu.stream);
    }
    optimizer->bindSteps(taken.data());
  }

  /// A batch has a part per rank, and two at least. Each part is added up by itself: so one rank gets the bits
  /// of two.
  void step(int number) {
    int parts = std::max(options.ranks, 2), mine = parts / options.ranks;
    for (int k = 0; k < mine; ++k) {
      for (Parameter &p : parameters)
        std::fill(p.part.begin(), p.part.end(), 0.0f);
      network.loss(uint64_t(number) * 1000 + uint64_t(options.rank * mine + k), kExamples,
                   1.0f / float(parts));
      for (Parameter &p : parameters)
        for (int64_t i = 0; i < p.gradient.count; ++i)
          p.gradient.host[i] = (k ? p.gradient.host[i] : 0) + p.part[size_t(i)];
    }
    for (Parameter &p : parameters)
      p.gradient.upload(gpu.stream);
    transport.enqueue(parameters, gpu.stream, [](Parameter &p, stepc_operation &one) {
      one.kind = STEPC_REDUCE_SCATTER;
      one.element = STEPC_ELEMENT_F32;
      one.send = p.gradient.at(0);
      one.receive = p.mine.at(0);
    });
    optimizer->setRate(1 - 0.9 * number / options.steps);
    optimizer->enqueue();
    transport.enqueue(parameters, gpu.stream, [&](Parameter &p, stepc_operation &one) {
      one.kind = STEPC_ALL_GATHER;
      one.send = p.weights.at(options.rank * p.mine.count);
      one.receive = p.weights.at(0);
    });
    for (Parameter &p : parameters)
      p.weights.download(gpu.stream);
    ::check(cuEventRecord(gpu.done, gpu.stream), "ending a step");
    wait();
  }

  /// Until the stream has come to the end. A peer that is gone is found out here.
  void wait() {
    auto begin = Clock::now();
    for (CUresult state; (state = cuEventQuery(gpu.done)) != CUDA_SUCCESS;) {
      if (state != CUDA_ERROR_NOT_READY)
        ::check(state, "carrying out a step");
      optimizer->isDone(); // or fails
      transport.expectNoProblem();
      if (std::chrono::duration<double>(Clock::now() - begin).count() > options.timeout)
        fail("a step was not done in time: a peer is late, or gone");
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    while (!optimizer->isDone())
      std::this_thread::yield();
  }

  /// What stands on the streams ends, so that the rest can be taken down.
  void giveUp(const char *reason) {
    transport.table.abort(transport.table.context, reason);
    if (optimizer)
      optimizer->abort(reason);
  }

  void train() {
    constexpr uint64_t kHeldOut = 1;
    double first = network.loss(kHeldOut, 256, 0), last = first;
    for (int number = 0; number < options.steps; ++number) {
      step(number);
      if ((number + 1) % kReport)
        continue;
      last = network.loss(kHeldOut, 256, 0);
      if (options.rank == 0)
        std::printf("step %4d  loss %.6f\n", number + 1, last);
    }
    if (options.rank == 0)
      std::printf("weights %016" PRIx64 "\n", network.checksum());
    // A NaN fails, too.
    if (!(last < 0.5 * first))
      fail("expected the loss to fall to half, found " + std::to_string(last) + " after " +
           std::to_string(first));
  }
};

Options parse(int argc, char **argv) {
  constexpr const char *kUsage = "expected gpu_trainer RANK RANKS FILE [--gpu N] [--steps N, at "
                                 "least 25] [--timeout SECONDS], with 1, 2 or 4 RANKS";
  Options options;
  if (argc < 4 || argc % 2)
    fail(kUsage);
  options.rank = std::atoi(argv[1]);
  options.ranks = std::atoi(argv[2]);
  options.file = argv[3];
  for (int i = 4; i < argc; i += 2) {
    std::string name = argv[i];
    if (name == "--gpu")
      options.gpu = std::atoi(argv[i + 1]);
    else if (name == "--steps")
      options.steps = std::atoi(argv[i + 1]);
    else if (name == "--timeout")
      options.timeout = std::atof(argv[i + 1]);
    else
      fail(kUsage);
  }
  // Each has as many rows of each parameter.
  if (options.ranks < 1 || Network::kArms % options.ranks || options.rank < 0 ||
      options.rank >= options.ranks || options.steps < kReport || !(options.timeout > 0))
    fail(kUsage);
  return options;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  std::unique_ptr<Trainer> trainer;
  try {
    options = parse(argc, argv);
    int count = 0;
    check(cuInit(0), "starting CUDA");
    check(cuDeviceGetCount(&count), "counting GPUs");
    if (count == 0)
      fail("expected a GPU, found none");
    if (options.gpu < 0)
      options.gpu = options.rank % count;
    {
      Meeting meeting = meet(options);
      Removal removal{options};
      trainer = std::make_unique<Trainer>(options, meeting);
    }
    trainer->train();
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "gpu_trainer: rank %s: %s\n", argc > 1 ? argv[1] : "?", error.what());
    if (trainer)
      trainer->giveUp(error.what());
    return 1;
  }
}
