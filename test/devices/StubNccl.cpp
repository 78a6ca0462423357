//===- StubNccl.cpp - NCCL, for ranks that are threads -----------------------===//
//
// Stands in place of libnccl.so.2, on the driver that is the host. Communicators do not block. A group is
// enqueued by the time that ncclCommGetAsyncError says so, which, where streams do everything at once, is when it
// is done. Bytes are copied when both sides of a message, or all ranks of a collective, are there. What NCCL would answer by waiting
// for ever, by wrong bytes or not at all is an error: sides that differ in bytes or types,
// collectives that differ, ranks that all wait, a group within a group that is under way,
// a communicator that was destroyed or aborted, memory that is not the GPU's.
//
//   STEPC_STUB_FAILS         <function>:<n>, as of the driver
//   STEPC_STUB_NCCL_VERSION  22809 unless told
//   STEPC_STUB_NCCL_MISSING  <rank>:<n>: that rank of a world says that its n-th group, from 0, is done, and
//                            takes no part in it
//   STEPC_STUB_NCCL_HELD     a graph holds all communicators: they are never closed, and an abort does not return
//   STEPC_STUB_NCCL_ASYNC    <rank>:<n>: what NCCL would notice while that group is under way
//
//===----------------------------------------------------------------------===//

#include "test/devices/Stub.h"
#include "test/devices/StubRendezvous.h"

#include <cstdlib>
#include <dlfcn.h>
#include <thread>
#include <utility>

using namespace stub_nccl;

namespace {

thread_local int depth = 0;
thread_local std::shared_ptr<Job> gathered;
thread_local StreamHandle gatheredStream = nullptr;
thread_local Result gatheredFailure = 0;

const StubDriver &driver() {
  static const StubDriver *const found = loadStubDriver(STEPC_STUB_DRIVER);
  return *found;
}

Result refuse(Result result, const std::string &text) {
  lastError = text;
  return result;
}

Result begin(const char *name, bool isSetup) {
  cuda::Result wrong = driver().begin(name, isSetup);
  std::lock_guard lock(mutex);
  if (wrong)
    return refuse(kUnhandledCuda, format("%s: the stub's driver said %d", name, wrong));
  return 0;
}

/// With the lock. Calls of a communicator that is gone are of memory that NCCL has freed.
Result check(Communicator *communicator, const char *name) {
  if (!communicator || communicator->isGone)
    return refuse(kInvalidArgument, format("%s of a communicator that is gone", name));
  return communicator->failure;
}

bool isPlanted(const char *variable, const Communicator &world) {
  const char *given = std::getenv(variable);
  return given && given == format("%d:%lld", world.rank, (long long)world.groups);
}

Result add(const char *name, Operation operation, StreamHandle stream) {
  if (Result wrong = begin(name, false))
    return wrong;
  std::lock_guard lock(mutex);
  Result wrong = check(operation.communicator, name);
  size_t bytes = operation.count * sizeOf(operation.type);
  auto ranks = wrong ? 1 : operation.communicator->clique->ranks.size();
  size_t sent = operation.kind == Kind::ReduceScatter ? ranks * bytes : bytes;
  size_t received = operation.kind == Kind::AllGather ? ranks * bytes : bytes;
  if (!wrong && depth == 0)
    wrong = refuse(kInvalidUsage, format("%s outside of a group", name));
  if (!wrong && (!driver().isStream(stream) || !stream))
    wrong = refuse(kInvalidArgument, format("%s on a stream that is not there", name));
  if (!wrong && ((operation.send && !driver().isMemory(operation.send, sent)) ||
                 (operation.receive && !driver().isMemory(operation.receive, received))))
    wrong = refuse(kInvalidArgument, format("%s of memory that is not the GPU's", name));
  if (!wrong && operation.kind <= Kind::Receive &&
      (operation.peer < 0 || size_t(operation.peer) >= ranks))
    wrong = refuse(kInvalidArgument, format("%s with rank %d of %zu", name, operation.peer, ranks));
  if (wrong)
    return gatheredFailure = wrong;
  if (!gathered)
    gathered = std::make_shared<Job>();
  gatheredStream = stream;
  gathered->operations.push_back(std::make_unique<Operation>(operation));
  return 0;
}

CommunicatorHandle handle(Communicator *communicator) {
  return reinterpret_cast<CommunicatorHandle>(communicator);
}
Communicator *from(CommunicatorHandle communicator) {
  return reinterpret_cast<Communicator *>(communicator);
}

} // namespace

