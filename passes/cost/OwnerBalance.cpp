//===- OwnerBalance.cpp - Who computes which blocks ------------------------===//
//
// Longest processing time first may be a third above the best if ranks own few blocks each. The search then
// splits the blocks of the busiest rank and of another rank anew, until the busiest rank is within 5 % of the
// bound.
//
//===----------------------------------------------------------------------===//

#include "passes/cost/OwnerBalance.h"

#include "dialects/optim/Saturate.h"
#include "passes/cost/OwnerSearch.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

namespace stepc::cost {

Loads loadsOf(const OwnerProblem &problem, const OwnerCounts &counts) {
  Loads loads = problem.fixed;
  for (size_t kind = 0; kind < problem.kinds.size(); ++kind) {
    const BlockKind &blocks = problem.kinds[kind];
    for (size_t i = 0; i < blocks.ranks.size(); ++i) {
      int64_t &load = loads[blocks.ranks[i]];
      load = saturatingAdd(load, saturatingMul(counts[kind][i], blocks.cost));
    }
  }
  return loads;
}

int64_t mostOf(const Loads &loads) {
  int64_t most = 0;
  for (auto [rank, load] : loads)
    most = std::max(most, load);
  return most;
}

OwnerCounts longestFirst(const OwnerProblem &problem, bool ranksFirst) {
  OwnerCounts counts;
  for (const BlockKind &kind : problem.kinds)
    counts.emplace_back(kind.ranks.size(), 0);
  std::vector<size_t> order(problem.kinds.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    auto key = [&](size_t kind) {
      const BlockKind &blocks = problem.kinds[kind];
      return std::tuple(ranksFirst ? blocks.ranks.size() : 0, -blocks.cost, kind);
    };
    return key(a) < key(b);
  });
  Loads loads = problem.fixed;
  std::vector<std::vector<int64_t>> held;
  std::optional<OwnerQueues> queues;
  const std::vector<int64_t> *ranks = nullptr; // the ranks of `queues`
  for (size_t kind : order) {
    const BlockKind &blocks = problem.kinds[kind];
    if (!ranks || *ranks != blocks.ranks) {
      ranks = &blocks.ranks;
      held.assign(ranks->size(), {0});
      queues.emplace(*ranks, held, loads);
    }
    for (int64_t block = 0; block < blocks.count; ++block)
      ++counts[kind][static_cast<size_t>(queues->give(0, blocks.cost))];
  }
  return counts;
}

//===----------------------------------------------------------------------===//
// The bound
//===----------------------------------------------------------------------===//

namespace {

/// The blocks that only some given ranks can compute, and the fixed load of these ranks.
struct Share {
  int64_t width;                                   ///< how many ranks
  std::vector<std::pair<int64_t, int64_t>> blocks; ///< cost and count, in decreasing order
  std::vector<int64_t> fixed;                      ///< the fixed load of each rank
};

Share shareOf(const OwnerProblem &problem, const std::set<int64_t> &ranks) {
  Share share{static_cast<int64_t>(ranks.size()), {}, {}};
  for (int64_t rank : ranks) {
    auto found = problem.fixed.find(rank);
    share.fixed.push_back(found == problem.fixed.end() ? 0 : found->second);
  }
  for (const BlockKind &kind : problem.kinds)
    if (kind.count > 0 && kind.ranks.size() <= ranks.size() &&
        std::all_of(kind.ranks.begin(), kind.ranks.end(),
                    [&](int64_t rank) { return ranks.count(rank) > 0; }))
      share.blocks.emplace_back(kind.cost, kind.count);
  std::sort(share.blocks.rbegin(), share.blocks.rend());
  return share;
}

int64_t boundOf(const Share &share) {
  int64_t least = *std::min_element(share.fixed.begin(), share.fixed.end());
  int64_t bound = *std::max_element(share.fixed.begin(), share.fixed.end()), count = 0;
  double sum = std::accumulate(share.fixed.begin(), share.fixed.end(), 0.0);
  for (auto [cost, times] : share.blocks) {
    count += times;
    sum += static_cast<double>(cost) * static_cast<double>(times);
  }
  double mean = sum / static_cast<double>(share.width);
  bound = std::max(bound, static_cast<int64_t>(std::min(mean, 9e18)));
  // Some rank has at least k + 1 of the k · width + 1 largest blocks. They cost at least as much as the
  // k + 1 smallest blocks among these.
  for (int64_t more = 0; more * share.width < count; ++more) {
    int64_t skipped = more * share.width + 1 - (more + 1), left = more + 1, together = least;
    for (auto [cost, times] : share.blocks) {
      int64_t skip = std::min(skipped, times), take = std::min(left, times - skip);
      skipped -= skip;
      left -= take;
      together = saturatingAdd(together, saturatingMul(take, cost));
    }
    bound = std::max(bound, together);
  }
  return bound;
}

} // namespace

