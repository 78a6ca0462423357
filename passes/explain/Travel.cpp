//===- Travel.cpp - What a strategy makes travel and compute ---------------===//

#include "passes/explain/Travel.h"

#include "passes/decide/MatrixWork.h"
#include "passes/distribute/GroupChain.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::explain;

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
    for (Value line : crossings.linesOut)
      add(from, to, *optim::kindOf(line.getType()), line.getType());
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
  // A norm is made of two sums.
  for (const decide::MatrixStep &step : decide::MatrixWork(rule, group).steps)
    if (step.isSummed)
      add(step.result, step.isProduct ? 1 : 2);
  return result;
}

Flops explain::matrixFlops(optim::RuleOp rule, const plan::Group &group) {
  decide::MatrixWork work(rule, group);
  return {work.flops(), work.fullFlops()};
}
