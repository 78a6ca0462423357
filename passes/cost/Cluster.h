//===- Cluster.h - Machines, links, and what work takes on them -*- C++ -*-===//
//
// The one place that knows what anything costs. It knows nothing of IR, and asks nothing of the
// machine at hand: equal questions have equal answers everywhere, so decisions repeat.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_COST_CLUSTER_H
#define STEPC_PASSES_COST_CLUSTER_H

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace stepc::cost {

/// A message of n bytes takes latency + n / bandwidth; each further one at the same time, a gap more.
struct Link {
  double latency;   ///< seconds
  double gap;       ///< seconds, at most the latency: as much where messages wait for each other
  double bandwidth; ///< bytes per second, of one rank, one way
  /// Seconds of `messages` messages with `bytes` in all. Half a message is one that every second rank has.
  double seconds(double messages, double bytes) const;
  /// Seconds for which one message keeps other messages from its ports. It arrives `delay` seconds later.
  double busy(double bytes) const { return gap + bytes / bandwidth; }
  double delay() const { return latency - gap; }
  bool operator==(const Link &) const = default;
};

/// What computes at one rank.
struct Device {
  double flops;    ///< floating-point operations per second, all threads together
  double memory;   ///< bytes per second
  double capacity; ///< bytes of memory
  double launch;   ///< seconds to start all threads and to wait for them
  double threads;  ///< that share a launch; all but one wait for half of an item at its end
  /// Whether messages travel while the device computes, as on GPUs, which have streams. Otherwise the thread
  /// that computes takes them in while it waits.
  bool overlaps = false;
  /// Work is bound by arithmetic or by memory.
  double seconds(double operations, double bytes) const;
  /// Seconds that a product of m × k by k × n costs once, however many blocks there are. They are two
  /// launches, at the end of which all threads but one wait for half of an item. An item is about the share
  /// that a target makes of a product: its left rows fit in a cache, and there are dozens of items.
  double once(int64_t m, int64_t n, int64_t k) const;
  bool operator==(const Device &) const = default;
};

/// Links of one kind, and the domains that they connect: global ranks r with equal r / ranks share
/// one.
struct Level {
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  std::string name;
  int64_t ranks; ///< of a domain; of the last level as many as the cluster has, or kAll
  Link link;
  bool operator==(const Level &) const = default;
};

/// Machines of equal devices. Its levels, at least one, stand innermost first: each has more ranks
/// than the one before it, whose domains it is made of.
struct Cluster {
  std::string profile; ///< whose figures these are, some or all; empty: no profile's
  std::vector<Level> levels;
  Device device;

  /// The level at which two ranks meet: the innermost one of which both are in one domain.
  std::size_t levelOf(int64_t a, int64_t b) const;
  /// The part of a rank's peers among `ranks` that it meets at each level, on the average. All are 0 for one
  /// rank.
  std::vector<double> meeting(const std::vector<int64_t> &ranks) const;
  /// Seconds in which a rank sends or receives `bytes` (whichever are more) in `messages` messages,
  /// which meet their peers as `meeting` says: the links of all levels work at a time.
  double exchange(const std::vector<double> &meeting, double messages, double bytes) const;
  bool operator==(const Cluster &) const = default;
};

/// Operations of a product of m × k by k × n. Half of a symmetric result is mirrored, so it costs about half.
int64_t productFlops(int64_t m, int64_t n, int64_t k, bool symmetric);

/// Whole picoseconds, for sums that must not depend on their order; the largest number there is
/// for anything longer.
int64_t picoseconds(double seconds);

} // namespace stepc::cost

#endif
