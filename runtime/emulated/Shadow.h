//===- Shadow.h - Who touched which bytes last -------------------*- C++ -*-===//
//
// For every two bytes of memory that kernels and copies touch: the last write, and as many of the last
// reads as it takes to find those that a later write is not ordered after. Elements are two bytes at
// least. What is ordered stands in epochs, as in FastTrack (Flanagan, Freund, PLDI 2009): a command is
// a number on its stream, a thread's place in its block the number of barriers that it has passed.
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

/// Who orders commands: the two streams, numbered as Stream (Device.h) does, and the host.
inline constexpr size_t kOrders = 3;
inline constexpr size_t kHostOrder = 2;

/// Per order, the number of its commands that come before.
struct Clocks {
  std::array<uint32_t, kOrders> known{};
  void join(const Clocks &other);
};

/// A command: number n of a stream, from 1. Zero is no command.
struct CommandNumber {
  uint32_t bits = 0;
  CommandNumber() = default;
  CommandNumber(size_t stream, uint32_t n) : bits(n << 1 | uint32_t(stream)) {}
  size_t stream() const { return bits & 1; }
  uint32_t n() const { return bits >> 1; }
  bool operator==(const CommandNumber &) const = default;
};

/// One access. What a copy touches as a whole has block -1.
struct Access {
  CommandNumber command;
  int32_t block = -1;
  uint32_t thread : 8 = 0;
  uint32_t barriers : 24 = 0; ///< that the block had passed, or kUnderWay
};
/// A copy that its thread has not waited for: nothing is ordered after it.
inline constexpr uint32_t kUnderWay = (1 << 24) - 1;

/// Two accesses of the same bytes, the second not ordered after the first, and where.
struct Conflict {
  Access first, second;
  bool firstWrites, secondWrites;
  uintptr_t address;
};

class Shadow {
public:
  /// Whether the access is ordered after all that it conflicts with; otherwise `found` says what it is not
  /// ordered after. The shadow keeps the access either way. `known` are its stream's clocks.
  bool touch(uintptr_t address, size_t bytes, const Access &by, bool writes, const Clocks &known,
             Conflict &found);
  /// A copy of the block that was under way has come, as its thread knows.
  void arrive(uintptr_t address, size_t bytes, const Access &by);
  /// A block begins, and its own memory is here. What blocks before it did at these addresses no longer
  /// counts.
  void beginBlock(uintptr_t memory, size_t bytes);
  /// All so far is ordered before all that comes.
  void forget();

private:
  struct Cell {
    Access write;
    // Reads by kernels and copies of the first stream: two readers of the last command. They are of different
    // blocks if there are any; otherwise of different threads that no barrier orders. If one reader suffices,
    // the other is none.
    Access read, other;
    CommandNumber copied; ///< the last that read on the other stream
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
  std::array<std::pair<uintptr_t, Page *>, 64> recent{}; // of pages, by their numbers' lowest bits
  uint64_t age = 1;                                      // of pages that still say something
  uintptr_t memory = 0, memoryBytes = 0;                 // of the block
  std::vector<Cell> ofBlock;
};

} // namespace stepc::runtime

#endif
