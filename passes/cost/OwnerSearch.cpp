//===- OwnerSearch.cpp - Better owners than the longest first --------------===//

#include "passes/cost/OwnerSearch.h"

#include "dialects/optim/Saturate.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace stepc::cost {
namespace {

/// The most sums of blocks in half of a split, and the most sums that a whole search looks at. They bound the
/// time to a few seconds at 2,048 ranks.
constexpr int64_t kMostSums = 1024, kMostWork = 60000000;

/// The problem with ranks as numbers from 0.
struct Dense {
  explicit Dense(const OwnerProblem &problem) : problem(problem) {
    for (const auto &[rank, load] : problem.fixed)
      number(rank, load);
    for (const BlockKind &kind : problem.kinds) {
      std::vector<size_t> &list = choices.emplace_back();
      for (int64_t rank : kind.ranks)
        list.push_back(number(rank, 0));
    }
    // Kinds with the same ranks share one table of slots.
    std::map<std::vector<size_t>, size_t> known;
    for (std::vector<size_t> &list : choices) {
      auto [found, isNew] = known.try_emplace(list, slots.size());
      meshOf.push_back(found->second);
      if (!isNew)
        continue;
      std::vector<int64_t> &slot = slots.emplace_back(fixed.size(), -1);
      for (size_t i = 0; i < list.size(); ++i)
        slot[list[i]] = static_cast<int64_t>(i);
    }
    for (std::vector<int64_t> &slot : slots)
      slot.resize(fixed.size(), -1);
    std::map<std::vector<bool>, int64_t> sets;
    for (size_t rank = 0; rank < ranks(); ++rank) {
      std::vector<bool> set;
      for (const std::vector<int64_t> &slot : slots)
        set.push_back(slot[rank] >= 0);
      alikes.push_back(
          sets.try_emplace(std::move(set), static_cast<int64_t>(sets.size())).first->second);
    }
  }
  size_t ranks() const { return fixed.size(); }
  size_t numberOf(int64_t rank) const { return numbers.at(rank); }
  /// The index of a rank among the ranks of a kind. Returns -1 if the kind does not have the rank.
  int64_t slotOf(size_t kind, size_t rank) const { return slots[meshOf[kind]][rank]; }
  /// A number that is equal for ranks that are in the same meshes.
  int64_t alike(size_t rank) const { return alikes[rank]; }

  const OwnerProblem &problem;
  std::vector<int64_t> fixed;               // load of each rank
  std::vector<std::vector<size_t>> choices; // [kind]: ranks
  std::vector<size_t> meshOf;               // [kind]

private:
  size_t number(int64_t rank, int64_t load) {
    auto [found, isNew] = numbers.try_emplace(rank, fixed.size());
    if (isNew)
      fixed.push_back(load);
    return found->second;
  }
  std::map<int64_t, size_t> numbers;
  std::vector<std::vector<int64_t>> slots; // [mesh][rank]
  std::vector<int64_t> alikes;             // [rank]
};

/// The blocks of one kind that two ranks own together, `all` blocks. The first rank has `now` of them, and a
/// split may give it from `low` to `high`.
struct SplitKind {
  size_t kind;
  int64_t cost, all, low, high, now;
};

/// All costs that choices of counts from `low` to `high` add up to, sorted. Each comes with its counts (minus
/// `low`) as one number in mixed radix.
std::vector<std::pair<int64_t, int64_t>> sumsOf(const std::vector<SplitKind> &parts) {
  std::vector<std::pair<int64_t, int64_t>> sums{{0, 0}};
  int64_t radix = 1;
  for (const SplitKind &part : parts) {
    size_t before = sums.size();
    for (int64_t count = 1; count <= part.high - part.low; ++count)
      for (size_t i = 0; i < before; ++i)
        sums.emplace_back(saturatingAdd(sums[i].first, saturatingMul(count, part.cost)),
                          sums[i].second + count * radix);
    radix *= part.high - part.low + 1;
  }
  std::sort(sums.begin(), sums.end());
  return sums;
}

class Improver {
public:
  Improver(const OwnerProblem &problem, OwnerCounts &counts, const std::vector<int64_t> &among,
           double share)
      : dense(problem), counts(counts), loads(dense.fixed), owned(dense.ranks()),
        isAmong(dense.ranks(), among.empty()),
        mostWork(static_cast<int64_t>(share * static_cast<double>(kMostWork))) {
    for (int64_t rank : among)
      isAmong[dense.numberOf(rank)] = true;
    for (size_t kind = 0; kind < problem.kinds.size(); ++kind)
      for (size_t i = 0; i < dense.choices[kind].size(); ++i)
        if (int64_t count = counts[kind][i]; count > 0) {
          size_t rank = dense.choices[kind][i];
          owned[rank].insert(kind);
          loads[rank] = saturatingAdd(loads[rank], saturatingMul(count, problem.kinds[kind].cost));
        }
    for (size_t rank = 0; rank < loads.size(); ++rank)
      enter(rank);
  }

