//===- WatchdogTest.cpp - Exchanges that a stream is held up in ===//
#include "runtime/core/Watchdog.h"
#include "stepc/stepc.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <atomic>
#include <chrono>
#include <cstring>

using namespace stepc::runtime;
using testing::HasSubstr;

namespace {

constexpr double kTimeout = 0.4;

/// What is watched: a transport of which the thread uses two functions, and the words that a stream writes.
struct Watched {
  std::atomic<int> aborts = 0;
  std::atomic<bool> isBroken = false;
  int32_t words[2] = {};
  stepc_transport transport{};
  Watchdog watchdog{makeTransport(), words, kTimeout,
                    [](int64_t order) { return "exchange " + std::to_string(order); }};

  const stepc_transport &makeTransport() {
    transport.context = this;
    transport.test = [](void *context, void *handle, char *error, int64_t size) {
      EXPECT_EQ(handle, nullptr);
      if (!static_cast<Watched *>(context)->isBroken)
        return int32_t(1);
      std::strncpy(error, "the network is gone", size_t(size));
      return -int32_t(STEPC_ERROR_TRANSPORT);
    };
    transport.abort = [](void *context, const char *reason) {
      EXPECT_THAT(reason, HasSubstr("exchange"));
      ++static_cast<Watched *>(context)->aborts;
    };
    return transport;
  }

  void write(int32_t value) {
    for (int32_t &word : words)
      __atomic_store_n(&word, value, __ATOMIC_SEQ_CST);
  }
  static void sleep(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
  /// What it found within twice the timeout.
  int32_t found(std::string &message) const {
    int32_t status = 0;
    for (int i = 0; i < 200 && !status; ++i) {
      sleep(kTimeout / 20);
      status = watchdog.found(message);
    }
    return status;
  }
};

} // namespace

TEST(Watchdog, NamesTheExchangeThatTakesTooLong) {
  Watched watched;
  watched.write(Watchdog::kFirstExchange + 7);
  std::string message;
  EXPECT_EQ(watched.found(message), STEPC_ERROR_TIMEOUT);
  EXPECT_EQ(message, "exchange 7: no answer within 0.4 seconds");
  EXPECT_EQ(watched.aborts, 1);
}

// Outside of exchanges a stream may compute for as long as it likes.
TEST(Watchdog, LeavesAStreamAloneOutsideOfExchanges) {
  Watched watched;
  std::string message;
  Watched::sleep(2 * kTimeout);
  watched.write(Watchdog::kFirstExchange);
  watched.write(Watchdog::kOutside);
  Watched::sleep(2 * kTimeout);
  EXPECT_EQ(watched.watchdog.found(message), STEPC_OK);
  EXPECT_EQ(watched.aborts, 0);
}

// Replays of a graph write the same values again, and each time it looks the stream may be in the same exchange.
TEST(Watchdog, SeesThatReplaysGoOn) {
  Watched watched;
  std::string message;
  for (int i = 0; i < 60; ++i) {
    watched.write(Watchdog::kFirstExchange + 1);
    Watched::sleep(kTimeout / 20);
  }
  EXPECT_EQ(watched.watchdog.found(message), STEPC_OK);
  EXPECT_EQ(watched.found(message), STEPC_ERROR_TIMEOUT);
  EXPECT_THAT(message, HasSubstr("exchange 1"));
}

TEST(Watchdog, PassesOnWhatTheTransportFinds) {
  Watched watched;
  watched.write(Watchdog::kFirstExchange + 2);
  watched.isBroken = true;
  std::string message;
  EXPECT_EQ(watched.found(message), STEPC_ERROR_TRANSPORT);
  EXPECT_EQ(message, "exchange 2: the network is gone");
  EXPECT_EQ(watched.aborts, 1);
}
