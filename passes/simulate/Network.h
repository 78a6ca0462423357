//===- Network.h - Messages on links, by level ------------------*- C++ -*-===//
#ifndef STEPC_PASSES_SIMULATE_NETWORK_H
#define STEPC_PASSES_SIMULATE_NETWORK_H

#include "passes/simulate/Topology.h"

#include <cstdint>

namespace stepc::simulate {

/// What one rank sends another one in an exchange.
struct Message {
  int32_t exchange, from, to;
  int32_t place; // among those of its sender's port
  int64_t bytes;
};

/// The ports of all ranks: one out and one in for each level of the cluster. A port carries one message
/// at a time, ports of different levels work side by side.
class Network {
public:
  explicit Network(const Topology &topology);

  /// Takes all that a rank sends in the exchange that it begins, in the order for its ports, and gives
  /// messages their places. What the rank sent before has been sent.
  void load(int64_t rank, std::vector<Message> &messages);
  /// A message that was loaded can travel. Returns the port that must be asked at `at` (see below), or -1 if
  /// it is already being asked.
  int64_t queue(double now, const Message &message, double &at);

  struct Sent {
    Message message;
    size_t level;
    double arrival;
    double next; ///< when the port has to be asked again; negative: nothing is queued
  };
  /// The port sends the first of its messages that can travel at `now`.
  Sent send(double now, int64_t port);

private:
  struct Port {
    double free = 0; // when it has sent what it began to send
    bool isAsked = false;
    int32_t queued = 0;
    std::vector<Message> messages;
    std::vector<uint64_t> canTravel; // a bit for each
    size_t first = 0;                // no word before it has a bit
  };
  size_t indexOf(int64_t rank, size_t level) const { return size_t(rank) * levels + level; }

  const Topology &topology;
  size_t levels;
  std::vector<Port> out;
  std::vector<double> in; // when each has received what began to arrive
};

} // namespace stepc::simulate

#endif
