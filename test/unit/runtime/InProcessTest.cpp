//===- InProcessTest.cpp - What in-process ranks do with operations ---------===//
#include "test/unit/runtime/Harness.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace stepc::test;
using testing::HasSubstr;

namespace {

stepc_operation sendTo(int32_t peer, const void *buffer, int64_t bytes, int64_t tag) {
  return {STEPC_SEND, peer, nullptr, buffer, nullptr, bytes, tag, STEPC_ELEMENT_NONE, 0};
}

stepc_operation receiveFrom(int32_t peer, void *buffer, int64_t bytes, int64_t tag) {
  return {STEPC_RECEIVE, peer, nullptr, nullptr, buffer, bytes, tag, STEPC_ELEMENT_NONE, 0};
}

stepc_operation allGather(void *communicator, const void *send, void *receive, int64_t bytes,
                          int64_t tag) {
  return {STEPC_ALL_GATHER, -1, communicator, send, receive, bytes, tag, STEPC_ELEMENT_NONE, 0};
}

stepc_operations groupOf(const std::vector<stepc_operation> &operations) {
  return {sizeof(stepc_operations), sizeof(stepc_operation), operations.data(),
          int64_t(operations.size()), nullptr};
}

/// In-process ranks, driven by hand from one thread.
class InProcess : public testing::Test {
protected:
  void SetUp() override { ranks = transportsOf(load(1), 3); }
  void TearDown() override {
    for (stepc_transport &rank : ranks)
      if (rank.destroy)
        rank.destroy(rank.context);
  }
  void *start(int rank, std::vector<stepc_operation> operations) {
    void *handle = nullptr;
    stepc_operations group = groupOf(operations);
    status = ranks[rank].start(ranks[rank].context, &group, &handle, error, sizeof(error));
    return handle;
  }
  void *open(int rank, std::vector<int32_t> members) {
    void *communicator = nullptr, *handle = nullptr;
    status = ranks[rank].open_communicator(ranks[rank].context, members.data(), members.size(),
                                           &communicator, &handle, error, sizeof(error));
    EXPECT_EQ(handle, nullptr);
    return communicator;
  }
  void close(int rank, void *communicator) {
    ranks[rank].close_communicator(ranks[rank].context, communicator);
  }
  int32_t poll(int rank, void *handle) {
    return ranks[rank].test(ranks[rank].context, handle, error, sizeof(error));
  }
  void leave(int rank) {
    ranks[rank].destroy(ranks[rank].context);
    ranks[rank].destroy = nullptr;
  }

