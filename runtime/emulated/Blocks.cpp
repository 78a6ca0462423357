//===- Blocks.cpp - A GPU's blocks, whose threads wait for each other ------===//
//
// There is one fiber per thread of a GPU block. Each fiber runs until it waits. When none can go on,
// threads that all wait for the same thing are let go on. All state is on the stack of the call and in
// memory that the call allocates.
//
//===----------------------------------------------------------------------===//

// ThreadSanitizer must look at the threads' own accesses, not at the code that switches between threads.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((no_sanitize("thread"))), apply_to = function)
#endif

#include "runtime/emulated/Fiber.h"
#include "runtime/emulated/Races.h"
#include "runtime/emulated/Seed.h"
#include "runtime/emulated/TensorCore.h"
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

using stepc::runtime::Draws;
using stepc::runtime::Fiber;
using stepc::runtime::Races;

namespace {

constexpr int64_t kWarp = 32;
#if defined(STEPC_FIBERS_ASAN) || defined(STEPC_FIBERS_TSAN)
constexpr size_t kStackBytes = 256 << 10;
#else
constexpr size_t kStackBytes = 64 << 10;
#endif

enum class State { Ready, Barrier, Shuffle, Matrices, Product, Done };

/// Whether a thread in this state waits for the lanes of its warp.
bool isOfWarp(State state) {
  return state == State::Shuffle || state == State::Matrices || state == State::Product;
}

/// The seed of the environment. A text that is no seed was refused when the instance was created; if it was
/// set later, there is no seed.
std::optional<uint64_t> seedOrNone() {
  std::string problem;
  return stepc::runtime::emulatedSeed(problem);
}

/// A copy of a thread that is under way, and the group that it belongs to.
struct Copy {
  void *to;
  const void *from;
  int64_t group;
  bool isDone = false; ///< carried out already
};

struct Thread {
  Fiber fiber;
  stepc_emulated_block *block = nullptr;
  int64_t number = 0;
  State state = State::Ready;
  int32_t place = 0;              // where in the kernel's text the thread waits
  int32_t value = 0, lanes = 0;   // of a shuffle
  int32_t count = 0, isOther = 0; // of matrices; transposed, or a product of f16
  uint16_t row[8] = {};           // of a matrix
  int32_t *words = nullptr;       // of matrices or a product
  std::vector<Copy> copies;
  int64_t group = 0; // of its next copy
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
  const std::optional<uint64_t> seed = seedOrNone();
  Races *const races = Races::running; // null: no races are looked for
  Draws draws{};
  Fiber scheduler;
  Thread *current = nullptr;
  int64_t barriers = 0; // that all threads have passed
  char meetings[4] = {};

  stepc_emulated_block(stepc_emulated_thread function, void *const *arguments, const char *name,
                       int64_t count, int64_t bytes)
      : function(function), arguments(arguments), name(name), threads(count), order(count),
        stacks(new char[count * kStackBytes]), memory(new char[bytes]), memoryBytes(bytes) {
    std::iota(order.begin(), order.end(), 0);
  }

  void run(int64_t block) {
    number = block;
    if (seed)
      draws.state = *seed * 0x100000001b3 + uint64_t(block);
    // On a GPU a block's memory holds anything at first. Here it holds NaN, which shows in results.
    std::memset(memory.get(), 0xff, memoryBytes);
    if (races)
      races->beginBlock(memory.get(), memoryBytes);
    for (size_t i = 0; i < threads.size(); ++i) {
      Thread &thread = threads[i];
      thread.block = this;
      thread.number = int64_t(i);
      thread.state = State::Ready;
      thread.copies.clear();
      thread.group = 0;
      thread.fiber.begin(stacks.get() + i * kStackBytes, kStackBytes, enter, &thread);
    }
    release(Begin);
    do {
      runReady();
    } while (letGo());
    acquire(End);
  }

  /// The running thread calls this. Returns when all threads that it waits for have come as well.
  void wait(State state, int32_t place) {
    Thread &thread = *current;
    thread.state = state;
    thread.place = place;
    thread.fiber.switchTo(scheduler, /*last=*/state == State::Done);
  }