#define STEPC_EXPORT extern "C" __attribute__((visibility("default")))

STEPC_EXPORT Result ncclGetVersion(int *version) {
  const char *given = std::getenv("STEPC_STUB_NCCL_VERSION");
  *version = given ? std::atoi(given) : 22809;
  return 0;
}

STEPC_EXPORT const char *ncclGetErrorString(Result result) {
  return result == kRemote ? "remote process exited or there was a network error"
                           : "invalid usage (run with NCCL_DEBUG=WARN for details)";
}

STEPC_EXPORT const char *ncclGetLastError(CommunicatorHandle) {
  thread_local std::string copy;
  std::lock_guard lock(mutex);
  copy = lastError;
  return copy.c_str();
}

STEPC_EXPORT Result ncclGetUniqueId(UniqueId *id) {
  std::lock_guard lock(mutex);
  std::memset(id, 0, sizeof(*id));
  std::memcpy(id, &++ids, sizeof(ids));
  return 0;
}

STEPC_EXPORT Result ncclCommInitRankConfig(CommunicatorHandle *out, int size, UniqueId id, int rank,
                                           Config *config) {
  if (Result wrong = begin("ncclCommInitRankConfig", true))
    return wrong;
  std::lock_guard lock(mutex);
  if (config->magic != 0xcafebeef || config->size < sizeof(Config) || config->blocking != 0)
    return refuse(kInvalidArgument, "expected a configuration that does not block");
  uint64_t number = 0;
  std::memcpy(&number, &id, sizeof(number));
  if (number == 0 || number > ids || rank < 0 || rank >= size)
    return refuse(kInvalidArgument, "an id that was not made here, or a rank beyond the world");
  auto &clique = worlds[number];
  if (!clique) {
    clique = std::make_shared<Clique>();
    clique->ranks.resize(size_t(size));
  }
  if (clique->ranks.size() != size_t(size) || clique->ranks[size_t(rank)])
    return refuse(kInvalidUsage, "ranks that do not agree on their world");
  auto made = std::make_unique<Communicator>();
  made->clique = clique;
  made->rank = rank;
  made->world = made.get();
  clique->ranks[size_t(rank)] = made.get();
  ++clique->present;
  *out = handle(made.get());
  all.push_back(std::move(made));
  return kInProgress;
}

STEPC_EXPORT Result ncclCommSplit(CommunicatorHandle parent, int color, int key,
                                  CommunicatorHandle *out, Config *) {
  if (Result wrong = begin("ncclCommSplit", true))
    return wrong;
  std::lock_guard lock(mutex);
  Communicator *self = from(parent);
  if (Result wrong = check(self, "ncclCommSplit"))
    return wrong;
  *out = nullptr;
  int64_t number = self->splits++;
  auto &given = self->clique->splits[number];
  given.resize(self->clique->ranks.size());
  self->isSplitting = true;
  given[size_t(self->rank)] = {color, key, reinterpret_cast<Communicator **>(out)};
  for (auto &one : given)
    if (!one)
      return kInProgress;
  completeSplit(*self->clique, number);
  return kInProgress;
}

STEPC_EXPORT Result ncclCommFinalize(CommunicatorHandle communicator) {
  if (Result wrong = begin("ncclCommFinalize", true))
    return wrong;
  std::lock_guard lock(mutex);
  Communicator *self = from(communicator);
  if (Result wrong = check(self, "ncclCommFinalize"))
    return wrong;
  if (self->isFinalized)
    return refuse(kInvalidArgument, "finalized twice");
  self->isFinalized = true;
  return kInProgress;
}

STEPC_EXPORT Result ncclCommDestroy(CommunicatorHandle communicator) {
  if (Result wrong = begin("ncclCommDestroy", true))
    return wrong;
  std::lock_guard lock(mutex);
  Communicator *self = from(communicator);
  if (Result wrong = check(self, "ncclCommDestroy"))
    return wrong;
  if (!self->isFinalized)
    return refuse(kInvalidUsage, "destroyed before it was finalized");
  self->isGone = true;
  return 0;
}

