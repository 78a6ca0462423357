//===- Simulate.h - A step of all ranks, on paper ---------------*- C++ -*-===//
//
// Walks the commands of a plan on all ranks at once, over a cluster: when each command begins and
// ends, when messages travel, and who waits for whom. Tables and messages come from plan::Expander, as
// the runtime's do, and what anything takes from passes/cost. docs/simulate.md has the formulas.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_SIMULATE_SIMULATE_H
#define STEPC_PASSES_SIMULATE_SIMULATE_H

#include "passes/cost/Cluster.h"
#include "passes/plan/MoveKinds.h"
#include "runtime/plan/Plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace stepc::simulate {

/// Who moves messages.
enum class Progress {
  Streams, ///< the network, while ranks compute: a GPU with its stream of messages
  Waits,   ///< the receiving rank's own thread, where its program awaits: a CPU over MPI
};

struct Options {
  Progress progress = Progress::Streams;
  /// Ranks g with equal g / ranksPerMachine share `devices` devices of the cluster's; no more than one
  /// works for a rank.
  int64_t ranksPerMachine = 1;
  double devices = 1;
};

struct Traffic {
  int64_t messages = 0, bytes = 0;
  bool operator==(const Traffic &) const = default;
};

/// A rank's step; times are seconds since its begin.
struct RankResult {
  double end = 0;                      ///< when its last command is done
  double compute = 0;                  ///< in which it has commands under way
  double exposed = 0;                  ///< in which its commands wait for messages
  double work = 0;                     ///< that its commands would take on a device of its own
  double flops = 0;                    ///< of products and functions of blocks
  double touched = 0;                  ///< bytes that its commands read and write
  int64_t shardBytes = 0;              ///< of its parameters, gradients and states
  std::vector<Traffic> sent, received; ///< by level of the cluster
};

/// What stands side by side in a picture of the step.
enum class Lane : int8_t { Compute = 0, Wait = 1, Messages = 2 };

/// Something that takes time on one rank.
struct Slice {
  Lane lane;
  int32_t what; ///< a command of the plan; of Wait and Messages, a start's number
  double begin, end;
  bool operator<(const Slice &other) const {
    return begin != other.begin ? begin < other.begin : lane < other.lane;
  }
};

/// Ranks with equal work and equal messages, and the steps of one of them: the last one to end.
struct Track {
  int64_t rank = 0;           ///< of the world
  std::vector<int64_t> ranks; ///< of the class
  std::vector<Slice> slices;  ///< by begin
};

/// Bytes under way on each level's links, in equal parts of the step.
struct Flight {
  double part = 0;                        ///< seconds
  std::vector<std::vector<double>> bytes; ///< by level and part: the mean
};

struct Result {
  double latency = 0;         ///< of the slowest rank
  std::vector<int64_t> world; ///< global ranks
  std::vector<RankResult> ranks;
  std::vector<std::string> levels;
  std::vector<std::vector<int64_t>> groupBytes; ///< by group and level: that all ranks send for it
  std::vector<plan::BytesByKind> groupKinds;    ///< by group: the same by what they are sent for
  // Filled if `kept` asks for them.
  std::vector<Track> tracks;
  int64_t classes = 0; ///< there may be more than tracks
  Flight flight;

  double idle(size_t rank) const { return latency - ranks[rank].compute; }
};

/// Fills `result` for a plan that plan::validate and plan::validateProgram accept. With `kept` tracks are
/// kept of so many classes at most. Returns what is wrong, or nothing: a rank waits for a message that
/// nobody sends.
std::string simulate(const plan::Plan &plan, const cost::Cluster &cluster, const Options &options,
                     int64_t kept, Result &result);

} // namespace stepc::simulate

#endif
