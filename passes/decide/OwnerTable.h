//===- OwnerTable.h - Which blocks have which owners ------------*- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_OWNERTABLE_H
#define STEPC_PASSES_DECIDE_OWNERTABLE_H

#include "passes/cost/OwnerBalance.h"
#include "passes/decide/StrategyModel.h"

#include <functional>

namespace stepc::decide {

/// Picoseconds that a block costs where it is computed: its work and its way there and back.
int64_t blockCost(optim::GroupOp group, const cost::Cluster &cluster);

/// The owners of a module's groups in the form that passes/cost works on (OwnerProblem). Blocks of equal cost
/// that the same ranks may own are of one kind, whatever their groups.
class OwnerTable {
public:
  explicit OwnerTable(const cost::Cluster &cluster)
      : costOf([cluster](optim::GroupOp group) { return blockCost(group, cluster); }) {}
  /// With another cost of a group's blocks than the time that each takes.
  explicit OwnerTable(std::function<int64_t(optim::GroupOp)> costOf) : costOf(std::move(costOf)) {}

  /// Adds a group whose blocks have no owners, or have owners that must not change. Its load is fixed: each
  /// rank keeps the blocks that it computes by the group's hops and bases.
  void addFixed(optim::GroupOp group);
  /// Adds a group whose blocks have the bases `base`. If several ranks compute the blocks of one base, the
  /// group's load is fixed.
  void add(optim::GroupOp group, const GroupGeometry &geometry, llvm::ArrayRef<int64_t> base);
  /// Adds all groups that have hops, with the bases that they have in the module.
  void addAll(mlir::ModuleOp module);

  /// The bases of blocks that give ranks the numbers of blocks in `counts`: a list for each group of `add`,
  /// in the order of the calls. Each block goes to the rank that holds most of it, among ranks that have not
  /// yet got their count. The list of a fixed group is empty.
  std::vector<std::vector<int64_t>> basesBy(cost::OwnerCounts counts) const;

  cost::OwnerProblem problem;
  cost::OwnerCounts counts;

private:
  struct Owned {
    optim::GroupOp group;
    size_t kind;
    std::vector<int64_t>
        choices; ///< positions, in the order of the kind's ranks; empty for a fixed group
  };
  std::function<int64_t(optim::GroupOp)> costOf;
  std::map<std::pair<std::vector<int64_t>, int64_t>, size_t> kinds; // by ranks and cost
  std::vector<Owned> owned;
};

} // namespace stepc::decide

#endif
