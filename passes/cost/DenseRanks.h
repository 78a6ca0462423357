//===- DenseRanks.h - A problem of owners with ranks as numbers -*- C++ -*-===//
#ifndef STEPC_PASSES_COST_DENSERANKS_H
#define STEPC_PASSES_COST_DENSERANKS_H

#include "passes/cost/OwnerBalance.h"

namespace stepc::cost {

/// The problem with ranks as numbers from 0.
struct Dense {
  explicit Dense(const OwnerProblem &problem) : problem(problem) {
    for (const auto &[rank, load] : problem.fixed)
      number(rank, load);
    for (const BlockKind &kind : problem.kinds) {
      std::vector<std::size_t> &list = choices.emplace_back();
      for (int64_t rank : kind.ranks)
        list.push_back(number(rank, 0));
    }
    // Kinds of one mesh ask one table.
    std::map<std::vector<std::size_t>, std::size_t> known;
    for (std::vector<std::size_t> &list : choices) {
      auto [found, isNew] = known.try_emplace(list, slots.size());
      meshOf.push_back(found->second);
      if (!isNew)
        continue;
      std::vector<int64_t> &slot = slots.emplace_back(fixed.size(), -1);
      for (std::size_t i = 0; i < list.size(); ++i)
        slot[list[i]] = static_cast<int64_t>(i);
    }
    for (std::vector<int64_t> &slot : slots)
      slot.resize(fixed.size(), -1);
    std::map<std::vector<bool>, int64_t> sets;
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      std::vector<bool> set;
      for (const std::vector<int64_t> &slot : slots)
        set.push_back(slot[rank] >= 0);
      alikes.push_back(
          sets.try_emplace(std::move(set), static_cast<int64_t>(sets.size())).first->second);
    }
  }
  std::size_t ranks() const { return fixed.size(); }
  std::size_t numberOf(int64_t rank) const { return numbers.at(rank); }
  /// Where a rank stands among those of a kind, or -1.
  int64_t slotOf(std::size_t kind, std::size_t rank) const { return slots[meshOf[kind]][rank]; }
  /// Equal of ranks that are in the same meshes.
  int64_t alike(std::size_t rank) const { return alikes[rank]; }

  const OwnerProblem &problem;
  std::vector<int64_t> fixed;                    // load of each rank
  std::vector<std::vector<std::size_t>> choices; // [kind]: ranks
  std::vector<std::size_t> meshOf;               // [kind]

private:
  std::size_t number(int64_t rank, int64_t load) {
    auto [found, isNew] = numbers.try_emplace(rank, fixed.size());
    if (isNew)
      fixed.push_back(load);
    return found->second;
  }
  std::map<int64_t, std::size_t> numbers;
  std::vector<std::vector<int64_t>> slots; // [mesh][rank]
  std::vector<int64_t> alikes;             // [rank]
};

} // namespace stepc::cost

#endif
