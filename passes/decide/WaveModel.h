//===- WaveModel.h - What a division into waves costs -----------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_WAVEMODEL_H
#define STEPC_PASSES_DECIDE_WAVEMODEL_H

#include "passes/cost/ProductLaunches.h"
#include "passes/cost/SideBySide.h"
#include "passes/decide/HopRoutes.h"
#include "passes/decide/MatrixWork.h"
#include "passes/decide/StrategyModel.h"
#include "passes/decide/WavePipeline.h"

#include <limits>
#include <optional>
#include <set>

namespace stepc::decide {

/// Workspace per rank in bytes, and time of a step in seconds.
struct WaveCost {
  int64_t bytes = 0;
  double seconds = 0;
};

/// A wave's chains, each of the matrix operations of a group, are computed in turn or side by side. If they
/// are side by side, their products share launches.
struct WaveCosts {
  WaveCost inTurn;
  /// Nullopt if no launch can have products of several chains.
  std::optional<WaveCost> sideBySide;
};

/// The blocks of all groups whose waves are to be decided, and a model of what waves cost.
class WaveModel {
public:
  explicit WaveModel(const cost::Cluster &cluster) : cluster(cluster), launches(cluster.device) {}
  void add(optim::GroupOp group);
  /// Adds a group without waves. It runs while the first exchange travels.
  void addElementwise(optim::GroupOp group);

  /// Bytes of all reduced gradients on the rank that has most of each.
  int64_t reducedBytes() const { return reduced; }
  /// Whether gradients are reduced once, before the first wave is computed. Their sums are beside the
  /// workspace of waves.
  void keepReduced(bool keeps) { keepsReduced = keeps; }

  llvm::ArrayRef<optim::GroupOp> groups() const { return ops; }
  int64_t blocks() const { return int64_t(items.size()); }
  size_t groupOf(int64_t block) const { return items[block].group; }

  /// The wave of each block, with at most `count` waves. Each rank's bytes are divided evenly, in order, and
  /// no wave is empty.
  std::vector<int64_t> assign(int64_t count) const;
  WaveCosts cost(llvm::ArrayRef<int64_t> wavesOf);

private:
  /// A block, and the bytes that its computation takes. `rank` is the rank at the block's base. In a group
  /// with an empty list of hops it is the first rank that holds elements of the block. Otherwise it is -1.
  struct Item {
    size_t group;
    int64_t block, rank, bytes;
  };
  /// The memory for a group's blocks of one wave. Each number is for the rank that needs most.
  struct Need {
    size_t group = 0;
    int64_t blocks = 0; ///< that a rank computes
    /// Bytes that are sent and received in a hop that does not lead to whole blocks.
    int64_t between = 0;
    int64_t work = 0, scratch = 0;
    int64_t resting = 0; ///< bytes of slabs while their sums travel
  };
  /// Bytes of the buffers that the groups of a wave share, on one rank or on the one that needs most. All but
  /// `room` and `roomBack` are of groups with hops.
  struct Buffers {
    int64_t sent = 0, received = 0;         ///< messages on the way there
    int64_t sentBack = 0, receivedBack = 0; ///< messages on the way back
    /// Moves between shards with different placements: before matrix space, and after it.
    int64_t room = 0, roomBack = 0;
    int64_t reducing = 0; ///< contributions to gradients that are reduced before the first wave
    int64_t arrived = 0, prepared = 0, results = 0; ///< see ChainBytes
    int64_t reused = 0; ///< prepared values whose memory results may take

    template <typename Combine> void combine(const Buffers &other, Combine combine);
    void add(const Buffers &other);
    /// Makes each number at least the other's.
    void include(const Buffers &other);
  };
  struct Wave {
    std::vector<Need> needs; // per group with blocks
    Buffers buffers;
    int64_t there() const; // bytes of the exchange on the way there
    int64_t back() const;
  };
  /// Seconds to compute a block, and seconds per wave and group that do not depend on the number of blocks.
  struct Seconds {
    double block, chain;
    SlabRanks slabs = {};
  };

  /// The products of a block, if some work off lists of tiles.
  struct Listed {
    std::vector<cost::BlockProduct> shapes;
    cost::Chain chain;
  };

