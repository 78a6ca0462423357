//===- Cluster.h - Machines, links, and what work takes on them -*- C++ -*-===//
//
// All costs are computed here. This file uses no IR and measures nothing on the machine at hand: equal
// arguments give equal results on every machine, so decisions repeat.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_COST_CLUSTER_H
#define STEPC_PASSES_COST_CLUSTER_H

#include "passes/cost/ProductRates.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace stepc::cost {

/// A message of n bytes takes latency + n / bandwidth. Each further message at the same time adds a gap.
struct Link {
  double latency; ///< seconds
  double gap; ///< seconds, at most the latency; equal to it if messages follow one after another
  double bandwidth; ///< bytes per second, of one rank, one way
  /// Seconds of `messages` messages with `bytes` bytes in all. The number may be a mean over ranks: 0.5 means
  /// that every second rank has a message.
  double seconds(double messages, double bytes) const;
  /// Seconds for which one message keeps other messages from its ports. It arrives `delay` seconds later.
  double busy(double bytes) const { return gap + bytes / bandwidth; }
  double delay() const { return latency - gap; }
  bool operator==(const Link &) const = default;
};

/// What computes at one rank.
struct Device {
  /// Floating-point operations per second, all threads together. On a GPU it is the rate of a vendor's
  /// library for large products of 16-bit operands.
  double flops;
  double memory;   ///< bytes per second
  double capacity; ///< bytes of memory
  double launch;   ///< seconds to start all threads and to wait for them
  double threads;  ///< threads that share a launch; at its end all but one wait for half of an item
  /// Whether messages travel while the device computes, as on GPUs, which have streams. Otherwise the thread
  /// that computes takes messages in while it waits for them.
  bool overlaps = false;
  /// The fastest kernels for products that the target has. Products have the rates of these kernels.
  ProductKernel products = ProductKernel::Stated;
  /// Executed operations per second of the kernel that computes this product, for many blocks.
  double rate(const BlockProduct &shape) const;
  /// The operations of other work that take as long as one block's product.
  double operations(const BlockProduct &shape) const;
  /// Seconds of work that is bound by arithmetic or by memory, whichever takes longer.
  double seconds(double operations, double bytes) const;
  /// Seconds that a product costs once, if the number of blocks is not known. It has two launches on a CPU
  /// and one on a GPU. At its end all threads but one wait for half of an item. An item is about as large as
  /// targets make the items of a product. On a CPU its left rows fit in a cache, and there are dozens of
  /// items. Lists of tiles end in half tiles. ProductLaunches.h has the time of such a launch.
  double once(const BlockProduct &shape) const;
  bool operator==(const Device &) const = default;
};

/// Links of one kind, and the domains whose ranks they connect: global ranks r with equal r / `ranks` share a
/// domain.
struct Level {
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  std::string name;
  int64_t ranks; ///< ranks of a domain; in the last level all ranks of the cluster, or kAll
  Link link;
  bool operator==(const Level &) const = default;
};

/// Machines of equal devices. There is at least one level. Levels are listed innermost first. A domain of a
/// level consists of several domains of the level before it.
struct Cluster {
  std::string profile; ///< the profile from which some or all figures come; empty if none do
  std::vector<Level> levels;
  Device device;

  /// The level at which two ranks meet: the innermost level in which one domain has both.
  std::size_t levelOf(int64_t a, int64_t b) const;
  /// Per level, the part of its peers among `ranks` that a rank meets at this level, on the average. All
  /// parts are 0 if there is only one rank.
  std::vector<double> meeting(const std::vector<int64_t> &ranks) const;
  /// Seconds in which a rank sends or receives `bytes` (the larger of both numbers) in `messages` messages.
  /// `meeting` says which part goes over the links of each level. The links of all levels work at a time.
  double exchange(const std::vector<double> &meeting, double messages, double bytes) const;
  bool operator==(const Cluster &) const = default;
};

/// Seconds as whole picoseconds, so that sums do not depend on their order. More than 9e18 count as 9e18.
int64_t picoseconds(double seconds);

} // namespace stepc::cost

#endif
