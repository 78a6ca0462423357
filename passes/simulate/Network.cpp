//===- Network.cpp - Messages on links, by level ---------------------------===//

#include "passes/simulate/Network.h"

#include <algorithm>
#include <bit>

using namespace stepc::simulate;

Network::Network(const Topology &topology)
    : topology(topology), levels(topology.levels()), out(topology.ranks() * levels),
      in(topology.ranks() * levels) {}

void Network::load(int64_t rank, std::vector<Message> &messages) {
  for (size_t level = 0; level < levels; ++level)
    out[indexOf(rank, level)].messages.clear();
  for (Message &message : messages) {
    Port &port = out[indexOf(rank, topology.levelOf(message.from, message.to))];
    message.place = int32_t(port.messages.size());
    port.messages.push_back(message);
  }
  for (size_t level = 0; level < levels; ++level) {
    Port &port = out[indexOf(rank, level)];
    port.canTravel.assign(port.messages.size() / 64 + 1, 0);
  }
}

int64_t Network::queue(double now, const Message &message, double &at) {
  size_t index = indexOf(message.from, topology.levelOf(message.from, message.to));
  Port &port = out[index];
  auto word = size_t(message.place) / 64;
  port.canTravel[word] |= uint64_t(1) << (message.place % 64);
  port.first = port.queued++ == 0 ? word : std::min(port.first, word);
  if (port.isAsked)
    return -1;
  port.isAsked = true;
  at = std::max(now, port.free);
  return int64_t(index);
}

Network::Sent Network::send(double now, int64_t index) {
  Port &port = out[size_t(index)];
  while (port.canTravel[port.first] == 0)
    ++port.first;
  uint64_t &word = port.canTravel[port.first];
  const Message &message = port.messages[port.first * 64 + size_t(std::countr_zero(word))];
  word &= word - 1;
  size_t level = size_t(index) % levels;
  const cost::Link &link = topology.link(level);
  double busy = link.busy(double(message.bytes));
  port.free = now + busy;
  // The receiver's port takes the message while it is sent, but behind messages that arrive already.
  double &receiving = in[indexOf(message.to, level)];
  receiving = std::max(now, receiving) + busy;
  port.isAsked = --port.queued > 0;
  return {message, level, receiving + link.delay(), port.isAsked ? port.free : -1};
}
