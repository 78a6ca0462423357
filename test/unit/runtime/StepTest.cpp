//===- StepTest.cpp - Life of an instance, and what a step does --------------===//
#include "test/unit/runtime/Harness.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace stepc::test;
using testing::HasSubstr;

namespace {

std::vector<std::vector<float>> train(int32_t size, int64_t steps, const Options &options = {}) {
  std::vector<std::vector<float>> whole = wholeParameters();
  std::mutex mutex;
  runWorld(size, options, [&](Trainer &trainer, int) {
    trainer.bindAll();
    for (int64_t step = 1; step <= steps; ++step) {
      trainer.fillGradients(step);
      ASSERT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    }
    EXPECT_EQ(trainer.steps, std::vector<int64_t>(kParameters, steps));
    std::lock_guard<std::mutex> lock(mutex);
    trainer.collect(whole);
  });
  return whole;
}

class Worlds : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Worlds, testing::Values(1, 2, 4));

// Every world, empty shards included, makes the same bits as arithmetic without a library.
TEST_P(Worlds, StepsLikeOneRank) { EXPECT_EQ(train(GetParam(), 3), expectedParameters(3)); }

TEST_P(Worlds, StepsTheSameWithFourThreads) {
  Options options;
  options.threads = 4;
  EXPECT_EQ(train(GetParam(), 3, options), expectedParameters(3));
}

TEST_P(Worlds, ExecutedCountersEqualPlanned) {
  std::atomic<int64_t> sent{0}, received{0}, messages{0};
  runWorld(GetParam(), {}, [&](Trainer &trainer, int) {
    trainer.bindAll();
    trainer.fillGradients(1);
    ASSERT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    stepc_counters done = trainer.executed(), planned = trainer.planned();
    EXPECT_EQ(done.launches, planned.launches);
    EXPECT_EQ(done.chunks, planned.chunks);
    EXPECT_EQ(done.exchanges, 2);
    EXPECT_EQ(done.messages_sent, planned.messages_sent);
    EXPECT_EQ(done.messages_received, planned.messages_received);
    EXPECT_EQ(done.bytes_sent, planned.bytes_sent);
    EXPECT_EQ(done.bytes_received, planned.bytes_received);
    sent += done.bytes_sent;
    received += done.bytes_received;
    messages += done.messages_sent;
  });
  // Of three 8 × 6 blocks each owner has its own part already; there and back.
  int64_t size = GetParam();
  constexpr int64_t kSeal = 32; // bytes behind the values of each message
  EXPECT_EQ(sent, 2 * 3 * 48 * 4 * (size - 1) / size + kSeal * messages);
  EXPECT_EQ(received, sent);
  // A rank that owns several blocks receives one message from each peer.
  EXPECT_EQ(messages, 2 * std::min<int64_t>(size, 3) * (size - 1));
}

struct Loop {
  std::atomic<int64_t> calls{0};
};
void reversed(void *context, stepc_task task, void *arguments, int64_t count, int64_t grain) {
  static_cast<Loop *>(context)->calls++;
  std::thread helper([&] {
    for (int64_t first = (count - 1) / grain * grain; first >= 0; first -= grain)
      task(arguments, first, std::min(first + grain, count));
  });
  helper.join();
}

TEST(Parallel, TheTrainersLoopIsUsed) {
  Loop loop;
  Options options;
  options.parallelFor = reversed;
  options.parallelContext = &loop;
  EXPECT_EQ(train(2, 2, options), expectedParameters(2));
  EXPECT_GT(loop.calls, 0);
}

#if defined(__x86_64__)
// The trainer's modes neither reach the program nor are lost.
TEST(FloatModes, AreSetAndRestored) {
  Options options;
  options.fault = "denormals"; // the program refuses to run where denormals are flushed
  runWorld(1, options, [&](Trainer &trainer, int) {
    trainer.bindAll();
    unsigned before = _mm_getcsr();
    unsigned flushing = before | 0x8040;
    _mm_setcsr(flushing);
    int32_t status = trainer.step();
    unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(status, STEPC_OK) << trainer.error();
    EXPECT_EQ(after, flushing);
  });
}
#endif

