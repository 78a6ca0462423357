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
//   STEPC_STUB_NCCL_ASYNC    <rank>:<n>: what NCCL would notice while that group is under way
//
//===----------------------------------------------------------------------===//

#include "test/devices/Stub.h"

#include "runtime/text/Text.h"
#include "runtime/transports/NcclLibrary.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

using namespace stepc::runtime;
using namespace stepc::runtime::nccl;

namespace {

constexpr Result kUnhandledCuda = 1, kInvalidArgument = 4, kInvalidUsage = 5, kRemote = 6;

struct Communicator;

enum class Kind { Send, Receive, AllGather, ReduceScatter, AllReduce };

struct Operation {
  Kind kind;
  const void *send;
  void *receive;
  size_t count;
  DataType type;
  int peer;
  Communicator *communicator;
  bool isDone = false;
};

/// A group of one rank.
struct Job {
  std::vector<std::unique_ptr<Operation>> operations;
  bool isMissing = false, isDropped = false;
  bool isDone() const {
    for (auto &operation : operations)
      if (!operation->isDone && !isMissing && !isDropped)
        return false;
    return true;
  }
};

/// Ranks that share a communicator.
struct Clique {
  std::vector<Communicator *> ranks;
  int present = 0;
  std::map<std::pair<int, int>, std::deque<Operation *>> sends, receives; // by source and target
  std::map<int64_t, std::vector<Operation *>> collectives;                // by number, then rank
  struct Split {
    int color, key;
    Communicator **made;
  };
  std::map<int64_t, std::vector<std::optional<Split>>> splits;
};

struct Communicator {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  Communicator *world = nullptr; // that it was split from, or itself
  int64_t collectives = 0, splits = 0;
  bool isSplitting = false, isFinalized = false, isGone = false;
  Result failure = 0;
  // Of a world: what this rank has under way, on any communicator, and how many groups it began.
  std::shared_ptr<Job> job;
  int64_t groups = 0;
};

std::mutex mutex; // of all
std::map<uint64_t, std::shared_ptr<Clique>> worlds;
uint64_t ids = 0;
std::vector<std::unique_ptr<Communicator>> all; // never freed: what is used too late is found out
std::string lastError;

thread_local int depth = 0;
thread_local std::shared_ptr<Job> gathered;
thread_local StreamHandle gatheredStream = nullptr;
thread_local Result gatheredFailure = 0;

const StubDriver &driver() {
  static const StubDriver *const found = [] {
    void *library = dlopen(STEPC_STUB_DRIVER, RTLD_NOW | RTLD_LOCAL);
    auto entry = reinterpret_cast<const StubDriver *(*)()>(dlsym(library, "stepc_stub_driver"));
    return entry();
  }();
  return *found;
}

Result refuse(Result result, const std::string &text) {
  lastError = text;
  return result;
}

Result begin(const char *name, bool isSetup) {
  if (cuda::Result wrong = driver().begin(name, isSetup))
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

size_t sizeOf(DataType type) {
  return type == kFloat64 ? 8 : type == kFloat32 ? 4 : type == kBytes ? 1 : 2;
}

//===----------------------------------------------------------------------===//
// Rendezvous, with the lock
//===----------------------------------------------------------------------===//

void fail(Operation &one, Operation &other, const std::string &text) {
  lastError = text;
  one.communicator->failure = other.communicator->failure = kInvalidUsage;
}

void match(Operation &send, Operation &receive) {
  if (send.count != receive.count || send.type != receive.type)
    return fail(send, receive,
                format("rank %d sends %zu of type %d to rank %d, which expects %zu of type %d",
                       receive.peer, send.count, send.type, send.peer, receive.count,
                       receive.type));
  std::memcpy(receive.receive, send.send, send.count * sizeOf(send.type));
  send.isDone = receive.isDone = true;
}

void postMessage(Operation &operation) {
  Communicator &self = *operation.communicator;
  bool sends = operation.kind == Kind::Send;
  std::pair key =
      sends ? std::pair(self.rank, operation.peer) : std::pair(operation.peer, self.rank);
  auto &others = (sends ? self.clique->receives : self.clique->sends)[key];
  if (others.empty()) {
    (sends ? self.clique->sends : self.clique->receives)[key].push_back(&operation);
    return;
  }
  Operation &other = *others.front();
  others.pop_front();
  match(sends ? operation : other, sends ? other : operation);
}

template <typename T>
void addUp(const std::vector<Operation *> &ranks, size_t first, size_t count, T *out) {
  for (size_t i = 0; i < count; ++i) {
    T sum = 0;
    for (Operation *one : ranks)
      sum += static_cast<const T *>(one->send)[first + i];
    out[i] = sum;
  }
}

void carryOut(const std::vector<Operation *> &ranks) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    Operation &mine = *ranks[rank];
    size_t bytes = mine.count * sizeOf(mine.type);
    for (size_t from = 0; from < ranks.size() && mine.kind == Kind::AllGather; ++from)
      // The sender's part may be its own place in what it receives.
      std::memmove(static_cast<char *>(mine.receive) + from * bytes, ranks[from]->send, bytes);
    size_t first = mine.kind == Kind::ReduceScatter ? rank * mine.count : 0;
    if (mine.kind != Kind::AllGather && mine.type == kFloat32)
      addUp(ranks, first, mine.count, static_cast<float *>(mine.receive));
    mine.isDone = true;
  }
}

