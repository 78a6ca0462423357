//===- Nccl.cpp - The transport over NCCL ------------------------------------===//

#include "stepc/nccl.h"
#include "runtime/host/Memory.h"
#include "runtime/text/Text.h"
#include "runtime/transports/NcclWorld.h"
#include "stepc/stepc.h"

#include <cstring>

namespace stepc::runtime {
namespace {

using Begun = NcclWorld::Begun;

constexpr int64_t kKinds = 1 << STEPC_SEND | 1 << STEPC_RECEIVE | 1 << STEPC_ALL_GATHER |
                           1 << STEPC_REDUCE_SCATTER | 1 << STEPC_ALL_REDUCE;
constexpr double kTimeout = 120; // seconds, unless the trainer gives another

/// What handles point to. Messages on a stream have a null handle. At most one communicator is being opened
/// at a time, and at most one group of messages of the host's memory is under way.
Begun communicatorBegun = Begun::Communicator, messagesBegun = Begun::Messages;

int32_t refuse(char *error, int64_t errorSize, int32_t status, std::string_view text) {
  copyText(error, errorSize, text);
  return status;
}

int32_t refuse(char *error, int64_t errorSize, const NcclWorld &world, std::string_view text) {
  return refuse(error, errorSize, world.wasLate() ? STEPC_ERROR_TIMEOUT : STEPC_ERROR_TRANSPORT,
                text);
}

int32_t start(void *context, const stepc_operations *group, void **handle, char *error,
              int64_t errorSize) try {
  auto &world = *static_cast<NcclWorld *>(context);
  *handle = group->stream ? nullptr : &messagesBegun;
  std::string wrong = world.start(*group);
  return wrong.empty() ? STEPC_OK : refuse(error, errorSize, world, wrong);
} catch (...) {
  return refuse(error, errorSize, STEPC_ERROR_TRANSPORT, "out of memory");
}

int32_t test(void *context, void *handle, char *error, int64_t errorSize) try {
  auto &world = *static_cast<NcclWorld *>(context);
  bool done = true;
  std::string wrong =
      handle ? world.isDone(*static_cast<Begun *>(handle), done) : world.findProblem();
  if (wrong.empty())
    return done;
  return -refuse(error, errorSize, STEPC_ERROR_TRANSPORT, wrong);
} catch (...) {
  return -refuse(error, errorSize, STEPC_ERROR_TRANSPORT, "out of memory");
}

void abort(void *context, const char *reason) { static_cast<NcclWorld *>(context)->abort(reason); }

void destroy(void *context) try {
  auto *world = static_cast<NcclWorld *>(context);
  // If it cannot close, it is leaked, because the thread that aborts and NCCL may still use it.
  if (world->closeAll())
    delete world;
  else
    keepForever(world);
} catch (...) {
  // What NCCL may still use stays.
}

int32_t open(void *context, const int32_t *members, int32_t count, void **communicator,
             void **handle, char *error, int64_t errorSize) try {
  NcclWorld::Communicator *made = nullptr;
  std::string wrong = static_cast<NcclWorld *>(context)->beginCommunicator(members, count, made);
  *communicator = made;
  *handle = &communicatorBegun;
  return wrong.empty() ? STEPC_OK : refuse(error, errorSize, STEPC_ERROR_TRANSPORT, wrong);
} catch (...) {
  return refuse(error, errorSize, STEPC_ERROR_MEMORY, "out of memory");
}

void close(void *context, void *communicator) {
  static_cast<NcclWorld *>(context)->close(static_cast<NcclWorld::Communicator *>(communicator));
}

void traffic(void *context, stepc_traffic *out) {
  *out = static_cast<NcclWorld *>(context)->traffic();
}

} // namespace
} // namespace stepc::runtime

using namespace stepc::runtime;

extern "C" __attribute__((visibility("default"))) int32_t
stepc_nccl_unique_id(stepc_nccl_id *out, char *error, int64_t errorSize) try {
  static_assert(sizeof(stepc_nccl_id) == sizeof(nccl::UniqueId));
  if (!out)
    return refuse(error, errorSize, STEPC_ERROR_ARGUMENT, "the place for the id is null");
  std::string problem;
  const nccl::Nccl *library = nccl::nccl(problem);
  if (!library)
    return refuse(error, errorSize, STEPC_ERROR_TRANSPORT, problem);
  nccl::UniqueId id;
  if (nccl::Result wrong = library->ncclGetUniqueId(&id))
    return refuse(error, errorSize, STEPC_ERROR_TRANSPORT,
                  "NCCL's ncclGetUniqueId failed: " + nccl::describe(*library, wrong));
  std::memcpy(out, &id, sizeof(id));
  return STEPC_OK;
} catch (...) {
  return refuse(error, errorSize, STEPC_ERROR_MEMORY, "out of memory");
}

extern "C" __attribute__((visibility("default"))) int32_t stepc_nccl_transport(
    const stepc_nccl_id *id, int32_t rank, int32_t size, int32_t deviceOrdinal,
    double timeoutSeconds, stepc_transport *out, char *error, int64_t errorSize) try {
  if (!id || !out)
    return refuse(error, errorSize, STEPC_ERROR_ARGUMENT,
                  "the id or the place for the transport is null");
  if (out->struct_size < int32_t(sizeof(stepc_transport)))
    return refuse(error, errorSize, STEPC_ERROR_ABI,
                  format("expected a transport of %zu bytes, found struct_size %d",
                         sizeof(stepc_transport), out->struct_size));
  if (size < 1 || rank < 0 || rank >= size)
    return refuse(error, errorSize, STEPC_ERROR_WORLD,
                  format("expected a rank below the %d of the world, found rank %d", size, rank));
  if (!(timeoutSeconds >= 0))
    return refuse(error, errorSize, STEPC_ERROR_ARGUMENT,
                  "timeout_seconds is negative or not a number");
  std::string problem;
  const cuda::Driver *driver = cuda::driver(problem);
  if (!driver)
    return refuse(error, errorSize, STEPC_ERROR_DEVICE, problem);
  const nccl::Nccl *library = nccl::nccl(problem);
  if (!library)
    return refuse(error, errorSize, STEPC_ERROR_TRANSPORT, problem);
  auto world = std::make_unique<NcclWorld>(*library, *driver, rank, size,
                                           timeoutSeconds > 0 ? timeoutSeconds : kTimeout);
  nccl::UniqueId where;
  std::memcpy(&where, id, sizeof(where));
  if (std::string wrong = world->open(where, deviceOrdinal); !wrong.empty()) {
    int32_t status = refuse(error, errorSize, *world, wrong);
    world->abort(wrong.c_str());
    destroy(world.release());
    return status;
  }
  *out = {STEPC_TRANSPORT_VERSION,
          int32_t(sizeof(stepc_transport)),
          rank,
          size,
          kKinds,
          STEPC_TRANSPORT_ON_DEVICE | STEPC_TRANSPORT_OPENS_TOGETHER,
          world.release(),
          start,
          test,
          abort,
          destroy,
          open,
          close,
          traffic};
  return STEPC_OK;
} catch (...) {
  return refuse(error, errorSize, STEPC_ERROR_MEMORY, "out of memory");
}
