//===- Memory.h - Memory that an instance holds from create to destroy -*- C++ -*-===//
#ifndef STEPC_RUNTIME_HOST_MEMORY_H
#define STEPC_RUNTIME_HOST_MEMORY_H

#include "stepc/stepc.h"

namespace stepc::runtime {

class Memory {
public:
  Memory() = default;
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ~Memory();

  /// 64-byte aligned, zero, and touched, so that no step takes a page fault for it. From the
  /// trainer's allocator where the options have one.
  bool allocate(int64_t bytes, const stepc_options &options);
  /// Takes memory from the trainer's allocator if the options have one, otherwise from `allocate`; `give`
  /// takes that back. Nothing is written.
  bool adopt(int64_t bytes, const stepc_options &options, void *(*allocate)(void *, int64_t),
             stepc_deallocate give, void *context);
  /// Zeros to read: pages that cost no memory.
  bool mapZeros(int64_t bytes);
  /// Lets go without freeing, for good.
  void leak();

  void *data() const { return base; }

private:
  void *base = nullptr;
  int64_t size = 0;
  bool isMapped = false;
  stepc_deallocate deallocate = nullptr; // the trainer's; null: from the heap, or mapped
  void *context = nullptr;
};

/// Marks a deliberate leak, so that LeakSanitizer reports only the others.
void keepForever(const void *object);

} // namespace stepc::runtime

#endif
