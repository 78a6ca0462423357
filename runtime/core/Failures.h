//===- Failures.h - What is known after a failure ---------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_CORE_FAILURES_H
#define STEPC_RUNTIME_CORE_FAILURES_H

#include <cstdint>
#include <string>
#include <vector>

namespace stepc::runtime {

/// What failed, and what that leaves.
struct Failures {
  bool poisoned = false;
  bool aborted = false;      // the transport
  bool leftInFlight = false; // a peer's bytes may still arrive in our buffers
  std::vector<uint8_t> halfStepped;
  // Mutable, because functions that only ask also refuse with a message.
  mutable std::string error;     // the last message, beginning with this rank
  mutable std::string cause;     // the same without the rank: transports name it themselves
  std::string poisonedText;      // of the failure that poisoned the instance
  std::string memoryText;        // made at create, for when no message can be put together
  mutable bool textLost = false; // memoryText stands for `error`
};

} // namespace stepc::runtime

#endif
