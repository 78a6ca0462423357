//===- Network.h - Messages on links, by level ------------------*- C++ -*-===//
#ifndef STEPC_PASSES_SIMULATE_NETWORK_H
#define STEPC_PASSES_SIMULATE_NETWORK_H

#include "passes/simulate/Topology.h"

#include <cstdint>

namespace stepc::simulate {

/// A message of an exchange.
struct Message {
  int32_t exchange, from, to;
  int32_t place; // its number in its sender's port
  int64_t bytes;
};

/// The ports of all ranks: each has one out and one in for each level of the cluster. A port carries one
/// message at a time. Ports of different levels work side by side.
class Network {
public:
  explicit Network(const Topology &topology);

  /// Loads all messages of the exchange that a rank begins into its ports, in this order, and sets their
  /// `place`. What the rank sent before must have left.
  void load(int64_t rank, std::vector<Message> &messages);
  /// Says that a message that was loaded can travel. Returns the port for which `send` must be called at time
  /// `at`, or -1 if that call is planned already.
  int64_t queue(double now, const Message &message, double &at);

  struct Sent {
    Message message;
    size_t level;
    double arrival;
    double next; ///< when to call `send` again; negative if nothing is queued
  };
  /// Sends the first of the port's messages that can travel at `now`.
  Sent send(double now, int64_t port);

private:
  struct Port {
    double free = 0; // when the last message that it began has left
    bool isAsked = false;
    int32_t queued = 0;
    std::vector<Message> messages;
    std::vector<uint64_t> canTravel; // a bit per message
    size_t first = 0;                // all words before it are 0
  };
  size_t indexOf(int64_t rank, size_t level) const { return size_t(rank) * levels + level; }

  const Topology &topology;
  size_t levels;
  std::vector<Port> out;
  std::vector<double> in; // when each has received all that began to arrive
};

} // namespace stepc::simulate

#endif
