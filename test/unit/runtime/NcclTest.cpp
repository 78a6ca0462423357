//===- NcclTest.cpp - The transport over NCCL, on an NCCL that is the host ===//
//
// Ranks are threads. The driver and NCCL are those of test/devices, linked in.
//
//===----------------------------------------------------------------------===//
#include "stepc/nccl.h"
#include "stepc/sized.h"
#include "stepc/stepc.h"
#include "test/devices/Stub.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <chrono>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

using namespace stepc::runtime;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

extern "C" const StubDriver *stepc_stub_driver();

namespace {

constexpr double kTimeout = 20;

const cuda::Driver &driver() { return *stepc_stub_driver()->functions; }

/// One rank: its transport, a stream and some of the GPU's memory.
class Rank {
public:
  Rank(const stepc_nccl_id &id, int32_t rank, int32_t size, double timeout) {
    char error[512] = "";
    status = stepc_nccl_transport(&id, rank, size, 0, timeout, &transport, error, sizeof(error));
    message = error;
    cuda::Context context = nullptr;
    driver().cuDevicePrimaryCtxRetain(&context, 0);
    driver().cuCtxPushCurrent_v2(context);
    driver().cuStreamCreate(&stream, cuda::kNonBlocking);
    driver().cuMemAlloc_v2(&memory, kFloats * sizeof(float));
  }
  ~Rank() {
    if (transport.destroy)
      transport.destroy(transport.context);
    driver().cuMemFree_v2(memory);
    driver().cuStreamDestroy_v2(stream);
    cuda::Context left;
    driver().cuCtxPopCurrent_v2(&left);
  }

  float *floats() const { return reinterpret_cast<float *>(memory); }

  /// Starts operations on the rank's stream, or of the host's memory.
  int32_t start(std::vector<stepc_operation> operations, bool isOnStream = true) {
    char error[512] = "";
    stepc_operations group{int32_t(sizeof(group)), int32_t(sizeof(stepc_operation)),
                           operations.data(), int64_t(operations.size()),
                           isOnStream ? stream : nullptr};
    handle = nullptr;
    int32_t code = transport.start(transport.context, &group, &handle, error, sizeof(error));
    message = error;
    EXPECT_TRUE(code || (handle == nullptr) == isOnStream);
    return code;
  }
  /// Until the handle is done.
  int32_t wait() {
    char error[512] = "";
    int32_t code;
    do
      code = transport.test(transport.context, handle, error, sizeof(error));
    while (code == 0);
    message = error;
    return code;
  }
  void *open(std::vector<int32_t> members) {
    char error[512] = "";
    void *communicator = nullptr;
    int32_t code =
        transport.open_communicator(transport.context, members.data(), int32_t(members.size()),
                                    &communicator, &handle, error, sizeof(error));
    message = error;
    EXPECT_TRUE(code || wait() == 1) << message;
    return communicator;
  }

  static constexpr size_t kFloats = 64;
  stepc_transport transport = stepc::sized<stepc_transport>();
  int32_t status = 0;
  std::string message;
  cuda::StreamHandle stream = nullptr;
  cuda::Address memory = 0;
  void *handle = nullptr;
};

void inWorld(int32_t size, const std::function<void(Rank &, int32_t)> &run,
             double timeout = kTimeout) {
  stepc_nccl_id id;
  ASSERT_EQ(stepc_nccl_unique_id(&id, nullptr, 0), STEPC_OK);
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      Rank self(id, rank, size, timeout);
      EXPECT_EQ(self.status, STEPC_OK) << self.message;
      if (!self.status)
        run(self, rank);
    });
  for (std::thread &thread : threads)
    thread.join();
}

stepc_operation operation(int32_t kind, int32_t peer, const void *send, void *receive,
                          int64_t bytes, void *communicator = nullptr,
                          int32_t element = STEPC_ELEMENT_NONE) {
  return {kind, peer, communicator, send, receive, bytes, 0, element, 0};
}

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

} // namespace

