//===- FailureTest.cpp - Late ranks, aborts, and programs that stray ---------===//
#include "test/unit/runtime/Harness.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>

using namespace stepc::test;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

namespace {

double seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

// The others return within the configured time and say whom they waited for; the late one learns
// that it was given up; nobody claims that nothing happened.
TEST(Failure, ALateRankTimesOut) {
  Options options;
  options.timeout = 0.5;
  runWorld(4, options, [&](Trainer &trainer, int rank) {
    trainer.bindAll();
    trainer.fillGradients(1);
    ASSERT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    if (rank == 2)
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    auto begin = std::chrono::steady_clock::now();
    int32_t status = trainer.step();
    EXPECT_LT(seconds(begin), 5);
    if (rank == 2) {
      EXPECT_EQ(status, STEPC_ERROR_TRANSPORT);
      EXPECT_THAT(trainer.error(), HasSubstr("aborted: exchange 0"));
    } else {
      // The first whose time is up tells the rest.
      EXPECT_THAT(status, AnyOf(STEPC_ERROR_TIMEOUT, STEPC_ERROR_TRANSPORT));
      EXPECT_THAT(trainer.error(),
                  AllOf(HasSubstr("exchange 0 of group 'g_double' ('w0', 'w1' and 1 more)"),
                        HasSubstr("no answer within 0.5 seconds from"), HasSubstr("rank 2")));
    }
    EXPECT_THAT(trainer.error(), HasSubstr(rank == 3 ? "may be half stepped ('whole', 'zero', "
                                                     : "may be half stepped ('a', 'b', "));
    // The pack stage of the w's has run, which only reads their gradients.
    EXPECT_EQ(trainer.halfStepped()[A], trainer.parameters[A].empty() ? 0 : 1);
    EXPECT_EQ(trainer.halfStepped()[W0], 0);
    EXPECT_EQ(trainer.steps, std::vector<int64_t>(kParameters, 1));
    EXPECT_EQ(trainer.step(), STEPC_ERROR_POISONED);
    EXPECT_THAT(trainer.error(), HasSubstr("poisoned until recover()"));
    EXPECT_EQ(trainer.library->recover(trainer.instance), STEPC_ERROR_TRANSPORT);
    EXPECT_THAT(trainer.error(), HasSubstr("make a new instance"));
  });
}

TEST(Failure, ALateRankTimesOutInCreate) {
  std::vector<stepc_transport> transports = transportsOf(load(2), 2);
  stepc_options options = defaultOptions();
  options.timeout_seconds = 0.2;
  char error[512];
  for (stepc_transport &transport : transports) {
    options.transport = &transport;
    stepc_instance *instance = nullptr;
    int32_t status = load(2)->create(&options, &instance, error, sizeof(error));
    EXPECT_EQ(status, transport.rank ? STEPC_ERROR_TRANSPORT : STEPC_ERROR_TIMEOUT);
    EXPECT_THAT(error, transport.rank ? HasSubstr("rank 0 aborted: comparing libraries")
                                      : HasSubstr("no answer within 0.2 seconds from rank 1"));
    transport.destroy(transport.context);
  }
}

TEST(Failure, ATrainersAbortReachesThePeers) {
  std::barrier created(4); // else a peer may hear of it in create
  runWorld(4, {}, [&](Trainer &trainer, int rank) {
    trainer.bindAll();
    created.arrive_and_wait();
    if (rank == 3) {
      trainer.library->bind_gradient(trainer.instance, A, nullptr, 0);
      trainer.library->bind_gradient(trainer.instance, W2, nullptr, 0);
      EXPECT_EQ(trainer.step(), STEPC_ERROR_GRADIENT);
      EXPECT_EQ(trainer.library->abort(trainer.instance, "no gradient of w2"), STEPC_OK);
      EXPECT_EQ(trainer.step(), STEPC_ERROR_POISONED);
      return;
    }
    auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(trainer.step(), STEPC_ERROR_TRANSPORT);
    EXPECT_LT(seconds(begin), 10);
    EXPECT_THAT(trainer.error(), HasSubstr("rank 3 aborted: no gradient of w2"));
  });
}

// What a function returns that ended by an exception is whatever was in its register.
TEST(Failure, AnUnknownCodeOfATransportIsAnError) {
  static bool aborted;
  aborted = false;
  stepc_transport transport{};
  transport.version = STEPC_TRANSPORT_VERSION;
  transport.struct_size = sizeof(transport);
  transport.size = 2;
  transport.kinds = 1 << STEPC_SEND | 1 << STEPC_RECEIVE;
  transport.start = [](void *, const stepc_operations *, void **, char *, int64_t) {
    return int32_t(STEPC_OK);
  };
  transport.test = [](void *, void *, char *, int64_t) { return int32_t(21930); };
  transport.abort = [](void *, const char *) { aborted = true; };
  stepc_options options = defaultOptions();
  options.transport = &transport;
  stepc_instance *instance = nullptr;
  char error[512];
  EXPECT_EQ(load(2)->create(&options, &instance, error, sizeof(error)), STEPC_ERROR_TRANSPORT);
  EXPECT_THAT(error, HasSubstr("the transport's test returned 21930, expected 1 (done), 0"));
  EXPECT_EQ(instance, nullptr);
  EXPECT_TRUE(aborted);
}

// A rank that is destroyed does not leave its peers to their timeout.
TEST(Failure, ALeavingRankIsNoticed) {
  runWorld(2, {}, [&](Trainer &trainer, int rank) {
    trainer.bindAll();
    if (rank == 1)
      return;
    EXPECT_EQ(trainer.step(), STEPC_ERROR_TRANSPORT);
    EXPECT_THAT(trainer.error(), HasSubstr("rank 1 has left the world"));
  });
}

// An exception in a step that has begun, here of the trainer's threads.
TEST(Failure, AnExceptionPoisonsAndNamesWhatMayBeHalfStepped) {
  Options options;
  bool throws = true;
  options.parallelContext = &throws;
  options.parallelFor = [](void *context, stepc_task task, void *arguments, int64_t count,
                           int64_t) {
    if (*static_cast<bool *>(context))
      throw std::bad_alloc();
    task(arguments, 0, count);
  };
  runWorld(1, options, [&](Trainer &trainer, int) {
    trainer.bindAll();
    trainer.fillGradients(1);
    EXPECT_EQ(trainer.step(), STEPC_ERROR_MEMORY);
    EXPECT_THAT(trainer.error(), AllOf(HasSubstr("rank 0"), HasSubstr("memory ran out")));
    std::vector<uint8_t> flags = trainer.halfStepped();
    EXPECT_GT(std::count(flags.begin(), flags.end(), 1), 0);
    EXPECT_EQ(trainer.steps, std::vector<int64_t>(kParameters, 0));
    EXPECT_EQ(trainer.step(), STEPC_ERROR_POISONED);
    EXPECT_THAT(trainer.error(), HasSubstr("memory ran out"));
    EXPECT_EQ(trainer.library->recover(trainer.instance), STEPC_OK);
    EXPECT_EQ(trainer.error(), "");
    throws = false;
    EXPECT_EQ(trainer.step(), STEPC_OK) << trainer.error();
  });
}

struct Stray {
  const char *fault, *message;
  int changed =
      9; ///< parameters that the failed step may have changed: all of them, or all but the w's
};
class Strays : public testing::TestWithParam<Stray> {};
INSTANTIATE_TEST_SUITE_P(
    Devices, Strays,
    testing::Values(
        Stray{"launch-missing", "the step made 7 launches, planned are 8"},
        Stray{"product-missing", "the step made 7 launches, planned are 8"},
        Stray{"launch-extra", "the step made 9 launches, planned are 8"},
        Stray{"twice", "('w0', 'w1' and 1 more) was started twice in one step", 6},
        Stray{"nostart",
              "exchange 1 of group 'g_double' ('w0', 'w1' and 1 more) is awaited, but is "
              "not under way",
              6},
        Stray{"nowait", "exchange 1 of group 'g_double' ('w0', 'w1' and 1 more) was never waited "
                        "for"},
        Stray{"noend", "device 'cpu' did not come to the end of the program"}),
    [](const auto &info) {
      std::string name = info.param.fault;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// A device that does other than the plan says is found out, and the step said to have half stepped.
// On one rank there is no transport to lose: recover, once the trainer has restored its tensors.
TEST_P(Strays, AreRefused) {
  Options options;
  options.fault = GetParam().fault;
  runWorld(1, options, [&](Trainer &trainer, int) {
    trainer.bindAll();
    EXPECT_EQ(trainer.step(), STEPC_ERROR_COUNTS);
    EXPECT_THAT(trainer.error(), HasSubstr(GetParam().message));
    EXPECT_THAT(trainer.error(), HasSubstr(std::to_string(GetParam().changed) +
                                           " parameters or their states may be half stepped"));
    std::vector<uint8_t> changed(kParameters, 1);
    if (GetParam().changed == 6)
      changed[W0] = changed[W1] = changed[W2] = 0;
    EXPECT_EQ(trainer.halfStepped(), changed);
    EXPECT_EQ(trainer.steps, std::vector<int64_t>(kParameters, 0));
    EXPECT_EQ(trainer.step(), STEPC_ERROR_POISONED);
    EXPECT_EQ(trainer.library->recover(trainer.instance), STEPC_OK);
    EXPECT_EQ(trainer.halfStepped(), std::vector<uint8_t>(kParameters, 0));
    EXPECT_EQ(trainer.step(), STEPC_ERROR_COUNTS);
  });
}

// A transport that says to be done with what it lost: what it carried out, it counts where it does so.
TEST(Failure, AnExchangeThatTheTransportLostIsFound) {
  static stepc_transport original;
  static std::atomic<bool> loses;
  loses = false;
  Options options;
  options.connect = [](std::vector<stepc_transport> &transports) {
    transports = transportsOf(load(2), 2);
    original = transports[0];
    for (stepc_transport &transport : transports) {
      transport.start = [](void *context, const stepc_operations *group, void **handle, char *error,
                           int64_t size) {
        *handle = nullptr;
        return loses ? int32_t(STEPC_OK) : original.start(context, group, handle, error, size);
      };
      transport.test = [](void *context, void *handle, char *error, int64_t size) {
        return handle ? original.test(context, handle, error, size) : 1;
      };
    }
  };
  std::barrier stepped(2, []() noexcept { loses = true; });
  runWorld(2, options, [&](Trainer &trainer, int) {
    trainer.bindAll();
    EXPECT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    stepped.arrive_and_wait();
    EXPECT_EQ(trainer.step(), STEPC_ERROR_COUNTS);
    EXPECT_THAT(trainer.error(), HasSubstr("the step made 0 sends, planned are "));
    EXPECT_EQ(trainer.steps, std::vector<int64_t>(kParameters, 1));
  });
}

#if defined(STEPC_SANITIZED)
// Every report ends the process, here and in the other tests.
extern "C" const char *__tsan_default_options() { return "halt_on_error=1"; }

// The sanitizers see into module and runtime: a planted fault is caught.
TEST(SanitizerDeathTest, CatchesThePlantedFault) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        Options options;
        options.fault = STEPC_SANITIZED;
        options.threads = 4;
        runWorld(1, options, [&](Trainer &trainer, int) {
          trainer.bindAll();
          for (int i = 0; i < 2000; ++i)
            trainer.step();
        });
      },
      "Sanitizer");
}
#endif

} // namespace
