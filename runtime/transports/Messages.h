//===- Messages.h - What operations are in sends and receives -----*- C++ -*-===//
//
// For transports on processors, which carry out an all-gather as sends and receives.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_TRANSPORTS_MESSAGES_H
#define STEPC_RUNTIME_TRANSPORTS_MESSAGES_H

#include "stepc/transport.h"

#include <string>
#include <vector>

namespace stepc::runtime {

/// The kinds of operations that become messages.
inline constexpr int64_t kMessageKinds =
    1 << STEPC_SEND | 1 << STEPC_RECEIVE | 1 << STEPC_ALL_GATHER;

struct Communicator {
  std::vector<int32_t> members; ///< world ranks
  int32_t rank = 0;             ///< the caller's number among them
};

/// A message to or from a world rank, which is never the caller itself.
struct Message {
  int32_t peer = 0;
  bool isSend = false;
  char *buffer = nullptr;
  int64_t bytes = 0, tag = 0;
};

/// The copy of a rank's own part of an all-gather.
struct OwnPart {
  const void *from;
  void *to;
  int64_t bytes;
};

/// The messages of a group of operations. The user keeps this object, so that a step allocates nothing.
class Messages {
public:
  /// Reads a group of rank `rank` of `size`. Returns what is ill-formed in the group; empty if nothing is.
  std::string read(const stepc_operations &group, int32_t rank, int32_t size);
  /// Copies the caller's parts of all-gathers. Must be called when the messages are begun.
  void copyOwnParts() const;

  const std::vector<Message> &messages() const { return list; }

private:
  bool add(const stepc_operation &operation, int32_t rank, int32_t size);

  std::vector<Message> list;
  std::vector<OwnPart> own;
};

/// For a transport's table, if members need not meet. A communicator is just the list of its members.
int32_t openCommunicator(int32_t rank, int32_t size, const int32_t *members, int32_t count,
                         void **communicator, void **handle, char *error,
                         int64_t errorSize) noexcept;
void closeCommunicator(void *context, void *communicator);

} // namespace stepc::runtime

#endif