TEST(Nccl, SaysWhatItIs) {
  inWorld(2, [](Rank &self, int32_t rank) {
    EXPECT_EQ(self.transport.rank, rank);
    EXPECT_EQ(self.transport.size, 2);
    EXPECT_EQ(self.transport.kinds, 0x1f);
    EXPECT_EQ(self.transport.traits, STEPC_TRANSPORT_ON_DEVICE | STEPC_TRANSPORT_OPENS_TOGETHER);
    EXPECT_EQ(self.transport.test(self.transport.context, nullptr, nullptr, 0), 1);
  });
}

TEST(Nccl, MovesMemoryOfTheGpuOnAStream) {
  inWorld(3, [](Rank &self, int32_t rank) {
    float *at = self.floats();
    std::iota(at, at + 4, float(10 * rank));
    int32_t next = (rank + 1) % 3, last = (rank + 2) % 3;
    ASSERT_EQ(self.start({operation(STEPC_SEND, next, at, nullptr, 16),
                          operation(STEPC_RECEIVE, last, nullptr, at + 8, 16)}),
              STEPC_OK)
        << self.message;
    EXPECT_EQ(at[11], float(10 * last + 3));
    // In place, as the library gathers.
    at[16 + rank] = float(rank);
    ASSERT_EQ(self.start({operation(STEPC_ALL_GATHER, -1, at + 16 + rank, at + 16, 4)}), STEPC_OK);
    EXPECT_EQ(std::vector<float>(at + 16, at + 19), std::vector<float>({0, 1, 2}));
    stepc_traffic traffic;
    self.transport.traffic(self.transport.context, &traffic);
    EXPECT_EQ(traffic.messages_sent, 1 + 2);
    EXPECT_EQ(traffic.bytes_received, 16 + 2 * 4);
  });
}

TEST(Nccl, AddsWhereItIsAskedTo) {
  inWorld(2, [](Rank &self, int32_t rank) {
    float *at = self.floats();
    std::fill(at, at + 4, float(rank + 1));
    ASSERT_EQ(
        self.start({operation(STEPC_ALL_REDUCE, -1, at, at + 8, 16, nullptr, STEPC_ELEMENT_F32)}),
        STEPC_OK)
        << self.message;
    EXPECT_EQ(std::vector<float>(at + 8, at + 12), std::vector<float>(4, 3));
    ASSERT_EQ(self.start(
                  {operation(STEPC_REDUCE_SCATTER, -1, at, at + 8, 8, nullptr, STEPC_ELEMENT_F32)}),
              STEPC_OK)
        << self.message;
    EXPECT_EQ(at[9], 3);
  });
}

