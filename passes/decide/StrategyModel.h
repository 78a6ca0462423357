//===- StrategyModel.h - What each strategy would cost ----------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_STRATEGYMODEL_H
#define STEPC_PASSES_DECIDE_STRATEGYMODEL_H

#include "passes/cost/Cluster.h"
#include "passes/decide/GroupGeometry.h"

namespace stepc::decide {

/// Seconds to compute one block as a whole.
double blockSeconds(optim::RuleOp rule, const optim::MatrixExtents &block,
                    const cost::Device &device);
/// Seconds that a rank needs for a group once, however many blocks it computes: launches, and the time that
/// threads lose at the ends of launches.
double chainSeconds(optim::RuleOp rule, const optim::MatrixExtents &block,
                    const cost::Device &device);

/// As blockSeconds and chainSeconds, for the slabs of a group with slabs. slabChainSeconds includes the
/// launches of sums over ranks.
double slabSeconds(optim::RuleOp rule, const plan::Group &group, const cost::Device &device);
double slabChainSeconds(optim::RuleOp rule, const plan::Group &group, const cost::Device &device);
/// `ofBlock`: the most ranks that have slabs of one block. `peers`: the most other ranks with which one rank
/// adds up sums.
struct SlabRanks {
  double ofBlock = 1, peers = 0;
};
SlabRanks slabRanks(const plan::Group &group, const plan::Mesh &mesh, const plan::Slabs &slabs,
                    plan::ShardsKind home);
/// Seconds of the sums over ranks, of norms and Gram matrices, for `blocks` blocks with slabs.
double summingSeconds(optim::RuleOp rule, const GroupGeometry &geometry, const plan::Slabs &slabs,
                      const SlabRanks &ranks, double blocks, const cost::Cluster &cluster);

/// The messages and elements that a rank sends or receives in one hop if it computes all blocks of a group.
/// They are averages over the ranks.
struct HopTravel {
  double peersThere = 0, peersBack = 0; ///< messages each way
  double there = 0, back = 0;           ///< elements
  double owners = 1; ///< ranks among which this hop and those before it choose owners
};
std::vector<HopTravel> hopTravel(const GroupGeometry &geometry, llvm::ArrayRef<plan::Hop> hops);

/// Per level of the cluster, the part of a rank's peers in a hop that it meets at this level
/// (cost::Cluster::meeting): on the way there and on the way back.
struct HopMeeting {
  std::vector<double> there, back;
};
/// On the way there, a rank receives from ranks with its own coordinates along axes that replicate the
/// shards. On the way back, results go to all ranks that take part in the hop.
std::vector<HopMeeting> hopMeetings(const plan::Group &group, plan::ShardsKind home,
                                    const plan::Mesh &mesh, llvm::ArrayRef<plan::Hop> hops,
                                    const cost::Cluster &cluster);

/// Whether a strategy is legal for a group, and the modelled time of the group's step with it.
struct Judgement {
  optim::StrategyAttrInterface strategy;
  std::string refusal; ///< why it is not legal; empty if it is: only then the fields below count
  std::string reason = {}; ///< for people: why it is a good choice for this group
  std::vector<plan::Hop> hops = {};
  plan::Slabs slabs = {};
  double seconds = 0; ///< computing, and travelling there and back
  double there = 0,
         back = 0;      ///< elements of blocks that the hops bring to the busiest rank, each way
  bool repeats = false; ///< some block is computed by several ranks
  bool isLegal() const { return refusal.empty(); }
};

/// Judges strategies by their hops and slabs, for the groups of a module that have a matrix space.
class StrategyModel {
public:
  explicit StrategyModel(mlir::ModuleOp module);

  /// Judges all known strategies, in the order of optim::strategies.
  std::vector<Judgement> judge(optim::GroupOp group, const GroupGeometry &geometry) const;
  /// The judgement of a strategy. Null if `judgements` does not have it.
  static const Judgement *find(llvm::ArrayRef<Judgement> judgements,
                               optim::StrategyAttrInterface strategy);
  /// The legal strategy with the fewest seconds. Null if no strategy is legal. A strategy that repeats work
  /// must be at least 10 % faster than the best strategy that does not. Among equal strategies the first is
  /// taken.
  static const Judgement *choose(llvm::ArrayRef<Judgement> judgements);
  /// Why `chosen` was chosen, by `choose` or by force, and not the strategy of `judgement`.
  static std::string whyNot(const Judgement &judgement, const Judgement &chosen, bool isForced);

private:
  /// Why a strategy is not allowed that rounds in another way than one rank does. Empty if it is allowed.
  std::string whyNotFast(const optim::StrategyQuery &query, optim::RuleOp rule,
                         optim::StrategyAttrInterface strategy) const;

  cost::Cluster cluster;
  int64_t maxPeers = 0; // the most peers in a hop that the module allows; 0: any number
  bool isFast;
  /// By the ranks of a mesh: the busiest rank's load divided by the mean load, if all blocks of matrix space
  /// are dealt out to owners.
  std::map<std::vector<int64_t>, double> unevenness;
  /// By the ranks of a mesh: the number of groups with a block of which several ranks hold elements.
  std::map<std::vector<int64_t>, int64_t> travelling;
  /// By the ranks of a mesh and by position: seconds of all groups whose blocks lie on one rank each, if
  /// every rank computes the blocks that it holds.
  std::map<std::vector<int64_t>, std::vector<double>> alone;
};

} // namespace stepc::decide

#endif
