//===- GlobalMemory.h - The memory of the GPU --------------------*- C++ -*-===//
#ifndef STEPC_TEST_PTX_GLOBALMEMORY_H
#define STEPC_TEST_PTX_GLOBALMEMORY_H

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace stepc::ptx {

/// Allocations with gaps between them. An access outside of one is an error. Each remembers which of its 16-bit pieces
/// a launch read and how often it wrote each.
class GlobalMemory {
public:
  struct Allocation {
    std::string name;
    uint64_t address = 0;
    bool isWritable = false;
    std::vector<uint8_t> bytes;
    /// How often each 16-bit piece was written, up to 255, and whether it was read.
    std::vector<uint8_t> writes, reads;
  };

  /// Gives the address, a multiple of 256.
  uint64_t allocate(std::string name, const void *bytes, uint64_t count, bool isWritable);

  /// The bytes of an access by a kernel: `count` from `address` on. An error if they are outside of an allocation, if a
  /// launch reads what it has written, or if it writes what it has read.
  const uint8_t *read(uint64_t address, uint64_t count);
  void write(uint64_t address, const uint8_t *bytes, uint64_t count);

  /// The host's view of an allocation.
  const Allocation &at(uint64_t address) const;

private:
  std::vector<Allocation> allocations; ///< by address
  size_t latest = 0;
  Allocation &find(uint64_t address, uint64_t count, const char *access);
};

} // namespace stepc::ptx

#endif
