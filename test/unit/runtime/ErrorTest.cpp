//===- ErrorTest.cpp - What is refused, and in which words -------------------===//
#include "test/unit/runtime/Harness.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstdlib>
#include <limits>

using namespace stepc::test;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

Created create(const stepc_library *library, const stepc_options *options) {
  stepc_instance *instance = nullptr;
  char error[512] = "";
  int32_t status = library->create(options, &instance, error, sizeof(error));
  EXPECT_EQ(instance == nullptr, status != STEPC_OK);
  if (instance)
    library->destroy(instance);
  return {status, error};
}

TEST(Create, RefusesNullAndOtherVersions) {
  EXPECT_EQ(create(load(1), nullptr).status, STEPC_ERROR_ARGUMENT);
  EXPECT_EQ(load(1)->create(nullptr, nullptr, nullptr, 0), STEPC_ERROR_ARGUMENT);
  stepc_options options = defaultOptions();
  options.abi_version = 1;
  Created result = create(load(1), &options);
  EXPECT_EQ(result.status, STEPC_ERROR_ABI);
  EXPECT_EQ(result.message, "expected options of ABI version 2, found version 1");
  // Messages are cut to the caller's buffer.
  stepc_instance *instance;
  char small[8];
  load(1)->create(&options, &instance, small, sizeof(small));
  EXPECT_STREQ(small, "expecte");
  options = defaultOptions();
  options.struct_size = 48;
  result = create(load(1), &options);
  EXPECT_EQ(result.status, STEPC_ERROR_ABI);
  EXPECT_EQ(result.message, "expected options of 88 bytes, found struct_size 48");
}

TEST(Create, RefusesOtherDevices) {
  stepc_options options = defaultOptions();
  options.device = STEPC_DEVICE_CUDA;
  Created result = create(load(1), &options);
  EXPECT_EQ(result.status, STEPC_ERROR_ARGUMENT);
  EXPECT_EQ(result.message,
            "rank 0: library 'hand' is for the CPU: expected device 0, number 0 and "
            "no stream, found device 1, number 0 and no stream");
  options = defaultOptions();
  options.device_ordinal = 3;
  EXPECT_THAT(create(load(1), &options).message, HasSubstr("found device 0, number 3"));
  options = defaultOptions();
  options.stream = &options;
  EXPECT_THAT(create(load(1), &options).message, HasSubstr("number 0 and a stream"));
}

TEST(Create, RefusesHalfAnAllocatorAndOneThatFails) {
  stepc_options options = defaultOptions();
  options.allocate = [](void *, int64_t, int64_t) { return static_cast<void *>(nullptr); };
  Created result = create(load(1), &options);
  EXPECT_EQ(result.status, STEPC_ERROR_ARGUMENT);
  EXPECT_THAT(result.message,
              HasSubstr("allocate and deallocate or neither, found allocate alone"));
  options.deallocate = [](void *, void *memory, int64_t) {
    EXPECT_NE(memory, nullptr);
    std::free(static_cast<char *>(memory) - 8);
  };
  result = create(load(1), &options);
  EXPECT_EQ(result.status, STEPC_ERROR_MEMORY);
  EXPECT_THAT(result.message, HasSubstr("could not be allocated by the options' allocator"));
  // Memory that is not aligned goes back at once.
  options.allocate = [](void *, int64_t bytes, int64_t alignment) {
    auto *memory =
        static_cast<char *>(std::aligned_alloc(alignment, alignment + bytes + 127 & -64));
    return static_cast<void *>(memory + 8);
  };
  result = create(load(1), &options);
  EXPECT_EQ(result.status, STEPC_ERROR_MEMORY);
  EXPECT_THAT(result.message, HasSubstr("aligned to 64"));
}

// A struct without its size could be one of another version.
TEST(Structs, AreRefusedWithoutTheirSize) {
  const stepc_library *library = load(1);
  stepc_parameter_info info{};
  EXPECT_EQ(library->parameter_info(nullptr, A, &info), STEPC_ERROR_ABI);
  EXPECT_EQ(library->parameter_info(nullptr, A, nullptr), STEPC_ERROR_ARGUMENT);
  info.struct_size = sizeof(info) + 40; // of a later header: says how much was filled
  EXPECT_EQ(library->parameter_info(nullptr, A, &info), STEPC_OK);
  EXPECT_EQ(info.struct_size, int32_t(sizeof(info)));
  stepc_state_info state{};
  EXPECT_EQ(library->state_info(nullptr, A, 0, &state), STEPC_ERROR_ABI);
  stepc_mesh_info mesh{};
  EXPECT_EQ(library->mesh_info(A, &mesh), STEPC_ERROR_ABI);
  std::vector<stepc_transport> transports(2);
  EXPECT_EQ(library->in_process_world(2, transports.data()), STEPC_ERROR_ABI);
  runWorld(1, {}, [&](Trainer &trainer, int) {
    stepc_counters counters{};
    EXPECT_EQ(library->counters(trainer.instance, &counters, nullptr), STEPC_ERROR_ABI);
    EXPECT_EQ(library->counters(trainer.instance, nullptr, nullptr), STEPC_OK);
  });
}

