#include "runtime/host/Parallel.h"
#include "runtime/host/FloatModes.h"

#include <algorithm>
#include <chrono>
#if defined(__linux__)
#include <sched.h>
#endif

namespace stepc::runtime {
namespace {

// Set while a thread runs a piece; a loop that it starts then runs inline.
thread_local bool insidePiece = false;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

int32_t availableCores() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, int32_t(std::thread::hardware_concurrency()));
}

// Long enough to bridge the scalar code between two launches, short enough that an idle pool
// costs the trainer nothing that it could measure.
constexpr auto kSpin = std::chrono::microseconds(30);

} // namespace

Parallel::~Parallel() { stop(); }

void Parallel::use(stepc_parallel_for given, void *givenContext) {
  function = given;
  context = givenContext;
}

void Parallel::startPool(int32_t threads) {
  if (threads == 0)
    threads = availableCores();
  workers.reserve(threads - 1);
  for (int32_t i = 1; i < threads; ++i)
    workers.emplace_back([this] { work(); });
}

void Parallel::stop() {
  if (workers.empty())
    return;
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping.store(true);
  }
  wake.notify_all();
  for (std::thread &worker : workers)
    worker.join();
  workers.clear();
}

void Parallel::takePieces() {
  insidePiece = true;
  for (;;) {
    int64_t first = next.fetch_add(grain, std::memory_order_relaxed);
    if (first >= count)
      break;
    task(arguments, first, std::min(first + grain, count));
  }
  insidePiece = false;
}

void Parallel::work() {
  FloatModes modes;
  uint64_t seen = 0;
  while (!stopping.load(std::memory_order_relaxed)) {
    uint64_t now = epoch.load(std::memory_order_acquire);
    if (now == seen) {
      auto until = std::chrono::steady_clock::now() + kSpin;
      while ((now = epoch.load(std::memory_order_acquire)) == seen &&
             !stopping.load(std::memory_order_relaxed)) {
        if (std::chrono::steady_clock::now() < until) {
          for (int i = 0; i < 32; ++i)
            relax();
          continue;
        }
        // `sleepers` rises before the epoch is looked at again, and run() raises the epoch
        // before it looks at `sleepers`: one of the two sees the other.
        std::unique_lock<std::mutex> lock(mutex);
        sleepers.fetch_add(1);
        wake.wait(lock, [&] { return stopping.load() || epoch.load() != seen; });
        sleepers.fetch_sub(1);
      }
      if (now == seen)
        continue;
    }
    seen = now;
    // Enter only through an open gate. When the loop of `now` is over already, a later one may
    // be entered here, and once more at its own epoch: then no piece is left.
    uint32_t inside = gate.load(std::memory_order_relaxed);
    while ((inside & kOpen) &&
           !gate.compare_exchange_weak(inside, inside + 1, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
    }
    if (!(inside & kOpen))
      continue;
    takePieces();
    gate.fetch_sub(1, std::memory_order_release);
  }
}

void Parallel::run(stepc_task given, void *givenArguments, int64_t givenCount, int64_t givenGrain) {
  if (givenCount <= 0)
    return;
  givenGrain = std::max<int64_t>(1, givenGrain);
  if (insidePiece || givenCount <= givenGrain || (!function && workers.empty())) {
    given(givenArguments, 0, givenCount);
    return;
  }
  if (function) {
    function(context, given, givenArguments, givenCount, givenGrain);
    return;
  }
  task = given;
  arguments = givenArguments;
  count = givenCount;
  grain = givenGrain;
  next.store(0, std::memory_order_relaxed);
  gate.store(kOpen, std::memory_order_release);
  epoch.fetch_add(1);
  if (sleepers.load() > 0) {
    // Taken and dropped: a worker between its look at the epoch and its sleep holds it.
    {
      std::lock_guard<std::mutex> lock(mutex);
    }
    int64_t pieces = (count + grain - 1) / grain;
    if (pieces > int64_t(workers.size()))
      wake.notify_all();
    else
      for (int64_t i = 1; i < pieces; ++i)
        wake.notify_one();
  }
  takePieces();
  gate.fetch_and(~kOpen, std::memory_order_acquire);
  for (int spins = 0; gate.load(std::memory_order_acquire) != 0; ++spins) {
    if (spins < 1024)
      relax();
    else
      std::this_thread::yield();
  }
}

} // namespace stepc::runtime
