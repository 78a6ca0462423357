//===- TrainerRanks.cpp - examples/gpu_trainer.cpp with threads as ranks -----===//
//
//   trainer-ranks STARTED RANKS FILE [options of gpu_trainer]
//
// starts the first so many of its ranks, in one process: the stand-in for NCCL knows no other. A library for
// the CPU passes for one for GPUs, of which the memory is the host's, too.
//
//===----------------------------------------------------------------------===//

#include "gpu_trainer.h"

static const stepc_library *libraryOfTest();

#define main trainRank
#define gpu_trainer_library libraryOfTest
#include "examples/gpu_trainer.cpp"
#undef gpu_trainer_library
#undef main

static const stepc_library *libraryOfTest() {
  if (gpu_trainer_library()->device == STEPC_DEVICE_CUDA)
    return gpu_trainer_library();
  static stepc_library cpu = *gpu_trainer_library();
  cpu.device = STEPC_DEVICE_CUDA;
  cpu.create = [](const stepc_options *given, stepc_instance **instance, char *error,
                  int64_t errorSize) {
    stepc_options options = *given;
    options.device = STEPC_DEVICE_CPU;
    options.stream = nullptr;
    return gpu_trainer_library()->create(&options, instance, error, errorSize);
  };
  return &cpu;
}

int main(int argc, char **argv) {
  int started = std::atoi(argv[1]);
  std::vector<int> statuses(size_t(started), 1);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < started; ++rank)
    threads.emplace_back([&, rank] {
      std::string number = std::to_string(rank);
      std::vector<char *> arguments(argv + 1, argv + argc);
      arguments.insert(arguments.begin(), argv[0]);
      arguments[1] = number.data();
      statuses[size_t(rank)] = trainRank(int(arguments.size()), arguments.data());
    });
  for (std::thread &thread : threads)
    thread.join();
  for (int rank = 0; rank < started; ++rank)
    std::fprintf(stderr, "rank %d ended with %d\n", rank, statuses[size_t(rank)]);
  return *std::max_element(statuses.begin(), statuses.end());
}
