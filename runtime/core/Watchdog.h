//===- Watchdog.h - A thread that watches exchanges --------------*- C++ -*-===//
//
// Where exchanges stand on a stream of a device nobody waits for them, and a peer that does not come would
// hold up the stream for ever. The stream itself tells how far it is: around each exchange it writes to two
// words of the host's memory, one that tells which exchange it is in, and one that is cleared here. So
// replays of a graph, which write what they wrote before, are seen to go on; no event is needed, which
// a graph could not hold.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_CORE_WATCHDOG_H
#define STEPC_RUNTIME_CORE_WATCHDOG_H

#include "stepc/transport.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace stepc::runtime {

class Watchdog {
public:
  /// What the words hold outside of exchanges, and within the first one.
  static constexpr int32_t kOutside = 1, kFirstExchange = 2;

  /// Watches two words, which are outside. An exchange that takes longer than `timeout` seconds, or a problem
  /// that the transport finds, ends the transport by an abort. `nameOf` tells of an exchange by its order.
  Watchdog(const stepc_transport &transport, int32_t *words, double timeout,
           std::function<std::string(int64_t)> nameOf);
  ~Watchdog();
  Watchdog(const Watchdog &) = delete;

  /// What it found, as a status, with the message.
  int32_t found(std::string &message) const;

private:
  void watch();
  void give(int32_t status, int32_t position, const std::string &why);

  const stepc_transport transport;
  int32_t *const words;
  const double timeout;
  const std::function<std::string(int64_t)> nameOf;
  mutable std::mutex mutex; // of what follows
  std::condition_variable changed;
  bool isStopped = false;
  int32_t status = 0;
  std::string text;
  std::thread thread; // last: it uses all other members
};

} // namespace stepc::runtime

#endif