int64_t loadBound(const OwnerProblem &problem) {
  constexpr size_t kMostUnions = 64;
  std::set<std::set<int64_t>> meshes, unions{{}};
  std::set<int64_t> all;
  for (const BlockKind &kind : problem.kinds) {
    meshes.emplace(kind.ranks.begin(), kind.ranks.end());
    all.insert(kind.ranks.begin(), kind.ranks.end());
  }
  // Looks at all unions of meshes if there are few. Otherwise it looks at some unions, at each mesh, and at
  // all ranks together.
  for (const std::set<int64_t> &mesh : meshes)
    if (std::set<std::set<int64_t>> before = unions; before.size() <= kMostUnions / 2)
      for (std::set<int64_t> ranks : before) {
        ranks.insert(mesh.begin(), mesh.end());
        unions.insert(std::move(ranks));
      }
  unions.insert(meshes.begin(), meshes.end());
  unions.insert(all);
  int64_t bound = 0;
  for (const std::set<int64_t> &ranks : unions)
    if (!ranks.empty())
      bound = std::max(bound, boundOf(shareOf(problem, ranks)));
  return bound;
}

//===----------------------------------------------------------------------===//
// Parts and meshes
//===----------------------------------------------------------------------===//

namespace {

/// The sorted ranks of each mesh, each mesh once.
std::set<std::vector<int64_t>> meshesOf(const OwnerProblem &problem) {
  std::set<std::vector<int64_t>> meshes;
  for (const BlockKind &kind : problem.kinds) {
    std::vector<int64_t> ranks = kind.ranks;
    std::sort(ranks.begin(), ranks.end());
    if (!ranks.empty())
      meshes.insert(std::move(ranks));
  }
  return meshes;
}

/// Divides the kinds into parts that share no rank. Owners that are chosen in one part do not change the
/// loads of other parts.
std::vector<std::vector<size_t>> partsOf(const OwnerProblem &problem) {
  std::map<int64_t, int64_t> parent;
  auto rootOf = [&](int64_t rank) {
    while (parent.try_emplace(rank, rank).first->second != rank)
      rank = parent[rank] = parent[parent[rank]];
    return rank;
  };
  for (const BlockKind &kind : problem.kinds)
    for (int64_t rank : kind.ranks)
      parent[rootOf(rank)] = rootOf(kind.ranks.front());
  std::map<int64_t, size_t> numbers;
  std::vector<std::vector<size_t>> parts;
  for (size_t kind = 0; kind < problem.kinds.size(); ++kind) {
    if (problem.kinds[kind].ranks.empty())
      continue;
    auto [found, isNew] =
        numbers.try_emplace(rootOf(problem.kinds[kind].ranks.front()), parts.size());
    if (isNew)
      parts.emplace_back();
    parts[found->second].push_back(kind);
  }
  return parts;
}

/// The problem of some of the kinds, with the fixed loads of their ranks.
OwnerProblem partOf(const OwnerProblem &problem, const std::vector<size_t> &kinds) {
  OwnerProblem part;
  for (size_t kind : kinds) {
    part.kinds.push_back(problem.kinds[kind]);
    for (int64_t rank : problem.kinds[kind].ranks)
      if (auto found = problem.fixed.find(rank); found != problem.fixed.end())
        part.fixed.insert(*found);
  }
  return part;
}

/// A search ends at this load of the busiest rank: 5 % above the bound.
int64_t enoughFor(int64_t bound) { return saturatingAdd(bound, bound / 20); }

/// Makes the busiest rank of a part less busy, if a search can. The search does at most `share` of the
/// allowed work.
OwnerBalance balancePart(const OwnerProblem &problem, OwnerCounts start, double share) {
  OwnerBalance best;
  best.counts = std::move(start);
  best.most = mostOf(loadsOf(problem, best.counts));
  best.bound = loadBound(problem);
  int64_t enough = enoughFor(best.bound);
  auto consider = [&](OwnerCounts counts) {
    improve(problem, counts, enough, {}, share);
    int64_t most = mostOf(loadsOf(problem, counts));
    if (most < best.most) {
      best.counts = std::move(counts);
      best.most = most;
      best.isStart = false;
    }
  };
  if (best.most > enough)
    consider(best.counts);
  if (best.most > enough)
    consider(longestFirst(problem, /*ranksFirst=*/true));
  return best;
}

/// The load of the busiest rank of a mesh, and the bound from the blocks that only ranks of this mesh
/// compute.
MeshBalance meshBalance(const OwnerProblem &problem, const Loads &loads,
                        const std::vector<int64_t> &ranks) {
  MeshBalance mesh;
  mesh.ranks = ranks;
  std::vector<size_t> kinds;
  for (size_t kind = 0; kind < problem.kinds.size(); ++kind) {
    const std::vector<int64_t> &all = problem.kinds[kind].ranks;
    if (std::all_of(all.begin(), all.end(), [&](int64_t rank) {
          return std::binary_search(ranks.begin(), ranks.end(), rank);
        }))
      kinds.push_back(kind);
  }
  for (int64_t rank : ranks)
    mesh.most = std::max(mesh.most, loads.at(rank));
  mesh.bound = loadBound(partOf(problem, kinds));
  return mesh;
}

} // namespace

