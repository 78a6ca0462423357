//===- Exchanges.h - What ranks send in a program's starts ------*- C++ -*-===//
#ifndef STEPC_PASSES_SIMULATE_EXCHANGES_H
#define STEPC_PASSES_SIMULATE_EXCHANGES_H

#include "passes/simulate/Network.h"
#include "passes/simulate/Simulate.h"
#include "runtime/plan/Tables.h"

namespace stepc::simulate {

/// The exchanges of a program: which messages may travel, and which ranks have all of theirs. Messages
/// are expanded when a rank begins an exchange, so that those of a few exchanges are there at a time.
class Exchanges {
public:
  Exchanges(const plan::Plan &plan, plan::Expander &expander, const Topology &topology);

  /// Bytes that a rank copies beside an exchange: those wanted twice before it, its own part after.
  struct Copies {
    int64_t repeated = 0, own = 0;
  };
  Copies copies(int64_t exchange, int64_t rank) const {
    return allCopies[size_t(exchange) * topology.ranks() + size_t(rank)];
  }
  /// What a rank sends and receives in all exchanges, by level.
  const std::vector<Traffic> &sent(int64_t rank) const { return allSent[size_t(rank)]; }
  const std::vector<Traffic> &received(int64_t rank) const { return allReceived[size_t(rank)]; }
  /// By group and level: what all ranks send for it.
  const std::vector<std::vector<int64_t>> &groupBytes() const { return groups; }
  /// By group and kind of move: what all ranks send for it.
  const std::vector<plan::BytesByKind> &groupKinds() const { return kinds; }

  /// Before each step: no rank has begun anything.
  void reset();
  /// What a rank sends in an exchange, in the order in which it turns to its peers.
  void sends(int64_t exchange, int64_t rank, std::vector<Message> &messages) const;
  /// A rank begins an exchange and sends `sends`. `ready` gets its messages with ranks that have already
  /// begun it.
  void begin(int64_t exchange, int64_t rank, const std::vector<Message> &sends,
             std::vector<Message> &ready);
  /// A message arrives at `time`.
  void arrive(const Message &message, double time);
  /// Whether all of a rank's messages have arrived, here or there, and when the last one did: a rank
  /// that has none is done when it begins.
  bool isDone(int64_t exchange, int64_t rank) const;
  double last(int64_t exchange, int64_t rank) const;

private:
  struct ExchangeProgress {
    std::vector<char> begun;                   // by rank
    std::vector<int32_t> left;                 // messages
    std::vector<double> last;                  // arrival
    std::vector<std::vector<Message>> pending; // by the end that has not begun it yet
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
