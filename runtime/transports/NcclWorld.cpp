//===- NcclWorld.cpp - One rank's communicators ------------------------------===//

#include "runtime/transports/NcclWorld.h"
#include "runtime/host/Memory.h"
#include "runtime/plan/Kernel.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace stepc::runtime {
namespace {

using Clock = std::chrono::steady_clock;

/// The most seconds that closing or aborting a communicator may take.
constexpr double kMostClosing = 20;

void pause(Clock::duration waited) {
  if (waited < std::chrono::milliseconds(1))
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

/// NCCL's type for an operation, and its size in bytes. Operations that add nothing up move bytes.
std::pair<nccl::DataType, int64_t> typeOf(const stepc_operation &operation) {
  switch (operation.element) {
  case STEPC_ELEMENT_F32:
    return {nccl::kFloat32, 4};
  case STEPC_ELEMENT_BF16:
    return {nccl::kBfloat16, 2};
  case STEPC_ELEMENT_F16:
    return {nccl::kFloat16, 2};
  case STEPC_ELEMENT_F64:
    return {nccl::kFloat64, 8};
  default:
    return {nccl::kBytes, 1};
  }
}

const char *nameOf(const stepc_operation &operation) {
  constexpr const char *kNames[] = {"ncclSend", "ncclRecv", "ncclAllGather", "ncclReduceScatter",
                                    "ncclAllReduce"};
  return kNames[operation.kind];
}

bool isReduction(const stepc_operation &operation) {
  return operation.kind == STEPC_REDUCE_SCATTER || operation.kind == STEPC_ALL_REDUCE;
}

bool isWellFormed(const stepc_operation &operation, const NcclWorld::Communicator &communicator) {
  if (operation.kind < STEPC_SEND || operation.kind > STEPC_ALL_REDUCE || operation.bytes <= 0 ||
      operation.bytes % typeOf(operation).second != 0 ||
      isReduction(operation) != (operation.element != STEPC_ELEMENT_NONE))
    return false;
  if ((operation.kind != STEPC_RECEIVE && !operation.send) ||
      (operation.kind != STEPC_SEND && !operation.receive))
    return false;
  return operation.kind > STEPC_RECEIVE ||
         (operation.peer >= 0 && operation.peer < communicator.ranks &&
          operation.peer != communicator.rank);
}

} // namespace

NcclWorld::~NcclWorld() {
  if (!context)
    return;
  {
    Entered entered(*this);
    // After an abort a peer of this process may still write to staging memory: leak it.
    if (*abortText)
      keepForever(staging.release());
    staging.reset();
  }
  driver.cuDevicePrimaryCtxRelease_v2(device);
}

std::string NcclWorld::check(const char *doing, nccl::Result result) const {
  if (result == 0 || result == nccl::kInProgress)
    return {};
  return format("NCCL's %s failed: %s", doing, nccl::describe(nccl, result).c_str());
}

std::string NcclWorld::open(const nccl::UniqueId &id, int ordinal) {
  auto checkDriver = [&](const char *doing, cuda::Result result) {
    return result ? format("%s failed: %s", doing, cuda::describe(driver, result).c_str()) : "";
  };
  int count = 0;
  std::string wrong = checkDriver("counting GPUs", driver.cuDeviceGetCount(&count));
  if (wrong.empty() && (ordinal < 0 || ordinal >= count))
    wrong = format("expected the number of a GPU below %d, found %d", count, ordinal);
  if (wrong.empty())
    wrong = checkDriver("naming a GPU", driver.cuDeviceGet(&device, ordinal));
  if (wrong.empty())
    wrong = checkDriver("entering the context", driver.cuDevicePrimaryCtxRetain(&context, device));
  if (!wrong.empty())
    return wrong;
  Entered entered(*this);
  staging = std::make_unique<NcclStaging>(driver);
  if (wrong = staging->open(); !wrong.empty())
    return wrong;
  nccl::Config config;
  config.blocking = 0;
  // Communicators that are split off share the world's connections and buffers.
  config.splitShare = 1;
  // Products beside messages leave as many multiprocessors free.
  config.maxCTAs = int(plan::kMessageBlocks);
  Lock lock(mutex);
  wrong = check("ncclCommInitRankConfig",
                nccl.ncclCommInitRankConfig(&world.handle, world.ranks, id, world.rank, &config));
  return wrong.empty() ? settle(lock, world, "ncclCommInitRankConfig") : wrong;
}

std::string NcclWorld::stateOf(const Communicator &communicator, bool &done) {
  done = false;
  if (*abortText)
    return abortText;
  nccl::Result state = 0;
  if (nccl::Result wrong = nccl.ncclCommGetAsyncError(communicator.handle, &state))
    state = wrong;
  done = state == 0;
  if (done || state == nccl::kInProgress)
    return {};
  return "NCCL failed: " + nccl::describe(nccl, state);
}

std::string NcclWorld::settle(Lock &lock, const Communicator &communicator, const char *doing) {
  auto begin = Clock::now();
  for (;;) {
    bool done = false;
    std::string wrong = stateOf(communicator, done);
    if (done || !wrong.empty())
      return wrong;
    auto waited = Clock::now() - begin;
    if (std::chrono::duration<double>(waited).count() >= timeout) {
      isLate = true;
      return format("NCCL's %s was not done within %g seconds: a peer is late, or gone", doing,
                    timeout);
    }
    lock.unlock();
    pause(waited);
    lock.lock();
  }
}

// All ranks of the world must take part in a split, also those that get no communicator.
std::string NcclWorld::beginCommunicator(const int32_t *members, int32_t count,
                                         Communicator *&made) {
  Entered entered(*this);
  Lock lock(mutex);
  made = nullptr;
  if (*abortText)
    return abortText;
  auto self = std::find(members, members + count, world.rank);
  if (count > 0 && self == members + count)
    return format("expected rank %d among the %d members of the communicator that it opens",
                  world.rank, count);
  opened.push_back(std::make_unique<Communicator>());
  Communicator &communicator = *opened.back();
  communicator.ranks = count;
  communicator.rank = int32_t(self - members);
  made = count > 0 ? &communicator : nullptr;
  return check("ncclCommSplit",
               nccl.ncclCommSplit(world.handle, count > 0 ? members[0] : nccl::kNoColor,
                                  communicator.rank, &communicator.handle, nullptr));
}

void NcclWorld::close(Communicator *communicator) {
  Entered entered(*this);
  auto found = std::find_if(opened.begin(), opened.end(),
                            [&](const auto &one) { return one.get() == communicator; });
  if (found == opened.end() || *abortText)
    return;
  if (end(*communicator))
    opened.erase(found);
  else
    abort("a communicator does not close");
}

bool NcclWorld::closeAll() noexcept try {
  Entered entered(*this);
  while (!*abortText && !opened.empty()) {
    if (end(*opened.back()))
      opened.pop_back();
    else
      abort("a communicator does not close");
  }
  if (!*abortText && !end(world))
    abort("the world does not close");
  return !*abortText || waitForAbort();
} catch (...) {
  return false;
}

std::string NcclWorld::read(const stepc_operations &given, const Communicator *&communicator) {
  group.operations.clear();
  if (*abortText)
    return abortText;
  if (given.struct_size < int32_t(sizeof(stepc_operations)) ||
      given.operation_size < int32_t(sizeof(stepc_operation)))
    return format("expected operations of %zu bytes, found %d", sizeof(stepc_operation),
                  given.operation_size);
  auto *at = reinterpret_cast<const char *>(given.operations);
  for (int64_t i = 0; i < given.count; ++i, at += given.operation_size) {
    auto &operation = *reinterpret_cast<const stepc_operation *>(at);
    auto *named = static_cast<const Communicator *>(operation.communicator);
    if (!named)
      named = &world;
    if (i == 0)
      communicator = named;
    if (named != communicator)
      return format("operation %lld is of another communicator than those before it", (long long)i);
    if (!isWellFormed(operation, *named))
      return format("operation %lld is ill-formed: kind %d, peer %d, %lld bytes", (long long)i,
                    operation.kind, operation.peer, (long long)operation.bytes);
    group.operations.push_back(operation);
  }
  group.ranks = communicator ? communicator->ranks : 0;
  return {};
}

nccl::Result NcclWorld::add(const stepc_operation &operation, const Communicator &communicator,
                            cuda::StreamHandle stream) {
  auto [type, bytes] = typeOf(operation);
  auto elements = size_t(operation.bytes / bytes);
  nccl::CommunicatorHandle handle = communicator.handle;
  switch (operation.kind) {
  case STEPC_SEND:
    return nccl.ncclSend(operation.send, elements, type, operation.peer, handle, stream);
  case STEPC_RECEIVE:
    return nccl.ncclRecv(operation.receive, elements, type, operation.peer, handle, stream);
  case STEPC_ALL_GATHER:
    return nccl.ncclAllGather(operation.send, operation.receive, elements, type, handle, stream);
  case STEPC_REDUCE_SCATTER:
    return nccl.ncclReduceScatter(operation.send, operation.receive, elements, type, nccl::kSum,
                                  handle, stream);
  default:
    return nccl.ncclAllReduce(operation.send, operation.receive, elements, type, nccl::kSum, handle,
                              stream);
  }
}

void NcclWorld::count(const stepc_operation &operation, int32_t ranks) {
  int64_t peers = operation.kind > STEPC_RECEIVE ? ranks - 1 : 1;
  if (operation.kind != STEPC_RECEIVE) {
    moved.messages_sent += peers;
    moved.bytes_sent += peers * operation.bytes;
  }
  if (operation.kind != STEPC_SEND) {
    moved.messages_received += peers;
    moved.bytes_received += peers * operation.bytes;
  }
}

std::string NcclWorld::enqueue(const Communicator &communicator, cuda::StreamHandle stream) {
  std::string wrong = check("ncclGroupStart", nccl.ncclGroupStart());
  if (!wrong.empty())
    return wrong;
  for (const stepc_operation &operation : group.operations)
    if (wrong.empty())
      wrong = check(nameOf(operation), add(operation, communicator, stream));
  // Called also after a failure, because the group would otherwise stay open.
  nccl::Result result = nccl.ncclGroupEnd();
  if (wrong.empty())
    wrong = check("ncclGroupEnd", result);
  for (const stepc_operation &operation : group.operations)
    if (wrong.empty())
      count(operation, communicator.ranks);
  return wrong;
}

std::string NcclWorld::start(const stepc_operations &given) {
  Entered entered(*this);
  Lock lock(mutex);
  const Communicator *communicator = nullptr;
  std::string wrong = read(given, communicator);
  if (!wrong.empty() || group.operations.empty())
    return wrong;
  auto stream = static_cast<cuda::StreamHandle>(given.stream);
  bool isStaged = stream == nullptr;
  if (isStaged) {
    // Enqueue behind the exchanges that were begun before, so that NCCL's kernels have one order on all
    // ranks.
    wrong = staging->upload(group, hasLatest ? &latest : nullptr);
    stream = staging->stream;
  } else if (!hasLatest || stream != latest) {
    // On a stream of another GPU, NCCL would write to memory that does not exist there.
    cuda::Context theirs = nullptr;
    if (driver.cuStreamGetCtx(stream, &theirs) != 0 || theirs != context)
      return format("expected a stream of GPU %d, on which the transport was made, found one of "
                    "another context",
                    device);
    latest = stream;
    hasLatest = true;
  }
  if (wrong.empty())
    wrong = enqueue(*communicator, stream);
  // NCCL enqueues in a thread of its own. Wait for it, because nothing may follow on the stream before.
  if (wrong.empty())
    wrong = settle(lock, *communicator, "ncclGroupEnd");
  return wrong.empty() && isStaged ? staging->download() : wrong;
}

std::string NcclWorld::isDone(Begun begun, bool &done) {
  Entered entered(*this);
  Lock lock(mutex);
  std::string wrong = stateOf(world, done);
  if (!done || !wrong.empty() || begun == Begun::Communicator)
    return wrong;
  return staging->isDone(done);
}

std::string NcclWorld::findProblem() {
  Entered entered(*this);
  Lock lock(mutex);
  bool done = false;
  std::string wrong = stateOf(world, done);
  for (size_t i = 0; i < opened.size() && wrong.empty(); ++i)
    if (opened[i]->handle)
      wrong = stateOf(*opened[i], done);
  return wrong;
}

stepc_traffic NcclWorld::traffic() {
  Lock lock(mutex);
  return moved;
}

std::chrono::duration<double> NcclWorld::closingTime() const {
  return std::chrono::duration<double>(std::min(timeout, kMostClosing));
}

// Finalizing returns at once. It may end only when peers finalize too, and when no graph holds the
// communicator.
bool NcclWorld::end(Communicator &communicator) {
  if (!communicator.handle)
    return true;
  auto begin = Clock::now();
  nccl::Result state = nccl.ncclCommFinalize(communicator.handle);
  while (state == nccl::kInProgress && Clock::now() - begin < closingTime()) {
    pause(Clock::now() - begin);
    if (nccl::Result wrong = nccl.ncclCommGetAsyncError(communicator.handle, &state))
      state = wrong;
  }
  if (state != 0)
    return false;
  nccl.ncclCommDestroy(communicator.handle);
  communicator.handle = nullptr;
  return true;
}

// NCCL's abort stops its kernels at once. Then it waits for them and for graphs that hold them, so a thread
// of its own calls it.
void NcclWorld::abort(const char *reason) noexcept try {
  Lock lock(mutex);
  if (*abortText)
    return;
  std::snprintf(abortText, sizeof(abortText), "rank %d aborted: %s", world.rank,
                reason && *reason ? reason : "no reason given");
  aborting = std::thread([this] {
    Entered entered(*this);
    // Abort the world first: communicators that share its resources stop with it.
    if (world.handle)
      nccl.ncclCommAbort(world.handle);
    for (auto &communicator : opened)
      if (communicator->handle)
        nccl.ncclCommAbort(communicator->handle);
    Lock atEnd(mutex);
    hasEnded = true;
    ended.notify_all();
  });
} catch (...) {
  // No thread could be started: what is in flight stays, as after an abort that does not end.
}

bool NcclWorld::waitForAbort() {
  Lock lock(mutex);
  bool all = ended.wait_for(lock, closingTime(), [&] { return hasEnded; });
  lock.unlock();
  if (all)
    aborting.join();
  else if (aborting.joinable())
    aborting.detach();
  return all;
}

} // namespace stepc::runtime
