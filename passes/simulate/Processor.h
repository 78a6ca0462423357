//===- Processor.h - Devices that ranks share -------------------*- C++ -*-===//
#ifndef STEPC_PASSES_SIMULATE_PROCESSOR_H
#define STEPC_PASSES_SIMULATE_PROCESSOR_H

#include <cstdint>
#include <queue>
#include <vector>

namespace stepc::simulate {

/// Devices that some ranks share. All ranks that have work get equal parts of the devices, at most one device
/// each. Time slices of a scheduler come to the same.
class Processor {
public:
  explicit Processor(double devices) : devices(devices) {}

  /// Gives `rank` work for that many seconds of one device, from `now` on.
  void submit(double now, int64_t rank, double seconds);
  /// When the next rank is done, if nothing else is submitted. Infinity if no rank has work.
  double next() const;
  /// Removes and returns the rank that is done at `now`, which must be next().
  int64_t finish(double now);
  /// A number that changes whenever next() may change.
  uint64_t version() const { return changes; }

private:
  double speed() const;
  void advance(double now);

  double devices;
  // Seconds of work that a rank which always worked would have got. A rank is done when they have grown by
  // its work.
  double served = 0;
  double since = 0; // the time for which `served` holds
  uint64_t changes = 0;
  struct Job {
    double served;
    uint64_t number; // orders jobs that are done at one time: first come, first done
    int64_t rank;
    bool operator>(const Job &other) const {
      return served != other.served ? served > other.served : number > other.number;
    }
  };
  std::priority_queue<Job, std::vector<Job>, std::greater<>> jobs;
};

} // namespace stepc::simulate

#endif