TEST(Create, RefusesIllFormedOptions) {
  stepc_options options = defaultOptions();
  options.timeout_seconds = -1;
  EXPECT_THAT(create(load(1), &options).message, HasSubstr("timeout_seconds is negative"));
  options = defaultOptions();
  options.threads = -2;
  EXPECT_THAT(create(load(1), &options).message, HasSubstr("threads is -2"));
  stepc_transport transport{};
  transport.version = STEPC_TRANSPORT_VERSION;
  transport.struct_size = sizeof(transport);
  transport.size = 1;
  options = defaultOptions();
  options.transport = &transport;
  EXPECT_THAT(create(load(1), &options).message,
              HasSubstr("lacks one of the functions start, test and abort"));
  transport.start = [](void *, const stepc_operations *, void **, char *, int64_t) {
    return int32_t(STEPC_OK);
  };
  transport.test = [](void *, void *, char *, int64_t) { return int32_t(1); };
  transport.abort = [](void *, const char *) {};
  transport.kinds = 1 << STEPC_ALL_GATHER;
  const char *communicators = "expected open_communicator and close_communicator, or neither";
  EXPECT_THAT(create(load(1), &options).message, HasSubstr(communicators));
  transport.kinds = 0;
  transport.close_communicator = [](void *, void *) {};
  EXPECT_THAT(create(load(1), &options).message, HasSubstr(communicators));
  transport.struct_size = 40;
  EXPECT_EQ(create(load(1), &options).status, STEPC_ERROR_ABI);
  EXPECT_THAT(create(load(1), &options).message,
              HasSubstr("expected a transport of 88 bytes, found struct_size 40"));
  transport.version = 1;
  EXPECT_EQ(create(load(1), &options).status, STEPC_ERROR_ABI);
  EXPECT_EQ(create(load(1), &options).message,
            "expected a transport of version 2, found version 1");
}

// A transport without what the plan needs is found out before anything is sent.
TEST(Create, RefusesATransportThatLacksAKind) {
  static std::string reason;
  stepc_transport transport{};
  transport.version = STEPC_TRANSPORT_VERSION;
  transport.struct_size = sizeof(transport);
  transport.size = 2;
  transport.kinds = 1 << STEPC_SEND;
  transport.start = [](void *, const stepc_operations *, void **, char *, int64_t) {
    return int32_t(STEPC_OK);
  };
  transport.test = [](void *, void *, char *, int64_t) { return int32_t(1); };
  transport.abort = [](void *, const char *why) { reason = why; };
  stepc_options options = defaultOptions();
  options.transport = &transport;
  Created result = create(load(2), &options);
  EXPECT_EQ(result.status, STEPC_ERROR_TRANSPORT);
  EXPECT_EQ(result.message,
            "rank 0: library 'hand' needs a transport with receive, found the kinds 0x1");
  EXPECT_THAT(reason, HasSubstr("needs a transport with receive"));
}

TEST(Create, RefusesAProgramOfAnotherAbi) {
  stepc_options options = defaultOptions();
  Created result = create(load(1, "abi"), &options);
  EXPECT_EQ(result.status, STEPC_ERROR_ABI);
  EXPECT_THAT(result.message, HasSubstr("compiled for kernel ABI 99, expected 4"));
  EXPECT_EQ(load(1, "abi")->parameter_count(), 0);
}

TEST(Create, RefusesADamagedPlan) {
  stepc_options options = defaultOptions();
  Created result = create(load(1, "plan"), &options);
  EXPECT_EQ(result.status, STEPC_ERROR_PLAN);
  EXPECT_THAT(result.message, HasSubstr("the library's plan cannot be read"));
}

