//===- TransportTest.cpp - Steps over a transport of the trainer's ===//
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

/// A transport as a trainer might write it: mailboxes, messages copied when they are sent.
struct Mailboxes {
  std::mutex mutex;
  std::map<std::tuple<int, int, int64_t>, std::deque<std::vector<char>>> boxes;
  std::string abortReason;
  int destroyed = 0, aborts = 0;
  int failStart = -1;                      // rank whose starts fail without a word
  int64_t failFrom = -1;                   // from its start of this number on; -1: from the step on
  bool throwStart = false;                 // by an exception, that is
  std::vector<stepc_operation> leftBehind; // receives of failed starts
  std::map<int, int64_t> starts;           // of each rank
};
struct Box {
  Mailboxes *shared;
  int rank;
};

int32_t boxStart(void *context, const stepc_operations *group, void **handle, char *error,
                 int64_t size) {
  std::vector<stepc_operation> operations(group->operations, group->operations + group->count);
  Box &box = *static_cast<Box *>(context);
  std::lock_guard<std::mutex> lock(box.shared->mutex);
  int64_t start = box.shared->starts[box.rank]++, from = box.shared->failFrom;
  if (box.shared->failStart == box.rank && (from < 0 ? operations[0].tag >= 2 : start >= from)) {
    for (const stepc_operation &operation : operations)
      if (operation.kind == STEPC_RECEIVE)
        box.shared->leftBehind.push_back(operation);
    if (box.shared->throwStart)
      throw std::bad_alloc();
    return 77;
  }
  auto *receives = new std::vector<stepc_operation>;
  for (const stepc_operation &operation : operations) {
    auto *bytes = static_cast<const char *>(operation.send);
    if (operation.kind == STEPC_SEND)
      box.shared->boxes[{box.rank, operation.peer, operation.tag}].emplace_back(
          bytes, bytes + operation.bytes);
    else
      receives->push_back(operation);
  }
  *handle = receives;
  return 0;
}

int32_t boxTest(void *context, void *handle, char *error, int64_t size) {
  Box &box = *static_cast<Box *>(context);
  auto *receives = static_cast<std::vector<stepc_operation> *>(handle);
  std::lock_guard<std::mutex> lock(box.shared->mutex);
  std::erase_if(*receives, [&](const stepc_operation &message) {
    auto &queue = box.shared->boxes[{message.peer, box.rank, message.tag}];
    if (queue.empty())
      return false;
    std::memcpy(message.receive, queue.front().data(), message.bytes);
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
  int64_t traits = 0;
  Options options() {
    Options options;
    options.timeout = 5;
    options.connect = [this](std::vector<stepc_transport> &transports) {
      int size = int(transports.size());
      for (int rank = 0; rank < size; ++rank)
        boxes.push_back({&shared, rank});
      for (int rank = 0; rank < size; ++rank)
        transports[rank] = {STEPC_TRANSPORT_VERSION,
                            sizeof(stepc_transport),
                            rank,
                            size,
                            1 << STEPC_SEND | 1 << STEPC_RECEIVE,
                            traits,
                            &boxes[rank],
                            boxStart,
                            boxTest,
                            boxAbort,
                            boxDestroy,
                            nullptr,
                            nullptr,
                            nullptr};
    };
    return options;
  }
  void expectExceptionPoisons(const char *device);
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
  for (const stepc_operation &message : shared.leftBehind)
    std::memset(message.receive, 1, message.bytes);
}

// What a peer may still write does not go back to the trainer, who would lend it to others.
TEST_F(External, KeepsLentMemoryThatIsInFlight) {
  for (bool takesBack : {false, true}) {
    boxes.clear();
    shared.boxes.clear();
    shared.leftBehind.clear();
    shared.starts.clear();
    shared.abortReason.clear();
    shared.failStart = 1;
    traits = takesBack ? STEPC_TRANSPORT_TAKES_BACK : 0;
    std::atomic<int> given = 0;
    Options own = options();
    own.allocatorContext = &given;
    own.allocate = [](void *, int64_t bytes, int64_t alignment) {
      return std::aligned_alloc(alignment, (bytes + 63) / 64 * 64);
    };
    own.deallocate = [](void *context, void *memory, int64_t) {
      ++*static_cast<std::atomic<int> *>(context);
      std::free(memory);
    };
    runWorld(2, own, [&](Trainer &trainer, int) {
      trainer.bindAll();
      EXPECT_EQ(trainer.step(), STEPC_ERROR_TRANSPORT);
    });
    EXPECT_EQ(given, takesBack ? 2 : 0);
  }
}

// No exception reaches the program or the trainer; the instance is poisoned all the same.
void External::expectExceptionPoisons(const char *device) {
  shared.failStart = 1;
  shared.throwStart = true;
  Options given = options();
  given.fault = device;
  runWorld(2, given, [&](Trainer &trainer, int rank) {
    trainer.bindAll();
    EXPECT_EQ(trainer.step(), rank ? STEPC_ERROR_MEMORY : STEPC_ERROR_TRANSPORT);
    EXPECT_THAT(trainer.error(), HasSubstr(rank ? "rank 1: memory ran out" : "rank 1 aborted: "));
    EXPECT_EQ(trainer.halfStepped()[A], 1);
    EXPECT_EQ(trainer.step(), STEPC_ERROR_POISONED);
    EXPECT_EQ(trainer.library->recover(trainer.instance), STEPC_ERROR_TRANSPORT);
  });
  for (const stepc_operation &message : shared.leftBehind)
    std::memset(message.receive, 1, message.bytes);
}
TEST_F(External, AnExceptionOfItPoisons) { expectExceptionPoisons(""); }
// There it comes out of queued work, of which the rest is left undone.
TEST_F(External, AnExceptionOfItPoisonsOnTheEmulatedDevice) { expectExceptionPoisons("emulated"); }

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
      for (const stepc_operation &message : shared.leftBehind)
        std::memset(message.receive, 1, message.bytes);
      if (shared.starts[1] <= from) { // none was left to fail
        EXPECT_EQ(stepped, 2);
        EXPECT_GT(from, 4);
        break;
      }
      EXPECT_LT(stepped, 2);
    }
}

// Fail closed: no message leaves the ranks that its start brings together.
TEST(Transport, HasNoMessageBeyondACommunicator) {
  const stepc_library *library = load(4, "pairs");
  for (const Created &rank : createWorld({library, library, library, library}, defaultOptions())) {
    EXPECT_NE(rank.status, STEPC_OK);
    EXPECT_THAT(rank.message,
                HasSubstr("exchange 0 of group 'g_double' ('w0', 'w1' and 1 more) has a message "
                          "between this rank and rank"));
    EXPECT_THAT(rank.message, HasSubstr("which is none of the 2 that meet in it"));
  }
}

} // namespace