std::vector<MeshBalance> meshBalances(const OwnerProblem &problem, const OwnerCounts &counts) {
  Loads loads = loadsOf(problem, counts);
  std::vector<MeshBalance> meshes;
  for (const std::vector<int64_t> &ranks : meshesOf(problem))
    meshes.push_back(meshBalance(problem, loads, ranks));
  return meshes;
}

/// Balances each of several meshes that share ranks, after all together, the busiest mesh first. No rank may
/// get as much load as the busiest rank of the mesh had.
static std::vector<MeshBalance> balanceMeshes(const OwnerProblem &problem, OwnerBalance &part,
                                              double share) {
  if (std::set<std::vector<int64_t>> only = meshesOf(problem); only.size() == 1)
    return {{part, *only.begin()}};
  std::vector<MeshBalance> meshes = meshBalances(problem, part.counts);
  Loads loads = loadsOf(problem, part.counts);
  std::sort(meshes.begin(), meshes.end(), [](const MeshBalance &a, const MeshBalance &b) {
    return std::tie(b.most, a.ranks) < std::tie(a.most, b.ranks);
  });
  for (const MeshBalance &mesh : meshes) {
    int64_t most = 0; // meshes before this one may have changed it
    for (int64_t rank : mesh.ranks)
      most = std::max(most, loads.at(rank));
    if (int64_t enough = enoughFor(mesh.bound); most > enough) {
      OwnerCounts counts = part.counts;
      improve(problem, counts, enough, mesh.ranks, share / static_cast<double>(meshes.size()));
      if (counts != part.counts) {
        part.counts = std::move(counts);
        part.isStart = false;
        loads = loadsOf(problem, part.counts);
      }
    }
  }
  part.most = mostOf(loads);
  return meshBalances(problem, part.counts);
}

OwnerBalance balanceOwners(const OwnerProblem &problem, OwnerCounts start) {
  OwnerBalance result;
  result.counts = std::move(start);
  // Fixed loads of ranks that own no blocks also count.
  result.most = result.bound = mostOf(problem.fixed);
  std::vector<std::vector<size_t>> parts = partsOf(problem);
  for (const std::vector<size_t> &kinds : parts) {
    OwnerCounts counts;
    for (size_t kind : kinds)
      counts.push_back(std::move(result.counts[kind]));
    OwnerProblem part = partOf(problem, kinds);
    double share = 1 / static_cast<double>(parts.size());
    OwnerBalance balanced = balancePart(part, std::move(counts), share);
    for (MeshBalance &mesh : balanceMeshes(part, balanced, share))
      result.meshes.push_back(std::move(mesh));
    for (size_t i = 0; i < kinds.size(); ++i)
      result.counts[kinds[i]] = std::move(balanced.counts[i]);
    result.isStart &= balanced.isStart;
    result.most = std::max(result.most, balanced.most);
    result.bound = std::max(result.bound, balanced.bound);
  }
  std::sort(result.meshes.begin(), result.meshes.end(),
            [](const MeshBalance &a, const MeshBalance &b) { return a.ranks < b.ranks; });
  return result;
}

} // namespace stepc::cost
