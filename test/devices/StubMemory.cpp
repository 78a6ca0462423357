//===- StubMemory.cpp - Whose memory is, as a driver that is the host tells ---===//
//
// Unless a test of this process says otherwise all memory is managed, a GPU's and the host's: a trainer in
// NumPy has no other.
//
//===----------------------------------------------------------------------===//

#include "test/devices/Stub.h"

#include <map>
#include <mutex>

namespace stepc::runtime::cuda {
namespace {

struct Owned {
  size_t bytes;
  unsigned type;
  int ordinal;
};

std::mutex mutex;
std::map<Address, Owned> owned;

/// What holds so many bytes; null where nothing is said of them.
const Owned *find(Address address, size_t bytes) {
  auto after = owned.upper_bound(address);
  if (after == owned.begin() ||
      address + bytes > std::prev(after)->first + std::prev(after)->second.bytes)
    return nullptr;
  return &std::prev(after)->second;
}

} // namespace

void tellOwner(unsigned count, const int *attributes, void **values, Address address) {
  std::lock_guard lock(mutex);
  const Owned *known = find(address, 1);
  Owned found = known ? *known : Owned{0, kDeviceMemory, 0};
  for (unsigned i = 0; i < count; ++i)
    *static_cast<int *>(values[i]) = attributes[i] == kMemoryType  ? int(found.type)
                                     : attributes[i] == kIsManaged ? !known
                                                                   : found.ordinal;
}

bool isLent(Address address, size_t bytes) {
  std::lock_guard lock(mutex);
  const Owned *known = find(address, bytes);
  return known && known->type == kDeviceMemory;
}

} // namespace stepc::runtime::cuda

/// Says what the driver knows of memory: its type (0: unknown, 1: the host's, 2: a GPU's) and its GPU.
extern "C" __attribute__((visibility("default"))) void
stepc_stub_own(const void *memory, size_t bytes, unsigned type, int ordinal) {
  using namespace stepc::runtime::cuda;
  std::lock_guard lock(mutex);
  owned[reinterpret_cast<Address>(memory)] = {bytes, type, ordinal};
}

extern "C" __attribute__((visibility("default"))) void stepc_stub_disown() {
  using namespace stepc::runtime::cuda;
  std::lock_guard lock(mutex);
  owned.clear();
}