// Commands that a step could not carry out, found before one is.
TEST(Create, RefusesAProgramThatDoesNotHold) {
  stepc_options options = defaultOptions();
  Created order = create(load(1, "order"), &options);
  EXPECT_EQ(order.status, STEPC_ERROR_PLAN);
  EXPECT_THAT(order.message, HasSubstr("command 3 (await): collective 0 is not under way"));
  Created reach = create(load(1, "reach"), &options);
  EXPECT_EQ(reach.status, STEPC_ERROR_PLAN);
  EXPECT_THAT(reach.message, HasSubstr("copy of table 7 needs 576 bytes, its operand has 288"));
}

TEST(Create, RefusesAnotherChip) {
  stepc_options options = defaultOptions();
  Created result = create(load(1, "chip"), &options);
  EXPECT_EQ(result.status, STEPC_ERROR_CHIP);
  EXPECT_EQ(result.message, "rank 0: library 'hand' is for chip 'dragon', this CPU lacks 'avx99'");
}

TEST(Create, RefusesAnotherWorld) {
  stepc_options options = defaultOptions();
  Created result = create(load(4), &options);
  EXPECT_EQ(result.status, STEPC_ERROR_WORLD);
  EXPECT_THAT(result.message, HasSubstr("world of 4 ranks, and no transport was given"));
  for (const Created &rank : createWorld({load(4), load(4)}, options)) {
    EXPECT_NE(rank.status, STEPC_OK);
    EXPECT_THAT(rank.message, HasSubstr("world of 4 ranks, the transport has 2"));
  }
}

#if !defined(STEPC_SANITIZED)
TEST(Create, SaysWhenTheWorkspaceIsTooLarge) {
  stepc_options options = defaultOptions();
  Created result = create(load(1, "memory"), &options);
  EXPECT_EQ(result.status, STEPC_ERROR_MEMORY);
  EXPECT_THAT(result.message, HasSubstr("workspace of 562949953421312 bytes"));
}
#endif

// All ranks return, and name the one that is not like the others.
TEST(Create, RefusesRanksWithOtherLibraries) {
  auto results = createWorld({load(4), load(4), load(4, "hash"), load(4)}, defaultOptions());
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(results[rank].status, STEPC_ERROR_PLAN);
    EXPECT_THAT(results[rank].message,
                AllOf(StartsWith("rank " + std::to_string(rank)),
                      HasSubstr("rank 2 holds another library"), HasSubstr("3 of 4 ranks")));
  }
}

// A rank that cannot start tells the others, which would wait for it otherwise.
TEST(Create, OneRanksErrorReachesAll) {
  auto results = createWorld({load(2), load(2, "chip")}, defaultOptions());
  EXPECT_EQ(results[1].status, STEPC_ERROR_CHIP);
  EXPECT_EQ(results[0].status, STEPC_ERROR_TRANSPORT);
  EXPECT_THAT(results[0].message, AllOf(HasSubstr("rank 1 aborted"), HasSubstr("lacks 'avx99'")));
}

TEST(Create, NamesGlobalRanks) {
  Options options;
  options.fault = "sparse";
  runWorld(2, options, [&](Trainer &trainer, int rank) {
    EXPECT_EQ(trainer.step(), STEPC_ERROR_UNBOUND);
    EXPECT_THAT(trainer.error(),
                StartsWith(rank ? "rank 1 (global rank 5): " : "rank 0 (global rank 3): "));
  });
}

TEST(Bind, ChecksEveryPointer) {
  runWorld(4, {}, [&](Trainer &trainer, int rank) {
    const stepc_library *library = trainer.library;
    std::string here = "rank " + std::to_string(rank) + ": ";
    alignas(8) char memory[256];
    EXPECT_EQ(library->bind_parameter(trainer.instance, 99, memory, 4), STEPC_ERROR_ARGUMENT);
    EXPECT_EQ(trainer.error(), here + "parameter 99 does not exist, there are 9");
    EXPECT_EQ(library->bind_parameter(trainer.instance, W0, memory, 40), STEPC_ERROR_ARGUMENT);
    EXPECT_EQ(trainer.error(),
              here + "parameter 'w0': 40 bytes given, the local shard [2, 6] of f32 has 48");
    EXPECT_EQ(library->bind_parameter(trainer.instance, W0, nullptr, 48), STEPC_ERROR_ARGUMENT);
    EXPECT_THAT(trainer.error(), HasSubstr("legal for an empty shard only"));
    EXPECT_EQ(library->bind_parameter(trainer.instance, W0, memory + 2, 48), STEPC_ERROR_ARGUMENT);
    EXPECT_THAT(trainer.error(), HasSubstr("not aligned to 4 bytes"));
    EXPECT_EQ(library->bind_state(trainer.instance, A, 3, memory, 4), STEPC_ERROR_ARGUMENT);
    EXPECT_EQ(trainer.error(), here + "parameter 'a': state 3 does not exist, there are 1");
    EXPECT_EQ(library->bind_state(trainer.instance, A, 0, memory, 4), STEPC_ERROR_ARGUMENT);
    EXPECT_THAT(trainer.error(), HasSubstr("state 'm' of parameter 'a': 4 bytes given"));
    EXPECT_EQ(library->bind_gradient(trainer.instance, W0, memory, 24), STEPC_ERROR_ARGUMENT);
    EXPECT_THAT(trainer.error(), HasSubstr("gradient of parameter 'w0': 24 bytes given"));
    const void *three[3] = {};
    EXPECT_EQ(library->bind_gradients(trainer.instance, three, 3), STEPC_ERROR_ARGUMENT);
    EXPECT_THAT(trainer.error(), HasSubstr("3 gradients given, there are 9 parameters"));
    EXPECT_EQ(library->bind_steps(trainer.instance, nullptr, STEPC_MEMORY_HOST),
              STEPC_ERROR_ARGUMENT);
    // Rank 3 holds nothing of 'short'.
    EXPECT_EQ(library->bind_parameter(trainer.instance, Short, nullptr, 0),
              rank == 3 ? STEPC_OK : STEPC_ERROR_ARGUMENT);
  });
}

