//===- OwnerTable.h - Which blocks have which owners ------------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_OWNERTABLE_H
#define STEPC_PASSES_DECIDE_OWNERTABLE_H

#include "passes/cost/OwnerBalance.h"
#include "passes/decide/StrategyModel.h"

namespace stepc::decide {

/// Picoseconds that a block costs where it is computed: its work and its way there and back.
int64_t blockCost(optim::GroupOp group, const cost::Cluster &cluster);

/// The owners of a module's groups as the cost library sees them. Blocks of equal cost that the same ranks
/// may own are of one kind, whatever their groups.
class OwnerTable {
public:
  explicit OwnerTable(const cost::Cluster &cluster) : cluster(cluster) {}

  /// Adds a group whose blocks have no owners, or none to be chosen: its load stays with its ranks. Bases, if
  /// there are any, say which ranks compute.
  void addFixed(optim::GroupOp group);
  /// Adds a group whose blocks have these bases. If several ranks compute the blocks of one base, the group
  /// is fixed.
  void add(optim::GroupOp group, const GroupGeometry &geometry, llvm::ArrayRef<int64_t> base);
  /// Adds all groups that have hops, as they are decided.
  void addAll(mlir::ModuleOp module);

  /// The bases of the groups' blocks by new counts, in the order in which groups were added. Each block goes
  /// to the rank that holds most of it, among those that have not got their count. Empty for groups that are
  /// fixed.
  std::vector<std::vector<int64_t>> basesBy(cost::OwnerCounts counts) const;

  cost::OwnerProblem problem;
  cost::OwnerCounts counts;

private:
  struct Owned {
    optim::GroupOp group;
    size_t kind;
    std::vector<int64_t> choices; ///< positions, as the kind's ranks; empty for a fixed group
  };
  cost::Cluster cluster;
  std::map<std::pair<std::vector<int64_t>, int64_t>, size_t> kinds; // by ranks and cost
  std::vector<Owned> owned;
};

} // namespace stepc::decide

#endif
