//===- AsanTrainer.cpp - A trainer under AddressSanitizer -------------------===//
//
// Loads an instrumented library of two vectors of 37 (inputs/adamw.mlir) and makes a step:
//   codegen-asan-trainer LIBRARY ENTRY [short]
// With `short` one gradient is an element shorter than bound: the generated code's read
// behind its end must stop the program.
//
//===----------------------------------------------------------------------===//

#include "stepc/stepc.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

int main(int argc, char **argv) {
  void *handle = argc > 2 ? dlopen(argv[1], RTLD_NOW) : nullptr;
  auto entry =
      handle ? reinterpret_cast<const stepc_library *(*)()>(dlsym(handle, argv[2])) : nullptr;
  if (!entry)
    return std::fprintf(stderr, "cannot load: %s\n",
                        argc > 2 ? dlerror() : "expected a library and its entry"),
           2;
  const stepc_library *library = entry();
  stepc_options options = {};
  options.abi_version = STEPC_ABI_VERSION;
  options.struct_size = sizeof(options);
  options.threads = 1;
  stepc_instance *instance = nullptr;
  char error[512] = "";
  if (library->create(&options, &instance, error, sizeof(error)))
    return std::fprintf(stderr, "%s\n", error), 2;
  constexpr size_t kBytes = 37 * sizeof(float);
  int64_t steps[2] = {};
  void *memory[2][4];
  for (int p = 0; p < 2; ++p) {
    for (int i = 0; i < 4; ++i)
      memory[p][i] = std::calloc(1, kBytes - (argc > 3 && p == 1 && i == 3 ? sizeof(float) : 0));
    library->bind_parameter(instance, p, memory[p][0], kBytes);
    library->bind_state(instance, p, 0, memory[p][1], kBytes);
    library->bind_state(instance, p, 1, memory[p][2], kBytes);
    library->bind_gradient(instance, p, memory[p][3], kBytes);
  }
  library->bind_steps(instance, steps, STEPC_MEMORY_HOST);
  if (library->step(instance))
    return std::fprintf(stderr, "%s\n", library->last_error(instance)), 2;
  library->destroy(instance);
  for (auto &of : memory)
    for (void *part : of)
      std::free(part);
  std::puts("stepped");
  return 0;
}
