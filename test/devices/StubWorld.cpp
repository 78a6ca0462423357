//===- StubWorld.cpp - Ranks of one process that meet by NCCL ----------------===//
//
// Stands in an archive of the runtime in place of InProcess.cpp: `stepc run` then steps ranks over the transport
// of GPUs, and over the NCCL that is the host (StubNccl.cpp).
//
//   STEPC_STUB_TIMEOUT  of the transport, in seconds, 60 unless told
//
//===----------------------------------------------------------------------===//

// Of a world of one rank, which needs no NCCL.
#define inProcessWorld hostWorld
#include "runtime/transports/InProcess.cpp"
#undef inProcessWorld

#include "stepc/nccl.h"

#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>
#include <thread>

namespace stepc::runtime {

void inProcessWorld(int32_t size, stepc_transport *transports) {
  if (size == 1)
    return hostWorld(size, transports);
  // By its name the transport finds this one.
  dlopen(STEPC_STUB_NCCL, RTLD_NOW | RTLD_LOCAL);
  void *library = dlopen(STEPC_STUB_TRANSPORT, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw std::runtime_error(dlerror());
  auto makeId =
      reinterpret_cast<decltype(&stepc_nccl_unique_id)>(dlsym(library, "stepc_nccl_unique_id"));
  auto make =
      reinterpret_cast<decltype(&stepc_nccl_transport)>(dlsym(library, "stepc_nccl_transport"));
  const char *given = std::getenv("STEPC_STUB_TIMEOUT");
  double timeout = given ? std::atof(given) : 60;
  stepc_nccl_id id;
  std::vector<std::string> errors(size_t(size) + 1, std::string(512, '\0'));
  int32_t wrong = makeId(&id, errors[0].data(), 512);
  std::vector<int32_t> statuses(size_t(size) + 1, wrong);
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < size && !wrong; ++rank)
    threads.emplace_back([&, rank] {
      auto *at = reinterpret_cast<char *>(transports) + rank * transports->struct_size;
      statuses[size_t(rank) + 1] =
          make(&id, rank, size, 0, timeout, reinterpret_cast<stepc_transport *>(at),
               errors[size_t(rank) + 1].data(), 512);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t i = 0; i < errors.size(); ++i)
    if (statuses[i]) {
      std::fprintf(stderr, "a world of NCCL: %s\n", errors[i].c_str());
      throw std::runtime_error(errors[i].c_str());
    }
}

} // namespace stepc::runtime
