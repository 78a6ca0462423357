//===- OwnerPacking.cpp - Owners by packing, and by trying all -------------===//

#include "passes/cost/OwnerSearch.h"

#include "passes/cost/DenseRanks.h"
#include "passes/cost/Saturate.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace stepc::cost {

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

static std::vector<size_t> byCost(const OwnerProblem &problem) {
  std::vector<size_t> order(problem.kinds.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(-problem.kinds[a].cost, a) < std::tuple(-problem.kinds[b].cost, b);
  });
  return order;
}

/// No rank above `room`, or nothing.
static std::optional<OwnerCounts> packInto(const Dense &dense, const std::vector<size_t> &order,
                                           int64_t room) {
  const OwnerProblem &problem = dense.problem;
  OwnerCounts counts;
  for (const BlockKind &kind : problem.kinds)
    counts.emplace_back(kind.ranks.size(), 0);
  std::vector<int64_t> loads = dense.fixed;
  std::vector<std::pair<int64_t, size_t>> fullest; // of one kind
  for (size_t kind : order) {
    const BlockKind &blocks = problem.kinds[kind];
    fullest.clear();
    for (size_t i = 0; i < dense.choices[kind].size(); ++i)
      fullest.emplace_back(-loads[dense.choices[kind][i]], i);
    std::sort(fullest.begin(), fullest.end());
    int64_t left = blocks.count;
    for (auto [negative, i] : fullest) {
      int64_t &load = loads[dense.choices[kind][i]];
      int64_t fits = blocks.cost > 0 ? (room - load) / blocks.cost : left;
      int64_t given = std::clamp<int64_t>(fits, 0, left);
      counts[kind][i] = given;
      load += given * blocks.cost;
      left -= given;
    }
    if (left > 0)
      return std::nullopt;
  }
  return counts;
}

std::optional<OwnerCounts> pack(const OwnerProblem &problem, int64_t least, int64_t most) {
  if (most >= std::numeric_limits<int64_t>::max() / 8)
    return std::nullopt;
  Dense dense(problem);
  std::vector<size_t> order = byCost(problem);
  std::optional<OwnerCounts> best;
  int64_t low = least, high = most - 1;
  for (int turn = 0; turn < 20 && low <= high; ++turn) {
    int64_t room = low + (high - low) / 2;
    if (std::optional<OwnerCounts> found = packInto(dense, order, room)) {
      best = std::move(found);
      high = room - 1;
    } else {
      low = room + 1;
    }
  }
  return best;
}

//===----------------------------------------------------------------------===//
// All assignments
//===----------------------------------------------------------------------===//

namespace {

/// How many assignments are looked at.
constexpr int64_t kMostAssignments = 2000000;

class Search {
public:
  Search(const OwnerProblem &problem, int64_t most, int64_t budget)
      : dense(problem), most(most), budget(budget), loads(dense.fixed), order(byCost(problem)) {
    for (const BlockKind &kind : problem.kinds)
      counts.emplace_back(kind.ranks.size(), 0);
    for (size_t kind : order)
      left.push_back(problem.kinds[kind].count);
  }

  Exhausted run() {
    place(0, 0);
    return {std::move(best), budget > 0};
  }

private:
  /// Gives the blocks of the kinds from `turn` on; equal ones to ranks from `from` on, as their order is none.
  void place(size_t turn, size_t from) {
    while (turn < order.size() && left[turn] == 0) {
      ++turn;
      from = 0;
    }
    if (turn == order.size()) {
      most = *std::max_element(loads.begin(), loads.end());
      best = counts;
      return;
    }
    size_t kind = order[turn];
    const std::vector<size_t> &choices = dense.choices[kind];
    int64_t cost = dense.problem.kinds[kind].cost;
    if (!fits(turn))
      return;
    std::set<std::pair<int64_t, int64_t>>
        tried; // of equal loads ranks of the same meshes are alike
    for (size_t i = from; i < choices.size(); ++i) {
      size_t rank = choices[i];
      if (loads[rank] + cost >= most || !tried.emplace(loads[rank], dense.alike(rank)).second)
        continue;
      if (--budget <= 0)
        return;
      loads[rank] += cost;
      ++counts[kind][i];
      --left[turn];
      place(turn, i);
      ++left[turn];
      --counts[kind][i];
      loads[rank] -= cost;
    }
  }

  /// Whether the rest has room below `most` where it is enough for a block.
  bool fits(size_t turn) const {
    int64_t rest = 0, least = most, room = 0;
    for (size_t i = turn; i < order.size(); ++i)
      if (left[i] > 0) {
        int64_t cost = dense.problem.kinds[order[i]].cost;
        rest += left[i] * cost;
        least = std::min(least, cost);
      }
    for (int64_t load : loads)
      if (most - 1 - load >= least)
        room += most - 1 - load;
    return rest <= room;
  }

  Dense dense;
  int64_t most, budget;
  std::vector<int64_t> loads;
  std::vector<size_t> order;
  std::vector<int64_t> left; // [turn]: blocks without an owner
  OwnerCounts counts;
  std::optional<OwnerCounts> best;
};

} // namespace

Exhausted searchAll(const OwnerProblem &problem, int64_t most, double share) {
  constexpr int64_t kMostBlocks = 64;
  int64_t blocks = 0;
  for (const BlockKind &kind : problem.kinds)
    blocks = saturatingAdd(blocks, kind.count);
  if (blocks > kMostBlocks || most >= std::numeric_limits<int64_t>::max() / 8)
    return {};
  return Search(problem, most, static_cast<int64_t>(share * static_cast<double>(kMostAssignments)))
      .run();
}

} // namespace stepc::cost