TEST(Bind, ChecksHyperparameters) {
  runWorld(1, {}, [&](Trainer &trainer, int) {
    const stepc_library *library = trainer.library;
    EXPECT_EQ(library->set_hyperparameter(trainer.instance, 9, "lr", 1), STEPC_ERROR_ARGUMENT);
    EXPECT_EQ(library->set_hyperparameter(trainer.instance, Decay, "rl", 1), STEPC_ERROR_ARGUMENT);
    EXPECT_EQ(trainer.error(), "rank 0: route 'Decay' has no hyperparameter 'rl'");
    EXPECT_EQ(library->set_hyperparameter(trainer.instance, Decay, "lr", std::nan("")),
              STEPC_ERROR_HYPERPARAMETER);
    double values[2] = {1, 2};
    std::vector<int32_t> groups(kParameters, 0);
    EXPECT_EQ(library->bind_hyperparameters(trainer.instance, values, 1, 1, groups.data(),
                                            STEPC_MEMORY_HOST),
              STEPC_ERROR_ARGUMENT);
    EXPECT_THAT(trainer.error(), HasSubstr("parameter 'a' of route 'Decay' has 2 hyperparameters"));
    EXPECT_EQ(library->bind_hyperparameters(trainer.instance, values, 1, 2, groups.data(),
                                            STEPC_MEMORY_DEVICE),
              STEPC_ERROR_ARGUMENT);
    EXPECT_EQ(trainer.error(), "rank 0: hyperparameters: a library for the CPU expects host memory "
                               "(0), found memory 1");
    EXPECT_EQ(library->bind_steps(trainer.instance, trainer.steps.data(), STEPC_MEMORY_DEVICE),
              STEPC_ERROR_ARGUMENT);
    EXPECT_THAT(trainer.error(),
                HasSubstr("step counts: a library for the CPU expects host memory"));
    groups[W2] = 4;
    EXPECT_EQ(library->bind_hyperparameters(trainer.instance, values, 1, 2, groups.data(),
                                            STEPC_MEMORY_HOST),
              STEPC_ERROR_ARGUMENT);
    EXPECT_THAT(trainer.error(), HasSubstr("parameter 'w2' is in group 4"));
  });
}

TEST(Step, NamesWhatIsNotBound) {
  runWorld(1, {}, [&](Trainer &trainer, int) {
    const stepc_library *library = trainer.library;
    EXPECT_EQ(trainer.step(), STEPC_ERROR_UNBOUND);
    EXPECT_EQ(trainer.error(), "rank 0: the step counts were never bound");
    library->bind_steps(trainer.instance, trainer.steps.data(), STEPC_MEMORY_HOST);
    EXPECT_EQ(trainer.step(), STEPC_ERROR_UNBOUND);
    EXPECT_EQ(trainer.error(), "rank 0: parameter 'a' was never bound");
    for (int64_t p = 0; p < kParameters; ++p)
      library->bind_parameter(trainer.instance, p, trainer.parameters[p].data(),
                              int64_t(trainer.parameters[p].size()) * 4);
    EXPECT_EQ(trainer.step(), STEPC_ERROR_UNBOUND);
    EXPECT_EQ(trainer.error(), "rank 0: state 'm' of parameter 'a' was never bound");
    trainer.bindAll();
    library->bind_gradient(trainer.instance, B, nullptr, 0);
    auto before = trainer.parameters;
    EXPECT_EQ(trainer.step(), STEPC_ERROR_GRADIENT);
    EXPECT_EQ(trainer.error(), "rank 0: the gradient of parameter 'b' is null, and route 'Decay' "
                               "says missing_grad = error");
    // Nothing was written: repair, and go on.
    EXPECT_EQ(trainer.parameters, before);
    EXPECT_EQ(trainer.halfStepped(), std::vector<uint8_t>(kParameters, 0));
    trainer.steps[W1] = -1;
    trainer.bindGradients();
    EXPECT_EQ(trainer.step(), STEPC_ERROR_ARGUMENT);
    EXPECT_THAT(trainer.error(), HasSubstr("parameter 'w1' has taken -1 steps"));
    trainer.steps[W1] = 0;
    EXPECT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    EXPECT_EQ(trainer.error(), "");
  });
}

