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

// On other machines the C library switches stacks. This is slower, since it asks the kernel for signal
// masks.
#if !(defined(__x86_64__) || defined(__aarch64__)) || defined(STEPC_FIBERS_UCONTEXT)
#undef STEPC_FIBERS_UCONTEXT
#define STEPC_FIBERS_UCONTEXT 1
#include <ucontext.h>
#endif

namespace stepc::runtime {

/// A point from which execution can go on. After begin() it has a stack of its own. Without begin() it
/// stands for the stack of the code that first switches away from it. Threads of the machine share no
/// fibers.
class Fiber {
public:
  Fiber() = default;
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;
  ~Fiber();

  /// Makes the next switch to this fiber call entry(argument) on this stack. The entry must not return: it
  /// must end with a switch. After that switch begin() may be called again.
  void begin(void *stack, size_t bytes, void (*entry)(void *), void *argument);
  /// Goes on in `to`, and returns when a fiber switches back. `last` says that none ever will.
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
  // What the sanitizers know of the fiber: the ends of its stack, and their own records.
  const void *stack = nullptr;
  size_t stackBytes = 0;
  Fiber *from = nullptr;
  [[maybe_unused]] void *fakeStack = nullptr;
  [[maybe_unused]] void *record = nullptr;
  bool owned = false;
};

} // namespace stepc::runtime

#endif
