#include "runtime/host/Memory.h"
#include "runtime/plan/Plan.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#define STEPC_LEAK_SANITIZER 1
#endif
#endif

namespace stepc::runtime {

Memory::~Memory() {
  if (!base)
    return;
  if (deallocate)
    deallocate(context, base, size);
  else if (isMapped)
    munmap(base, size);
  else
    std::free(base);
}

// Uses the heap and not mmap, so that AddressSanitizer guards both ends.
bool Memory::allocate(int64_t bytes, const stepc_options &options) {
  if (options.allocate) {
    if (!adopt(bytes, options, nullptr, nullptr, nullptr))
      return false;
  } else {
    size = std::max<int64_t>(bytes, 1);
    if (posix_memalign(&base, plan::kAlignment, size) != 0) {
      base = nullptr;
      return false;
    }
#if defined(MADV_HUGEPAGE)
    constexpr int64_t kHuge = 2 << 20;
    uintptr_t first = (reinterpret_cast<uintptr_t>(base) + kHuge - 1) / kHuge * kHuge;
    uintptr_t last = (reinterpret_cast<uintptr_t>(base) + bytes) / kHuge * kHuge;
    if (first < last)
      madvise(reinterpret_cast<void *>(first), last - first, MADV_HUGEPAGE);
#endif
  }
  std::memset(base, 0, bytes);
  return true;
}

bool Memory::adopt(int64_t bytes, const stepc_options &options, void *(*allocate)(void *, int64_t),
                   stepc_deallocate give, void *owner) {
  size = std::max<int64_t>(bytes, 1);
  deallocate = options.allocate ? options.deallocate : give;
  context = options.allocate ? options.allocator_context : owner;
  base =
      options.allocate ? options.allocate(context, size, plan::kAlignment) : allocate(owner, size);
  return base && reinterpret_cast<uintptr_t>(base) % plan::kAlignment == 0;
}

bool Memory::mapZeros(int64_t bytes) {
  void *pages = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    return false;
  base = pages;
  size = bytes;
  isMapped = true;
  return true;
}

void Memory::leak() {
  keepForever(base);
  base = nullptr;
}

void keepForever(const void *object) {
#if defined(STEPC_LEAK_SANITIZER)
  __lsan_ignore_object(object);
#endif
}

} // namespace stepc::runtime
