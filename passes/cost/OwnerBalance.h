//===- OwnerBalance.h - Who computes which blocks ---------------*- C++ -*-===//
#ifndef STEPC_PASSES_COST_OWNERBALANCE_H
#define STEPC_PASSES_COST_OWNERBALANCE_H

#include "passes/cost/OwnerQueues.h"

namespace stepc::cost {

/// Blocks of equal cost, each of which one of some ranks computes.
struct BlockKind {
  std::vector<int64_t> ranks; ///< global ones, in any order; kinds of other meshes may share some
  int64_t cost, count;        ///< picoseconds of a block, and how many there are
};

/// All blocks whose owners are chosen together, and what ranks compute whoever owns these.
struct OwnerProblem {
  std::vector<BlockKind> kinds;
  Loads fixed;
};

/// How many blocks of each kind each of its ranks owns: [kind][index in its ranks].
using OwnerCounts = std::vector<std::vector<int64_t>>;

Loads loadsOf(const OwnerProblem &problem, const OwnerCounts &counts);
/// That of the busiest rank.
int64_t mostOf(const Loads &loads);

/// A load that the busiest rank cannot be below. It is the largest of these: the mean over the ranks of each
/// mesh, of a few meshes together and of all; the largest block; the k + 1 least of 1 + k · ranks largest
/// blocks, which meet on some rank; and what the ranks have anyway.
int64_t loadBound(const OwnerProblem &problem);

/// Longest processing time first: blocks in decreasing order of cost, each to the least loaded of its
/// ranks; of kinds with `ranksFirst`, those with fewer ranks to choose from before the others.
OwnerCounts longestFirst(const OwnerProblem &problem, bool ranksFirst = false);

/// The busiest of some ranks, and what it cannot be below. If both are equal, no counts have a lesser `most`.
struct Busiest {
  int64_t most = 0, bound = 0;
};

/// That of the ranks of a mesh, whose own bound counts what it alone computes.
struct MeshBalance : Busiest {
  std::vector<int64_t> ranks; ///< ascending
};

/// That of all ranks.
struct OwnerBalance : Busiest {
  OwnerCounts counts;
  std::vector<MeshBalance> meshes; ///< by their ranks
  bool isStart = true;             ///< nothing better than the start was found
};

/// The best of `start` and what a search finds. Meshes that share no rank are balanced each by itself. Meshes
/// that share ranks are balanced together, then each one as far as no rank becomes busier than its busiest
/// was. A search ends if the busiest rank is within 5 % of the bound. Deterministic, and bounded in its work.
OwnerBalance balanceOwners(const OwnerProblem &problem, OwnerCounts start);

/// How busy each mesh is with these owners, by the meshes' ranks.
std::vector<MeshBalance> meshBalances(const OwnerProblem &problem, const OwnerCounts &counts);

} // namespace stepc::cost

#endif