  void run(int64_t enough) {
    while (!busiest.empty() && busiest.rbegin()->first > enough && work <= mostWork) {
      auto [load, busy] = *busiest.rbegin();
      if (!relieve(busy, load, busy) && !passOn(busy, load))
        return;
    }
  }

private:
  /// Calls `split` with each rank whose load is less than `below`, from the least loaded on, and with the
  /// blocks that it can split with `rank`, until `split` returns true. Among ranks with equal load and blocks
  /// only one is tried. Returns false if `split` never returns true.
  template <typename Split>
  bool anyPartner(size_t rank, int64_t below, size_t except, Split split) {
    std::set<std::vector<int64_t>> known;
    // A copy, because `split` changes byLoad.
    std::vector<std::pair<int64_t, size_t>> others(byLoad.begin(), byLoad.lower_bound({below, 0}));
    for (auto [load, other] : others) {
      if (other == rank || other == except)
        continue;
      std::vector<SplitKind> parts = partsOf(rank, other);
      std::vector<int64_t> key{load, dense.alike(other)};
      for (const SplitKind &part : parts)
        key.insert(key.end(), {static_cast<int64_t>(part.kind), part.all});
      work += 64;
      if (parts.empty() || !known.insert(std::move(key)).second)
        continue;
      if (work > mostWork)
        return false;
      if (split(other, std::move(parts)))
        return true;
    }
    return false;
  }

  /// Splits the blocks of a rank and of another rank so that both loads are less than `below`.
  bool relieve(size_t rank, int64_t below, size_t except) {
    return anyPartner(rank, below, except, [&](size_t other, std::vector<SplitKind> parts) {
      return split(rank, other, std::move(parts), below, below);
    });
  }

  /// Splits so that only the load of `busy` is less than `below`. Then a third rank has to relieve the other
  /// rank. Otherwise the split is undone.
  bool passOn(size_t busy, int64_t below) {
    return anyPartner(busy, below, busy, [&](size_t other, std::vector<SplitKind> parts) {
      constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
      std::vector<SplitKind> before = parts;
      if (!split(busy, other, std::move(parts), below, kAny))
        return false;
      if (relieve(other, below, busy))
        return true;
      for (SplitKind &part : before) {
        int64_t mine = std::exchange(part.now, count(part.kind, busy));
        give(part, busy, other, mine);
      }
      return false;
    });
  }

  int64_t &count(size_t kind, size_t rank) {
    return counts[kind][static_cast<size_t>(dense.slotOf(kind, rank))];
  }

  std::vector<SplitKind> partsOf(size_t a, size_t b) {
    std::set<size_t> kinds = owned[a];
    kinds.insert(owned[b].begin(), owned[b].end());
    std::vector<SplitKind> parts;
    for (size_t kind : kinds)
      if (dense.slotOf(kind, a) >= 0 && dense.slotOf(kind, b) >= 0) {
        int64_t now = count(kind, a), all = now + count(kind, b);
        parts.push_back({kind, dense.problem.kinds[kind].cost, all, 0, all, now});
      }
    return parts;
  }