TEST(Info, DescribesParametersStatesAndRoutes) {
  const stepc_library *library = load(4);
  EXPECT_STREQ(library->name, "hand");
  EXPECT_EQ(library->abi_version, STEPC_ABI_VERSION);
  EXPECT_EQ(library->struct_size, int32_t(sizeof(stepc_library)));
  EXPECT_EQ(library->device, STEPC_DEVICE_CPU);
  EXPECT_EQ(library->world_size(), 4);
  EXPECT_EQ(library->world_ranks()[3], 3);
  EXPECT_GT(library->workspace_bytes(), 0);
  EXPECT_EQ(library->parameter_count(), kParameters);
  EXPECT_EQ(library->route_count(), 4);
  EXPECT_STREQ(library->route_name(DecayZero), "Decay.1");
  EXPECT_EQ(library->route_name(4), nullptr);
  EXPECT_STREQ(library->route_rule(DecayZero), "Decay");
  EXPECT_EQ(library->route_rule(4), nullptr);
  EXPECT_EQ(library->hyperparameter_count(Decay), 2);
  EXPECT_STREQ(library->hyperparameter_name(Decay, 1), "keep");
  EXPECT_EQ(library->hyperparameter_name(Decay, 2), nullptr);
  EXPECT_EQ(library->hyperparameter_default(Decay, 0), 0.5);
  EXPECT_TRUE(std::isnan(library->hyperparameter_default(DecayAsk, 0)));

  auto info = sized<stepc_parameter_info>();
  ASSERT_EQ(library->parameter_info(nullptr, W1, &info), STEPC_OK);
  EXPECT_STREQ(info.name, "w1");
  EXPECT_STREQ(info.route, "Double");
  EXPECT_STREQ(info.dtype, "f32");
  EXPECT_STREQ(info.placements, "[S(0)]");
  EXPECT_STREQ(info.gradient_placements, "[S(0)]");
  EXPECT_STREQ(info.mesh, "dp");
  EXPECT_EQ(info.global_shape[1], 6);
  EXPECT_EQ(info.local_shape, nullptr);
  EXPECT_EQ(library->parameter_info(nullptr, kParameters, &info), STEPC_ERROR_ARGUMENT);

  runWorld(4, {}, [&](Trainer &trainer, int rank) {
    auto info = sized<stepc_parameter_info>();
    ASSERT_EQ(library->parameter_info(trainer.instance, Short, &info), STEPC_OK);
    EXPECT_EQ(info.local_shape[0], rank < 3 ? 1 : 0);
    EXPECT_EQ(info.gradient_local_shape[0], rank < 3 ? 1 : 0);
    EXPECT_EQ(info.member, 1);
    // The master of an f32 parameter is the parameter.
    EXPECT_EQ(info.states, 1);
    auto state = sized<stepc_state_info>();
    ASSERT_EQ(library->state_info(trainer.instance, A, 0, &state), STEPC_OK);
    EXPECT_STREQ(state.name, "m");
    EXPECT_STREQ(state.kind, "full");
    EXPECT_EQ(state.local_shape[1], 4);
    EXPECT_EQ(library->state_info(trainer.instance, A, 1, &state), STEPC_ERROR_ARGUMENT);
  });
}

// On a CPU a step that is enqueued is done, and polling says so.
TEST(Enqueue, IsAStep) {
  runWorld(1, {}, [&](Trainer &trainer, int) {
    trainer.bindAll();
    int32_t done = 0;
    for (int64_t step = 1; step <= 2; ++step) {
      trainer.fillGradients(step);
      ASSERT_EQ(trainer.library->enqueue(trainer.instance), STEPC_OK) << trainer.error();
      EXPECT_EQ(trainer.library->poll(trainer.instance, &done), STEPC_OK);
      EXPECT_EQ(done, 1);
    }
    EXPECT_EQ(trainer.parameters, expectedParameters(2));
    trainer.library->bind_gradient(trainer.instance, A, nullptr, 0);
    EXPECT_EQ(trainer.library->enqueue(trainer.instance), STEPC_ERROR_GRADIENT);
    EXPECT_EQ(trainer.library->poll(trainer.instance, nullptr), STEPC_ERROR_ARGUMENT);
  });
}

/// Memory of a trainer's that counts what it lends.
struct Lender {
  int64_t lent = 0, given = 0;
  static void *allocate(void *context, int64_t bytes, int64_t alignment) {
    EXPECT_EQ(alignment, 64);
    static_cast<Lender *>(context)->lent += bytes;
    void *memory = std::aligned_alloc(alignment, (bytes + 63) / 64 * 64);
    std::memset(memory, 0xff, bytes); // what was there before
    return memory;
  }
  static void deallocate(void *context, void *memory, int64_t bytes) {
    static_cast<Lender *>(context)->given += bytes;
    std::free(memory);
  }
};

