//===- OwnerBalance.cpp - Who computes which blocks ------------------------===//
//
// Longest processing time first may be a third above the best, where ranks own few blocks each. What
// is left over is found by splitting the blocks of two ranks anew, the busiest one's and another's,
// exactly where they are few; and for few blocks in all by a search through all assignments.
//
//===----------------------------------------------------------------------===//

#include "passes/cost/OwnerBalance.h"

#include "passes/cost/OwnerSearch.h"
#include "passes/cost/Saturate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
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

namespace {

/// What only some ranks can compute, and what they have anyway.
struct Share {
  int64_t width;                                   ///< how many ranks
  std::vector<std::pair<int64_t, int64_t>> blocks; ///< cost and count, falling
  std::vector<int64_t> fixed;                      ///< of each rank
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
  // Of the k · width + 1 largest some rank has k + 1, of which none is less than the last ones.
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

/// Whether dual feasible functions show that ranks with room for `most` each cannot have it all. Such a function
/// gives no set of blocks that fits into `most` more than 1 together; so if it gives all blocks more than there are
/// ranks, they do not fit. Taken are those of Fekete and Schepers: of n + 1 steps a block fills the whole ones of,
/// each is 1 / n; or blocks that leave less than λ of a rank are 1, and those below λ nothing.
bool cannotFit(const Share &share, int64_t most) {
  constexpr int64_t kSteps = 24;
  std::vector<std::pair<int64_t, int64_t>> all = share.blocks;
  for (int64_t load : share.fixed)
    all.emplace_back(load, 1);
  auto exceeds = [&](auto part) {
    double sum = 0;
    for (auto [cost, times] : all)
      sum += part(cost) * static_cast<double>(times);
    return sum > static_cast<double>(share.width) * (1 + 1e-9);
  };
  for (int64_t steps = 1; steps <= kSteps; ++steps)
    if (exceeds([&](int64_t cost) {
          double filled = static_cast<double>(cost) * static_cast<double>(steps + 1) /
                          static_cast<double>(most);
          // Whole steps count as what they are: a little more must not become one more.
          bool isWhole = std::abs(filled - std::round(filled)) < 1e-9;
          return isWhole ? std::round(filled) / static_cast<double>(steps + 1)
                         : std::floor(filled) / static_cast<double>(steps);
        }))
      return true;
  for (auto [lambda, times] : share.blocks)
    if (2 * lambda <= most && exceeds([&, lambda = lambda](int64_t cost) {
          return cost > most - lambda ? 1.0
                 : cost < lambda      ? 0.0
                                      : static_cast<double>(cost) / static_cast<double>(most);
        }))
      return true;
  return false;
}

} // namespace

int64_t loadBound(const OwnerProblem &problem, int64_t most) {
  std::set<std::set<int64_t>> meshes;
  std::set<int64_t> all;
  for (const BlockKind &kind : problem.kinds) {
    meshes.emplace(kind.ranks.begin(), kind.ranks.end());
    all.insert(kind.ranks.begin(), kind.ranks.end());
  }
  meshes.insert(all);
  int64_t bound = 0;
  for (const std::set<int64_t> &ranks : meshes) {
    if (ranks.empty())
      continue;
    Share share = shareOf(problem, ranks);
    bound = std::max(bound, boundOf(share));
    if (share.blocks.size() > 512)
      continue; // so many blocks that differ fill ranks well: the mean is close
    // What cannot be is looked for by halving, though it need not be all below what can.
    for (int64_t low = bound, high = most - 1; low <= high;) {
      int64_t middle = low + (high - low) / 2;
      bool cannot = cannotFit(share, middle);
      bound = cannot ? std::max(bound, middle + 1) : bound;
      (cannot ? low : high) = cannot ? middle + 1 : middle - 1;
    }
    if (most > bound && cannotFit(share, most - 1))
      bound = most;
  }
  return bound;
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
  const std::vector<int64_t> *ranks = nullptr; // whose queues these are
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

OwnerBalance balanceOwners(const OwnerProblem &problem, OwnerCounts start) {
  OwnerBalance best;
  best.counts = std::move(start);
  best.most = mostOf(loadsOf(problem, best.counts));
  best.bound = loadBound(problem, best.most);
  int64_t enough = saturatingAdd(best.bound, best.bound / 200);
  auto consider = [&](OwnerCounts counts) {
    improve(problem, counts, enough);
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
  if (best.most > enough)
    if (std::optional<OwnerCounts> packed = pack(problem, best.bound, best.most))
      consider(std::move(*packed));
  if (best.most > enough)
    best.bound = loadBound(problem, best.most);
  best.isOptimal = best.most <= best.bound;
  if (best.most > enough && !best.isOptimal) {
    Exhausted found = searchAll(problem, best.most);
    best.isOptimal |= found.isComplete;
    if (found.counts) {
      best.counts = std::move(*found.counts);
      best.most = mostOf(loadsOf(problem, best.counts));
      best.isStart = false;
    }
  }
  return best;
}

} // namespace stepc::cost
