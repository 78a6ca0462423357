//===- Blocks.cpp - A GPU's blocks, whose threads wait for each other ------===//
//
// One fiber per thread of a block. Each runs until it waits; when none can go on, those that all wait
// for the same are let go. Everything stands on the stack of the call and in its own memory.
//
//===----------------------------------------------------------------------===//

// Switching is not what ThreadSanitizer is to look at: the threads' own accesses are.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((no_sanitize("thread"))), apply_to = function)
#endif

#include "runtime/emulated/Fiber.h"
#include "stepc/kernel_abi.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#ifdef STEPC_FIBERS_TSAN
#include <sanitizer/tsan_interface.h>
#endif

using stepc::runtime::Fiber;

namespace {

constexpr int64_t kWarp = 32;
#if defined(STEPC_FIBERS_ASAN) || defined(STEPC_FIBERS_TSAN)
constexpr size_t kStackBytes = 256 << 10;
#else
constexpr size_t kStackBytes = 64 << 10;
#endif

/// Numbers for the order of threads (splitmix64).
struct Draws {
  uint64_t state;
  uint64_t next(uint64_t below) {
    uint64_t x = state += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return (x ^ (x >> 31)) % below;
  }
};

enum class State { Ready, Barrier, Shuffle, Done };

struct Thread {
  Fiber fiber;
  stepc_emulated_block *block = nullptr;
  int64_t number = 0;
  State state = State::Ready;
  int32_t place = 0; // of the barrier or shuffle in the kernel's text
  int32_t value = 0, lanes = 0;
};

} // namespace

struct stepc_emulated_block {
  stepc_emulated_thread function;
  void *const *arguments;
  const char *name;
  int64_t number = 0;
  std::vector<Thread> threads;
  std::vector<int64_t> order;
  std::unique_ptr<char[]> stacks, memory;
  int64_t memoryBytes;
  const char *seed = std::getenv("STEPC_EMULATED_SEED"); // null or empty: in order
  bool isDrawn = false;
  Draws draws{};
  Fiber scheduler;
  Thread *current = nullptr;
  int64_t barriers = 0; // that all have left
  char meetings[4] = {};

  stepc_emulated_block(stepc_emulated_thread function, void *const *arguments, const char *name,
                       int64_t count, int64_t bytes)
      : function(function), arguments(arguments), name(name), threads(count), order(count),
        stacks(new char[count * kStackBytes]), memory(new char[bytes]), memoryBytes(bytes) {
    std::iota(order.begin(), order.end(), 0);
  }

  void run(int64_t block) {
    number = block;
    isDrawn = seed && *seed;
    if (isDrawn)
      draws.state = std::strtoull(seed, nullptr, 10) * 0x100000001b3 + uint64_t(block);
    // Memory of a block holds anything at first: NaN shows in results.
    std::memset(memory.get(), 0xff, memoryBytes);
    for (size_t i = 0; i < threads.size(); ++i) {
      Thread &thread = threads[i];
      thread.block = this;
      thread.number = int64_t(i);
      thread.state = State::Ready;
      thread.fiber.begin(stacks.get() + i * kStackBytes, kStackBytes, enter, &thread);
    }
    release(Begin);
    do {
      runReady();
    } while (letGo());
    acquire(End);
  }

  /// Of the thread that runs: until those that it waits for have come, too.
  void wait(State state, int32_t place) {
    Thread &thread = *current;
    thread.state = state;
    thread.place = place;
    thread.fiber.switchTo(scheduler, /*last=*/state == State::Done);
  }

  /// Where what threads did is ordered, for ThreadSanitizer to know, and nowhere else: the begin, the
  /// end, and barriers, of which neighbours are two, as some threads come to one before others leave
  /// the last.
  enum Meeting { Begin, End, Barriers };
  Meeting barrier() const { return Meeting(Barriers + barriers % 2); }
  void release([[maybe_unused]] Meeting meeting) {
#ifdef STEPC_FIBERS_TSAN
    __tsan_release(&meetings[meeting]);
#endif
  }
  void acquire([[maybe_unused]] Meeting meeting) {
#ifdef STEPC_FIBERS_TSAN
    __tsan_acquire(&meetings[meeting]);
#endif
  }

private:
  static void enter(void *argument) {
    auto &thread = *static_cast<Thread *>(argument);
    stepc_emulated_block &block = *thread.block;
    block.acquire(Begin);
    block.function(&block, block.arguments, block.number, thread.number, block.memory.get());
    block.release(End);
    block.wait(State::Done, 0);
  }

