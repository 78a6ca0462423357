//===- NcclStaging.h - The host's memory, by way of the GPU's -----*- C++ -*-===//
//
// Carries messages of the host's memory: when ranks meet, when they compare seals, when a step may skip
// parameters, and when states move to another library. The bytes are copied to the GPU, sent, and copied
// back. Staging memory grows if a group needs more than any group before. That never happens in a step,
// because `create` sends each message once that steps send later.
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_TRANSPORTS_NCCLSTAGING_H
#define STEPC_RUNTIME_TRANSPORTS_NCCLSTAGING_H

#include "runtime/devices/gpu/CudaDriver.h"
#include "stepc/transport.h"

#include <string>
#include <vector>

namespace stepc::runtime {

/// Operations of one communicator that begin together. They were read, and are well formed.
struct NcclGroup {
  std::vector<stepc_operation> operations;
  int32_t ranks = 0; ///< of the communicator
};

/// The GPU's context must be current in all functions. Functions return what went wrong; empty if nothing
/// did.
class NcclStaging {
public:
  explicit NcclStaging(const cuda::Driver &driver) : driver(driver) {}
  ~NcclStaging();
  std::string open();

  /// Copies the bytes to send to the GPU, behind the work on stream `after` if it is not null. The operations
  /// then name the GPU's memory.
  std::string upload(NcclGroup &group, const cuda::StreamHandle *after);
  /// Copies received bytes back. Must be called when the operations are enqueued on `stream`.
  std::string download();
  /// Finds whether all bytes have been received. If so, copies them to the host's buffers.
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
  char *pinned = nullptr;   // the host's copy of it
  int64_t capacity = 0, used = 0;
  std::vector<Arrival> arrivals;
};

} // namespace stepc::runtime

#endif
