//===- Messages.h - What operations are in sends and receives -----*- C++ -*-===//
//
// For transports of processors, where an all-gather is no more than the messages that it is made
// of.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_TRANSPORTS_MESSAGES_H
#define STEPC_RUNTIME_TRANSPORTS_MESSAGES_H

#include "stepc/transport.h"

#include <string>
#include <vector>

namespace stepc::runtime {

/// The kinds that become messages.
inline constexpr int64_t kMessageKinds =
    1 << STEPC_SEND | 1 << STEPC_RECEIVE | 1 << STEPC_ALL_GATHER;

struct Communicator {
  std::vector<int32_t> members; ///< world ranks
  int32_t rank = 0;             ///< the caller's among them
};

/// To or from a world rank, never the caller itself.
struct Message {
  int32_t peer = 0;
  bool isSend = false;
  char *buffer = nullptr;
  int64_t bytes = 0, tag = 0;
};

/// A rank's own part of an all-gather.
struct OwnPart {
  const void *from;
  void *to;
  int64_t bytes;
};

/// What a group of operations moves. Kept by its user: a step then allocates nothing.
class Messages {
public:
  /// Reads a group of rank `rank` of `size`, or says what is ill-formed in it.
  std::string read(const stepc_operations &group, int32_t rank, int32_t size);
  /// Once the messages are begun.
  void copyOwnParts() const;

  const std::vector<Message> &messages() const { return list; }

private:
  bool add(const stepc_operation &operation, int32_t rank, int32_t size);

  std::vector<Message> list;
  std::vector<OwnPart> own;
};

/// For a transport's table, if members need not meet: the communicator is just their list of ranks.
int32_t openCommunicator(int32_t rank, int32_t size, const int32_t *members, int32_t count,
                         void **communicator, void **handle, char *error,
                         int64_t errorSize) noexcept;
void closeCommunicator(void *context, void *communicator);

} // namespace stepc::runtime

#endif
