//===- StrategyModel.h - What each strategy would cost ----------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_STRATEGYMODEL_H
#define STEPC_PASSES_DECIDE_STRATEGYMODEL_H

#include "passes/cost/Cluster.h"
#include "passes/decide/GroupGeometry.h"

#include <array>

namespace stepc::decide {

/// The module's `optim.cluster`; what it leaves out, or all, is the built-in profile's.
cost::Cluster clusterOf(mlir::ModuleOp module);

/// Seconds to compute one block where it is whole.
double blockSeconds(optim::RuleOp rule, int64_t rows, int64_t cols, const cost::Device &device);

/// Whether a strategy is legal for a group, and what a step of the group takes with it.
struct Judgement {
  std::string refusal;  ///< why it is not legal, or empty
  double seconds = 0;   ///< computing, and travelling there and back
  bool repeats = false; ///< some block is computed by several ranks
  bool isLegal() const { return refusal.empty(); }
};

/// Those of all strategies, by their numbers.
struct Judgements : std::array<Judgement, 4> {
  using std::array<Judgement, 4>::operator[];
  Judgement &operator[](optim::Strategy strategy) { return (*this)[size_t(strategy)]; }
  const Judgement &operator[](optim::Strategy strategy) const { return (*this)[size_t(strategy)]; }
};

/// Judges strategies for the groups of a module that have a matrix space.
class StrategyModel {
public:
  explicit StrategyModel(mlir::ModuleOp module);

  Judgements judge(optim::GroupOp group, const GroupGeometry &geometry) const;
  /// The legal strategy that takes the fewest seconds. One that repeats work must save a tenth
  /// of what the best of the others takes; of equal ones the simplest is taken.
  static optim::Strategy choose(const Judgements &judgements);

private:
  cost::Cluster cluster;
  /// Per ranks of a mesh: how much longer than the even share the busiest rank computes when all
  /// blocks that may have owners are dealt out.
  std::map<std::vector<int64_t>, double> unevenness;
};

} // namespace stepc::decide

#endif
