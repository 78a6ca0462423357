//===- Mpi.cpp - Ranks that are processes of an MPI job ----------------------===//
//
// Uses two duplicates of the trainer's communicator. One carries the messages of exchanges. The other carries
// the notice of an abort, which a rank looks for whenever it has to wait. MPI keeps the order of messages of
// one tag, as transport.h demands.
//
//===----------------------------------------------------------------------===//
#define OMPI_SKIP_MPICXX 1
#include "stepc/mpi.h"
#include "runtime/text/Text.h"
#include "runtime/transports/Messages.h"
#include "stepc/stepc.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// MPI 3 counts bytes in an int, so longer messages travel in parts.
#if !defined(STEPC_MPI_PART_BYTES)
#define STEPC_MPI_PART_BYTES (int64_t(1) << 30)
#endif

namespace {

using namespace stepc::runtime;

constexpr int kNoticeTag = 1;
constexpr int kNoticeBytes = 512;

/// The part of a message that one MPI request moves.
struct Transfer {
  int32_t peer;
  bool isSend, isFirst; // isFirst: it is the first part of its message
  int64_t bytes, tag;
};

struct Handle {
  std::vector<MPI_Request> requests;
  std::vector<Transfer> parts;
  std::vector<int> indices;
  std::vector<MPI_Status> statuses;
  int remaining = 0;
  bool inUse = false;
};

struct World {
  MPI_Comm data = MPI_COMM_NULL, control = MPI_COMM_NULL;
  int rank = 0, size = 1;
  int64_t largestTag = 32767;                   // the least that MPI guarantees
  Messages messages;                            // the messages of the group in `start`
  std::vector<std::unique_ptr<Handle>> handles; // used again, so that steps do not allocate
  char abortText[kNoticeBytes + 32] = "";       // not empty after an abort, which allocates nothing
  bool notified = false;
  char notice[kNoticeBytes] = "";
  std::vector<MPI_Request> notices;
  stepc_traffic traffic{};
  bool endsMpi = false; // whether `destroy` ends MPI, which began here
};

std::string mpiError(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string(text, length);
}

Handle &freeHandle(World &world) {
  for (auto &handle : world.handles)
    if (!handle->inUse)
      return *handle;
  return *world.handles.emplace_back(std::make_unique<Handle>());
}

/// Takes over the reason of a peer that has aborted, if its notice has come.
void lookForNotice(World &world) {
  int found = 0;
  MPI_Status status;
  if (*world.abortText || MPI_Iprobe(MPI_ANY_SOURCE, kNoticeTag, world.control, &found, &status) ||
      !found)
    return;
  char text[kNoticeBytes] = "";
  if (!MPI_Recv(text, kNoticeBytes, MPI_CHAR, status.MPI_SOURCE, kNoticeTag, world.control,
                MPI_STATUS_IGNORE))
    text[kNoticeBytes - 1] = '\0';
  std::snprintf(world.abortText, sizeof(world.abortText), "rank %d aborted: %s", status.MPI_SOURCE,
                text);
}

int begin(World &world, Handle &handle, const Message &message) {
  for (int64_t at = 0; at < message.bytes; at += STEPC_MPI_PART_BYTES) {
    int bytes = int(std::min<int64_t>(STEPC_MPI_PART_BYTES, message.bytes - at));
    char *buffer = message.buffer + at;
    MPI_Request request = MPI_REQUEST_NULL;
    int code = message.isSend ? MPI_Isend(buffer, bytes, MPI_BYTE, message.peer, int(message.tag),
                                          world.data, &request)
                              : MPI_Irecv(buffer, bytes, MPI_BYTE, message.peer, int(message.tag),
                                          world.data, &request);
    if (code)
      return code;
    handle.requests.push_back(request);
    handle.parts.push_back({message.peer, message.isSend, at == 0, bytes, message.tag});
    ++handle.remaining;
  }
  return MPI_SUCCESS;
}

int32_t start(void *context, const stepc_operations *group, void **out, char *error,
              int64_t errorSize) try {
  World &world = *static_cast<World *>(context);
  std::string wrong = world.messages.read(*group, world.rank, world.size);
  if (!wrong.empty()) {
    copyText(error, errorSize, wrong);
    return STEPC_ERROR_ARGUMENT;
  }
  lookForNotice(world);
  if (*world.abortText) {
    copyText(error, errorSize, world.abortText);
    return STEPC_ERROR_TRANSPORT;
  }
  const std::vector<Message> &messages = world.messages.messages();
  for (const Message &message : messages)
    if (message.tag < 0 || message.tag > world.largestTag) {
      copyText(error, errorSize,
               format("tag %lld is beyond the %lld of this MPI", (long long)message.tag,
                      (long long)world.largestTag));
      return STEPC_ERROR_TRANSPORT;
    }
  Handle &handle = freeHandle(world);
  handle.requests.clear();
  handle.parts.clear();
  // Allocate all memory before the first message, because a request that is not recorded could not be
  // cancelled.
  size_t parts = 0;
  for (const Message &message : messages)
    parts += size_t((message.bytes + STEPC_MPI_PART_BYTES - 1) / STEPC_MPI_PART_BYTES);
  handle.requests.reserve(parts);
  handle.parts.reserve(parts);
  handle.indices.resize(parts);
  handle.statuses.resize(parts);
  handle.remaining = 0;
  handle.inUse = true;
  // Post receives first: a message that finds its receive needs no copy on the way.
  int code = MPI_SUCCESS;
  for (bool sends : {false, true})
    for (size_t i = 0; i < messages.size() && !code; ++i)
      if (messages[i].isSend == sends)
        code = begin(world, handle, messages[i]);
  // Requests that were begun stay in the handle. `abort` cancels its receives.
  if (code) {
    copyText(error, errorSize, mpiError(code));
    return STEPC_ERROR_TRANSPORT;
  }
  world.messages.copyOwnParts();
  *out = &handle;
  return STEPC_OK;
} catch (...) {
  copyText(error, errorSize, "out of memory");
  return STEPC_ERROR_TRANSPORT;
}

/// Advances the requests of a handle. Returns what went wrong; empty if nothing did.
std::string progress(World &world, Handle &handle) {
  int count = 0;
  int code = MPI_Testsome(int(handle.requests.size()), handle.requests.data(), &count,
                          handle.indices.data(), handle.statuses.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS)
    return mpiError(code);
  if (count == MPI_UNDEFINED)
    return {};
  for (int i = 0; i < count; ++i) {
    const Transfer &part = handle.parts[handle.indices[i]];
    const MPI_Status &status = handle.statuses[i];
    if (code == MPI_ERR_IN_STATUS && status.MPI_ERROR != MPI_SUCCESS &&
        status.MPI_ERROR != MPI_ERR_PENDING)
      return format("%s rank %d, %lld bytes with tag %lld: ", part.isSend ? "to" : "from",
                    part.peer, (long long)part.bytes, (long long)part.tag) +
             mpiError(status.MPI_ERROR);
    if (!part.isSend) {
      int bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      if (bytes != part.bytes)
        return format("rank %d sends %d bytes with tag %lld to rank %d, which expects %lld",
                      part.peer, bytes, (long long)part.tag, world.rank, (long long)part.bytes);
    }
    --handle.remaining;
    (part.isSend ? world.traffic.messages_sent : world.traffic.messages_received) += part.isFirst;
    (part.isSend ? world.traffic.bytes_sent : world.traffic.bytes_received) += part.bytes;
  }
  return {};
}

/// Names the peers that a handle waits for: "rank 1, rank 3".
void listPending(const World &world, const Handle &handle, char *error, int64_t errorSize) {
  int64_t at = 0;
  if (!error || errorSize <= 0)
    return;
  *error = '\0';
  for (int peer = 0; peer < world.size; ++peer)
    for (size_t i = 0; i < handle.parts.size(); ++i)
      if (handle.parts[i].peer == peer && handle.requests[i] != MPI_REQUEST_NULL) {
        if (at + 16 <= errorSize)
          at += std::snprintf(error + at, errorSize - at, "%srank %d", at ? ", " : "", peer);
        break;
      }
}

int32_t test(void *context, void *opaque, char *error, int64_t errorSize) try {
  World &world = *static_cast<World *>(context);
  Handle &handle = *static_cast<Handle *>(opaque);
  std::string failure = progress(world, handle);
  // A complete group counts as done, even if a peer has aborted since.
  if (failure.empty() && handle.remaining == 0) {
    handle.inUse = false;
    return 1;
  }
  if (failure.empty()) {
    lookForNotice(world);
    failure = world.abortText;
  }
  if (failure.empty()) {
    listPending(world, handle, error, errorSize);
    return 0;
  }
  copyText(error, errorSize, failure);
  return -STEPC_ERROR_TRANSPORT;
} catch (...) {
  copyText(error, errorSize, "out of memory");
  return -STEPC_ERROR_TRANSPORT;
}

void abort(void *context, const char *reason) try {
  World &world = *static_cast<World *>(context);
  // If a peer has aborted first, its notice goes to all ranks, and this rank sends none.
  lookForNotice(world);
  bool ours = !*world.abortText;
  if (ours)
    std::snprintf(world.abortText, sizeof(world.abortText), "rank %d aborted: %s", world.rank,
                  reason ? reason : "");
  for (auto &handle : world.handles)
    for (size_t i = 0; handle->inUse && i < handle->requests.size(); ++i)
      // Sends cannot be taken back in practice; the library keeps their memory.
      if (handle->requests[i] != MPI_REQUEST_NULL && !handle->parts[i].isSend)
        MPI_Cancel(&handle->requests[i]);
  if (!ours || world.notified)
    return;
  world.notified = true;
  copyText(world.notice, kNoticeBytes, reason ? reason : "");
  for (int peer = 0; peer < world.size; ++peer) {
    if (peer == world.rank)
      continue;
    // The notice is small enough to be sent at once, so nobody waits for a peer that is gone.
    MPI_Request request = MPI_REQUEST_NULL;
    if (!MPI_Isend(world.notice, kNoticeBytes, MPI_CHAR, peer, kNoticeTag, world.control, &request))
      world.notices.push_back(request); // into memory that was reserved
  }
} catch (...) {
  // Nothing here allocates.
}

void destroy(void *context) try {
  World *world = static_cast<World *>(context);
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized)
    return;
  if (!*world->abortText) {
    MPI_Comm_free(&world->data);
    MPI_Comm_free(&world->control);
    bool endsMpi = world->endsMpi;
    delete world;
    if (endsMpi)
      MPI_Finalize();
    return;
  }
  // Freeing a communicator is collective, and not every rank comes here after an abort, so communicators
  // stay. The world with its notice stays, too, if MPI may still touch its buffers.
  int done = 1, all = 0;
  MPI_Testall(int(world->notices.size()), world->notices.data(), &all, MPI_STATUSES_IGNORE);
  done &= all;
  for (auto &handle : world->handles) {
    if (!handle->inUse)
      continue;
    MPI_Testall(int(handle->requests.size()), handle->requests.data(), &all, MPI_STATUSES_IGNORE);
    done &= all;
  }
  if (done)
    delete world;
} catch (...) {
  // An exception of MPI's own: what MPI may touch stays.
}

