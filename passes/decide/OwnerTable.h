//===- OwnerTable.h - Which blocks have which owners ------------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_OWNERTABLE_H
#define STEPC_PASSES_DECIDE_OWNERTABLE_H

#include "passes/cost/OwnerBalance.h"
#include "passes/decide/StrategyModel.h"

namespace stepc::decide {

/// Picoseconds that a block costs where it is computed: its work and its way there and back.
int64_t blockCost(optim::GroupOp group, const cost::Cluster &cluster);

/// The owners of a module's groups as the cost library sees them: blocks of equal cost that the same ranks may own are
/// of one kind, whatever their groups.
class OwnerTable {
public:
  explicit OwnerTable(const cost::Cluster &cluster) : cluster(cluster) {}

  /// A group whose blocks have no owners, or none that are to be chosen: its load is its ranks'. With bases they
  /// count for the ranks that compute them.
  void addFixed(optim::GroupOp group);
  /// A group whose blocks have these bases. Where several ranks compute what one base stands for, it is fixed.
  void add(optim::GroupOp group, const GroupGeometry &geometry, llvm::ArrayRef<int64_t> base);
  /// All groups that have hops, as they are decided.
  void addAll(mlir::ModuleOp module);

  /// The bases of a group's blocks by other counts than the ones they were added with: each block goes to the rank that
  /// holds most of it, of those that have not got theirs. In the order in which groups were added. Without an answer
  /// for groups that are fixed.
  std::vector<std::vector<int64_t>> basesBy(cost::OwnerCounts counts) const;

  cost::OwnerProblem problem;
  cost::OwnerCounts counts;

private:
  struct Owned {
    optim::GroupOp group;
    size_t kind;
    std::vector<int64_t> choices; ///< positions, as the kind's ranks; none of a fixed group
  };
  cost::Cluster cluster;
  std::map<std::pair<std::vector<int64_t>, int64_t>, size_t> kinds; // by ranks and cost
  std::vector<Owned> owned;
};

} // namespace stepc::decide

#endif
