//===- Shadow.h - Who touched which bytes last -------------------*- C++ -*-===//
//
// For every two bytes of memory that kernels and copies touch, the shadow keeps the last write and some of
// the last reads. These suffice to find a read that a later write is not ordered after. Elements have at
// least two bytes. Order is kept in epochs, as in FastTrack (Flanagan, Freund, PLDI 2009). A command's
// epoch is its number on its stream. The epoch of a thread in its GPU block is the number of barriers that
// the block has passed.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_EMULATED_SHADOW_H
#define STEPC_RUNTIME_EMULATED_SHADOW_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace stepc::runtime {

/// The parties that order commands: the two streams, numbered as Stream (Device.h) does, and the host.
inline constexpr size_t kOrders = 3;
inline constexpr size_t kHostOrder = 2;

/// Per party, how many of its commands are known to come before.
struct Clocks {
  std::array<uint32_t, kOrders> known{};
  void join(const Clocks &other);
};

/// A command: number n of a stream, counted from 1. Number 0 is no command.
struct CommandNumber {
  uint32_t bits = 0;
  CommandNumber() = default;
  CommandNumber(size_t stream, uint32_t n) : bits(n << 1 | uint32_t(stream)) {}
  size_t stream() const { return bits & 1; }
  uint32_t n() const { return bits >> 1; }
  bool operator==(const CommandNumber &) const = default;
};

/// One access to memory. An access of a command as a whole, such as a copy, has block -1.
struct Access {
  CommandNumber command;
  int32_t block = -1;
  uint32_t thread : 8 = 0;
  uint32_t barriers : 24 = 0; ///< that the block has passed, or kUnderWay
};
/// Marks a copy that its thread has not waited for: no access of the same command is ordered after the
/// copy.
inline constexpr uint32_t kUnderWay = (1 << 24) - 1;

/// Two accesses to the same bytes of which the second is not ordered after the first, and the address.
struct Conflict {
  Access first, second;
  bool firstWrites, secondWrites;
  uintptr_t address;
};

class Shadow {
public:
  /// Returns whether an access is ordered after all earlier accesses that it conflicts with. If not,
  /// `found` receives the first conflict. The shadow keeps the access in both cases. `known` are the clocks
  /// of the access's stream.
  bool touch(uintptr_t address, size_t bytes, const Access &by, bool writes, const Clocks &known,
             Conflict &found);
  /// Records that the thread of `by` has waited for its copy to the GPU block's memory.
  void arrive(uintptr_t address, size_t bytes, const Access &by);
  /// Begins a GPU block, whose shared memory is here. Accesses of earlier blocks at these addresses no
  /// longer count.
  void beginBlock(uintptr_t memory, size_t bytes);
  /// Drops all accesses. The caller guarantees that they are ordered before all later ones.
  void forget();

private:
  struct Cell {
    Access write;
    // Up to two readers of the last command on the first stream that read here. They are of different GPU
    // blocks if several blocks read, otherwise of different threads that no barrier orders. If one reader
    // suffices, `other` is empty.
    Access read, other;
    CommandNumber copied; ///< the last command on the other stream that read here
  };
  static constexpr size_t kGrain = 2, kPage = 4096 / kGrain;
  struct Page {
    uint64_t age;
    std::array<Cell, kPage> cells;
  };

  bool touch(Cell &cell, const Access &by, bool writes, bool isOfBlock, const Clocks &known,
             Conflict &found) const;
  Cell &cellAt(uintptr_t address);
  bool isOfBlock(uintptr_t address) const { return address - memory < memoryBytes; }

  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
  std::array<std::pair<uintptr_t, Page *>, 64> recent{}; // pages, by their numbers' lowest bits
  uint64_t age = 1;                                      // pages of an earlier age count as empty
  uintptr_t memory = 0, memoryBytes = 0;                 // of the GPU block
  std::vector<Cell> ofBlock;
};

} // namespace stepc::runtime

#endif
