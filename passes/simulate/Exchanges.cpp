//===- Exchanges.cpp - What ranks send in a program's starts ---------------===//

#include "passes/simulate/Exchanges.h"

#include <algorithm>

using namespace stepc;
using namespace stepc::simulate;

Exchanges::Exchanges(const plan::Plan &plan, plan::Expander &expander, const Topology &topology)
    : plan(plan), expander(expander), topology(topology), starts(plan.starts()),
      allReceives(starts.size()),
      allSent(topology.ranks(), std::vector<Traffic>(topology.levels())), allReceived(allSent),
      groups(plan.groups.size(), std::vector<int64_t>(topology.levels())),
      kinds(plan.groups.size()) {
  for (size_t exchange = 0; exchange < starts.size(); ++exchange)
    for (size_t rank = 0; rank < topology.ranks(); ++rank)
      count(exchange, int64_t(rank));
}

void Exchanges::count(size_t exchange, int64_t rank) {
  const plan::Start &command = *starts[exchange];
  std::shared_ptr<const plan::RankStart> start = expander.start(command, rank);
  Copies &copies = allCopies.emplace_back();
  for (const plan::PartCopy &copy : start->sent.copies)
    copies.repeated += copy.bytes;
  auto add = [](Traffic &traffic, int64_t bytes) {
    traffic.messages += bytes > 0;
    traffic.bytes += bytes;
  };
  int32_t &receives = allReceives[exchange].emplace_back();
  for (const plan::Message &message : start->messages) {
    if (message.peer == rank) {
      copies.own = std::max<int64_t>(message.sendCount - plan::kSealBytes, 0);
      continue;
    }
    size_t level = topology.levelOf(rank, message.peer);
    add(allSent[size_t(rank)][level], message.sendCount);
    add(allReceived[size_t(rank)][level], message.receiveCount);
    receives += message.receiveCount > 0;
  }
  for (int64_t index : command.tables) {
    const plan::Table &table = plan.tables[size_t(index)];
    auto group = size_t(plan.segments[size_t(table.from.segment)].group);
    for (const plan::Message &message : expander.common(table, rank).rows->messages)
      if (message.peer != rank) {
        int64_t bytes = message.sendCount * table.elementBytes;
        groups[group][topology.levelOf(rank, message.peer)] += bytes;
        kinds[group].of(plan::kindOf(table.from)) += bytes;
      }
  }
}

void Exchanges::reset() {
  ExchangeProgress fresh;
  fresh.begun.resize(topology.ranks());
  fresh.left.resize(topology.ranks());
  fresh.last.resize(topology.ranks());
  fresh.pending.resize(topology.ranks());
  states.assign(starts.size(), fresh);
}

void Exchanges::sends(int64_t exchange, int64_t rank, std::vector<Message> &messages) const {
  std::shared_ptr<const plan::RankStart> start = expander.start(*starts[size_t(exchange)], rank);
  messages.clear();
  for (const plan::Message &message : start->messages)
    if (message.peer != rank && message.sendCount > 0)
      messages.push_back(
          {int32_t(exchange), int32_t(rank), int32_t(message.peer), 0, message.sendCount});
  std::ranges::sort(messages, {}, [&](const Message &message) {
    return std::pair(topology.turn(rank, message.to), message.to);
  });
}

void Exchanges::begin(int64_t exchange, int64_t rank, const std::vector<Message> &sends,
                      std::vector<Message> &ready) {
  ExchangeProgress &state = states[size_t(exchange)];
  state.begun[size_t(rank)] = true;
  state.left[size_t(rank)] = int32_t(sends.size()) + allReceives[size_t(exchange)][size_t(rank)];
  ready = std::move(state.pending[size_t(rank)]);
  state.pending[size_t(rank)] = {};
  for (const Message &message : sends)
    (state.begun[size_t(message.to)] ? ready : state.pending[size_t(message.to)])
        .push_back(message);
}

void Exchanges::arrive(const Message &message, double time) {
  ExchangeProgress &state = states[size_t(message.exchange)];
  for (int32_t end : {message.from, message.to}) {
    --state.left[size_t(end)];
    state.last[size_t(end)] = std::max(state.last[size_t(end)], time);
  }
}

bool Exchanges::isDone(int64_t exchange, int64_t rank) const {
  const ExchangeProgress &state = states[size_t(exchange)];
  return state.begun[size_t(rank)] && state.left[size_t(rank)] == 0;
}

double Exchanges::last(int64_t exchange, int64_t rank) const {
  return states[size_t(exchange)].last[size_t(rank)];
}