void postCollective(Operation &operation) {
  Communicator &self = *operation.communicator;
  int64_t number = self.collectives++;
  auto &ranks = self.clique->collectives[number];
  ranks.resize(self.clique->ranks.size());
  for (Operation *other : ranks)
    if (other && (other->kind != operation.kind || other->count != operation.count ||
                  other->type != operation.type))
      return fail(operation, *other,
                  format("collective %lld: rank %d does kind %d of %zu, rank %d kind %d of %zu",
                         (long long)number, self.rank, int(operation.kind), operation.count,
                         other->communicator->rank, int(other->kind), other->count));
  ranks[size_t(self.rank)] = &operation;
  for (Operation *other : ranks)
    if (!other)
      return;
  carryOut(ranks);
  self.clique->collectives.erase(number);
}

/// Ranks that all wait would wait for ever.
void findDeadlock(Communicator &world) {
  Clique &clique = *world.clique;
  std::string text = "all ranks wait:";
  for (Communicator *rank : clique.ranks) {
    if (!rank || rank->failure || !rank->job || rank->job->isDone())
      return;
    for (auto &operation : rank->job->operations)
      if (!operation->isDone) {
        text += format(" rank %d for kind %d with rank %d of %zu;", rank->rank,
                       int(operation->kind), operation->peer, operation->count);
        break;
      }
  }
  lastError = text;
  for (Communicator *rank : clique.ranks)
    rank->failure = kInvalidUsage;
}

void forget(Communicator &world) {
  if (!world.job)
    return;
  for (auto &operation : world.job->operations) {
    Clique &clique = *operation->communicator->clique;
    for (auto *queues : {&clique.sends, &clique.receives})
      for (auto &[key, queue] : *queues)
        std::erase(queue, operation.get());
    for (auto &[number, ranks] : clique.collectives)
      for (Operation *&one : ranks)
        if (one == operation.get())
          one = nullptr;
  }
  world.job->isDropped = true; // what stands behind it on its stream goes on
  world.job.reset();
}

/// A group whose turn has come on its stream.
void post(Communicator &world, std::shared_ptr<Job> job) {
  if (world.isGone || job->isMissing) {
    job->isDropped = true;
    return;
  }
  world.job = std::move(job);
  for (auto &operation : world.job->operations)
    (operation->kind <= Kind::Receive ? postMessage : postCollective)(*operation);
  findDeadlock(world);
}

void completeSplit(Clique &parent, int64_t number) {
  auto &given = parent.splits[number];
  std::map<int, std::map<std::pair<int, int>, size_t>> colors; // by key and rank
  for (size_t rank = 0; rank < given.size(); ++rank)
    if (given[rank]->color >= 0)
      colors[given[rank]->color][{given[rank]->key, int(rank)}] = rank;
  for (auto &[color, members] : colors) {
    auto clique = std::make_shared<Clique>();
    for (auto &[key, rank] : members) {
      auto made = std::make_unique<Communicator>();
      made->clique = clique;
      made->rank = int(clique->ranks.size());
      made->world = parent.ranks[rank]->world;
      clique->ranks.push_back(made.get());
      *given[rank]->made = made.get();
      all.push_back(std::move(made));
    }
    clique->present = int(clique->ranks.size());
  }
  for (Communicator *rank : parent.ranks)
    rank->isSplitting = false;
  parent.splits.erase(number);
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
  std::lock_guard lock(mutex);
  Communicator *self = from(communicator);
  if (!self || self->isGone)
    return refuse(kInvalidArgument, "aborted twice, or after it was destroyed");
  forget(*self->world);
  self->isGone = true;
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
  job->isMissing = isPlanted("STEPC_STUB_NCCL_MISSING", world);
  if (isPlanted("STEPC_STUB_NCCL_ASYNC", world)) {
    lastError = "the network of the stub";
    job->operations.front()->communicator->failure = kRemote;
  }
  ++world.groups;
  if (!isAsync) {
    post(world, std::move(job));
    return kInProgress;
  }
  driver().streams.enqueue(gatheredStream, [&world, job, isPosted = false]() mutable {
    std::lock_guard atItsTurn(mutex);
    if (!isPosted)
      post(world, job);
    isPosted = true;
    return job->isDone();
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
