//===- WaveModel.h - What a division into waves costs -----------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_WAVEMODEL_H
#define STEPC_PASSES_DECIDE_WAVEMODEL_H

#include "passes/decide/HopRoutes.h"
#include "passes/decide/StrategyModel.h"
#include "passes/decide/WavePipeline.h"

#include <set>

namespace stepc::decide {

/// Workspace per rank in bytes, and time of a step in seconds.
struct WaveCost {
  int64_t bytes = 0;
  double seconds = 0;
};

/// The blocks of all groups whose waves are to be decided, and a model of what waves cost.
class WaveModel {
public:
  explicit WaveModel(const cost::Cluster &cluster) : cluster(cluster) {}
  void add(optim::GroupOp group);
  /// A group without waves, which runs while the first exchange travels.
  void addElementwise(optim::GroupOp group);

  llvm::ArrayRef<optim::GroupOp> groups() const { return ops; }
  int64_t blocks() const { return int64_t(items.size()); }
  size_t groupOf(int64_t block) const { return items[block].group; }

  /// The wave of each block, with at most `count` waves. Each rank's bytes are divided evenly, in order, and
  /// no wave is empty.
  std::vector<int64_t> assign(int64_t count) const;
  WaveCost cost(llvm::ArrayRef<int64_t> wavesOf) const;

private:
  /// A block and the bytes that computing it takes, on the rank that stands for it: its base, its first
  /// holder, or -1 for all ranks.
  struct Item {
    size_t group;
    int64_t block, rank, bytes;
  };
  /// The memory for a group's blocks of one wave. Each number is that of the rank that needs most.
  struct Need {
    int64_t held = 0;  ///< bytes of shards that travel: what is sent there and received back
    int64_t whole = 0; ///< bytes of whole blocks: what is received there and sent back
    int64_t work = 0, scratch = 0;
    int64_t resting = 0; ///< bytes of slabs while their sums travel
    int64_t room = 0; ///< bytes for what moves between shards that stand apart
  };
  struct Wave {
    std::vector<Need> needs; // per group with blocks
    int64_t travel = 0;      // bytes, one way and the other
    int64_t resting = 0;     // bytes of slabs
    int64_t between = 0;     // bytes that are sent and received in a hop that does not lead to whole blocks
    int64_t whole = 0;       // bytes of blocks that a rank computes and sends back, at most
  };
  /// Seconds to compute a block, and seconds per wave and group, however many blocks these have.
  struct Seconds {
    double block, chain;
    SlabRanks slabs = {};
  };

  /// What each position of a group does with some of its blocks.
  struct Counted {
    std::vector<int64_t> held;     ///< elements of its shards
    std::vector<int64_t> computed; ///< blocks
    std::vector<int64_t> peers;    ///< by one hop
    std::vector<double> sent, received; ///< elements there, by one hop
    HopRoutes::Loads passed;            ///< by several hops
  };
  /// An exchange of a group, there or back from its matrix space.
  struct Leg {
    struct Travel {
      double messages = 0, bytes = 0;
    };
    bool back;
    const std::vector<double> *meeting; ///< where its ranks meet
    std::vector<Travel> travels;        ///< by position
  };

  /// Bytes of memory that stages over the shards touch, by element held: before the matrix space, and after.
  struct Touched {
    double in = 0, out = 0;
  };
  static Touched touched(const plan::Group &group, optim::RuleOp rule, int64_t travelling);
  size_t numberOf(int64_t rank);

  Counted count(size_t group, llvm::ArrayRef<int64_t> blocks) const;
  /// A group's exchanges in their order, for the part `part` of its blocks. `staged` of them come before its
  /// first stage, and `reached` before its matrix space.
  std::vector<Leg> legs(size_t group, double part, const Counted &counted, size_t &staged,
                        size_t &reached) const;
  void addLoads(size_t group, double part, const Counted &counted, WaveLoads &loads) const;
  Need need(size_t group, llvm::ArrayRef<int64_t> blocks, WaveLoads &loads) const;
  int64_t workspace(llvm::ArrayRef<Wave> waves) const;

  cost::Cluster cluster;
  llvm::SmallVector<optim::GroupOp> ops;
  std::vector<Item> items;
  std::vector<GroupGeometry> geometries;
  std::vector<std::vector<int64_t>> bases; // per group and block, where hops own factors
  std::vector<std::map<int64_t, std::vector<int64_t>>> computing; // per group and base: positions
  std::vector<std::vector<Team>> together;  // per group
  std::vector<HopRoutes> routes;            // per group
  std::vector<std::vector<size_t>> numbers; // per group and position: the rank's number
  std::map<int64_t, size_t> numberByRank;   // dense, of all groups' ranks
  std::vector<double> fill;                 // seconds of elementwise groups, by rank's number
  size_t mostHops = 0, mostRounds = 2; // blocks that are whole have their place in the second
  std::vector<std::vector<double>> meetings;   // per group, of all ranks of its mesh
  std::vector<std::vector<HopTravel>> travels; // per group and hop
  std::vector<std::vector<HopMeeting>> met;    // likewise
  std::vector<std::vector<ListMove>> lists;    // per group
  // Per group, whether ranks share copies of what hops bring; `sharings` are the factors and meshes along
  // which any do. If groups share along different ones, values are sent from a copy for each peer, in all as
  // large as what arrives.
  std::vector<bool> shares;
  std::vector<bool> chooses; // per group, whether a hop chooses
  std::set<std::pair<std::string, std::vector<int64_t>>> sharings;
  std::vector<BlockBytes> bytesOf;   // per group
  std::vector<Touched> stages;       // per group
  std::vector<Seconds> seconds;      // per group
  std::map<int64_t, int64_t> totals; // bytes per rank
};

} // namespace stepc::decide

#endif