TEST(Step, AsksForRatesWithoutDefault) {
  runWorld(1, {}, [&](Trainer &trainer, int) {
    trainer.bindAll();
    double values[2] = {1, std::nan("")};
    std::vector<int32_t> groups(kParameters, 0);
    trainer.library->bind_hyperparameters(trainer.instance, values, 1, 2, groups.data(),
                                          STEPC_MEMORY_HOST);
    EXPECT_EQ(trainer.step(), STEPC_ERROR_HYPERPARAMETER);
    EXPECT_EQ(trainer.error(),
              "rank 0: hyperparameter 'keep' of parameter 'a' (route 'Decay') is not a number");
    // Rows are read in every step, shards and gradients again where they were bound.
    values[1] = 0.5;
    EXPECT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    trainer.library->bind_gradient(trainer.instance, W2, nullptr, 0);
    EXPECT_EQ(trainer.step(), STEPC_ERROR_GRADIENT);
    trainer.bindGradients();
    values[0] = std::nan("");
    EXPECT_EQ(trainer.step(), STEPC_ERROR_HYPERPARAMETER);
    EXPECT_THAT(trainer.error(), HasSubstr("hyperparameter 'lr' of parameter 'a'"));
    values[0] = 1;
    EXPECT_EQ(trainer.step(), STEPC_OK) << trainer.error();
  });
  stepc_options options = defaultOptions();
  stepc_instance *instance = nullptr;
  ASSERT_EQ(load(1)->create(&options, &instance, nullptr, 0), STEPC_OK);
  Trainer trainer(load(1), instance);
  trainer.bindAll();
  load(1)->destroy(instance);
  ASSERT_EQ(load(1)->create(&options, &instance, nullptr, 0), STEPC_OK);
  trainer.instance = instance;
  for (int64_t p = 0; p < kParameters; ++p) {
    int64_t bytes = int64_t(trainer.parameters[p].size()) * 4;
    load(1)->bind_parameter(instance, p, trainer.parameters[p].data(), bytes);
    load(1)->bind_state(instance, p, 0, trainer.moments[p].data(), bytes);
  }
  trainer.bindGradients();
  load(1)->bind_steps(instance, trainer.steps.data(), STEPC_MEMORY_HOST);
  EXPECT_EQ(trainer.step(), STEPC_ERROR_HYPERPARAMETER);
  EXPECT_EQ(trainer.error(), "rank 0: hyperparameter 'lr' of parameter 'ask' (route 'Decay.2') has "
                             "no default and was never set");
  load(1)->destroy(instance);
}

TEST(Null, InstancesAreRefused) {
  const stepc_library *library = load(1);
  EXPECT_EQ(library->step(nullptr), STEPC_ERROR_ARGUMENT);
  EXPECT_EQ(library->recover(nullptr), STEPC_ERROR_ARGUMENT);
  EXPECT_EQ(library->enqueue(nullptr), STEPC_ERROR_ARGUMENT);
  EXPECT_EQ(library->poll(nullptr, nullptr), STEPC_ERROR_ARGUMENT);
  EXPECT_EQ(library->bind_steps(nullptr, nullptr, STEPC_MEMORY_HOST), STEPC_ERROR_ARGUMENT);
  EXPECT_EQ(library->counters(nullptr, nullptr, nullptr), STEPC_ERROR_ARGUMENT);
  EXPECT_EQ(library->in_process_world(0, nullptr), STEPC_ERROR_ARGUMENT);
  EXPECT_STREQ(library->last_error(nullptr), "");
  library->destroy(nullptr);
}

} // namespace
