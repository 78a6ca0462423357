#include "runtime/host/Parallel.h"
#include "runtime/host/FloatModes.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <chrono>
#include <utility>
#if defined(__linux__)
#include <sched.h>
#endif

namespace stepc::runtime {
namespace {

// True while this thread runs a piece. A loop that the piece starts runs inline.
thread_local bool insidePiece = false;

/// A mark without a pattern for each item: the finalizer of splitmix64, which maps different numbers to
/// different numbers.
uint64_t markOf(int64_t item) {
  uint64_t x = uint64_t(item) + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

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

// How long an idle worker spins before it sleeps. This bridges the scalar code between two launches. It is
// too short to cost the trainer anything measurable while the pool is idle.
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
  int64_t items = 0;
  uint64_t path = 0;
  for (;;) {
    int64_t first = next.fetch_add(grain, std::memory_order_relaxed);
    if (first >= count)
      break;
    int64_t last = std::min(first + grain, count);
    task(arguments, first, last);
    items += last - first;
    path += markOf(last) - markOf(first);
  }
  insidePiece = false;
  if (items > 0)
    countPieces(items, path);
}

/// Runs a piece of the trainer's parallel_for, on any thread. A piece that does not belong to the loop is
/// recorded and not run, because it would reach beyond the table's rows.
void Parallel::runPiece(void *argument, int64_t first, int64_t last) {
  Parallel &self = *static_cast<Parallel *>(argument);
  bool isLate = !self.isOpen.load(std::memory_order_acquire);
  if (isLate || first < 0 || first > last || last > self.count) {
    self.strayLate.store(isLate, std::memory_order_relaxed);
    self.strayFirst.store(first, std::memory_order_relaxed);
    self.strayLast.store(last, std::memory_order_relaxed);
    self.strayed.store(true, std::memory_order_release);
    return;
  }
  if (first == last)
    return;
  bool outside = insidePiece;
  insidePiece = true;
  self.task(self.arguments, first, last);
  insidePiece = outside;
  self.countPieces(last - first, markOf(last) - markOf(first));
}

void Parallel::countPieces(int64_t items, uint64_t path) {
  ran.fetch_add(items, std::memory_order_relaxed);
  walked.fetch_add(path, std::memory_order_relaxed);
}

/// Called when the loop has returned. Returns how many items ran, and records a problem if some did not run
/// exactly once.
int64_t Parallel::endLoop() {
  int64_t items = ran.load(std::memory_order_relaxed);
  bool isWalked = walked.load(std::memory_order_relaxed) == markOf(count) - markOf(0);
  if (isWalked || !problem.empty())
    return items;
  const char *found = items < count   ? "pieces that were dropped"
                      : items > count ? "pieces that ran again"
                                      : "pieces that ran again and others that were dropped";
  problem = format(
      "parallel_for: expected each of %lld items once by the time that it returns, found %lld "
      "run: %s",
      (long long)count, (long long)items, found);
  return items;
}

std::string Parallel::takeProblem() {
  if (strayed.load(std::memory_order_acquire) && problem.empty())
    problem = format(
        "parallel_for: expected pieces of the loop that it was called for, found items %lld to "
        "%lld of a loop of %lld%s",
        (long long)strayFirst.load(), (long long)strayLast.load(), (long long)count,
        strayLate.load() ? " that has ended" : "");
  strayed.store(false, std::memory_order_relaxed);
  return std::exchange(problem, {});
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
        // `sleepers` rises before the epoch is looked at again, and run() raises the epoch before it looks
        // at `sleepers`. So either this worker sees the new epoch, or run() sees the sleeper.
        std::unique_lock<std::mutex> lock(mutex);
        sleepers.fetch_add(1);
        wake.wait(lock, [&] { return stopping.load() || epoch.load() != seen; });
        sleepers.fetch_sub(1);
      }
      if (now == seen)
        continue;
    }
    seen = now;
    // Enter only through an open gate. If the loop of epoch `now` is over, this may enter a later loop. The
    // worker then enters that loop again at the loop's own epoch, and finds no piece left.
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

int64_t Parallel::run(stepc_task given, void *givenArguments, int64_t givenCount,
                      int64_t givenGrain) {
  if (givenCount <= 0)
    return 0;
  givenGrain = std::max<int64_t>(1, givenGrain);
  if (insidePiece || givenCount <= givenGrain || (!function && workers.empty())) {
    given(givenArguments, 0, givenCount);
    return givenCount;
  }
  task = given;
  arguments = givenArguments;
  count = givenCount;
  grain = givenGrain;
  ran.store(0, std::memory_order_relaxed);
  walked.store(0, std::memory_order_relaxed);
  if (function) {
    isOpen.store(true, std::memory_order_release);
    function(context, runPiece, this, givenCount, givenGrain);
    isOpen.store(false, std::memory_order_release);
    return endLoop();
  }
  next.store(0, std::memory_order_relaxed);
  gate.store(kOpen, std::memory_order_release);
  epoch.fetch_add(1);
  if (sleepers.load() > 0) {
    // The mutex is taken and dropped. A worker that has looked at the epoch and does not sleep yet holds
    // it, so the notification cannot come too early.
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
    else if (spins < 1088)
      std::this_thread::yield();
    else // the worker has no core
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return endLoop();
}

} // namespace stepc::runtime
