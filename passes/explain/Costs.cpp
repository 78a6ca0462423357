//===- Costs.cpp - What ranks do, added up ----------------------------------===//

#include "passes/explain/Explain.h"

#include "dialects/optim/Saturate.h"

using namespace stepc;
using namespace stepc::explain;
using llvm::ArrayRef;

Flops &Flops::operator+=(const Flops &other) {
  executed = saturatingAdd(executed, other.executed);
  full = saturatingAdd(full, other.full);
  return *this;
}

Flops Flops::operator*(int64_t count) const {
  return {saturatingMul(executed, count), saturatingMul(full, count)};
}

RankCost &RankCost::operator+=(const RankCost &other) {
  messagesSent += other.messagesSent;
  bytesSent += other.bytesSent;
  messagesReceived += other.messagesReceived;
  bytesReceived += other.bytesReceived;
  flops += other.flops;
  return *this;
}

Cost explain::summarize(ArrayRef<RankCost> ranks) {
  Cost cost;
  auto rangeOf = [&](auto valueOf) {
    Range result{ranks.empty() ? 0 : valueOf(ranks[0]), 0};
    for (const RankCost &rank : ranks) {
      result.least = std::min(result.least, valueOf(rank));
      result.most = std::max(result.most, valueOf(rank));
    }
    return result;
  };
  auto range = [&](int64_t RankCost::*field) {
    return rangeOf([&](const RankCost &rank) { return rank.*field; });
  };
  cost.bytesSent = range(&RankCost::bytesSent);
  cost.messagesSent = range(&RankCost::messagesSent);
  cost.bytesReceived = range(&RankCost::bytesReceived);
  cost.messagesReceived = range(&RankCost::messagesReceived);
  cost.flops = rangeOf([](const RankCost &rank) { return rank.flops.executed; });
  cost.fullFlops = rangeOf([](const RankCost &rank) { return rank.flops.full; });
  double sum = 0;
  for (const RankCost &rank : ranks)
    sum += double(rank.flops.executed);
  if (sum > 0)
    cost.balance = double(cost.flops.most) * double(ranks.size()) / sum;
  return cost;
}