  /// Ends the program over an address that a GPU refuses.
  void checkAligned(const void *address, const char *what) const {
    if (reinterpret_cast<uintptr_t>(address) % 16 == 0)
      return;
    std::fprintf(
        stderr,
        "stepc: emulated kernel %s, block %lld, thread %lld: expected %s at a multiple of 16 "
        "bytes, found %p\n",
        name, static_cast<long long>(number), static_cast<long long>(current->number), what,
        address);
    std::abort();
  }

  /// Returns the address from which to read 16 bytes.
  const void *read(const void *from) {
    return races ? races->access(const_cast<void *>(from), 16, false, number, current->number)
                 : from;
  }
  /// Begins a copy. It is carried out as late as a wait allows or, if the order of threads is drawn, maybe
  /// at once.
  void begin(Copy copy) {
    if (races) {
      if (copy.from)
        copy.from = read(copy.from);
      copy.to = races->beginCopy(copy.to, 16, number, current->number);
    }
    if (seed && draws.next(2) == 0)
      land(copy);
    current->copies.push_back(copy);
  }
  static void land(Copy &copy) {
    if (copy.isDone)
      return;
    copy.isDone = true;
    if (copy.from)
      std::memcpy(copy.to, copy.from, 16);
    else
      std::memset(copy.to, 0, 16);
  }
  /// Ends the current thread's copies of all groups before `group`.
  void landBefore(int64_t group) {
    std::vector<Copy> &copies = current->copies;
    auto rest = std::find_if(copies.begin(), copies.end(),
                             [&](const Copy &copy) { return copy.group >= group; });
    for (auto copy = copies.begin(); copy != rest; ++copy) {
      land(*copy);
      if (races)
        races->endCopy(copy->to, 16, number, current->number);
    }
    copies.erase(copies.begin(), rest);
  }

  /// The points at which threads are ordered, which ThreadSanitizer must know: the begin, the end, and
  /// barriers. Barriers take turns between two points, because some threads come to a barrier before others
  /// have left the one before.
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
    block.landBefore(thread.group + 1);
    block.release(End);
    block.wait(State::Done, 0);
  }

  /// Runs each ready thread until it waits.
  void runReady() {
    if (seed)
      for (size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[draws.next(i)]);
    for (int64_t i : order)
      if (threads[i].state == State::Ready) {
        current = &threads[i];
        scheduler.switchTo(current->fiber);
      }
  }

  /// Lets threads go on: warps whose lanes have met, or all threads if they are at one barrier. Returns
  /// false if all threads are done. If no thread can go on, it ends the program.
  bool letGo() {
    bool met = false;
    for (size_t first = 0; first < threads.size(); first += kWarp)
      met |= meet(first, std::min(threads.size(), first + kWarp));
    if (met)
      return true;
    const Thread &one = threads.front();
    for (const Thread &thread : threads)
      if (thread.state != one.state || thread.place != one.place || isOfWarp(one.state))
        refuse();
    if (one.state == State::Done)
      return false;
    for (Thread &thread : threads)
      thread.state = State::Ready;
    ++barriers;
    if (races)
      races->passBarrier();
    return true;
  }

  /// If all lanes of a warp wait at one place, does what they do together, and returns true.
  bool meet(size_t first, size_t last) {
    const Thread &one = threads[first];
    State state = one.state;
    if (!isOfWarp(state))
      return false;
    for (size_t i = first; i < last; ++i)
      if (threads[i].state != state || threads[i].place != one.place)
        return false;
    if (state != State::Shuffle && last - first != kWarp)
      refuse();
    if (state == State::Shuffle)
      shuffle(first, last);
    else if (state == State::Matrices)
      loadMatrices(&threads[first]);
    else
      multiplyMatrices(&threads[first]);
    for (size_t i = first; i < last; ++i)
      threads[i].state = State::Ready;
    return true;
  }