  /// Elements and blocks of a group in one wave, by the mesh's position that holds, computes or sends them.
  struct Counted {
    std::vector<int64_t> held;          ///< elements of its shards
    std::vector<int64_t> computed;      ///< blocks
    std::vector<int64_t> peers;         ///< other ranks, if the group has one hop
    std::vector<int64_t> sending;       ///< elements that it packs for itself and others
    std::vector<double> sent, received; ///< elements on the way there, if the group has one hop
    std::vector<double> back; ///< elements that owners send to all holders of their blocks
    HopRoutes::Loads passed;  ///< elements per hop, if the group has several hops
  };
  /// Groups, and how many blocks of each are computed at the same place.
  using Computed = std::vector<std::pair<size_t, int64_t>>;
  /// By rank and round; of groups that are whole on their ranks, by rank and kLocal.
  using ComputedAt = std::map<std::pair<size_t, size_t>, Computed>;
  static constexpr size_t kLocal = std::numeric_limits<size_t>::max();
  /// An exchange of a group, on the way to its matrix space or on the way back.
  struct Leg {
    struct Travel {
      double messages = 0, bytes = 0;
    };
    bool back;
    const std::vector<double> *meeting; ///< at which levels its ranks meet (Cluster::meeting)
    std::vector<Travel> travels;        ///< by position
  };

  /// Bytes of memory that stages over shards read and write per element of the shards: before matrix space
  /// (in) and after it (out).
  struct Touched {
    double in = 0, out = 0;
  };
  static Touched touched(const plan::Group &group, optim::RuleOp rule, int64_t travelling);
  size_t numberOf(int64_t rank);
  void list(const MatrixWork &work);

  Counted count(size_t group, llvm::ArrayRef<int64_t> blocks) const;
  /// A group's exchanges in order, for the share `part` of its blocks. Sets `staged` to the number of
  /// exchanges before its first stage, and `reached` to the number before its matrix space.
  std::vector<Leg> legs(size_t group, double part, const Counted &counted, size_t &staged,
                        size_t &reached) const;
  void addLoads(size_t group, double part, const Counted &counted, WaveLoads &loads,
                ComputedAt &computed) const;
  /// Adds the group's buffers to those of all groups of the wave, by rank.
  Need need(size_t group, llvm::ArrayRef<int64_t> blocks, WaveLoads &loads, ComputedAt &computed,
            std::vector<Buffers> &buffers) const;
  /// Adds the launches of products that work off lists of tiles. `exchanges`: whether any group travels.
  void addLaunches(const ComputedAt &computed, bool exchanges, bool severalWaves, WaveLoads &loads);
  WaveLoads::Launches launchesOf(const Computed &computed, bool besideMessages);
  /// `sideBySide`: whether all chains of a wave are computed at the same time.
  int64_t workspace(llvm::ArrayRef<Wave> waves, bool sideBySide) const;
  /// The most bytes while a wave's groups with hops, or its other groups, are computed.
  int64_t whileComputed(const Wave &wave, bool withHops, bool sideBySide) const;

  cost::Cluster cluster;
  llvm::SmallVector<optim::GroupOp> ops;
  std::vector<Item> items;
  int64_t reduced = 0;
  bool keepsReduced = false;
  std::vector<GroupGeometry> geometries;
  std::vector<std::vector<int64_t>> bases; // per group and block; empty if no hop has owners
  std::vector<std::map<int64_t, std::vector<int64_t>>> computing; // per group and base: positions
  std::vector<std::vector<Team>> together;                        // per group
  std::vector<HopRoutes> routes;                                  // per group
  std::vector<std::vector<size_t>> numbers;    // per group and position: the rank's number
  std::map<int64_t, size_t> numberByRank;      // dense, of all groups' ranks
  std::vector<double> fill;                    // seconds of elementwise groups, by rank's number
  size_t mostHops = 0, mostRounds = 2;         // at least 2: local groups are computed in round 1
  std::vector<std::vector<double>> meetings;   // per group, of all ranks of its mesh
  std::vector<std::vector<HopTravel>> travels; // per group and hop
  std::vector<std::vector<HopMeeting>> met;    // per group and hop
  std::vector<std::vector<ListMove>> lists;    // per group
  // `shares`: per group, whether a hop replicates, so that several ranks receive equal bytes. `sharings`: the
  // mesh and the replicated factors of each group with hops, each once. If there are several, a rank sends
  // from a separate copy for each peer, and these copies are as large as the whole blocks that arrive.
  std::vector<bool> shares;
  std::vector<bool> chooses; // per group, whether a hop chooses (plan::chooses)
  std::set<std::pair<std::string, std::vector<int64_t>>> sharings;
  std::vector<BlockBytes> bytesOf;   // per group
  std::vector<ChainBytes> chains;    // per group
  std::vector<Touched> stages;       // per group
  std::vector<Seconds> seconds;      // per group
  std::map<int64_t, int64_t> totals; // bytes per rank
  std::vector<Listed> listed;        // per group
  cost::ProductLaunches launches;
  std::map<std::pair<bool, Computed>, WaveLoads::Launches> knownLaunches;
  std::map<cost::LaunchForm, int64_t> forms;
};

} // namespace stepc::decide

#endif
