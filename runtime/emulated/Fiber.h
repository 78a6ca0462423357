//===- Fiber.h - Stacks that one thread switches between ---------*- C++ -*-===//
#ifndef STEPC_RUNTIME_EMULATED_FIBER_H
#define STEPC_RUNTIME_EMULATED_FIBER_H

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define STEPC_FIBERS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STEPC_FIBERS_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define STEPC_FIBERS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STEPC_FIBERS_TSAN 1
#endif
#endif

// Elsewhere the C library switches: slower, since it asks the kernel for signal masks.
#if !(defined(__x86_64__) || defined(__aarch64__)) || defined(STEPC_FIBERS_UCONTEXT)
#undef STEPC_FIBERS_UCONTEXT
#define STEPC_FIBERS_UCONTEXT 1
#include <ucontext.h>
#endif

namespace stepc::runtime {

/// Where a thread goes on: on a stack of its own, or, before begin(), on that of whoever switches away
/// first. Nothing is shared among the machine's threads.
class Fiber {
public:
  Fiber() = default;
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;
  ~Fiber();

  /// The next switch to it calls entry(argument) on this stack. The entry never returns: its last act
  /// is a switch. May be called again when it has come to that.
  void begin(void *stack, size_t bytes, void (*entry)(void *), void *argument);
  /// Goes on in `to`; returns when something switches back. `last`: nothing ever will.
  void switchTo(Fiber &to, bool last = false);

private:
  static void start(void *fiber);
  void arrived();

#ifdef STEPC_FIBERS_UCONTEXT
  ucontext_t context;
#else
  void *stackPointer = nullptr;
#endif
  void (*entry)(void *) = nullptr;
  void *argument = nullptr;
  // What the sanitizers know of it: the ends of its stack, and their own records.
  const void *stack = nullptr;
  size_t stackBytes = 0;
  Fiber *from = nullptr;
  [[maybe_unused]] void *fakeStack = nullptr;
  [[maybe_unused]] void *record = nullptr;
  bool owned = false;
};

} // namespace stepc::runtime

#endif
