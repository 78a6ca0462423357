//===- Processor.h - Devices that ranks share -------------------*- C++ -*-===//
#ifndef STEPC_PASSES_SIMULATE_PROCESSOR_H
#define STEPC_PASSES_SIMULATE_PROCESSOR_H

#include <cstdint>
#include <queue>
#include <vector>

namespace stepc::simulate {

/// Devices that some ranks share. All that have work get equal parts of them, at most one device each:
/// what a scheduler's time slices come to.
class Processor {
public:
  explicit Processor(double devices) : devices(devices) {}

  /// Gives `rank` work for that many seconds of one device, from `now` on.
  void submit(double now, int64_t rank, double seconds);
  /// When the next rank is done, if nothing else is submitted; infinity if nobody works.
  double next() const;
  /// The rank that is done at `now`, which was next().
  int64_t finish(double now);
  /// Changes whenever next() may.
  uint64_t version() const { return changes; }

private:
  double speed() const;
  void advance(double now);

  double devices;
  // What a rank that always worked would have got: a rank is done when that has grown by its work.
  double served = 0;
  double since = 0; // that `served` is of
  uint64_t changes = 0;
  struct Job {
    double served;
    uint64_t number; // equal ones are done in the order in which they came
    int64_t rank;
    bool operator>(const Job &other) const {
      return served != other.served ? served > other.served : number > other.number;
    }
  };
  std::priority_queue<Job, std::vector<Job>, std::greater<>> jobs;
};

} // namespace stepc::simulate

#endif