TEST(Nccl, MovesTheHostsMemoryWithAHandle) {
  inWorld(4, [](Rank &self, int32_t rank) {
    // Longer each time, so that staging memory grows.
    for (size_t count : {1u, 1000u, 10u}) {
      std::vector<int64_t> own(count, rank), all(4 * count, -1);
      int64_t bytes = int64_t(count * sizeof(int64_t));
      ASSERT_EQ(self.start({operation(STEPC_ALL_GATHER, -1, own.data(), all.data(), bytes)}, false),
                STEPC_OK)
          << self.message;
      ASSERT_EQ(self.wait(), 1) << self.message;
      for (size_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(all[i], int64_t(i / count));
    }
  });
}

TEST(Nccl, OpensDisjointCommunicatorsTogether) {
  inWorld(5, [](Rank &self, int32_t rank) {
    // Two of two ranks each, in other orders than the world's, and a rank in none.
    std::vector<int32_t> members = rank == 4  ? std::vector<int32_t>()
                                   : rank % 2 ? std::vector<int32_t>{1, 3}
                                              : std::vector<int32_t>{0, 2};
    void *communicator = self.open(members);
    EXPECT_EQ(communicator == nullptr, rank == 4);
    if (!communicator)
      return;
    float *at = self.floats();
    at[0] = float(rank);
    ASSERT_EQ(self.start({operation(STEPC_ALL_GATHER, -1, at, at + 8, 4, communicator)}), STEPC_OK);
    EXPECT_EQ(at[8], float(members[0]));
    EXPECT_EQ(at[9], float(members[1]));
    // A rank of the communicator, not of the world.
    int32_t peer = members[0] == rank ? 1 : 0;
    ASSERT_EQ(self.start({operation(STEPC_SEND, peer, at, nullptr, 4, communicator),
                          operation(STEPC_RECEIVE, peer, nullptr, at + 1, 4, communicator)}),
              STEPC_OK);
    EXPECT_EQ(at[1], float(members[size_t(peer)]));
    EXPECT_EQ(self.start({operation(STEPC_SEND, peer, at, nullptr, 4, communicator),
                          operation(STEPC_RECEIVE, 0, nullptr, at + 1, 4)}),
              STEPC_ERROR_TRANSPORT);
    EXPECT_THAT(self.message, HasSubstr("operation 1 is of another communicator"));
    self.transport.close_communicator(self.transport.context, communicator);
  });
}

TEST(Nccl, RefusesOperationsThatAreIllFormed) {
  inWorld(2, [](Rank &self, int32_t rank) {
    float *at = self.floats();
    for (const stepc_operation &wrong :
         {operation(STEPC_SEND, rank, at, nullptr, 4), operation(STEPC_SEND, 2, at, nullptr, 4),
          operation(STEPC_SEND, 1 - rank, nullptr, nullptr, 4),
          operation(STEPC_RECEIVE, 1 - rank, at, nullptr, 4),
          operation(STEPC_SEND, 1 - rank, at, nullptr, 0), operation(7, 0, at, at, 4),
          operation(STEPC_ALL_REDUCE, -1, at, at, 4),
          operation(STEPC_ALL_REDUCE, -1, at, at, 6, nullptr, STEPC_ELEMENT_F32),
          operation(STEPC_ALL_GATHER, -1, at, at, 4, nullptr, STEPC_ELEMENT_F32)}) {
      EXPECT_EQ(self.start({wrong}), STEPC_ERROR_TRANSPORT);
      EXPECT_THAT(self.message, HasSubstr("operation 0 is ill-formed"));
    }
    char error[256] = "";
    stepc_operations group{8, 8, nullptr, 0, self.stream};
    EXPECT_NE(self.transport.start(self.transport.context, &group, &self.handle, error, 256), 0);
    EXPECT_THAT(error, HasSubstr("expected operations of 56 bytes, found 8"));
  });
}

TEST(Nccl, PassesOnWhatItRefuses) {
  inWorld(2, [](Rank &self, int32_t rank) {
    float *at = self.floats();
    int64_t bytes = rank ? 8 : 16;
    EXPECT_EQ(self.start({operation(STEPC_SEND, 1 - rank, at, nullptr, bytes),
                          operation(STEPC_RECEIVE, 1 - rank, nullptr, at + 8, 16)}),
              STEPC_ERROR_TRANSPORT);
    EXPECT_THAT(self.message, HasSubstr("rank 1 sends 8 of type 0 to rank 0, which expects 16"));
    EXPECT_EQ(self.transport.test(self.transport.context, nullptr, nullptr, 0),
              -STEPC_ERROR_TRANSPORT);
    self.transport.abort(self.transport.context, "unequal sizes");
  });
}

TEST(Nccl, RefusesAStreamOfAnotherGpu) {
  setenv("STEPC_STUB_FOREIGN", "1", 1);
  inWorld(2, [](Rank &self, int32_t rank) {
    float *at = self.floats();
    EXPECT_EQ(self.start({operation(STEPC_SEND, 1 - rank, at, nullptr, 4)}), STEPC_ERROR_TRANSPORT);
    EXPECT_EQ(self.message,
              "expected a stream of GPU 0, on which the transport was made, found one "
              "of another context");
  });
  unsetenv("STEPC_STUB_FOREIGN");
}

// Two collectives of different communicators in two orders: NCCL would wait for ever, the stand-in finds it.
TEST(Nccl, FindsACrossedOrder) {
  inWorld(2, [](Rank &self, int32_t rank) {
    void *first = self.open({0, 1}), *second = self.open({0, 1});
    float *at = self.floats();
    auto gather = [&](void *communicator) {
      return self.start({operation(STEPC_ALL_GATHER, -1, at, at + 8, 4, communicator)});
    };
    EXPECT_EQ(gather(rank ? second : first), STEPC_ERROR_TRANSPORT);
    EXPECT_THAT(self.message, HasSubstr("all ranks wait: rank 0 for kind 2"));
    self.transport.abort(self.transport.context, "a crossed order");
  });
}

// As the library's watchdog does it: the thread that waits gets the reason, and so does whoever comes later.
TEST(Nccl, AbortsFromAnotherThread) {
  auto begin = Clock::now();
  inWorld(2, [](Rank &self, int32_t rank) {
    if (rank == 1)
      return std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      self.transport.abort(self.transport.context, "exchange 3 takes too long");
      self.transport.abort(self.transport.context, "a second reason");
    });
    float *at = self.floats();
    const char *reason = "rank 0 aborted: exchange 3 takes too long";
    EXPECT_EQ(self.start({operation(STEPC_RECEIVE, 1, nullptr, at, 4)}), STEPC_ERROR_TRANSPORT);
    EXPECT_EQ(self.message, reason);
    other.join();
    EXPECT_EQ(self.start({operation(STEPC_RECEIVE, 1, nullptr, at, 4)}), STEPC_ERROR_TRANSPORT);
    EXPECT_EQ(self.message, reason);
    char error[256] = "";
    EXPECT_EQ(self.transport.test(self.transport.context, nullptr, error, sizeof(error)),
              -STEPC_ERROR_TRANSPORT);
    EXPECT_EQ(std::string(error), reason);
  });
  EXPECT_LT(secondsSince(begin), kTimeout / 2);
}

