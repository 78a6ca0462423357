//===- OwnerBound.cpp - What no owners can be better than ------------------===//

#include "passes/cost/OwnerBalance.h"

#include "passes/cost/OwnerPatterns.h"
#include "passes/cost/Saturate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace stepc::cost {

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

/// By the patterns of blocks that ranks can have, where the bound is far from `most`: a few per cent more, for more work.
int64_t boundOfPatterns(const Share &share, int64_t bound, int64_t most) {
  constexpr int64_t kMostSizes = 12;
  std::map<int64_t, int64_t, std::greater<>> sizes;
  for (auto [cost, times] : share.blocks)
    sizes[cost] += times;
  for (int64_t load : share.fixed)
    sizes[load] += 1;
  sizes.erase(0);
  if (static_cast<int64_t>(sizes.size()) > kMostSizes)
    return bound;
  Patterns patterns({sizes.begin(), sizes.end()}, share.width);
  // What fits into less fits into more.
  int64_t low = bound, high = most - 1;
  while (low <= high && high - low > bound / 1000) {
    int64_t middle = low + (high - low) / 2;
    bool cannot = patterns.cannotFit(middle);
    (cannot ? low : high) = cannot ? middle + 1 : middle - 1;
  }
  return low < most && most > bound && patterns.cannotFit(most - 1) ? most : low;
}

} // namespace

int64_t loadBound(const OwnerProblem &problem, int64_t most) {
  constexpr size_t kMostUnions = 64;
  std::set<std::set<int64_t>> meshes, unions{{}};
  std::set<int64_t> all;
  for (const BlockKind &kind : problem.kinds) {
    meshes.emplace(kind.ranks.begin(), kind.ranks.end());
    all.insert(kind.ranks.begin(), kind.ranks.end());
  }
  // Of a few meshes that overlap all unions; of many each one, and all together.
  for (const std::set<int64_t> &mesh : meshes)
    if (std::set<std::set<int64_t>> before = unions; before.size() <= kMostUnions / 2)
      for (std::set<int64_t> ranks : before) {
        ranks.insert(mesh.begin(), mesh.end());
        unions.insert(std::move(ranks));
      }
  unions.insert(meshes.begin(), meshes.end());
  unions.insert(all);
  int64_t bound = 0;
  for (const std::set<int64_t> &ranks : unions) {
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
    if (most > saturatingAdd(bound, bound / 200))
      bound = boundOfPatterns(share, bound, most);
  }
  return bound;
}

} // namespace stepc::cost
