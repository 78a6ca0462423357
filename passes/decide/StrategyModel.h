//===- StrategyModel.h - What each strategy would cost ----------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_STRATEGYMODEL_H
#define STEPC_PASSES_DECIDE_STRATEGYMODEL_H

#include "passes/cost/Cluster.h"
#include "passes/decide/GroupGeometry.h"

namespace stepc::decide {

/// Seconds to compute one block as a whole.
double blockSeconds(optim::RuleOp rule, int64_t rows, int64_t cols, const cost::Device &device);
/// Seconds that a group's blocks take on a rank once, however many there are: launches, and what threads lose
/// at their ends.
double chainSeconds(optim::RuleOp rule, int64_t rows, int64_t cols, const cost::Device &device);

/// Seconds for one slab of a group with slabs, and for the chain of its slabs, with launches of sums.
double slabSeconds(optim::RuleOp rule, const plan::Group &group, const cost::Device &device);
double slabChainSeconds(optim::RuleOp rule, const plan::Group &group, const cost::Device &device);
/// How many ranks have slabs of one block, and the most other ranks with which a rank adds up sums.
struct SlabRanks {
  double ofBlock = 1, peers = 0;
};
SlabRanks slabRanks(const plan::Group &group, const plan::Mesh &mesh, const plan::Slabs &slabs,
                    plan::ShardsKind home);
/// Seconds of the sums over ranks for `blocks` blocks in slabs: of norms and Gram matrices.
double summingSeconds(optim::RuleOp rule, const GroupGeometry &geometry, const plan::Slabs &slabs,
                      const SlabRanks &ranks, double blocks, const cost::Cluster &cluster);

/// The messages and elements that a rank sends or receives in one hop if it computes all blocks of a group.
/// They are averages over the ranks.
struct HopTravel {
  double peersThere = 0, peersBack = 0; ///< messages each way
  double there = 0, back = 0;           ///< elements
  double owners = 1;                    ///< ranks among which owners are chosen by now
};
std::vector<HopTravel> hopTravel(const GroupGeometry &geometry, llvm::ArrayRef<plan::Hop> hops);

/// The level at which the ranks that exchange in a hop meet, on the average (cost::Cluster::meeting): each
/// way.
struct HopMeeting {
  std::vector<double> there, back;
};
/// On the way there, what comes to a rank comes from its own coordinates along the axes that replicate it. On
/// the way back it goes to all that take part in the hop.
std::vector<HopMeeting> hopMeetings(const plan::Group &group, plan::ShardsKind home,
                                    const plan::Mesh &mesh, llvm::ArrayRef<plan::Hop> hops,
                                    const cost::Cluster &cluster);

/// Whether a strategy is legal for a group, and what a step of the group takes with it.
struct Judgement {
  optim::StrategyAttrInterface strategy;
  std::string refusal;     ///< why it is not legal, or empty: then the rest holds
  std::string reason = {}; ///< for people: why it is a good choice there
  std::vector<plan::Hop> hops = {};
  plan::Slabs slabs = {};
  double seconds = 0;   ///< computing, and travelling there and back
  bool repeats = false; ///< some block is computed by several ranks
  bool isLegal() const { return refusal.empty(); }
};

/// Judges strategies, only by their hops, for the groups of a module that have a matrix space.
class StrategyModel {
public:
  explicit StrategyModel(mlir::ModuleOp module);

  /// Judges all known strategies, in their order.
  std::vector<Judgement> judge(optim::GroupOp group, const GroupGeometry &geometry) const;
  /// The judgement of a strategy, or null.
  static const Judgement *find(llvm::ArrayRef<Judgement> judgements,
                               optim::StrategyAttrInterface strategy);
  /// The legal strategy that takes the fewest seconds, or null. A strategy that repeats work must be at least
  /// 10 % faster than the best of the others. Among equal ones the first is taken.
  static const Judgement *choose(llvm::ArrayRef<Judgement> judgements);
  /// Why another strategy was chosen, by `choose` or by force.
  static std::string whyNot(const Judgement &judgement, const Judgement &chosen, bool isForced);

private:
  /// Why a strategy that rounds otherwise is not allowed; empty if it is.
  std::string whyNotFast(const optim::StrategyQuery &query, optim::RuleOp rule,
                         optim::StrategyAttrInterface strategy) const;

  cost::Cluster cluster;
  int64_t maxPeers = 0; // that the module allows in a hop; 0: any number
  bool isFast;
  /// By the ranks of a mesh: how much longer than the even share the busiest rank computes, when all blocks
  /// that may have owners are dealt out.
  std::map<std::vector<int64_t>, double> unevenness;
  /// By the ranks of a mesh: the number of groups with blocks that are not on one rank alone.
  std::map<std::vector<int64_t>, int64_t> travelling;
  /// By the ranks of a mesh and by position: seconds of the other groups, if they are computed where they
  /// are.
  std::map<std::vector<int64_t>, std::vector<double>> alone;
};

} // namespace stepc::decide

#endif
