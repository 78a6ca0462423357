//===- Costs.cpp - What ranks do, added up ----------------------------------===//

#include "passes/explain/Explain.h"

#include "dialects/optim/Saturate.h"

using namespace stepc;
using namespace stepc::explain;
using llvm::ArrayRef;

RankCost &RankCost::operator+=(const RankCost &other) {
  messagesSent += other.messagesSent;
  bytesSent += other.bytesSent;
  messagesReceived += other.messagesReceived;
  bytesReceived += other.bytesReceived;
  flops = saturatingAdd(flops, other.flops);
  return *this;
}

Cost explain::summarize(ArrayRef<RankCost> ranks) {
  Cost cost;
  auto range = [&](int64_t RankCost::*field) {
    Range result{ranks.empty() ? 0 : ranks[0].*field, 0};
    for (const RankCost &rank : ranks) {
      result.least = std::min(result.least, rank.*field);
      result.most = std::max(result.most, rank.*field);
    }
    return result;
  };
  cost.bytesSent = range(&RankCost::bytesSent);
  cost.messagesSent = range(&RankCost::messagesSent);
  cost.bytesReceived = range(&RankCost::bytesReceived);
  cost.messagesReceived = range(&RankCost::messagesReceived);
  cost.flops = range(&RankCost::flops);
  double sum = 0;
  for (const RankCost &rank : ranks)
    sum += double(rank.flops);
  if (sum > 0)
    cost.balance = double(cost.flops.most) * double(ranks.size()) / sum;
  return cost;
}
