//===- WavePipeline.h - When ranks are done with waves ----------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_WAVEPIPELINE_H
#define STEPC_PASSES_DECIDE_WAVEPIPELINE_H

#include "passes/cost/Cluster.h"

#include <deque>

namespace stepc::decide {

/// What each rank does in one wave, as parts of it are added. A group's exchanges are rounds, one after the
/// other. A group with h exchanges on the way there begins them in rounds r < h. In round h it is computed
/// and begins its way back. In the round after its last exchange it ends.
class WaveLoads {
public:
  struct Work {
    double local = 0;  ///< seconds of groups that are whole on their ranks
    int64_t whole = 0; ///< bytes of blocks that it computes and sends back
  };
  /// Seconds of a rank in a round. `in`: stages that lead to matrix space. `compute`: blocks that have come
  /// together by then. `sums`: exchanges between their products, which wait for them. `out`: stages after
  /// the last exchange. Each has a launch, whose time is added once, for all groups.
  struct Round {
    double in = 0, compute = 0, sums = 0, out = 0;
  };
  /// `rounds` is one more than the most exchanges of a group.
  WaveLoads(const cost::Cluster &cluster, size_t ranks, size_t rounds);
  void clear();

  Work &work(size_t rank) { return works[rank]; }
  Round &round(size_t rank, size_t round) { return inRounds[rank * rounds + round]; }
  /// Adds to an exchange that begins in a round, there or back: a rank sends or receives `bytes` bytes in
  /// `messages` messages. All groups' parts for one peer are one message, so the group with most messages
  /// counts.
  void travel(size_t rank, size_t round, bool back, const std::vector<double> &meeting,
              double messages, double bytes);

  size_t ranks() const { return works.size(); }
  size_t roundCount() const { return rounds; }
  const Work &work(size_t rank) const { return works[rank]; }
  const Round &round(size_t rank, size_t round) const { return inRounds[rank * rounds + round]; }
  /// Says that some of what is sent back in a round came from other ranks, or waits for what did.
  void relay(size_t round) { relays[round] = true; }
  bool hasRelays(size_t round) const { return relays[round]; }
  /// Seconds that the exchange takes.
  double seconds(size_t rank, size_t round, bool back) const;

private:
  struct Traffic {
    double messages = 0, bytes = 0;
  };
  size_t indexOf(size_t rank, size_t round, bool back, size_t level) const;

  const cost::Cluster &cluster;
  size_t rounds;
  std::vector<Work> works;
  std::vector<Round> inRounds;   // [rank][round]
  std::vector<bool> relays;      // [round]
  std::vector<Traffic> traffics; // [rank][round][there, back][level]
};

/// The order of commands that comm-pipeline-waves makes, walked with the seconds of a model. Round r of a
/// wave stands beside round r − 1 of the next one, the later wave first. In a round, what other ranks wait
/// for comes first. Then follow what is computed and what returns with its results, and last what ends. Waves
/// with sums over slabs take turns in pairs.
class WavePipeline {
public:
  WavePipeline(const cost::Cluster &cluster, std::vector<double> fill);
  /// Adds the next wave; all have equally many rounds.
  void add(const WaveLoads &loads);
  /// Seconds until the last rank is done with all waves.
  double finish();

private:
  using Seconds = std::vector<double>; // by rank
  struct Exchange {
    Seconds travel;
    Seconds sent,
        ends; // when each rank began it, and when it has ended; empty if it is not under way
  };
  struct Round {
    Seconds in, compute, sums, out;
    Exchange there, back; // which begin in it
    bool hasRelays = false;
  };
  struct Wave {
    size_t number = 0;
    Seconds local;
    std::vector<Round> rounds;
  };
  void begin(Exchange &exchange);
  /// Waits for an exchange, if it is under way; `receives` tells which ranks receive something.
  void wait(Exchange &exchange, bool isThere, const std::vector<bool> &receives);
  void waitForTakers(const Wave &wave, size_t round);
  void compute(const Wave &wave, const Wave *before, size_t round);
  void layOut(Wave &wave, const Wave *before, size_t round);
  void step(Wave next);

  const cost::Cluster &cluster;
  bool beside; // messages travel while ranks compute
  Seconds fill, clock, stream;
  Seconds left;           // when ranks last went on to matrix space in this step, or −1
  std::deque<Wave> waves; // the last one that was added first, and one more than are under way
  size_t added = 0, rounds = 0;
};

} // namespace stepc::decide

#endif
