//===- Messages.cpp - What operations are in sends and receives -------------===//
#include "runtime/transports/Messages.h"
#include "runtime/text/Text.h"
#include "stepc/stepc.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace stepc::runtime {

std::string Messages::read(const stepc_operations &group, int32_t rank, int32_t size) {
  list.clear();
  own.clear();
  if (group.struct_size < int32_t(sizeof(stepc_operations)) ||
      group.operation_size < int32_t(sizeof(stepc_operation)))
    return format("expected operations of %zu bytes, found %d", sizeof(stepc_operation),
                  group.operation_size);
  auto *at = reinterpret_cast<const char *>(group.operations);
  for (int64_t i = 0; i < group.count; ++i, at += group.operation_size) {
    auto &operation = *reinterpret_cast<const stepc_operation *>(at);
    if (operation.kind < 0 || operation.kind > 62 || !(kMessageKinds >> operation.kind & 1))
      return format("operation %lld is of kind %d, expected send (%d), receive (%d) or all-gather "
                    "(%d)",
                    (long long)i, operation.kind, STEPC_SEND, STEPC_RECEIVE, STEPC_ALL_GATHER);
    if (!add(operation, rank, size))
      return format("operation %lld is ill-formed: kind %d, peer %d, %lld bytes", (long long)i,
                    operation.kind, operation.peer, (long long)operation.bytes);
  }
  return {};
}

bool Messages::add(const stepc_operation &operation, int32_t rank, int32_t size) {
  auto *communicator = static_cast<const Communicator *>(operation.communicator);
  int32_t ranks = communicator ? int32_t(communicator->members.size()) : size;
  int32_t self = communicator ? communicator->rank : rank;
  auto worldRank = [&](int32_t r) { return communicator ? communicator->members[r] : r; };
  int64_t bytes = operation.bytes;
  // A send's buffer is only read. The cast is needed because a message has one pointer for both directions.
  auto *send = static_cast<char *>(const_cast<void *>(operation.send));
  auto *receive = static_cast<char *>(operation.receive);
  bool reads = operation.kind != STEPC_RECEIVE, writes = operation.kind != STEPC_SEND;
  if (bytes <= 0 || (reads && !send) || (writes && !receive))
    return false;
  if (reads != writes) {
    if (operation.peer < 0 || operation.peer >= ranks || operation.peer == self)
      return false;
    list.push_back(
        {worldRank(operation.peer), reads, reads ? send : receive, bytes, operation.tag});
    return true;
  }
  for (int32_t r = 0; r < ranks; ++r) {
    char *part = receive + r * bytes;
    if (r != self) {
      list.push_back({worldRank(r), false, part, bytes, operation.tag});
      list.push_back({worldRank(r), true, send, bytes, operation.tag});
    } else if (part != send) {
      own.push_back({send, part, bytes});
    }
  }
  return true;
}

void Messages::copyOwnParts() const {
  for (const OwnPart &part : own)
    std::memcpy(part.to, part.from, part.bytes);
}

int32_t openCommunicator(int32_t rank, int32_t size, const int32_t *members, int32_t count,
                         void **communicator, void **handle, char *error,
                         int64_t errorSize) noexcept try {
  *communicator = *handle = nullptr;
  auto made = std::make_unique<Communicator>();
  made->members.assign(members, members + count);
  auto begin = made->members.begin(), end = made->members.end();
  std::string wrong;
  for (auto member = begin; member != end && wrong.empty(); ++member)
    if (*member < 0 || *member >= size || std::find(begin, member, *member) != member)
      wrong =
          format("member %td of a communicator is rank %d, expected another one of the %d ranks "
                 "of the world",
                 member - begin, *member, size);
  auto self = std::find(begin, end, rank);
  if (self == end && wrong.empty())
    wrong = format("expected rank %d among the %d members of the communicator that it opens", rank,
                   count);
  copyText(error, errorSize, wrong);
  if (!wrong.empty())
    return STEPC_ERROR_ARGUMENT;
  made->rank = int32_t(self - begin);
  *communicator = made.release();
  return STEPC_OK;
} catch (...) {
  copyText(error, errorSize, "out of memory");
  return STEPC_ERROR_MEMORY;
}

void closeCommunicator(void *, void *communicator) {
  delete static_cast<Communicator *>(communicator);
}

} // namespace stepc::runtime