TEST(Workspace, IsTheTrainers) {
  Lender lender;
  stepc_options options = defaultOptions();
  options.allocate = Lender::allocate;
  options.deallocate = Lender::deallocate;
  options.allocator_context = &lender;
  stepc_instance *instance = nullptr;
  ASSERT_EQ(load(1)->create(&options, &instance, nullptr, 0), STEPC_OK);
  EXPECT_EQ(lender.lent, load(1)->workspace_bytes());
  Trainer trainer(load(1), instance);
  trainer.place(0, 1);
  trainer.bindAll();
  trainer.fillGradients(1);
  EXPECT_EQ(trainer.step(), STEPC_OK) << trainer.error();
  EXPECT_EQ(trainer.parameters, expectedParameters(1));
  EXPECT_EQ(lender.given, 0);
  load(1)->destroy(instance);
  EXPECT_EQ(lender.given, lender.lent);
}

// Rates are read in every step, from the rows that the trainer owns.
TEST(Hyperparameters, FollowTheTrainersGroups) {
  runWorld(1, {}, [&](Trainer &trainer, int) {
    trainer.bindAll();
    double values[2][2] = {{0.5, 0.0}, {0.0, 0.0}};
    std::vector<int32_t> groups(kParameters, 0);
    groups[B] = 1;
    ASSERT_EQ(trainer.library->bind_hyperparameters(trainer.instance, &values[0][0], 2, 2,
                                                    groups.data(), STEPC_MEMORY_HOST),
              STEPC_OK);
    trainer.fillGradients(1);
    auto before = trainer.parameters;
    ASSERT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    EXPECT_EQ(trainer.parameters[A][3], before[A][3] - 0.5f * trainer.gradients[A][3]);
    EXPECT_EQ(trainer.parameters[B], before[B]);
    values[0][0] = 0;
    before = trainer.parameters;
    ASSERT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    EXPECT_EQ(trainer.parameters[A], before[A]);
    // Back to the routes' own.
    ASSERT_EQ(trainer.library->bind_hyperparameters(trainer.instance, nullptr, 0, 0, nullptr,
                                                    STEPC_MEMORY_HOST),
              STEPC_OK);
    ASSERT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    EXPECT_NE(trainer.parameters[A], before[A]);
  });
}

TEST(MissingGradient, ZeroStepsAsWithZeros) {
  runWorld(2, {}, [&](Trainer &trainer, int) {
    trainer.bindAll();
    trainer.fillGradients(1);
    ASSERT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    auto moments = trainer.moments[Zero];
    ASSERT_EQ(trainer.library->bind_gradient(trainer.instance, Zero, nullptr, 0), STEPC_OK);
    ASSERT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    for (size_t i = 0; i < moments.size(); ++i)
      EXPECT_EQ(trainer.moments[Zero][i], 0.25f * moments[i]);
    EXPECT_EQ(trainer.steps[Zero], 2);
  });
}

// Absent on one rank: skipped on all; neither state, parameter nor step count changes.
TEST(MissingGradient, SkipIsAgreedUpon) {
  Options options;
  options.fault = "skip";
  runWorld(4, options, [&](Trainer &trainer, int rank) {
    trainer.bindAll();
    trainer.fillGradients(1);
    if (rank == 1) {
      trainer.library->bind_gradient(trainer.instance, A, nullptr, 0);
      trainer.library->bind_gradient(trainer.instance, W1, nullptr, 0);
    }
    auto parameters = trainer.parameters, moments = trainer.moments;
    ASSERT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    EXPECT_EQ(trainer.parameters[A], parameters[A]);
    EXPECT_EQ(trainer.moments[A], moments[A]);
    EXPECT_EQ(trainer.parameters[W1], parameters[W1]);
    EXPECT_EQ(trainer.steps[A], 0);
    EXPECT_EQ(trainer.steps[W1], 0);
    EXPECT_EQ(trainer.steps[B], 1);
    if (!parameters[B].empty()) {
      EXPECT_NE(trainer.parameters[B], parameters[B]);
    }
    EXPECT_NE(trainer.parameters[W0], parameters[W0]);
    // The null gradient of an empty shard is not an absent one.
    EXPECT_EQ(trainer.steps[Short], 1);
    trainer.bindGradients();
    ASSERT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    EXPECT_EQ(trainer.steps[A], 1);
    EXPECT_EQ(trainer.steps[B], 2);
  });
}

TEST(Process, HoldsSeveralLibrariesAndInstances) {
  ASSERT_NE(load(2), load(2, "hash"));
  EXPECT_NE(load(2)->plan_hash, load(2, "hash")->plan_hash);
  Options other;
  other.fault = "hash";
  std::vector<std::vector<float>> first, second;
  std::thread a([&] { first = train(2, 4); });
  std::thread b([&] { second = train(2, 4, other); });
  a.join();
  b.join();
  EXPECT_EQ(first, expectedParameters(4));
  EXPECT_EQ(second, expectedParameters(4));
}

} // namespace
