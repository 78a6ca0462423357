//===- WavePipeline.h - When ranks are done with waves ----------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_WAVEPIPELINE_H
#define STEPC_PASSES_DECIDE_WAVEPIPELINE_H

#include "passes/cost/Cluster.h"

#include <array>

namespace stepc::decide {

/// What each rank does in one wave, as parts of it are added.
class WaveLoads {
public:
  /// Seconds of a rank: before the exchange there, of blocks that are whole on it, of blocks that came
  /// together, and after the way back. Launches are added once a wave, for all groups.
  struct Work {
    double in = 0, local = 0, compute = 0, out = 0;
    double sums = 0; ///< of exchanges between products, which wait for them
    int64_t whole = 0; ///< bytes of blocks that it computes and sends back
  };
  /// `rounds` exchanges there, one after the other, and as many back.
  WaveLoads(const cost::Cluster &cluster, size_t ranks, size_t rounds);
  void clear();

  Work &work(size_t rank) { return works[rank]; }
  /// A rank sends or receives `bytes` in `messages` messages. All groups' parts for one peer are one
  /// message, so of messages those of the group that has most count.
  void travel(size_t rank, size_t round, bool back, const std::vector<double> &meeting,
              double messages, double bytes);

  size_t ranks() const { return works.size(); }
  const Work &work(size_t rank) const { return works[rank]; }
  /// Seconds that all exchanges of one way take.
  double seconds(size_t rank, bool back) const;

private:
  struct Traffic {
    double messages = 0, bytes = 0;
  };
  size_t indexOf(size_t rank, size_t round, bool back, size_t level) const;

  const cost::Cluster &cluster;
  size_t rounds;
  std::vector<Work> works;
  std::vector<Traffic> traffics; // [rank][round][there, back][level]
};

/// The order of commands that comm-pipeline-waves makes, walked with the seconds of a model: of wave k+1 what
/// leads to its exchange and the start of that, then what wave k computes where it is whole, the wait for
/// wave k, its matrix space and the start of its way back, then the wait for wave k−1, and what follows. Of waves with
/// sums over slabs each second one takes turns with the one before it.
class WavePipeline {
public:
  WavePipeline(const cost::Cluster &cluster, std::vector<double> fill);
  /// Waves in their order.
  void add(const WaveLoads &loads);
  /// When the last rank is done with all waves.
  double finish();

private:
  struct Part {
    double in = 0, local = 0, compute = 0, sums = 0, out = 0, there = 0, back = 0;
  };
  /// When an exchange has ended on each rank.
  using Ends = std::vector<double>;
  using Wave = std::vector<Part>;
  Ends begin(const Wave &wave, double Part::*travel);
  void wait(const Ends &ends, const Wave &wave, double Part::*travel);
  void waitForTakers(const Wave &wave);
  void compute(const Wave &wave);
  void step(const Wave *next);

  const cost::Cluster &cluster;
  bool beside; // messages travel while ranks compute
  std::vector<double> fill, clock, stream;
  std::array<Wave, 2> waves; // the last one that was added, and the one before
  Ends there, back;          // of the first, and of the second
  // When ranks left their last wait for what comes there, and when they sent what the second wave sends back.
  std::vector<double> left, sentBack;
  size_t added = 0, computed = 0;
};

} // namespace stepc::decide

#endif
