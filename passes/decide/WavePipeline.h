//===- WavePipeline.h - When ranks are done with waves ----------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_WAVEPIPELINE_H
#define STEPC_PASSES_DECIDE_WAVEPIPELINE_H

#include "passes/cost/Cluster.h"

#include <deque>

namespace stepc::decide {

/// The work and the messages of each rank in one wave, summed over groups. A group begins one exchange per
/// round. A group with h exchanges on the way there begins them in rounds 0 to h - 1. In round h it is
/// computed and begins its way back. Its last stages run in the round after its last exchange.
class WaveLoads {
public:
  /// Seconds of launches of products beside the products' work: if each product has a launch of its own, and
  /// if products of several groups share launches.
  struct Launches {
    double apart = 0, joined = 0;
  };
  struct Work {
    double local = 0;  ///< seconds of groups that are whole on their ranks
    Launches launches; ///< of these groups
  };
  /// Seconds of a rank in a round. `in`: stages that lead to matrix space. `compute`: blocks that have come
  /// together. `sums`: exchanges of sums over slabs, for which products wait. `out`: stages after the last
  /// exchange. WavePipeline adds the time of a launch once to `in`, `compute` and `out`, for all groups.
  struct Round {
    double in = 0, compute = 0, sums = 0, out = 0;
    Launches launches; ///< of blocks that have come together
  };
  /// `rounds` is one more than the most exchanges of a group.
  WaveLoads(const cost::Cluster &cluster, size_t ranks, size_t rounds);
  void clear();

  Work &work(size_t rank) { return works[rank]; }
  Round &round(size_t rank, size_t round) { return inRounds[rank * rounds + round]; }
  /// Adds to an exchange that begins in a round, on the way there or back: a rank sends or receives `bytes`
  /// bytes in `messages` messages. One message to a peer has the bytes of all groups, so the number of
  /// messages is that of the group with most messages.
  void travel(size_t rank, size_t round, bool back, const std::vector<double> &meeting,
              double messages, double bytes);

  size_t ranks() const { return works.size(); }
  size_t roundCount() const { return rounds; }
  const Work &work(size_t rank) const { return works[rank]; }
  const Round &round(size_t rank, size_t round) const { return inRounds[rank * rounds + round]; }
  /// Notes that some bytes sent back in this round came from other ranks in a round before, or wait for
  /// those.
  void relay(size_t round) { relays[round] = true; }
  bool hasRelays(size_t round) const { return relays[round]; }
  /// Seconds that the exchange takes for a rank.
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

/// Walks the order of commands that comm-pipeline-waves makes, with the seconds of a model. Round r of a wave
/// runs beside round r − 1 of the next wave, the later wave first. A round first begins exchanges on
/// the way there, for which other ranks wait. Then it computes blocks, begins the way back, and last
/// runs the stages after the exchanges. Waves with sums over slabs take turns in pairs.
class WavePipeline {
public:
  /// `fill` has seconds per rank of work that runs while the first exchange travels. `joins`: whether
  /// products of several groups share launches.
  WavePipeline(const cost::Cluster &cluster, std::vector<double> fill, bool joins = false);
  /// Adds the next wave; all have equally many rounds.
  void add(const WaveLoads &loads);
  /// Seconds until the last rank is done with all waves.
  double finish();

private:
  using Seconds = std::vector<double>; // by rank
  struct Exchange {
    Seconds travel;
    Seconds sent,
        ends; // when each rank began it, and when it ends; `ends` is empty if it is not under way
  };
  struct Round {
    Seconds in, compute, sums, out;
    Exchange there, back; // begin in this round
    bool hasRelays = false;
  };
  struct Wave {
    size_t number = 0;
    Seconds local;
    std::vector<Round> rounds;
  };
  void begin(Exchange &exchange);
  /// Waits for an exchange, if it is under way. `receives` says which ranks receive messages.
  void wait(Exchange &exchange, bool isThere, const std::vector<bool> &receives);
  void waitForTakers(const Wave &wave, size_t round);
  void compute(const Wave &wave, const Wave *before, size_t round);
  void layOut(Wave &wave, const Wave *before, size_t round);
  void step(Wave next);

  const cost::Cluster &cluster;
  bool beside; // messages travel while ranks compute
  bool joins;
  Seconds fill, clock, stream;
  Seconds left; // when ranks last left a wait on the way there, in this call of `step`, or −1
  std::deque<Wave> waves; // the newest first: those under way, and one more
  size_t added = 0, rounds = 0;
};

} // namespace stepc::decide

#endif