  /// Leaves fewer choices if there are too many. The widest range from `low` to `high` shrinks around `now`.
  /// Among equally wide ranges every second cost shrinks first, so that wide ranges remain for large and
  /// small costs.
  static void narrow(std::vector<SplitKind> &parts) {
    std::sort(parts.begin(), parts.end(), [](const SplitKind &a, const SplitKind &b) {
      return std::tie(a.cost, a.kind) < std::tie(b.cost, b.kind);
    });
    auto sums = [&] {
      double product = 1;
      for (const SplitKind &part : parts)
        product *= static_cast<double>(part.high - part.low + 1);
      return product;
    };
    for (size_t turn = 1;
         sums() > static_cast<double>(kMostSums) * static_cast<double>(kMostSums) / 4; ++turn) {
      SplitKind *widest = nullptr;
      for (size_t i = 0; i < parts.size(); ++i) {
        SplitKind &part = parts[(i * 2 + turn) % parts.size()];
        if (!widest || part.high - part.low > widest->high - widest->low)
          widest = &part;
      }
      // Cuts a quarter of the range, on the side that is farther from `now`.
      int64_t cut = std::max<int64_t>(1, (widest->high - widest->low) / 4);
      if (widest->high - widest->now >= widest->now - widest->low)
        widest->high = std::max(widest->now, widest->high - cut);
      else
        widest->low = std::min(widest->now, widest->low + cut);
    }
  }

  /// Makes the split after which the busier of both ranks has the least load. The load of `busy` must become
  /// less than `below`, that of `other` less than `others`. Returns false if there is no split like this.
  bool split(size_t busy, size_t other, std::vector<SplitKind> parts, int64_t below,
             int64_t others) {
    narrow(parts);
    int64_t mine = loads[busy], theirs = loads[other];
    std::vector<SplitKind> halves[2];
    double sizes[2] = {1, 1};
    for (const SplitKind &part : parts) {
      mine -= (part.now - part.low) * part.cost;
      theirs += (part.now - part.low) * part.cost;
      if (part.high == part.low)
        continue;
      size_t half = sizes[0] <= sizes[1] ? 0 : 1;
      halves[half].push_back(part);
      sizes[half] *= static_cast<double>(part.high - part.low + 1);
    }
    auto first = sumsOf(halves[0]), second = sumsOf(halves[1]);
    work += static_cast<int64_t>(first.size() + second.size());
    int64_t best = std::numeric_limits<int64_t>::max();
    const std::pair<int64_t, int64_t> *chosen[2] = {nullptr, nullptr};
    auto consider = [&](const auto &one, const auto &two) {
      int64_t sum = one.first + two.first, most = std::max(mine + sum, theirs - sum);
      if (mine + sum < below && theirs - sum < others && most < best) {
        best = most;
        chosen[0] = &one;
        chosen[1] = &two;
      }
    };
    // For each sum of the first half, the best sums of the second half are the two between which both ranks
    // have equal loads. They decrease as the first half's sums increase, so one pass over both lists finds
    // all.
    auto at = second.rbegin();
    for (const auto &one : first) {
      while (at != second.rend() && mine + one.first + at->first > theirs - one.first - at->first)
        consider(one, *at++);
      if (at != second.rend())
        consider(one, *at);
    }
    if (!chosen[0])
      return false;
    for (int half : {0, 1}) {
      int64_t rest = chosen[half]->second;
      for (const SplitKind &part : halves[half]) {
        int64_t width = part.high - part.low + 1;
        give(part, busy, other, part.low + rest % width);
        rest /= width;
      }
    }
    return true;
  }

  void enter(size_t rank) {
    byLoad.emplace(loads[rank], rank);
    if (isAmong[rank])
      busiest.emplace(loads[rank], rank);
  }

  void give(const SplitKind &part, size_t busy, size_t other, int64_t mine) {
    for (auto [rank, now, then] : {std::tuple(busy, part.now, mine),
                                   std::tuple(other, part.all - part.now, part.all - mine)}) {
      byLoad.erase({loads[rank], rank});
      busiest.erase({loads[rank], rank});
      loads[rank] += (then - now) * part.cost;
      enter(rank);
      count(part.kind, rank) = then;
      if (then > 0)
        owned[rank].insert(part.kind);
      else
        owned[rank].erase(part.kind);
    }
  }

  Dense dense;
  OwnerCounts &counts;
  std::vector<int64_t> loads;
  std::vector<std::set<size_t>> owned; // [rank]: kinds
  std::vector<char> isAmong;           // [rank]
  std::set<std::pair<int64_t, size_t>> byLoad, busiest;
  int64_t work = 0, mostWork;
};

} // namespace

void improve(const OwnerProblem &problem, OwnerCounts &counts, int64_t enough,
             const std::vector<int64_t> &among, double share) {
  // Differences of larger loads would not stay in range.
  if (mostOf(loadsOf(problem, counts)) < std::numeric_limits<int64_t>::max() / 8)
    Improver(problem, counts, among, share).run(enough);
}

} // namespace stepc::cost
