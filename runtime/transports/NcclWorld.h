//===- NcclWorld.h - One rank's communicators --------------------*- C++ -*-===//
//
// Everything that is asked of NCCL. Communicators do not block: what needs the peers begins, and
// is asked for its state. The lock is held for single calls and never for a wait, so that `abort` gets
// through from another thread at any time.
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
    int32_t ranks = 0, rank = 0; ///< how many, and the caller's
  };
  /// What was begun and is asked about.
  enum class Begun { Communicator, Messages };

  NcclWorld(const nccl::Nccl &nccl, const cuda::Driver &driver, int32_t rank, int32_t size,
            double timeout)
      : nccl(nccl), driver(driver), timeout(timeout), world{nullptr, size, rank} {}
  /// After `closeAll`.
  ~NcclWorld();

  // Each says what went wrong, if anything.

  /// Meets all ranks.
  std::string open(const nccl::UniqueId &id, int ordinal);
  /// Begins to open a communicator. Without members, it helps the other ranks of the world to open theirs.
  std::string beginCommunicator(const int32_t *members, int32_t count, Communicator *&made);
  void close(Communicator *);
  /// Enqueues operations on the stream that they name. Without one it begins messages of the host's memory.
  std::string start(const stepc_operations &group);
  /// Whether the opening of a communicator, or messages of the host's memory, are done.
  std::string isDone(Begun begun, bool &done);
  /// What went wrong with operations that were enqueued.
  std::string findProblem();

  /// Whether the last of these texts is about a deadline.
  bool wasLate() const { return isLate; }

  void abort(const char *reason) noexcept;
  /// Closes what was opened, or returns when an abort has come to its end. False if that takes too long: NCCL
  /// may then use what it was given for as long as the process lives.
  bool closeAll() noexcept;
  stepc_traffic traffic();

private:
  using Lock = std::unique_lock<std::mutex>;
  /// The GPU's context is the thread's for as long as this lives.
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

  // With the lock.
  std::string read(const stepc_operations &operations, const Communicator *&communicator);
  std::string enqueue(const Communicator &communicator, cuda::StreamHandle stream);
  nccl::Result add(const stepc_operation &operation, const Communicator &communicator,
                   cuda::StreamHandle stream);
  void count(const stepc_operation &operation, int32_t ranks);
  std::string check(const char *doing, nccl::Result result) const;
  std::string stateOf(const Communicator &communicator, bool &done);

  /// Returns when what was begun on a communicator is under way, with the lock given up meanwhile.
  std::string settle(Lock &lock, const Communicator &communicator, const char *doing);
  /// Closes a communicator, or says that it takes too long.
  bool end(Communicator &communicator);
  bool waitForAbort();
  std::chrono::duration<double> closingTime() const;

  const nccl::Nccl &nccl;
  const cuda::Driver &driver;
  const double timeout;
  std::atomic<bool> isLate = false;
  cuda::DeviceNumber device = 0;
  cuda::Context context = nullptr;

  std::mutex mutex; // of calls of NCCL, and of what follows
  Communicator world;
  std::vector<std::unique_ptr<Communicator>> opened;
  NcclGroup group; // that is begun; kept, so that steps do not allocate
  std::unique_ptr<NcclStaging> staging;
  cuda::StreamHandle latest = nullptr; // that a group was enqueued on
  bool hasLatest = false;
  stepc_traffic moved{};

  char abortText[512] = ""; // fixed: an abort must work without memory
  std::thread aborting;
  std::condition_variable ended;
  bool hasEnded = false;
};

} // namespace stepc::runtime

#endif
