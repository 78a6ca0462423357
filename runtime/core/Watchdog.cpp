//===- Watchdog.cpp - A thread that watches exchanges ------------------------===//
#include "runtime/core/Watchdog.h"
#include "runtime/text/Text.h"
#include "stepc/stepc.h"

#include <algorithm>
#include <chrono>

namespace stepc::runtime {

Watchdog::Watchdog(const stepc_transport &transport, int32_t *words, double timeout,
                   std::function<std::string(int64_t)> nameOf)
    : transport(transport), words(words), timeout(timeout), nameOf(std::move(nameOf)) {
  words[0] = words[1] = kOutside;
  thread = std::thread([this] {
    try {
      watch();
    } catch (...) {
      this->transport.abort(this->transport.context, "memory ran out where exchanges are watched");
    }
  });
}

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(mutex);
    isStopped = true;
  }
  changed.notify_all();
  thread.join();
}

int32_t Watchdog::found(std::string &message) const {
  std::lock_guard lock(mutex);
  if (status)
    message = text;
  return status;
}

void Watchdog::give(int32_t why, int32_t position, const std::string &message) {
  std::string whole =
      (position >= kFirstExchange ? nameOf(position - kFirstExchange) + ": " : "") + message;
  {
    std::lock_guard lock(mutex);
    status = why;
    text = whole;
  }
  transport.abort(transport.context, whole.c_str());
}

// The stream may write the words at any time, so each word is read once, by an atomic load.
void Watchdog::watch() {
  using Clock = std::chrono::steady_clock;
  auto tick = std::chrono::duration<double>(std::clamp(timeout / 8, 1e-3, 1.0));
  auto since = Clock::now();
  for (;;) {
    {
      std::unique_lock lock(mutex);
      if (changed.wait_for(lock, tick, [&] { return isStopped; }))
        return;
    }
    bool hasMoved = __atomic_exchange_n(&words[1], 0, __ATOMIC_SEQ_CST) != 0;
    int32_t position = __atomic_load_n(&words[0], __ATOMIC_SEQ_CST);
    auto now = Clock::now();
    if (hasMoved || position < kFirstExchange)
      since = now;
    char problem[512] = "";
    int32_t code = transport.test(transport.context, nullptr, problem, sizeof(problem));
    if (code < 0)
      return give(STEPC_ERROR_TRANSPORT, position,
                  *problem ? problem : format("the transport failed with code %d", -code));
    if (std::chrono::duration<double>(now - since).count() >= timeout)
      return give(STEPC_ERROR_TIMEOUT, position, format("no answer within %g seconds", timeout));
  }
}

} // namespace stepc::runtime