int32_t open(void *context, const int32_t *members, int32_t count, void **communicator,
             void **handle, char *error, int64_t errorSize) {
  World &world = *static_cast<World *>(context);
  return openCommunicator(world.rank, world.size, members, count, communicator, handle, error,
                          errorSize);
}

void traffic(void *context, stepc_traffic *out) { *out = static_cast<World *>(context)->traffic; }

int32_t refuse(char *error, int64_t errorSize, int32_t status, std::string_view text) {
  copyText(error, errorSize, text);
  return status;
}

} // namespace

extern "C" __attribute__((visibility("default"))) int32_t
stepc_mpi_transport(MPI_Comm comm, stepc_transport *out, char *error, int64_t errorSize) try {
  if (!out || comm == MPI_COMM_NULL)
    return refuse(error, errorSize, STEPC_ERROR_ARGUMENT,
                  "the communicator or the place for the "
                  "transport is null");
  if (out->struct_size < int32_t(sizeof(stepc_transport)))
    return refuse(error, errorSize, STEPC_ERROR_ABI,
                  format("expected a transport of %zu bytes, found struct_size %d",
                         sizeof(stepc_transport), out->struct_size));
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (!initialized || finalized)
    return refuse(error, errorSize, STEPC_ERROR_TRANSPORT, "MPI is not initialized");
  int inter = 0;
  MPI_Comm_test_inter(comm, &inter);
  if (inter)
    return refuse(error, errorSize, STEPC_ERROR_ARGUMENT, "an intercommunicator is no world");
  auto world = std::make_unique<World>();
  int code = MPI_Comm_dup(comm, &world->data);
  if (!code)
    code = MPI_Comm_dup(comm, &world->control);
  if (code)
    return refuse(error, errorSize, STEPC_ERROR_TRANSPORT,
                  "the communicator could not be duplicated: " + mpiError(code));
  // Errors come back as codes: the default handler would end the job.
  MPI_Comm_set_errhandler(world->data, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(world->control, MPI_ERRORS_RETURN);
  MPI_Comm_rank(world->data, &world->rank);
  MPI_Comm_size(world->data, &world->size);
  int *limit = nullptr, found = 0;
  MPI_Comm_get_attr(world->data, MPI_TAG_UB, &limit, &found);
  if (found)
    world->largestTag = *limit;
  world->notices.reserve(world->size);
  *out = {STEPC_TRANSPORT_VERSION,
          int32_t(sizeof(stepc_transport)),
          world->rank,
          world->size,
          kMessageKinds,
          0, // a send cannot be taken back
          world.get(),
          start,
          test,
          abort,
          destroy,
          open,
          closeCommunicator,
          traffic};
  world.release();
  return STEPC_OK;
} catch (...) {
  return refuse(error, errorSize, STEPC_ERROR_MEMORY, "out of memory");
}

extern "C" __attribute__((visibility("default"))) int32_t stepc_mpi_world(stepc_transport *out,
                                                                          char *error,
                                                                          int64_t errorSize) {
  int initialized = 0, provided = 0;
  MPI_Initialized(&initialized);
  if (!initialized && MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided))
    return refuse(error, errorSize, STEPC_ERROR_TRANSPORT, "MPI cannot be initialized");
  int32_t status = stepc_mpi_transport(MPI_COMM_WORLD, out, error, errorSize);
  if (!status)
    static_cast<World *>(out->context)->endsMpi = !initialized;
  else if (!initialized)
    MPI_Finalize(); // otherwise mpirun says that the process broke off
  return status;
}
