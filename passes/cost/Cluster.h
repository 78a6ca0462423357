//===- Cluster.h - Machines, links, and what work takes on them -*- C++ -*-===//
//
// The one place that knows what anything costs. It knows nothing of IR, and asks nothing of the
// machine at hand: equal questions have equal answers everywhere, so decisions repeat.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_COST_CLUSTER_H
#define STEPC_PASSES_COST_CLUSTER_H

#include <cstdint>
#include <vector>

namespace stepc::cost {

/// A message of n bytes takes latency + n / bandwidth.
struct Link {
  double latency;   ///< seconds
  double bandwidth; ///< bytes per second, of one rank, one way
  double seconds(double messages, double bytes) const {
    return messages * latency + bytes / bandwidth;
  }
  bool operator==(const Link &) const = default;
};

/// What computes at one rank.
struct Device {
  double flops;   ///< floating-point operations per second, all threads together
  double memory;  ///< bytes per second
  double launch;  ///< seconds to start all threads and to wait for them
  double threads; ///< that share a launch; all but one wait for half of an item at its end
  /// Work is bound by arithmetic or by memory.
  double seconds(double operations, double bytes) const;
  /// Seconds that a product of m × k by k × n costs once, however many blocks there are: two
  /// launches, at the end of which all threads but one wait for half of an item. An item is about
  /// what a target makes of a product: its left rows fit in a cache, and dozens are shared.
  double once(int64_t m, int64_t n, int64_t k) const;
  bool operator==(const Device &) const = default;
};

/// Ranks r with equal r / ranksPerNode share a node.
struct Cluster {
  int64_t ranksPerNode = 1;
  Link inside, between;
  Device device;

  /// A rank with a share of a server's cores, and its network: 16 threads of 10¹² operations and
  /// 100 GB per second together, 100 Gbit/s and 20 µs to every other rank. With more threads each
  /// has less work per wave, so many waves cost more time; with a slower network more of the travel
  /// hides behind products, so many waves gain more.
  static Cluster builtIn();

  /// Of a rank's peers among `ranks`, the part that shares its node, on the average.
  double nearby(const std::vector<int64_t> &ranks) const;
  /// Seconds in which a rank sends or receives `bytes` (whichever are more) in `messages` messages,
  /// with a part `nearby` of its peers inside of its node: both kinds of links work at a time.
  double exchange(double nearby, double messages, double bytes) const;
  bool operator==(const Cluster &) const = default;
};

/// Of m × k times k × n; half of a symmetric result is mirrored.
int64_t productFlops(int64_t m, int64_t n, int64_t k, bool symmetric);

/// Whole picoseconds, for sums that must not depend on their order; the largest number there is
/// for anything longer.
int64_t picoseconds(double seconds);

} // namespace stepc::cost

#endif