// Peers are not told, as NCCL does not tell them.
STEPC_EXPORT Result ncclCommAbort(CommunicatorHandle communicator) {
  bool isHeld = false;
  {
    std::lock_guard lock(mutex);
    Communicator *self = from(communicator);
    if (!self || self->isGone)
      return refuse(kInvalidArgument, "aborted twice, or after it was destroyed");
    forget(*self->world);
    self->isGone = true;
    isHeld = std::getenv("STEPC_STUB_NCCL_HELD");
  }
  while (isHeld)
    std::this_thread::sleep_for(std::chrono::seconds(1));
  return 0;
}

STEPC_EXPORT Result ncclCommGetAsyncError(CommunicatorHandle communicator, Result *state) {
  std::lock_guard lock(mutex);
  Communicator *self = from(communicator);
  if (!self || self->isGone)
    return check(self, "ncclCommGetAsyncError");
  Communicator &world = *self->world;
  bool isBusy = size_t(self->clique->present) < self->clique->ranks.size() || self->isSplitting;
  if (world.job && world.job->isDone())
    world.job.reset();
  isBusy |= self->isFinalized && std::getenv("STEPC_STUB_NCCL_HELD");
  isBusy |= world.job && !driver().streams.isAsync();
  *state = self->failure ? self->failure : isBusy ? kInProgress : 0;
  return 0;
}

STEPC_EXPORT Result ncclGroupStart() {
  if (Result wrong = begin("ncclGroupStart", false))
    return wrong;
  ++depth;
  return 0;
}

STEPC_EXPORT Result ncclGroupEnd() {
  if (depth <= 0)
    return refuse(kInvalidUsage, "no group was begun");
  if (--depth > 0)
    return 0;
  std::shared_ptr<Job> job = std::move(gathered);
  Result failed = std::exchange(gatheredFailure, 0);
  if (Result wrong = begin("ncclGroupEnd", false))
    return wrong;
  if (failed || !job)
    return failed;
  std::lock_guard lock(mutex);
  Communicator &world = *job->operations.front()->communicator->world;
  bool isAsync = driver().streams.isAsync();
  if (!isAsync && world.job && !world.job->isDone())
    return refuse(kInvalidUsage, "a group was begun while one is under way");
  bool isMissing = isPlanted("STEPC_STUB_NCCL_MISSING", world);
  if (isPlanted("STEPC_STUB_NCCL_ASYNC", world)) {
    lastError = "the network of the stub";
    job->operations.front()->communicator->failure = kRemote;
  }
  ++world.groups;
  if (isMissing)
    return kInProgress;
  if (!isAsync && !driver().streams.captureOf(gatheredStream)) {
    post(world, std::move(job));
    return kInProgress;
  }
  // A copy of this, of a graph that is replayed, begins anew.
  driver().streams.enqueue(gatheredStream,
                           [&world, job, posted = std::shared_ptr<Job>()]() mutable {
                             std::lock_guard atItsTurn(mutex);
                             if (!posted)
                               post(world, posted = job->copy());
                             return posted->isDone();
                           });
  return kInProgress;
}

STEPC_EXPORT Result ncclSend(const void *send, size_t count, DataType type, int peer,
                             CommunicatorHandle communicator, StreamHandle stream) {
  return add("ncclSend", {Kind::Send, send, nullptr, count, type, peer, from(communicator)},
             stream);
}

STEPC_EXPORT Result ncclRecv(void *receive, size_t count, DataType type, int peer,
                             CommunicatorHandle communicator, StreamHandle stream) {
  return add("ncclRecv", {Kind::Receive, nullptr, receive, count, type, peer, from(communicator)},
             stream);
}

STEPC_EXPORT Result ncclAllGather(const void *send, void *receive, size_t count, DataType type,
                                  CommunicatorHandle communicator, StreamHandle stream) {
  return add("ncclAllGather", {Kind::AllGather, send, receive, count, type, -1, from(communicator)},
             stream);
}

STEPC_EXPORT Result ncclReduceScatter(const void *send, void *receive, size_t count, DataType type,
                                      ReductionKind, CommunicatorHandle communicator,
                                      StreamHandle stream) {
  return add("ncclReduceScatter",
             {Kind::ReduceScatter, send, receive, count, type, -1, from(communicator)}, stream);
}

STEPC_EXPORT Result ncclAllReduce(const void *send, void *receive, size_t count, DataType type,
                                  ReductionKind, CommunicatorHandle communicator,
                                  StreamHandle stream) {
  return add("ncclAllReduce", {Kind::AllReduce, send, receive, count, type, -1, from(communicator)},
             stream);
}
