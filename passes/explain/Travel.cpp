//===- Travel.cpp - What a strategy makes travel and compute ---------------===//

#include "passes/explain/Travel.h"

#include "passes/cost/Cluster.h"
#include "passes/cost/Saturate.h"
#include "passes/distribute/GroupChain.h"

using namespace mlir;
using namespace stepc;

static int64_t bytesOf(Type type) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    type = shaped.getElementType();
  return type.getIntOrFloatBitWidth() / 8;
}

std::vector<plan::Table> explain::travellers(optim::RuleOp rule, const plan::Group &group) {
  std::vector<plan::Table> result;
  distribute::Crossings crossings = distribute::findCrossings(rule);
  plan::Distribution home = plan::home(group, optim::toPlan(rule));
  auto add = [&](plan::Distribution from, plan::Distribution to, plan::ValueKind kind, Type type) {
    plan::Place sent{0, kind, from, to, plan::End::Sent}, received = sent;
    received.end = plan::End::Received;
    result.push_back({plan::TableKind::Message, sent, received, bytesOf(type)});
  };
  auto addState = [&](plan::Distribution from, plan::Distribution to, unsigned index) {
    optim::StateAttr state = rule.getState(index);
    add(from, to, state.getKind(), state.getType());
  };
  for (auto [from, to] : distribute::movesThere(group, home)) {
    for (Value value : crossings.fullIn)
      add(from, to, plan::ValueKind::Full, value.getType());
    for (unsigned state : crossings.statesIn)
      addState(from, to, state);
  }
  for (auto [from, to] : distribute::movesBack(group, home)) {
    for (Value value : crossings.fullOut)
      add(from, to, plan::ValueKind::Full, value.getType());
    for (unsigned state : crossings.statesOut)
      addState(from, to, state);
  }
  return result;
}

std::vector<plan::Table> explain::sums(optim::RuleOp rule, const plan::Group &group) {
  std::vector<plan::Table> result;
  auto add = [&](plan::ValueKind kind, size_t times) {
    using plan::Distribution;
    for (auto [from, to] : {std::pair(Distribution::Parts, Distribution::Ranges),
                            std::pair(Distribution::Ranges, Distribution::Blocks)}) {
      plan::Place sent{0, kind, from, to, plan::End::Sent}, received = sent;
      received.end = plan::End::Received;
      result.insert(result.end(), times, {plan::TableKind::Message, sent, received, 4});
    }
  };
  rule.walk([&](optim::OrthogonalizeOp op) {
    if (group.slabs.factors.empty())
      return;
    add(plan::ValueKind::One, 2);
    add(plan::ValueKind::Gram, op.getSteps().size());
  });
  return result;
}

int64_t explain::orthogonalizeFlops(optim::RuleOp rule, const plan::Group &group) {
  auto [blocks, rows, cols] = plan::computedView(group, plan::ValueKind::Full);
  int64_t small = plan::view(group, plan::ValueKind::Gram).rows, flops = 0;
  int64_t inner = group.slabs.factors.empty()                ? std::max(rows, cols)
                  : group.slabs.axis == plan::Division::Rows ? rows
                                                             : cols;
  rule.walk([&, rows = rows, cols = cols](optim::OrthogonalizeOp op) {
    flops = saturatingAdd(flops, 2 * rows * cols);
    for (std::array<double, 3> step : op.getSteps()) {
      flops = saturatingAdd(flops, cost::productFlops(small, small, inner, true));
      flops = saturatingAdd(flops, cost::productFlops(rows, cols, small, false));
      if (step[2] != 0.0)
        flops = saturatingAdd(flops, cost::productFlops(small, small, small, true));
    }
  });
  return flops;
}