  void shuffle(size_t first, size_t last) {
    int32_t values[kWarp];
    for (size_t i = first; i < last; ++i)
      values[i - first] = threads[i].value;
    for (size_t i = first; i < last; ++i) {
      size_t other = (i - first) ^ size_t(threads[i].lanes);
      if (other >= last - first)
        refuse();
      threads[i].value = values[other];
    }
  }

  /// Lane i gets two neighbours of row i / 4 of each matrix, or of column i / 4.
  static void loadMatrices(Thread *lanes) {
    for (int lane = 0; lane < kWarp; ++lane)
      for (int matrix = 0; matrix < lanes->count; ++matrix) {
        uint32_t word = 0;
        for (int e = 0; e < 2; ++e) {
          int line = lane / 4, other = lane % 4 * 2 + e;
          if (lanes->isOther)
            std::swap(line, other);
          word |= uint32_t(lanes[matrix * 8 + line].row[other]) << 16 * e;
        }
        lanes[lane].words[matrix] = int32_t(word);
      }
  }

  static void multiplyMatrices(Thread *lanes) {
    stepc::runtime::WarpProduct product;
    for (int lane = 0; lane < kWarp; ++lane) {
      std::memcpy(product.left[lane], lanes[lane].words, sizeof(product.left[lane]));
      std::memcpy(product.right[lane], lanes[lane].words + 4, sizeof(product.right[lane]));
      std::memcpy(product.sums[lane], lanes[lane].words + 6, sizeof(product.sums[lane]));
    }
    stepc::runtime::multiply(product, lanes->isOther);
    for (int lane = 0; lane < kWarp; ++lane)
      std::memcpy(lanes[lane].words + 6, product.sums[lane], sizeof(product.sums[lane]));
  }

  [[noreturn]] void refuse() const {
    constexpr const char *kWhere[] = {"ready",   "at barrier", "at shuffle",
                                      "at load", "at product", "at its end"};
    std::fprintf(
        stderr,
        "stepc: emulated kernel %s, block %lld: expected all threads at one barrier, or those "
        "of a warp at one shuffle, load of matrices or product; found",
        name, static_cast<long long>(number));
    // Prints runs of neighbouring threads that wait at the same place.
    for (size_t i = 0, end; i < threads.size(); i = end) {
      const Thread &thread = threads[i];
      for (end = i; end < threads.size() && threads[end].state == thread.state &&
                    threads[end].place == thread.place;)
        ++end;
      std::fprintf(stderr, "%s threads %zu to %zu %s", i ? "," : "", i, end - 1,
                   kWhere[int(thread.state)]);
      if (thread.state == State::Barrier || isOfWarp(thread.state))
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

void stepc_rt_emulated_load_matrices(stepc_emulated_block *block, int32_t place, const void *row,
                                     int32_t count, int32_t transposed, int32_t *words) {
  Thread &thread = *block->current;
  thread.count = count;
  thread.isOther = transposed;
  thread.words = words;
  // Each lane reads its own row, before it waits for the other lanes.
  if (thread.number % kWarp < 8 * count) {
    block->checkAligned(row, "a row of a matrix");
    std::memcpy(thread.row, block->read(row), sizeof(thread.row));
  }
  block->wait(State::Matrices, place);
}

void stepc_rt_emulated_multiply_matrices(stepc_emulated_block *block, int32_t place, int32_t half,
                                         int32_t *words) {
  Thread &thread = *block->current;
  thread.isOther = half;
  thread.words = words;
  block->wait(State::Product, place);
}

void stepc_rt_emulated_copy_async(stepc_emulated_block *block, void *to, const void *from,
                                  int32_t bytes) {
  block->checkAligned(to, "a copy's target");
  if (bytes)
    block->checkAligned(from, "a copy's source");
  block->begin({to, bytes ? from : nullptr, block->current->group});
}

void stepc_rt_emulated_commit_group(stepc_emulated_block *block) { ++block->current->group; }

void stepc_rt_emulated_wait_group(stepc_emulated_block *block, int32_t groups) {
  block->landBefore(block->current->group - groups);
}

} // extern "C"

#if defined(__clang__)
#pragma clang attribute pop
#endif
