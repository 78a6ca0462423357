//===- GlobalMemory.cpp - The memory of the GPU ----------------------------===//

#include "test/ptx/GlobalMemory.h"
#include "test/ptx/Error.h"

#include <algorithm>

namespace stepc::ptx {

uint64_t GlobalMemory::allocate(std::string name, const void *bytes, uint64_t count,
                                bool isWritable) {
  uint64_t address = 0x1000000000;
  if (!allocations.empty()) {
    const Allocation &last = allocations.back();
    address = (last.address + last.bytes.size() + 255) / 256 * 256 + 4096;
  }
  Allocation made{std::move(name), address, isWritable, {}, {}, {}};
  made.bytes.resize(count);
  if (bytes && count)
    std::memcpy(made.bytes.data(), bytes, count);
  made.writes.resize((count + 1) / 2);
  made.reads.resize((count + 1) / 2);
  allocations.push_back(std::move(made));
  return address;
}

GlobalMemory::Allocation &GlobalMemory::find(uint64_t address, uint64_t count, const char *access) {
  auto holds = [&](const Allocation &a) {
    return address >= a.address && address - a.address < a.bytes.size() &&
           count <= a.bytes.size() - (address - a.address);
  };
  if (latest < allocations.size() && holds(allocations[latest]))
    return allocations[latest];
  auto behind = std::upper_bound(allocations.begin(), allocations.end(), address,
                                 [](uint64_t a, const Allocation &b) { return a < b.address; });
  if (behind == allocations.begin())
    fail(access, " of ", count, " bytes at ", address, " is outside of all allocations");
  Allocation &found = *std::prev(behind);
  if (!holds(found))
    fail(access, " of ", count, " bytes at byte ", address - found.address, " is outside of ",
         found.name, ", which has ", found.bytes.size());
  latest = size_t(&found - allocations.data());
  return found;
}

const uint8_t *GlobalMemory::read(uint64_t address, uint64_t count) {
  Allocation &from = find(address, count, "a read");
  uint64_t begin = address - from.address;
  for (uint64_t piece = begin / 2; piece < (begin + count + 1) / 2; ++piece) {
    if (from.writes[piece])
      fail("a read of byte ", piece * 2, " of ", from.name, ", which this launch writes");
    from.reads[piece] = 1;
  }
  return from.bytes.data() + begin;
}

void GlobalMemory::write(uint64_t address, const uint8_t *bytes, uint64_t count) {
  Allocation &to = find(address, count, "a write");
  if (!to.isWritable)
    fail("a write to ", to.name, ", which is not a result");
  uint64_t begin = address - to.address;
  for (uint64_t piece = begin / 2; piece < (begin + count + 1) / 2; ++piece) {
    if (to.reads[piece])
      fail("a write to byte ", piece * 2, " of ", to.name, ", which this launch has read");
    to.writes[piece] = uint8_t(std::min(255, to.writes[piece] + 1));
  }
  std::memcpy(to.bytes.data() + begin, bytes, count);
}

const GlobalMemory::Allocation &GlobalMemory::at(uint64_t address) const {
  for (const Allocation &each : allocations)
    if (each.address == address)
      return each;
  fail("no allocation begins at ", address);
}

} // namespace stepc::ptx
