//===- OwnerBalance.h - Who computes which blocks ---------------*- C++ -*-===//
#ifndef STEPC_PASSES_COST_OWNERBALANCE_H
#define STEPC_PASSES_COST_OWNERBALANCE_H

#include "passes/cost/OwnerQueues.h"

namespace stepc::cost {

/// Blocks of equal cost. Each block is computed by one of `ranks`.
struct BlockKind {
  std::vector<int64_t> ranks; ///< global ranks, in any order; kinds of other meshes may share some
  int64_t cost, count;        ///< picoseconds of one block, and the number of blocks
};

/// All blocks whose owners are chosen together, and the fixed load of each rank, in picoseconds.
struct OwnerProblem {
  std::vector<BlockKind> kinds;
  Loads fixed;
};

/// How many blocks of each kind a rank owns: [kind][index in the kind's ranks].
using OwnerCounts = std::vector<std::vector<int64_t>>;

/// The load of each rank: its fixed load and the blocks that it owns.
Loads loadsOf(const OwnerProblem &problem, const OwnerCounts &counts);
/// The load of the busiest rank.
int64_t mostOf(const Loads &loads);

/// A load that the busiest rank cannot be below. It is the largest of: the mean load over the ranks of each
/// mesh, of a few meshes together and of all; the largest block; for each k the k + 1 smallest of the k ·
/// ranks + 1 largest blocks, because some rank owns k + 1 of these; and the fixed loads.
int64_t loadBound(const OwnerProblem &problem);

/// Longest processing time first: blocks in decreasing order of cost, each to the least loaded of its kind's
/// ranks. With `ranksFirst`, kinds with fewer ranks come first, and only kinds with equally many by cost.
OwnerCounts longestFirst(const OwnerProblem &problem, bool ranksFirst = false);

/// The load of the busiest of some ranks, and a bound that it cannot be below. If both are equal, no choice
/// of owners makes `most` smaller.
struct Busiest {
  int64_t most = 0, bound = 0;
};

/// The load of a mesh's busiest rank, and a bound that it cannot be below. The bound counts only blocks that
/// no rank outside of the mesh may own.
struct MeshBalance : Busiest {
  std::vector<int64_t> ranks; ///< ascending
};

/// The busiest of all ranks, and the owners that make it so.
struct OwnerBalance : Busiest {
  OwnerCounts counts;
  std::vector<MeshBalance> meshes; ///< sorted by their ranks
  bool isStart = true;             ///< whether `counts` are those of the start
};

/// The better of `start` and of the owners that a search finds. Meshes that share no rank are balanced each
/// by itself. Meshes that share ranks are balanced together. Then each is balanced as long as no rank becomes
/// busier than the mesh's busiest rank was. A search ends if the busiest rank is within 5 % of the bound. The
/// result is deterministic, and the work of searches is bounded.
OwnerBalance balanceOwners(const OwnerProblem &problem, OwnerCounts start);

/// How busy each mesh is with these owners, sorted by the ranks of the meshes.
std::vector<MeshBalance> meshBalances(const OwnerProblem &problem, const OwnerCounts &counts);

} // namespace stepc::cost

#endif
