//===- Watchdog.h - A thread that watches exchanges --------------*- C++ -*-===//
//
// If exchanges are on a stream of a device, no thread waits for them, and a missing peer would stop the
// stream for ever. Therefore the stream writes two words of the host's memory before and after each exchange.
// One word says which exchange the stream is in. This thread clears the other, and so sees that a replayed
// graph goes on, although it writes the same values again. Events would not do: a graph cannot be asked for
// them.
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
  /// What the words hold outside exchanges, and in the first exchange; exchange i writes kFirstExchange + i.
  static constexpr int32_t kOutside = 1, kFirstExchange = 2;

  /// Watches `words`, two words. Aborts the transport if an exchange takes longer than `timeout` seconds, or
  /// if the transport reports a problem. `nameOf` gives the name of an exchange by its order.
  Watchdog(const stepc_transport &transport, int32_t *words, double timeout,
           std::function<std::string(int64_t)> nameOf);
  ~Watchdog();
  Watchdog(const Watchdog &) = delete;

  /// The status of the problem that it found, with its message. STEPC_OK if there is none.
  int32_t found(std::string &message) const;

private:
  void watch();
  void give(int32_t status, int32_t position, const std::string &why);

  const stepc_transport transport;
  int32_t *const words;
  const double timeout;
  const std::function<std::string(int64_t)> nameOf;
  mutable std::mutex mutex; // guards the members below
  std::condition_variable changed;
  bool isStopped = false;
  int32_t status = 0;
  std::string text;
  std::thread thread; // last: it uses all other members
};

} // namespace stepc::runtime

#endif
