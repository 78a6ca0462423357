//===- NcclWorld.h - One rank's communicators --------------------*- C++ -*-===//
//
// All calls of NCCL on communicators. They do not block: a call that needs the peers only begins, and its
// state is polled. The lock is held for single calls and never during a wait, so that `abort` gets through
// from another thread at any time.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_TRANSPORTS_NCCLWORLD_H
#define STEPC_RUNTIME_TRANSPORTS_NCCLWORLD_H

#include "runtime/transports/NcclLibrary.h"
#include "runtime/transports/NcclStaging.h"
#include "stepc/transport.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace stepc::runtime {

class NcclWorld {
public:
  struct Communicator {
    nccl::CommunicatorHandle handle = nullptr;
    int32_t ranks = 0, rank = 0; ///< the number of ranks, and the caller's rank
  };
  /// What was begun, and what `isDone` is called for.
  enum class Begun { Communicator, Messages };

  NcclWorld(const nccl::Nccl &nccl, const cuda::Driver &driver, int32_t rank, int32_t size,
            double timeout)
      : nccl(nccl), driver(driver), timeout(timeout), world{nullptr, size, rank} {}
  /// Must be called after `closeAll`.
  ~NcclWorld();

  // These functions return what went wrong; empty if nothing did.

  /// Meets all ranks. This rank uses the GPU of number `ordinal`.
  std::string open(const nccl::UniqueId &id, int ordinal);
  /// Begins to open a communicator. If `count` is 0, only takes part, so that other ranks can open theirs.
  std::string beginCommunicator(const int32_t *members, int32_t count, Communicator *&made);
  void close(Communicator *);
  /// Enqueues operations on the stream of the group. If this is null, begins messages of the host's memory.
  std::string start(const stepc_operations &group);
  /// Finds whether the opening of a communicator, or the messages of the host's memory, are done.
  std::string isDone(Begun begun, bool &done);
  /// Returns what went wrong with operations that were enqueued.
  std::string findProblem();

  /// Whether a call has run into the deadline.
  bool wasLate() const { return isLate; }

  void abort(const char *reason) noexcept;
  /// Closes what was opened, or returns when an abort has come to its end. False if that takes too long: NCCL
  /// may then use what it was given for as long as the process lives.
  bool closeAll() noexcept;
  stepc_traffic traffic();

private:
  using Lock = std::unique_lock<std::mutex>;
  /// While this object lives, the GPU's context is current in the thread.
  class Entered {
  public:
    explicit Entered(const NcclWorld &world) : driver(world.driver) {
      driver.cuCtxPushCurrent_v2(world.context);
    }
    ~Entered() {
      cuda::Context left;
      driver.cuCtxPopCurrent_v2(&left);
    }

  private:
    const cuda::Driver &driver;
  };

  // Callers of these functions must hold the lock.
  std::string read(const stepc_operations &operations, const Communicator *&communicator);
  std::string enqueue(const Communicator &communicator, cuda::StreamHandle stream);
  nccl::Result add(const stepc_operation &operation, const Communicator &communicator,
                   cuda::StreamHandle stream);
  void count(const stepc_operation &operation, int32_t ranks);
  std::string check(const char *doing, nccl::Result result) const;
  std::string stateOf(const Communicator &communicator, bool &done);

  /// Waits until NCCL has finished what was begun on a communicator. Gives the lock up meanwhile.
  std::string settle(Lock &lock, const Communicator &communicator, const char *doing);
  /// Closes a communicator. Returns false if that fails or takes too long.
  bool end(Communicator &communicator);
  bool waitForAbort();
  std::chrono::duration<double> closingTime() const;

  const nccl::Nccl &nccl;
  const cuda::Driver &driver;
  const double timeout;
  std::atomic<bool> isLate = false;
  cuda::DeviceNumber device = 0;
  cuda::Context context = nullptr;

  std::mutex mutex; // guards calls of NCCL, and the members below
  Communicator world;
  std::vector<std::unique_ptr<Communicator>> opened;
  NcclGroup group; // the group that begins; kept, so that steps do not allocate
  std::unique_ptr<NcclStaging> staging;
  cuda::StreamHandle latest = nullptr; // on which a group was enqueued last
  bool hasLatest = false;
  stepc_traffic moved{};

  char abortText[512] = ""; // fixed: an abort must work without memory
  std::thread aborting;
  std::condition_variable ended;
  bool hasEnded = false;
};

} // namespace stepc::runtime

#endif
