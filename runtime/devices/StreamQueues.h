//===- StreamQueues.h - Two streams that are carried out later ---*- C++ -*-===//
//
// For devices on this machine that draw the order in which they carry out two streams. As on a GPU, only the
// order of each stream and the events between them limit this order.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_DEVICES_STREAMQUEUES_H
#define STEPC_RUNTIME_DEVICES_STREAMQUEUES_H

#include "runtime/devices/Device.h"

#include <array>
#include <deque>
#include <functional>
#include <random>

namespace stepc::runtime {

class StreamQueues {
public:
  using Random = std::mt19937_64;

  void add(Stream stream, std::function<void()> run) { push(stream, {std::move(run), -1, -1}); }
  /// Records an event on a stream. Returns its number, for which the other stream may wait.
  int64_t record(Stream stream) {
    push(stream, {nullptr, -1, recorded});
    return recorded++;
  }
  void wait(Stream stream, int64_t record) { push(stream, {nullptr, record, -1}); }

  /// Draws how often the second stream goes first: never, at half of the turns, or always if waits let it.
  static double drawBias(Random &random) {
    constexpr std::array kBias = {0., 0.5, 1.};
    return kBias[random() % kBias.size()];
  }

  /// Carries out all commands. Returns false if the streams wait for each other. If a function throws, the
  /// caller must drop the rest by `clear`.
  bool carryOut(Random &random, double bias) {
    std::bernoulli_distribution second(bias);
    // Whether each record since the queues were last empty is done.
    std::vector<bool> done(size_t(recorded - settled), false);
    auto isReady = [&](const std::deque<Command> &queue) {
      return !queue.empty() &&
             (queue.front().waitsFor < settled || done[size_t(queue.front().waitsFor - settled)]);
    };
    for (;;) {
      size_t next = second(random) ? 1 : 0;
      if (!isReady(queues[next]))
        next = 1 - next;
      if (!isReady(queues[next]))
        break;
      Command command = std::move(queues[next].front());
      queues[next].pop_front();
      if (command.run)
        command.run();
      if (command.records >= 0)
        done[size_t(command.records - settled)] = true;
    }
    bool all = queues[0].empty() && queues[1].empty();
    clear();
    return all;
  }

  void clear() noexcept {
    for (auto &queue : queues)
      queue.clear();
    settled = recorded;
  }

private:
  struct Command {
    std::function<void()> run;
    int64_t waitsFor, records; ///< numbers of records; -1 if none
  };

  void push(Stream stream, Command command) {
    queues[size_t(stream)].push_back(std::move(command));
  }

  std::array<std::deque<Command>, 2> queues;
  int64_t recorded = 0, settled = 0;
};

} // namespace stepc::runtime

#endif