  std::vector<stepc_transport> ranks;
  int32_t status = 0;
  char error[256] = "";
};

TEST_F(InProcess, MovesBytesAndNamesWhomItWaitsFor) {
  int value = 42, got = 0;
  void *send = start(0, {sendTo(1, &value, sizeof(value), 7)});
  EXPECT_EQ(poll(0, send), 0);
  EXPECT_STREQ(error, "rank 1");
  void *receive = start(1, {receiveFrom(0, &got, sizeof(got), 7)});
  EXPECT_EQ(poll(1, receive), 1);
  EXPECT_EQ(got, 42);
  EXPECT_EQ(poll(0, send), 1);
}

// A rank may be a step ahead: messages of one tag keep their order.
TEST_F(InProcess, KeepsTheOrderOfATag) {
  int first = 1, second = 2, got[2] = {};
  void *a = start(0, {sendTo(1, &first, 4, 7)});
  void *b = start(0, {sendTo(1, &second, 4, 7)});
  void *receive = start(1, {receiveFrom(0, &got[0], 4, 7), receiveFrom(0, &got[1], 4, 7)});
  EXPECT_EQ(poll(1, receive), 1);
  EXPECT_EQ(got[0], 1);
  EXPECT_EQ(got[1], 2);
  EXPECT_EQ(poll(0, a), 1);
  EXPECT_EQ(poll(0, b), 1);
}

TEST_F(InProcess, RefusesOtherByteCounts) {
  char from[64] = {}, to[64] = {};
  void *send = start(0, {sendTo(1, from, 64, 5)});
  void *receive = start(1, {receiveFrom(0, to, 32, 5)});
  EXPECT_EQ(poll(1, receive), -STEPC_ERROR_TRANSPORT);
  EXPECT_STREQ(error, "rank 0 sends 64 bytes with tag 5 to rank 1, which expects 32");
  EXPECT_EQ(poll(0, send), -STEPC_ERROR_TRANSPORT);
  EXPECT_STREQ(error, "rank 0 sends 64 bytes with tag 5 to rank 1, which expects 32");
}

TEST_F(InProcess, RefusesIllFormedMessages) {
  char byte = 0;
  start(0, {sendTo(0, &byte, 1, 0)});
  EXPECT_EQ(status, STEPC_ERROR_ARGUMENT);
  EXPECT_THAT(error, HasSubstr("operation 0 is ill-formed: kind 0, peer 0, 1 bytes"));
  start(0, {sendTo(1, &byte, 0, 0)});
  EXPECT_EQ(status, STEPC_ERROR_ARGUMENT);
  start(0, {sendTo(3, &byte, 1, 0)});
  EXPECT_EQ(status, STEPC_ERROR_ARGUMENT);
}

TEST_F(InProcess, AbortReachesWhatIsInFlightAndWhatComes) {
  char byte = 0;
  void *receive = start(1, {receiveFrom(0, &byte, 1, 0)});
  ranks[0].abort(ranks[0].context, "no more");
  EXPECT_EQ(poll(1, receive), -STEPC_ERROR_TRANSPORT);
  EXPECT_STREQ(error, "rank 0 aborted: no more");
  start(1, {sendTo(0, &byte, 1, 0)});
  EXPECT_EQ(status, STEPC_ERROR_TRANSPORT);
  EXPECT_STREQ(error, "rank 0 aborted: no more");
}

TEST_F(InProcess, ALeavingRankFailsItsPeers) {
  char byte = 0;
  void *receive = start(1, {receiveFrom(0, &byte, 1, 0)});
  leave(0);
  EXPECT_EQ(poll(1, receive), -STEPC_ERROR_TRANSPORT);
  EXPECT_STREQ(error, "rank 0 has left the world");
}

TEST_F(InProcess, CutsALongReason) {
  char byte = 0;
  void *receive = start(1, {receiveFrom(0, &byte, 1, 0)});
  ranks[0].abort(ranks[0].context, std::string(5000, 'x').c_str());
  EXPECT_EQ(poll(1, receive), -STEPC_ERROR_TRANSPORT);
  EXPECT_THAT(error, HasSubstr("rank 0 aborted: xxx"));
}

// What was complete before stays complete.
TEST_F(InProcess, ADoneExchangeSurvivesAnAbort) {
  int value = 1, got = 0;
  void *send = start(0, {sendTo(1, &value, 4, 0)});
  void *receive = start(1, {receiveFrom(0, &got, 4, 0)});
  EXPECT_EQ(poll(1, receive), 1);
  ranks[1].abort(ranks[1].context, "later");
  EXPECT_EQ(poll(0, send), 1);
}

// In the order of the communicator's ranks, which is not the world's.
TEST_F(InProcess, GathersOnACommunicator) {
  void *communicators[3] = {open(0, {2, 0}), nullptr, open(2, {2, 0})};
  int mine[3] = {10, 11, 12}, got[3][2] = {};
  got[2][0] = mine[2]; // in place
  void *first = start(0, {allGather(communicators[0], &mine[0], got[0], 4, 7)});
  EXPECT_EQ(poll(0, first), 0);
  EXPECT_STREQ(error, "rank 2");
  void *second = start(2, {allGather(communicators[2], &got[2][0], got[2], 4, 7)});
  EXPECT_EQ(poll(2, second), 0); // has received; rank 0 has not
  EXPECT_EQ(poll(0, first), 1);
  EXPECT_EQ(poll(2, second), 1);
  for (int rank : {0, 2})
    EXPECT_THAT(got[rank], testing::ElementsAre(12, 10));
  // Peers are its ranks, too.
  stepc_operation to = sendTo(1, &mine[2], 4, 8), from = receiveFrom(0, got[0], 4, 8);
  to.communicator = communicators[2], from.communicator = communicators[0];
  second = start(2, {to});
  first = start(0, {from});
  EXPECT_EQ(poll(0, first), 1);
  EXPECT_EQ(got[0][0], 12);
  EXPECT_EQ(poll(2, second), 1);
  close(0, communicators[0]);
  close(2, communicators[2]);
}

TEST_F(InProcess, GathersOverTheWorldBesideMessages) {
  char mine[3] = {'a', 'b', 'c'}, got[3][3] = {}, word = 'w', heard = 0;
  void *handles[3];
  handles[0] = start(0, {allGather(nullptr, &mine[0], got[0], 1, 7), sendTo(2, &word, 1, 8)});
  handles[1] = start(1, {allGather(nullptr, &mine[1], got[1], 1, 7)});
  handles[2] = start(2, {receiveFrom(0, &heard, 1, 8), allGather(nullptr, &mine[2], got[2], 1, 7)});
  for (int round = 0; round < 2; ++round)
    for (int rank = 0; rank < 3; ++rank)
      if (handles[rank] && poll(rank, handles[rank]))
        handles[rank] = nullptr;
  EXPECT_THAT(handles, testing::Each(nullptr));
  for (auto &row : got)
    EXPECT_THAT(row, testing::ElementsAre('a', 'b', 'c'));
  EXPECT_EQ(heard, 'w');
}

TEST_F(InProcess, RefusesKindsThatItLacks) {
  float value = 1;
  stepc_operation reduce = allGather(nullptr, &value, &value, 4, 7);
  reduce.kind = STEPC_ALL_REDUCE;
  reduce.element = STEPC_ELEMENT_F32;
  EXPECT_FALSE(ranks[0].kinds >> STEPC_ALL_REDUCE & 1);
  start(0, {reduce});
  EXPECT_EQ(status, STEPC_ERROR_ARGUMENT);
  EXPECT_STREQ(error, "operation 0 is of kind 4, expected send (0), receive (1) or all-gather (2)");
  reduce.kind = -1;
  start(0, {reduce});
  EXPECT_EQ(status, STEPC_ERROR_ARGUMENT);
}

TEST_F(InProcess, RefusesIllFormedCommunicators) {
  EXPECT_EQ(open(0, {0, 1, 0}), nullptr);
  EXPECT_EQ(status, STEPC_ERROR_ARGUMENT);
  EXPECT_STREQ(error, "member 2 of a communicator is rank 0, expected another one of the 3 ranks "
                      "of the world");
  EXPECT_EQ(open(0, {0, 3}), nullptr);
  EXPECT_THAT(error, HasSubstr("member 1 of a communicator is rank 3"));
  EXPECT_EQ(open(0, {1, 2}), nullptr);
  EXPECT_STREQ(error, "expected rank 0 among the 2 members of the communicator that it opens");
}

// Of a later header that appends to an operation, or of an older one that is no more.
TEST_F(InProcess, ReadsOperationsByTheirSize) {
  struct Longer {
    stepc_operation operation;
    int64_t appended;
  };
  int value[2] = {1, 2}, got[2] = {};
  Longer sends[2] = {{sendTo(1, &value[0], 4, 1), -1}, {sendTo(1, &value[1], 4, 2), -1}};
  stepc_operations group{sizeof(group), sizeof(Longer), &sends[0].operation, 2, nullptr};
  void *handle = nullptr;
  ASSERT_EQ(ranks[0].start(ranks[0].context, &group, &handle, error, sizeof(error)), STEPC_OK);
  void *second = start(1, {receiveFrom(0, &got[0], 4, 1), receiveFrom(0, &got[1], 4, 2)});
  EXPECT_EQ(poll(1, second), 1);
  EXPECT_THAT(got, testing::ElementsAre(1, 2));
  EXPECT_EQ(poll(0, handle), 1);
  group.operation_size = 32;
  EXPECT_EQ(ranks[0].start(ranks[0].context, &group, &handle, error, sizeof(error)),
            STEPC_ERROR_ARGUMENT);
  EXPECT_STREQ(error, "expected operations of 56 bytes, found 32");
}

} // namespace
