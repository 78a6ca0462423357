//===- Failures.h - What is known after a failure ---------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_CORE_FAILURES_H
#define STEPC_RUNTIME_CORE_FAILURES_H

#include <cstdint>
#include <string>
#include <vector>

namespace stepc::runtime {

/// What failed, and in what state the failure has left the instance.
struct Failures {
  bool poisoned = false;
  bool aborted = false;      // whether the transport was
  bool leftInFlight = false; // a peer's bytes may still arrive in our buffers
  std::vector<uint8_t> halfStepped;
  // Mutable, because const functions also refuse with a message.
  mutable std::string error;     // the last message, beginning with this rank
  mutable std::string cause;     // `error` without the rank, which transports add themselves
  std::string poisonedText;      // the error that poisoned the instance
  std::string memoryText;        // made at create, for when no message can be put together
  mutable bool textLost = false; // lastError() returns memoryText instead of `error`
};

} // namespace stepc::runtime

#endif
