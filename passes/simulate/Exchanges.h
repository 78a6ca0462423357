//===- Exchanges.h - What ranks send in a program's starts ------*- C++ -*-===//
#ifndef STEPC_PASSES_SIMULATE_EXCHANGES_H
#define STEPC_PASSES_SIMULATE_EXCHANGES_H

#include "passes/simulate/Network.h"
#include "passes/simulate/Simulate.h"
#include "runtime/plan/Tables.h"

namespace stepc::simulate {

/// The exchanges of a program: which messages may travel, and which ranks have had all of their messages.
/// Messages are expanded when a rank begins an exchange, so that only those of a few exchanges take memory at
/// a time.
class Exchanges {
public:
  Exchanges(const plan::Plan &plan, plan::Expander &expander, const Topology &topology);

  /// Bytes that a rank copies for an exchange: parts for several peers before it, and the rank's own part
  /// after it.
  struct Copies {
    int64_t repeated = 0, own = 0;
  };
  Copies copies(int64_t exchange, int64_t rank) const {
    return allCopies[size_t(exchange) * topology.ranks() + size_t(rank)];
  }
  /// What a rank sends and receives in all exchanges, by level of the cluster.
  const std::vector<Traffic> &sent(int64_t rank) const { return allSent[size_t(rank)]; }
  const std::vector<Traffic> &received(int64_t rank) const { return allReceived[size_t(rank)]; }
  /// The bytes that all ranks send, by group and level.
  const std::vector<std::vector<int64_t>> &groupBytes() const { return groups; }
  /// The bytes that all ranks send, by group and kind of move.
  const std::vector<plan::BytesByKind> &groupKinds() const { return kinds; }

  /// Forgets what ranks have begun. Must be called before each step.
  void reset();
  /// The messages that a rank sends in an exchange, in the order in which it sends them (Topology::turn).
  void sends(int64_t exchange, int64_t rank, std::vector<Message> &messages) const;
  /// Says that a rank begins an exchange, in which it sends `sends`. `ready` gets the messages that may
  /// travel from now on: those between this rank and ranks that have begun the exchange before.
  void begin(int64_t exchange, int64_t rank, const std::vector<Message> &sends,
             std::vector<Message> &ready);
  /// Says that a message arrives at `time`.
  void arrive(const Message &message, double time);
  /// Whether all messages that a rank sends or receives have arrived, and when the last one did. A rank
  /// without messages is done when it begins.
  bool isDone(int64_t exchange, int64_t rank) const;
  double last(int64_t exchange, int64_t rank) const;

private:
  struct ExchangeProgress {
    std::vector<char> begun;                   // by rank
    std::vector<int32_t> left;                 // messages that have not arrived
    std::vector<double> last;                  // time of the last arrival
    std::vector<std::vector<Message>> pending; // by their receiver, which has not begun yet
  };
  void count(size_t exchange, int64_t rank);

  const plan::Plan &plan;
  plan::Expander &expander;
  const Topology &topology;
  std::vector<const plan::Start *> starts;
  std::vector<ExchangeProgress> states;
  std::vector<Copies> allCopies; // by exchange and rank
  std::vector<std::vector<int32_t>> allReceives;
  std::vector<std::vector<Traffic>> allSent, allReceived;
  std::vector<std::vector<int64_t>> groups;
  std::vector<plan::BytesByKind> kinds;
};

} // namespace stepc::simulate

#endif
