//===- Parallel.h - parallel_for ---------------------------------*- C++ -*-===//
//
// Runs one loop at a time over [0, count), in pieces of `grain` items that threads take from a shared
// counter. If the trainer gave its parallel_for, this is used. Otherwise a pool of std::threads runs the
// pieces, and the caller takes part. Any thread may run a piece: kernels write disjoint results and do not
// depend on the thread.
//
// After a piece has run, its items are counted, and mark(last) - mark(first) is added to a sum of the loop.
// The mark of an item is a hash. Every piece leads from a lower to a higher number. So the sum is
// mark(count) - mark(0) only if the pieces lead from 0 to count once. A piece that was dropped or repeated
// shows in the sum, and no list of pieces is needed.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_HOST_PARALLEL_H
#define STEPC_RUNTIME_HOST_PARALLEL_H

#include "stepc/stepc.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace stepc::runtime {

class Parallel {
public:
  Parallel() = default;
  ~Parallel();

  /// Makes `run` use the trainer's parallel_for.
  void use(stepc_parallel_for function, void *context);
  /// Starts `threads` - 1 workers (0: one thread per core that this process may run on).
  /// Throws std::system_error when a thread cannot be made.
  void startPool(int32_t threads);

  /// Runs task over [0, count) and returns how many items ran. Nested calls, from within a piece, run inline.
  int64_t run(stepc_task task, void *arguments, int64_t count, int64_t grain);

  /// Returns the first way in which a loop did not run each item once, and forgets it. Empty if all loops
  /// since the last call ran each item once.
  std::string takeProblem();
  bool hasProblem() const { return !problem.empty() || strayed.load(std::memory_order_relaxed); }

  int32_t threads() const { return int32_t(workers.size()) + 1; }

private:
  void work();
  void takePieces();
  void stop();
  static void runPiece(void *self, int64_t first, int64_t last);
  void countPieces(int64_t items, uint64_t path);
  int64_t endLoop();

  stepc_parallel_for function = nullptr;
  void *context = nullptr;
  std::vector<std::thread> workers;

  // The current loop. Written only while no worker is inside the gate.
  stepc_task task = nullptr;
  void *arguments = nullptr;
  int64_t count = 0, grain = 1;
  std::atomic<int64_t> next{0};

  // What has run of the current loop: the number of items, and the sum of marks. For the trainer's
  // parallel_for also whether the loop is running (`isOpen`), and a piece that does not belong to it
  // (`stray…`) and is not run.
  std::atomic<int64_t> ran{0};
  std::atomic<uint64_t> walked{0};
  std::atomic<bool> isOpen{false}, strayed{false}, strayLate{false};
  std::atomic<int64_t> strayFirst{0}, strayLast{0};
  std::string problem;

  // The gate: kOpen while a loop runs, plus the number of workers inside.
  static constexpr uint32_t kOpen = 1u << 31;
  std::atomic<uint32_t> gate{0};
  // Counts loops, so that a worker takes part in each at most once.
  std::atomic<uint64_t> epoch{0};
  std::atomic<int32_t> sleepers{0};
  std::atomic<bool> stopping{false};
  std::mutex mutex;
  std::condition_variable wake;
};

} // namespace stepc::runtime

#endif
