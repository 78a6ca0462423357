//===- TransportTest.cpp - In-process ranks, and a transport of the trainer's ===//
#include "test/unit/runtime/Harness.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <thread>

using namespace stepc::test;
using testing::HasSubstr;

namespace {

/// Two in-process ranks, driven by hand from one thread.
class InProcess : public testing::Test {
protected:
  void SetUp() override { load(1)->in_process_world(2, ranks); }
  void TearDown() override {
    for (stepc_transport &rank : ranks)
      if (rank.destroy)
        rank.destroy(rank.context);
  }
  void *start(int rank, std::vector<stepc_message> messages) {
    void *handle = nullptr;
    status = ranks[rank].start(ranks[rank].context, messages.data(), messages.size(), &handle,
                               error, sizeof(error));
    return handle;
  }
  int32_t poll(int rank, void *handle) {
    return ranks[rank].test(ranks[rank].context, handle, error, sizeof(error));
  }
  void leave(int rank) {
    ranks[rank].destroy(ranks[rank].context);
    ranks[rank].destroy = nullptr;
  }

  stepc_transport ranks[2];
  int32_t status = 0;
  char error[256] = "";
};

TEST_F(InProcess, MovesBytesAndNamesWhomItWaitsFor) {
  int value = 42, got = 0;
  void *send = start(0, {{1, 1, &value, sizeof(value), 7}});
  EXPECT_EQ(poll(0, send), 0);
  EXPECT_STREQ(error, "rank 1");
  void *receive = start(1, {{0, 0, &got, sizeof(got), 7}});
  EXPECT_EQ(poll(1, receive), 1);
  EXPECT_EQ(got, 42);
  EXPECT_EQ(poll(0, send), 1);
}

// A rank may be a step ahead: messages of one tag keep their order.
TEST_F(InProcess, KeepsTheOrderOfATag) {
  int first = 1, second = 2, got[2] = {};
  void *a = start(0, {{1, 1, &first, 4, 7}});
  void *b = start(0, {{1, 1, &second, 4, 7}});
  void *receive = start(1, {{0, 0, &got[0], 4, 7}, {0, 0, &got[1], 4, 7}});
  EXPECT_EQ(poll(1, receive), 1);
  EXPECT_EQ(got[0], 1);
  EXPECT_EQ(got[1], 2);
  EXPECT_EQ(poll(0, a), 1);
  EXPECT_EQ(poll(0, b), 1);
}

TEST_F(InProcess, RefusesOtherByteCounts) {
  char from[64] = {}, to[64] = {};
  void *send = start(0, {{1, 1, from, 64, 5}});
  void *receive = start(1, {{0, 0, to, 32, 5}});
  EXPECT_EQ(poll(1, receive), -STEPC_ERROR_TRANSPORT);
  EXPECT_STREQ(error, "rank 0 sends 64 bytes with tag 5 to rank 1, which expects 32");
  EXPECT_EQ(poll(0, send), -STEPC_ERROR_TRANSPORT);
  EXPECT_STREQ(error, "rank 0 sends 64 bytes with tag 5 to rank 1, which expects 32");
}

TEST_F(InProcess, RefusesIllFormedMessages) {
  char byte = 0;
  start(0, {{0, 1, &byte, 1, 0}});
  EXPECT_EQ(status, STEPC_ERROR_ARGUMENT);
  EXPECT_THAT(error, HasSubstr("message 0 is ill-formed: peer 0"));
  start(0, {{1, 1, &byte, 0, 0}});
  EXPECT_EQ(status, STEPC_ERROR_ARGUMENT);
  start(0, {{2, 1, &byte, 1, 0}});
  EXPECT_EQ(status, STEPC_ERROR_ARGUMENT);
}

TEST_F(InProcess, AbortReachesWhatIsInFlightAndWhatComes) {
  char byte = 0;
  void *receive = start(1, {{0, 0, &byte, 1, 0}});
  ranks[0].abort(ranks[0].context, "no more");
  EXPECT_EQ(poll(1, receive), -STEPC_ERROR_TRANSPORT);
  EXPECT_STREQ(error, "rank 0 aborted: no more");
  start(1, {{0, 1, &byte, 1, 0}});
  EXPECT_EQ(status, STEPC_ERROR_TRANSPORT);
  EXPECT_STREQ(error, "rank 0 aborted: no more");
}

TEST_F(InProcess, ALeavingRankFailsItsPeers) {
  char byte = 0;
  void *receive = start(1, {{0, 0, &byte, 1, 0}});
  leave(0);
  EXPECT_EQ(poll(1, receive), -STEPC_ERROR_TRANSPORT);
  EXPECT_STREQ(error, "rank 0 has left the world");
}

TEST_F(InProcess, CutsALongReason) {
  char byte = 0;
  void *receive = start(1, {{0, 0, &byte, 1, 0}});
  ranks[0].abort(ranks[0].context, std::string(5000, 'x').c_str());
  EXPECT_EQ(poll(1, receive), -STEPC_ERROR_TRANSPORT);
  EXPECT_THAT(error, HasSubstr("rank 0 aborted: xxx"));
}

// What was complete before stays complete.
TEST_F(InProcess, ADoneExchangeSurvivesAnAbort) {
  int value = 1, got = 0;
  void *send = start(0, {{1, 1, &value, 4, 0}});
  void *receive = start(1, {{0, 0, &got, 4, 0}});
  EXPECT_EQ(poll(1, receive), 1);
  ranks[1].abort(ranks[1].context, "later");
  EXPECT_EQ(poll(0, send), 1);
}

/// A transport as a trainer might write it: mailboxes, messages copied when they are sent.
struct Mailboxes {
  std::mutex mutex;
  std::map<std::tuple<int, int, int64_t>, std::deque<std::vector<char>>> boxes;
  std::string abortReason;
  int destroyed = 0, aborts = 0;
  int failStart = -1;                    // rank whose starts fail without a word
  int64_t failFrom = -1;                 // from its start of this number on; -1: from the step on
  bool throwStart = false;               // by an exception, that is
  std::vector<stepc_message> leftBehind; // receives of failed starts
  std::map<int, int64_t> starts;         // of each rank
};
struct Box {
  Mailboxes *shared;
  int rank;
};

int32_t boxStart(void *context, const stepc_message *messages, int64_t count, void **handle,
                 char *error, int64_t size) {
  Box &box = *static_cast<Box *>(context);
  std::lock_guard<std::mutex> lock(box.shared->mutex);
  int64_t start = box.shared->starts[box.rank]++, from = box.shared->failFrom;
  if (box.shared->failStart == box.rank && (from < 0 ? messages[0].tag >= 4096 : start >= from)) {
    for (int64_t i = 0; i < count; ++i)
      if (!messages[i].is_send)
        box.shared->leftBehind.push_back(messages[i]);
    if (box.shared->throwStart)
      throw std::bad_alloc();
    return 77;
  }
  auto *receives = new std::vector<stepc_message>;
  for (int64_t i = 0; i < count; ++i) {
    const stepc_message &message = messages[i];
    auto *bytes = static_cast<char *>(message.buffer);
    if (message.is_send)
      box.shared->boxes[{box.rank, message.peer, message.tag}].emplace_back(bytes,
                                                                            bytes + message.bytes);
    else
      receives->push_back(message);
  }
  *handle = receives;
  return 0;
}

int32_t boxTest(void *context, void *handle, char *error, int64_t size) {
  Box &box = *static_cast<Box *>(context);
  auto *receives = static_cast<std::vector<stepc_message> *>(handle);
  std::lock_guard<std::mutex> lock(box.shared->mutex);
  std::erase_if(*receives, [&](const stepc_message &message) {
    auto &queue = box.shared->boxes[{message.peer, box.rank, message.tag}];
    if (queue.empty())
      return false;
    std::memcpy(message.buffer, queue.front().data(), message.bytes);
    queue.pop_front();
    return true;
  });
  bool done = receives->empty();
  if (done || !box.shared->abortReason.empty())
    delete receives;
  if (done)
    return 1;
  if (box.shared->abortReason.empty())
    return 0;
  std::snprintf(error, size, "%s", box.shared->abortReason.c_str());
  return -STEPC_ERROR_TRANSPORT;
}

void boxAbort(void *context, const char *reason) {
  Box &box = *static_cast<Box *>(context);
  std::lock_guard<std::mutex> lock(box.shared->mutex);
  ++box.shared->aborts;
  if (box.shared->abortReason.empty())
    box.shared->abortReason = "rank " + std::to_string(box.rank) + " aborted: " + reason;
}

void boxDestroy(void *context) {
  Box &box = *static_cast<Box *>(context);
  std::lock_guard<std::mutex> lock(box.shared->mutex);
  ++box.shared->destroyed;
}

class External : public testing::Test {
protected:
  Mailboxes shared;
  std::vector<Box> boxes;
  Options options() {
    Options options;
    options.timeout = 5;
    options.connect = [this](std::vector<stepc_transport> &transports) {
      int size = int(transports.size());
      for (int rank = 0; rank < size; ++rank)
        boxes.push_back({&shared, rank});
      for (int rank = 0; rank < size; ++rank)
        transports[rank] = {STEPC_TRANSPORT_VERSION,
                            rank,
                            size,
                            &boxes[rank],
                            boxStart,
                            boxTest,
                            boxAbort,
                            boxDestroy};
    };
    return options;
  }
};

TEST_F(External, CarriesASteppingWorld) {
  std::vector<std::vector<float>> whole = wholeParameters();
  std::mutex mutex;
  runWorld(4, options(), [&](Trainer &trainer, int) {
    trainer.bindAll();
    for (int64_t step = 1; step <= 3; ++step) {
      trainer.fillGradients(step);
      ASSERT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    }
    std::lock_guard<std::mutex> lock(mutex);
    trainer.collect(whole);
  });
  EXPECT_EQ(whole, expectedParameters(3));
  EXPECT_EQ(shared.destroyed, 4);
  EXPECT_EQ(shared.aborts, 0);
}

TEST_F(External, ItsErrorsStopTheStepEverywhere) {
  shared.failStart = 1;
  runWorld(2, options(), [&](Trainer &trainer, int rank) {
    trainer.bindAll();
    EXPECT_EQ(trainer.step(), STEPC_ERROR_TRANSPORT);
    EXPECT_THAT(trainer.error(), HasSubstr("the transport failed with code 77"));
    if (rank == 0) {
      EXPECT_THAT(trainer.error(), HasSubstr("rank 1 aborted"));
    }
  });
  EXPECT_EQ(shared.aborts, 2);
  EXPECT_EQ(shared.destroyed, 2);
  // A start that failed half-way may have left receives behind: their memory stays, as the
  // address sanitizer sees here.
  EXPECT_FALSE(shared.leftBehind.empty());
  for (const stepc_message &message : shared.leftBehind)
    std::memset(message.buffer, 1, message.bytes);
}

// No exception reaches the program or the trainer; the instance is poisoned all the same.
TEST_F(External, AnExceptionOfItPoisons) {
  shared.failStart = 1;
  shared.throwStart = true;
  runWorld(2, options(), [&](Trainer &trainer, int rank) {
    trainer.bindAll();
    EXPECT_EQ(trainer.step(), rank ? STEPC_ERROR_MEMORY : STEPC_ERROR_TRANSPORT);
    EXPECT_THAT(trainer.error(), HasSubstr(rank ? "rank 1: memory ran out" : "rank 1 aborted: "));
    EXPECT_EQ(trainer.halfStepped()[W0], 1);
    EXPECT_EQ(trainer.step(), STEPC_ERROR_POISONED);
    EXPECT_EQ(trainer.library->recover(trainer.instance), STEPC_ERROR_TRANSPORT);
  });
  for (const stepc_message &message : shared.leftBehind)
    std::memset(message.buffer, 1, message.bytes);
}

// Whichever start fails, in create, in the agreement on absent gradients or in a step: every rank
// ends with an error, and memory that a receive may still write stays.
TEST_F(External, AnyStartMayFail) {
  for (bool throws : {false, true})
    for (int64_t from = 0;; ++from) {
      SCOPED_TRACE(std::to_string(from) + (throws ? " throws" : ""));
      ASSERT_LT(from, 50);
      boxes.clear();
      shared.boxes.clear();
      shared.leftBehind.clear();
      shared.starts.clear();
      shared.abortReason.clear();
      shared.failStart = 1;
      shared.failFrom = from;
      shared.throwStart = throws;
      std::atomic<int> stepped = 0;
      Options given = options();
      given.createMayFail = true;
      given.fault = "skip";
      runWorld(2, given, [&](Trainer &trainer, int) {
        trainer.bindAll();
        int32_t status = STEPC_OK;
        for (int64_t step = 1; step <= 2 && !status; ++step) {
          trainer.fillGradients(step);
          status = trainer.step();
        }
        stepped += !status;
        EXPECT_EQ(trainer.error().empty(), !status);
      });
      for (const stepc_message &message : shared.leftBehind)
        std::memset(message.buffer, 1, message.bytes);
      if (shared.starts[1] <= from) { // none was left to fail
        EXPECT_EQ(stepped, 2);
        EXPECT_GT(from, 4);
        break;
      }
      EXPECT_LT(stepped, 2);
    }
}

} // namespace
