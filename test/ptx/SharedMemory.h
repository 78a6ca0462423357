//===- SharedMemory.h - The memory of a block --------------------*- C++ -*-===//
//
// Threads access this memory in order. Tensor loads, tensor stores and wgmma access it through the asynchronous proxy,
// at times of their own. A state of each 16-bit piece tells which accesses are not yet ordered, so that an access which
// conflicts with one of them is an error at once and not only where a seed makes its bytes wrong.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TEST_PTX_SHAREDMEMORY_H
#define STEPC_TEST_PTX_SHAREDMEMORY_H

#include <cstdint>
#include <vector>

namespace stepc::ptx {

/// Where byte `address` lies under the 128-byte swizzle: bits 4 to 6 are exclusive-ored with bits 7 to 9.
inline uint32_t swizzle128(uint32_t address) { return address ^ ((address >> 7 & 7) << 4); }

class SharedMemory {
public:
  /// The first kilobyte is the system's.
  static constexpr uint32_t kBegin = 1024;
  static constexpr uint32_t kMostBytes = 232448;
  /// Rows of the swizzle repeat after so many bytes. wgmma's operands are counted by it.
  static constexpr uint32_t kAtom = 1024;

  explicit SharedMemory(uint32_t count);

  uint8_t *data() { return bytes.data(); }

  /// A thread's access. It counts as unfenced until `fence`.
  void checkRead(uint32_t address, uint32_t count);
  void checkWrite(uint32_t address, uint32_t count);
  void addUnfenced(uint32_t address, uint32_t count, bool isWrite, int by);

  /// A range that asynchronous reads are about to see: all of it is written, has landed and is fenced.
  void checkAsyncRead(uint32_t address, uint32_t count) {
    for (uint32_t a = address; a < address + count; a += 2)
      if (state[a / 2] | unfencedWrites[a / 2])
        refuseAsyncRead(a);
  }
  /// 16 bytes for wgmma, which reads many.
  void checkAsyncRead16(uint32_t address);

  void beginLoad(uint32_t address, uint32_t count);
  void land(uint32_t address, uint32_t count);
  void beginStore(uint32_t address, uint32_t count);
  void endStore(uint32_t address, uint32_t count);
  void beginProduct(uint32_t atom) { ++products[atom]; }
  void endProduct(uint32_t atom) { --products[atom]; }
  void addBarrier(uint32_t address);
  void removeBarrier(uint32_t address);
  void checkRange(uint64_t address, uint64_t count) const;

private:
  enum State : uint8_t { kBlank = 1, kLoading = 2, kBarrier = 4 };
  std::vector<uint8_t> bytes; ///< by address
  /// Per 16-bit piece.
  std::vector<uint8_t> state, stores;
  std::vector<uint16_t> unfencedReads, unfencedWrites;
  /// Per atom: products in flight that read it.
  std::vector<uint16_t> products;

  [[noreturn]] void refuseAsyncRead(uint32_t address) const;
};

} // namespace stepc::ptx

#endif