  /// Runs every thread that can go on until it waits.
  void runReady() {
    if (isDrawn)
      for (size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[draws.next(i)]);
    for (int64_t i : order)
      if (threads[i].state == State::Ready) {
        current = &threads[i];
        scheduler.switchTo(current->fiber);
      }
  }

  /// Whether some can go on: those of warps that have met at a shuffle, or all at a barrier. False when
  /// all are done; anything else ends the program.
  bool letGo() {
    bool met = false;
    for (size_t first = 0; first < threads.size(); first += kWarp)
      met |= shuffle(first, std::min(threads.size(), first + kWarp));
    if (met)
      return true;
    const Thread &one = threads.front();
    for (const Thread &thread : threads)
      if (thread.state != one.state || thread.place != one.place || one.state == State::Shuffle)
        refuse();
    if (one.state == State::Done)
      return false;
    for (Thread &thread : threads)
      thread.state = State::Ready;
    ++barriers;
    return true;
  }

  bool shuffle(size_t first, size_t last) {
    for (size_t i = first; i < last; ++i)
      if (threads[i].state != State::Shuffle || threads[i].place != threads[first].place)
        return false;
    int32_t values[kWarp];
    for (size_t i = first; i < last; ++i)
      values[i - first] = threads[i].value;
    for (size_t i = first; i < last; ++i) {
      size_t other = (i - first) ^ size_t(threads[i].lanes);
      if (other >= last - first)
        refuse();
      threads[i].value = values[other];
      threads[i].state = State::Ready;
    }
    return true;
  }

  [[noreturn]] void refuse() const {
    constexpr const char *kWhere[] = {"ready", "at barrier", "at shuffle", "at its end"};
    std::fprintf(
        stderr,
        "stepc: emulated kernel %s, block %lld: expected all threads at one barrier, or those "
        "of a warp at one shuffle; found",
        name, static_cast<long long>(number));
    // Runs of threads that stand alike.
    for (size_t i = 0, end; i < threads.size(); i = end) {
      const Thread &thread = threads[i];
      for (end = i; end < threads.size() && threads[end].state == thread.state &&
                    threads[end].place == thread.place;)
        ++end;
      std::fprintf(stderr, "%s threads %zu to %zu %s", i ? "," : "", i, end - 1,
                   kWhere[int(thread.state)]);
      if (thread.state == State::Barrier || thread.state == State::Shuffle)
        std::fprintf(stderr, " %d", int(thread.place));
    }
    std::fprintf(stderr, "\n");
    std::abort();
  }
};

extern "C" {

void stepc_rt_emulate(stepc_emulated_thread thread, void *const *arguments, int64_t first,
                      int64_t last, int64_t threads, int64_t memory_bytes, const char *name) {
  if (first >= last)
    return;
  stepc_emulated_block block(thread, arguments, name, threads, memory_bytes);
  for (int64_t number = first; number < last; ++number)
    block.run(number);
}

void stepc_rt_emulated_barrier(stepc_emulated_block *block, int32_t place) {
  auto meeting = block->barrier();
  block->release(meeting);
  block->wait(State::Barrier, place);
  block->acquire(meeting);
}

int32_t stepc_rt_emulated_shuffle(stepc_emulated_block *block, int32_t place, int32_t value,
                                  int32_t lanes) {
  Thread &thread = *block->current;
  thread.value = value;
  thread.lanes = lanes;
  block->wait(State::Shuffle, place);
  return thread.value;
}

} // extern "C"

#if defined(__clang__)
#pragma clang attribute pop
#endif
