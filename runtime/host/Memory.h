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

  /// Allocates zeros, aligned to 64 bytes, from the trainer's allocator if the options have one. All pages
  /// are touched, so that no step takes a page fault here. Returns false if it gets no aligned memory.
  bool allocate(int64_t bytes, const stepc_options &options);
  /// Takes memory from the trainer's allocator if the options have one, otherwise from `allocate`; the
  /// destructor then frees it with `give`. Writes nothing into the memory. Returns false if there is none,
  /// or none aligned to 64 bytes.
  bool adopt(int64_t bytes, const stepc_options &options, void *(*allocate)(void *, int64_t),
             stepc_deallocate give, void *context);
  /// Maps zeros that may only be read, in pages that cost no memory. Returns false if this fails.
  bool mapZeros(int64_t bytes);
  /// Forgets the memory and never frees it.
  void leak();

  void *data() const { return base; }

private:
  void *base = nullptr;
  int64_t size = 0;
  bool isMapped = false;
  stepc_deallocate deallocate = nullptr; // null: the memory is from the heap, or mapped
  void *context = nullptr;
};

/// Marks a deliberate leak, so that LeakSanitizer does not report it.
void keepForever(const void *object);

} // namespace stepc::runtime

#endif