// NCCL waits for graphs that hold a communicator. Whoever destroys it does not.
TEST(Nccl, LeavesCommunicatorsThatAGraphHolds) {
  auto begin = Clock::now();
  setenv("STEPC_STUB_NCCL_HELD", "1", 1);
  inWorld(
      2,
      [](Rank &self, int32_t) {
        void *communicator = self.open({0, 1});
        self.transport.close_communicator(self.transport.context, communicator);
      },
      1);
  unsetenv("STEPC_STUB_NCCL_HELD");
  EXPECT_LT(secondsSince(begin), 10);
}

TEST(Nccl, RefusesAWorldThatItCannotBeIn) {
  stepc_nccl_id id;
  ASSERT_EQ(stepc_nccl_unique_id(&id, nullptr, 0), STEPC_OK);
  char error[512] = "";
  auto make = [&](int32_t rank, int32_t size, int32_t gpu, double timeout) {
    auto transport = stepc::sized<stepc_transport>();
    return stepc_nccl_transport(&id, rank, size, gpu, timeout, &transport, error, sizeof(error));
  };
  EXPECT_EQ(make(2, 2, 0, 1), STEPC_ERROR_WORLD);
  EXPECT_THAT(error, HasSubstr("expected a rank below the 2 of the world, found rank 2"));
  EXPECT_EQ(make(0, 2, 0, -1), STEPC_ERROR_ARGUMENT);
  EXPECT_THAT(error, HasSubstr("timeout_seconds is negative"));
  EXPECT_EQ(make(0, 2, 9, 1), STEPC_ERROR_TRANSPORT);
  EXPECT_THAT(error, HasSubstr("expected the number of a GPU below 1, found 9"));
  // The other never comes.
  EXPECT_EQ(make(0, 2, 0, 0.2), STEPC_ERROR_TIMEOUT);
  EXPECT_THAT(error, HasSubstr("ncclCommInitRankConfig was not done within 0.2 seconds"));
  stepc_transport small{};
  small.struct_size = 40;
  EXPECT_EQ(stepc_nccl_transport(&id, 0, 2, 0, 1, &small, error, sizeof(error)), STEPC_ERROR_ABI);
  EXPECT_THAT(error, HasSubstr("expected a transport of 96 bytes, found struct_size 40"));
  EXPECT_EQ(stepc_nccl_transport(nullptr, 0, 2, 0, 1, &small, error, sizeof(error)),
            STEPC_ERROR_ARGUMENT);
  EXPECT_EQ(stepc_nccl_unique_id(nullptr, error, sizeof(error)), STEPC_ERROR_ARGUMENT);
  EXPECT_THAT(error, HasSubstr("the place for the id is null"));
}
