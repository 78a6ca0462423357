//===- Simulate.h - A step of all ranks, on paper ---------------*- C++ -*-===//
//
// Walks the commands of a plan on all ranks at once, over a cluster. Finds when each command begins and ends,
// when messages travel, and who waits for whom. Tables and messages come from plan::Expander, as in the
// runtime. Durations come from passes/cost. docs/simulate.md has the formulas.
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
  /// Global ranks g with equal g / ranksPerMachine share `devices` devices of the cluster. At most one of
  /// them works for a rank at a time.
  int64_t ranksPerMachine = 1;
  double devices = 1;
};

struct Traffic {
  int64_t messages = 0, bytes = 0;
  bool operator==(const Traffic &) const = default;
};

/// A rank's step. Times are in seconds since the step began.
struct RankResult {
  double end = 0;                      ///< when its last command is done
  double compute = 0;                  ///< time with commands under way
  double exposed = 0;                  ///< time in which its commands wait for messages
  double work = 0;                     ///< time that its commands would take on a device of its own
  double products = 0;                 ///< of `work`, that of products
  int64_t productLaunches = 0;         ///< launches of products
  double flops = 0;                    ///< that products and functions of blocks execute
  double fullFlops = 0;                ///< the same if symmetric results were whole
  double touched = 0;                  ///< bytes that its commands read and write
  int64_t shardBytes = 0;              ///< of its parameters, gradients and states
  std::vector<Traffic> sent, received; ///< by level of the cluster
};

/// The lanes of a track, which a picture of the step draws side by side.
enum class Lane : int8_t { Compute = 0, Wait = 1, Messages = 2 };

/// Something that takes time on one rank.
struct Slice {
  Lane lane;
  int32_t what; ///< number of the command in the plan; of the start for Wait and Messages
  double begin, end;
  bool operator<(const Slice &other) const {
    return begin != other.begin ? begin < other.begin : lane < other.lane;
  }
};

/// A class of ranks with equal work and equal messages, and the step of its last rank to end.
struct Track {
  int64_t rank = 0;           ///< world rank that is shown
  std::vector<int64_t> ranks; ///< world ranks of the class
  std::vector<Slice> slices;  ///< sorted by begin
};

/// Bytes under way on each level's links, in equal parts of the step.
struct Flight {
  double part = 0;                        ///< seconds
  std::vector<std::vector<double>> bytes; ///< mean, by level and part
};

struct Result {
  double latency = 0;         ///< seconds of the slowest rank's step
  std::vector<int64_t> world; ///< global ranks
  std::vector<RankResult> ranks;
  std::vector<std::string> levels;
  std::vector<std::vector<int64_t>> groupBytes; ///< bytes that all ranks send, by group and level
  std::vector<plan::BytesByKind> groupKinds;    ///< bytes that all ranks send, by group and purpose
  // Filled if `kept` is not 0.
  std::vector<Track> tracks;
  int64_t classes = 0; ///< there may be more than tracks
  Flight flight;

  double idle(size_t rank) const { return latency - ranks[rank].compute; }
};

/// Fills `result` for a plan that plan::validate and plan::validateProgram accept. Keeps tracks of at most
/// `kept` classes. Returns what is wrong; empty if nothing is. A rank may wait for a message that nobody
/// sends.
std::string simulate(const plan::Plan &plan, const cost::Cluster &cluster, const Options &options,
                     int64_t kept, Result &result);

} // namespace stepc::simulate

#endif
