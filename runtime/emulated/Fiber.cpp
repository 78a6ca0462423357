//===- Fiber.cpp - Stacks that one thread switches between ----------------===//

// ThreadSanitizer must look at the threads' own accesses, not at the code that switches between threads.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((no_sanitize("thread"))), apply_to = function)
#endif

#include "runtime/emulated/Fiber.h"

#include <cstdint>
#include <cstdlib>

#ifdef STEPC_FIBERS_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef STEPC_FIBERS_TSAN
#include <sanitizer/tsan_interface.h>
#endif

// stepc_fiber_switch(&from, to) pushes the registers that a call must preserve, and swaps stack pointers. A
// new stack holds the same registers, and stepc_fiber_start reads two of them. Floating-point modes stay
// those of the machine's thread.
#ifdef STEPC_FIBERS_UCONTEXT
#elif defined(__x86_64__)
asm(R"(
.pushsection .text.stepc_fiber,"ax",@progbits
.p2align 4
.hidden stepc_fiber_switch
.globl stepc_fiber_switch
.type stepc_fiber_switch,@function
stepc_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size stepc_fiber_switch, .-stepc_fiber_switch
.hidden stepc_fiber_start
.globl stepc_fiber_start
.type stepc_fiber_start,@function
stepc_fiber_start:
  movq %r12, %rdi
  callq *%r13
  ud2
.size stepc_fiber_start, .-stepc_fiber_start
.popsection
)");
#else
asm(R"(
.pushsection .text.stepc_fiber,"ax",@progbits
.p2align 4
.hidden stepc_fiber_switch
.globl stepc_fiber_switch
.type stepc_fiber_switch,%function
stepc_fiber_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x2, sp
  str x2, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size stepc_fiber_switch, .-stepc_fiber_switch
.hidden stepc_fiber_start
.globl stepc_fiber_start
.type stepc_fiber_start,%function
stepc_fiber_start:
  mov x0, x19
  blr x20
  brk #0
.size stepc_fiber_start, .-stepc_fiber_start
.popsection
)");
#endif

#ifndef STEPC_FIBERS_UCONTEXT
extern "C" void stepc_fiber_switch(void **from, void *to);
extern "C" void stepc_fiber_start();
#endif

namespace stepc::runtime {

Fiber::~Fiber() {
#ifdef STEPC_FIBERS_TSAN
  if (owned)
    __tsan_destroy_fiber(record);
#endif
}

/// The first function that runs on a new stack.
void Fiber::start(void *fiber) {
  auto &self = *static_cast<Fiber *>(fiber);
  self.arrived();
  self.entry(self.argument);
  std::abort();
}

#ifdef STEPC_FIBERS_UCONTEXT
/// makecontext passes only ints, so pointers come in halves.
static void startContext(unsigned high, unsigned low, unsigned startHigh, unsigned startLow) {
  auto join = [](unsigned a, unsigned b) { return (uint64_t(a) << 32) | b; };
  auto function = reinterpret_cast<void (*)(void *)>(uintptr_t(join(startHigh, startLow)));
  function(reinterpret_cast<void *>(uintptr_t(join(high, low))));
}
#endif

void Fiber::begin(void *memory, size_t bytes, void (*function)(void *), void *given) {
  entry = function;
  argument = given;
  stack = memory;
  stackBytes = bytes;
  fakeStack = nullptr;
#ifdef STEPC_FIBERS_TSAN
  if (!owned)
    record = __tsan_create_fiber(0);
#endif
  owned = true;
#ifdef STEPC_FIBERS_UCONTEXT
  getcontext(&context);
  context.uc_stack.ss_sp = memory;
  context.uc_stack.ss_size = bytes;
  context.uc_link = nullptr;
  auto self = uint64_t(uintptr_t(this)), first = uint64_t(reinterpret_cast<uintptr_t>(&start));
  makecontext(&context, reinterpret_cast<void (*)()>(startContext), 4, unsigned(self >> 32),
              unsigned(self), unsigned(first >> 32), unsigned(first));
#else
  auto **top = reinterpret_cast<void **>((uintptr_t(memory) + bytes) & ~uintptr_t(15));
  auto code = [](auto *function) { return reinterpret_cast<void *>(function); };
#ifdef __x86_64__
  // From the lowest address: r15, r14, r13, r12, rbx, rbp, and the return address. Above is a null return
  // address, because nobody called.
  *--top = nullptr;
  *--top = nullptr;
  void *frame[] = {nullptr, nullptr, code(&start), this, nullptr, nullptr, code(stepc_fiber_start)};
#else
  // x19, x20, eight more registers, x29, x30, and d8 to d15.
  void *frame[20] = {this, code(&start)};
  frame[11] = code(stepc_fiber_start);
#endif
  constexpr size_t words = sizeof(frame) / sizeof(frame[0]);
  top -= words;
  for (size_t i = 0; i < words; ++i)
    top[i] = frame[i];
  stackPointer = top;
#endif
}

/// Called first on a stack that was switched to.
void Fiber::arrived() {
#ifdef STEPC_FIBERS_ASAN
  // If the fiber that switched here runs on the machine thread's own stack, it learns the ends of that
  // stack.
  const void *bottom;
  size_t bytes;
  __sanitizer_finish_switch_fiber(fakeStack, &bottom, &bytes);
  if (!from->owned) {
    from->stack = bottom;
    from->stackBytes = bytes;
  }
#endif
}

void Fiber::switchTo(Fiber &to, [[maybe_unused]] bool last) {
  to.from = this;
#ifdef STEPC_FIBERS_ASAN
  __sanitizer_start_switch_fiber(last ? nullptr : &fakeStack, to.stack, to.stackBytes);
#endif
#ifdef STEPC_FIBERS_TSAN
  if (!owned)
    record = __tsan_get_current_fiber();
  // A switch orders nothing. Blocks.cpp says where threads are ordered: where they meet.
  __tsan_switch_to_fiber(to.record, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef STEPC_FIBERS_UCONTEXT
  swapcontext(&context, &to.context);
#else
  stepc_fiber_switch(&stackPointer, to.stackPointer);
#endif
  arrived();
}

} // namespace stepc::runtime

#if defined(__clang__)
#pragma clang attribute pop
#endif
