//===- Step.cpp - Steps a compiled library, for scripts ---------------------===//
//
//   step LIBRARY [--steps N] [--threads T] [--short | --shared]
//
// Steps the library on in-process ranks and prints a hash of all that came out. --short plants a
// fault for AddressSanitizer: rank 0's first parameter has an element too few, and the right number
// of bytes is claimed. --shared plants one for ThreadSanitizer: all ranks hold the last parameter
// in one place.
//
//===----------------------------------------------------------------------===//

#include "test/unit/library/World.h"

#include <barrier>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace stepc::test;

/// One step with a buffer too small; prints what the library thinks of it.
static int stepShort(const stepc_library *library, const Options &options) {
  runWorld({library}, options, [&](Rank &self, int rank) {
    if (rank == 0)
      self.parameters[0] = Buffer(self.parameters[0].bytes - 4);
    int32_t status = self.bind();
    self.fillGradients(rank, 0);
    if (status || library->step(self.instance))
      std::printf("rank %d: %s\n", rank, self.error().c_str());
  });
  std::puts("nothing noticed the short buffer");
  return 0;
}

/// Steps of ranks that write the same memory, without a word to each other.
static int stepShared(const stepc_library *library, const Options &options, int64_t steps) {
  Buffer common(1 << 20);
  // Between two barriers nothing orders the ranks; creating and destroying would.
  std::barrier<> barrier(library->world_size());
  auto created = runWorld({library}, options, [&](Rank &self, int rank) {
    self.parameters.back() = common;
    int32_t status = self.bind();
    barrier.arrive_and_wait();
    for (int64_t step = 0; step < steps && !status; ++step) {
      self.fillGradients(rank, step);
      status = library->step(self.instance);
    }
    barrier.arrive_and_wait();
    if (status)
      std::printf("rank %d: %s\n", rank, self.error().c_str());
  });
  for (const Created &one : created)
    if (one.status)
      std::printf("%s\n", one.message.c_str());
  std::puts("nothing noticed the shared memory");
  return 0;
}

int main(int argc, char **argv) {
  Options options;
  int64_t steps = 3;
  bool shortBuffer = false, shared = false;
  for (int i = 2; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--steps") && i + 1 < argc)
      steps = std::atoll(argv[++i]);
    else if (!std::strcmp(argv[i], "--threads") && i + 1 < argc)
      options.threads = std::atoi(argv[++i]);
    else if (!std::strcmp(argv[i], "--short"))
      shortBuffer = true;
    else if (!std::strcmp(argv[i], "--shared"))
      shared = true;
    else
      argc = 0;
  }
  if (argc < 2) {
    std::fputs("usage: step LIBRARY [--steps N] [--threads T] [--short | --shared]\n", stderr);
    return 2;
  }
  const stepc_library *library = open(argv[1]);
  if (shortBuffer)
    return stepShort(library, options);
  if (shared)
    return stepShared(library, options, steps);
  std::string error;
  uint64_t hash = train(library, options, steps, error);
  if (!error.empty()) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 1;
  }
  std::printf("%016" PRIx64 "\n", hash);
  return 0;
}
