//===- Step.cpp - Steps a compiled library, for scripts ---------------------===//
//
//   step LIBRARY [--steps N] [--threads T] [--short]
//
// Steps the library on in-process ranks and prints a hash of all that came out. --short plants a
// fault for AddressSanitizer: rank 0's first parameter has an element too few, and the right number
// of bytes is claimed.
//
//===----------------------------------------------------------------------===//

#include "test/unit/library/World.h"

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

int main(int argc, char **argv) {
  Options options;
  int64_t steps = 3;
  bool shortBuffer = false;
  for (int i = 2; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--steps") && i + 1 < argc)
      steps = std::atoll(argv[++i]);
    else if (!std::strcmp(argv[i], "--threads") && i + 1 < argc)
      options.threads = std::atoi(argv[++i]);
    else if (!std::strcmp(argv[i], "--short"))
      shortBuffer = true;
    else
      argc = 0;
  }
  if (argc < 2) {
    std::fputs("usage: step LIBRARY [--steps N] [--threads T] [--short]\n", stderr);
    return 2;
  }
  const stepc_library *library = open(argv[1]);
  if (shortBuffer)
    return stepShort(library, options);
  std::string error;
  uint64_t hash = train(library, options, steps, error);
  if (!error.empty()) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 1;
  }
  std::printf("%016" PRIx64 "\n", hash);
  return 0;
}
