//===- SharedMemory.cpp - The memory of a block ----------------------------===//

#include "test/ptx/SharedMemory.h"
#include "test/ptx/Error.h"

#include <cstring>

namespace stepc::ptx {

SharedMemory::SharedMemory(uint32_t count) {
  if (count > kMostBytes)
    fail("expected at most ", kMostBytes, " bytes of memory per block, found ", count);
  uint32_t end = (kBegin + count + 15) / 16 * 16;
  bytes.assign(end, 0xa5);
  state.assign(end / 2, kBlank);
  stores.assign(end / 2, 0);
  unfencedReads.assign(end / 2, 0);
  unfencedWrites.assign(end / 2, 0);
  products.assign(end / kAtom + 1, 0);
}

void SharedMemory::checkRange(uint64_t address, uint64_t count) const {
  if (address < kBegin || address > bytes.size() || count > bytes.size() - address)
    fail(count, " bytes at ", address, " are outside of the block's memory, which ends at ",
         bytes.size());
}

void SharedMemory::checkRead(uint32_t address, uint32_t count) {
  checkRange(address, count);
  for (uint32_t piece = address / 2; piece < (address + count + 1) / 2; ++piece)
    if (uint8_t is = state[piece])
      fail(is & kBarrier   ? "a read of a barrier's bytes at "
           : is & kLoading ? "a read of bytes on which a tensor load has not landed, at "
                           : "a read of bytes that nothing has written, at ",
           piece * 2);
}

void SharedMemory::checkWrite(uint32_t address, uint32_t count) {
  checkRange(address, count);
  for (uint32_t piece = address / 2; piece < (address + count + 1) / 2; ++piece) {
    if (state[piece] & (kBarrier | kLoading))
      fail(state[piece] & kBarrier
               ? "a write over a barrier, at "
               : "a write over bytes on which a tensor load has not landed, at ",
           piece * 2);
    if (stores[piece])
      fail("a write over bytes that a tensor store may still read, at ", piece * 2);
    if (products[piece * 2 / kAtom])
      fail("a write over bytes that a wgmma in flight may still read, at ", piece * 2);
    state[piece] = 0;
  }
}

void SharedMemory::addUnfenced(uint32_t address, uint32_t count, bool isWrite, int by) {
  auto &unfenced = isWrite ? unfencedWrites : unfencedReads;
  for (uint32_t piece = address / 2; piece < (address + count + 1) / 2; ++piece)
    unfenced[piece] = uint16_t(unfenced[piece] + by);
}

void SharedMemory::refuseAsyncRead(uint32_t address) const {
  uint8_t is = state[address / 2];
  fail("an asynchronous read of bytes ",
       is & kBarrier   ? "of a barrier"
       : is & kLoading ? "on which a tensor load has not landed"
       : is & kBlank   ? "that nothing has written"
                       : "that a thread has written without fence.proxy.async",
       ", at ", address);
}

void SharedMemory::checkAsyncRead16(uint32_t address) {
  uint64_t states, first, second;
  std::memcpy(&states, &state[address / 2], 8);
  std::memcpy(&first, &unfencedWrites[address / 2], 8);
  std::memcpy(&second, &unfencedWrites[address / 2 + 4], 8);
  if (states | first | second)
    checkAsyncRead(address, 16);
}

void SharedMemory::beginLoad(uint32_t address, uint32_t count) {
  checkRange(address, count);
  for (uint32_t piece = address / 2; piece < (address + count) / 2; ++piece) {
    if (state[piece] & (kBarrier | kLoading))
      fail("a tensor load over ",
           state[piece] & kBarrier ? "a barrier" : "bytes on which another has not landed", ", at ",
           piece * 2);
    if (stores[piece])
      fail("a tensor load over bytes that a tensor store may still read, at ", piece * 2);
    if (unfencedReads[piece] || unfencedWrites[piece])
      fail("a tensor load over bytes that a thread has ", unfencedReads[piece] ? "read" : "written",
           " without fence.proxy.async, at ", piece * 2);
    state[piece] = kLoading;
  }
  for (uint32_t atom = address / kAtom; atom <= (address + count - 1) / kAtom; ++atom)
    if (products[atom])
      fail("a tensor load over bytes that a wgmma in flight may still read, at ", atom * kAtom);
}

void SharedMemory::land(uint32_t address, uint32_t count) {
  for (uint32_t piece = address / 2; piece < (address + count) / 2; ++piece)
    state[piece] = 0;
}

void SharedMemory::beginStore(uint32_t address, uint32_t count) {
  checkRange(address, count);
  checkAsyncRead(address, count);
  for (uint32_t piece = address / 2; piece < (address + count) / 2; ++piece)
    ++stores[piece];
}

void SharedMemory::endStore(uint32_t address, uint32_t count) {
  for (uint32_t piece = address / 2; piece < (address + count) / 2; ++piece)
    --stores[piece];
}

void SharedMemory::addBarrier(uint32_t address) {
  checkRange(address, 8);
  for (uint32_t piece = address / 2; piece < address / 2 + 4; ++piece) {
    if (state[piece] & kLoading || stores[piece])
      fail("a barrier begins in bytes that a tensor copy uses, at ", piece * 2);
    state[piece] = kBarrier;
  }
}

void SharedMemory::removeBarrier(uint32_t address) {
  for (uint32_t piece = address / 2; piece < address / 2 + 4; ++piece)
    state[piece] = kBlank;
}

} // namespace stepc::ptx
