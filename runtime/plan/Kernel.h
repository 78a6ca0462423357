//===- Kernel.h - What commands call, and how a device starts it -*- C++ -*-===//
#ifndef STEPC_RUNTIME_PLAN_KERNEL_H
#define STEPC_RUNTIME_PLAN_KERNEL_H

#include "runtime/model/Enum.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepc::plan {

/// How many blocks of threads a launch has.
enum class Grid : int64_t {
  Items = 0,    ///< one for each item
  Threads = 1,  ///< as many as it takes to have a thread for each item
  Resident = 2, ///< as many as the chip holds at a time, but at most one for each item
  Lists = 3,    ///< one cluster for each list of tiles (TileLists.h); an item is a list
};
template <>
inline constexpr auto kNames<Grid> =
    std::to_array<std::string_view>({"items", "threads", "resident", "lists"});

/// How a GPU starts a kernel. The kernel itself says so: no other part of the runtime or the compiler knows
/// these numbers. If blocks and items may differ in number, the kernel gets the number of items as its last
/// argument.
struct LaunchShape {
  Grid grid = Grid::Items;
  int64_t threads = 1;      // of a block
  int64_t cluster = 1;      // blocks that run side by side and reach each other's shared memory
  int64_t staticBytes = 0;  // of shared memory of a block, which its code declares
  int64_t dynamicBytes = 0; // of shared memory of a block beside these, which the launch asks for
  bool operator==(const LaunchShape &) const = default;

  int64_t sharedBytes() const { return staticBytes + dynamicBytes; }
  /// Whether the kernel gets the number of items. A grid has whole clusters, so the last cluster may have
  /// blocks without an item.
  bool getsItems() const {
    return grid == Grid::Threads || grid == Grid::Resident || (grid == Grid::Items && cluster > 1);
  }

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("grid", self.grid);
    visit("threads", self.threads);
    visit("cluster", self.cluster);
    visit("static", self.staticBytes);
    visit("dynamic", self.dynamicBytes);
  }
};
/// What is wrong with a launch on any GPU; empty if nothing is.
std::string checkLaunch(const LaunchShape &launch);

/// What a GPU has for the blocks of a kernel.
struct BlockLimits {
  int64_t threads = 0;     // of a block
  int64_t sharedBytes = 0; // of a block, if a launch asks for them
  int64_t cluster = 0;     // blocks of one cluster; 1: the GPU has no clusters
};
/// What a kernel needs that a GPU has not: "blocks of at most 1024 threads, found 1152". Empty if it fits.
std::string checkLimits(const LaunchShape &launch, const BlockLimits &limits);

/// The most GPU blocks that messages between ranks take at a time, one for each of NCCL's channels. NCCL
/// is told this number, and products that run beside messages leave as many multiprocessors free.
inline constexpr int64_t kMessageBlocks = 16;

struct Kernel {
  std::string name;
  std::optional<LaunchShape> launch; // only for devices that start kernels as blocks of threads
  bool operator==(const Kernel &) const = default;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("name", self.name);
    visit("launch", self.launch);
  }
};

} // namespace stepc::plan

#endif
