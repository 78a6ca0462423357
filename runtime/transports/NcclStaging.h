//===- NcclStaging.h - The host's memory, by way of the GPU's -----*- C++ -*-===//
//
// What ranks tell each other from the host, when they meet and where a step may skip parameters: copied
// to the GPU, sent, and copied back. Its memory grows when more is asked for than ever before. That is
// while an instance is made, where each message is sent once that steps send later.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_TRANSPORTS_NCCLSTAGING_H
#define STEPC_RUNTIME_TRANSPORTS_NCCLSTAGING_H

#include "runtime/devices/gpu/CudaDriver.h"
#include "stepc/transport.h"

#include <string>
#include <vector>

namespace stepc::runtime {

/// Operations of one communicator that begin together, read and found to be well formed.
struct NcclGroup {
  std::vector<stepc_operation> operations;
  int32_t ranks = 0; ///< of the communicator
};

/// All functions want the GPU's context, and say what went wrong.
class NcclStaging {
public:
  explicit NcclStaging(const cuda::Driver &driver) : driver(driver) {}
  ~NcclStaging();
  std::string open();

  /// Copies what is sent to the GPU, after what is on another stream if one is given. The operations
  /// are then of the GPU's memory.
  std::string upload(NcclGroup &group, const cuda::StreamHandle *after);
  /// Once these are enqueued on `stream`: copies back what arrives.
  std::string download();
  /// Whether it is there; then it is in the host's memory.
  std::string isDone(bool &done);

  cuda::StreamHandle stream = nullptr;

private:
  struct Arrival {
    void *to;
    int64_t at, bytes;
  };
  std::string reserve(int64_t bytes);
  std::string check(const char *doing, cuda::Result result) const;

  const cuda::Driver &driver;
  cuda::EventHandle followed = nullptr, arrived = nullptr;
  cuda::Address memory = 0; // of the GPU
  char *pinned = nullptr;   // its copy on the host
  int64_t capacity = 0, used = 0;
  std::vector<Arrival> arrivals;
};

} // namespace stepc::runtime

#endif
