//===- OwnerQueues.cpp - Blocks to the least loaded ranks ------------------===//

#include "passes/cost/OwnerQueues.h"

#include "dialects/optim/Saturate.h"

#include <tuple>

namespace stepc::cost {

OwnerQueues::OwnerQueues(const std::vector<int64_t> &ranks,
                         const std::vector<std::vector<int64_t>> &held, Loads &loads)
    : ranks(ranks), held(held), loads(loads) {
  std::map<std::vector<int64_t>, std::size_t> classOf;
  for (std::size_t position = 0; position < ranks.size(); ++position) {
    std::size_t number = classOf.try_emplace(held[position], queues.size()).first->second;
    if (number == queues.size())
      queues.emplace_back();
    queues[number].push({-loads[ranks[position]], -static_cast<int64_t>(position)});
  }
}

int64_t OwnerQueues::give(int64_t block, int64_t cost) {
  Queue *best = nullptr;
  std::tuple<int64_t, int64_t, int64_t> bestKey;
  for (Queue &queue : queues) {
    auto [negativeLoad, negativePosition] = queue.top();
    std::tuple key(
        negativeLoad,
        held[static_cast<std::size_t>(-negativePosition)][static_cast<std::size_t>(block)],
        negativePosition);
    if (!best || key > bestKey) {
      best = &queue;
      bestKey = key;
    }
  }
  int64_t position = -best->top().second;
  best->pop();
  int64_t &sum = loads[ranks[static_cast<std::size_t>(position)]];
  sum = saturatingAdd(sum, cost);
  best->push({-sum, -position});
  return position;
}

} // namespace stepc::cost
