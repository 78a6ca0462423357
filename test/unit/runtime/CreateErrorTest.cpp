//===- CreateErrorTest.cpp - What create refuses, and in which words -----------===//
#include "stepc/kernel_abi.h"
#include "test/unit/runtime/Harness.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cstdlib>

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
  EXPECT_EQ(result.message, "expected options of ABI version 3, found version 1");
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

TEST(Create, RefusesIllFormedOptions) {
  stepc_options options = defaultOptions();
  options.timeout_seconds = -1;
  EXPECT_THAT(create(load(1), &options).message, HasSubstr("timeout_seconds is negative"));
  options = defaultOptions();
  options.threads = -2;
  EXPECT_THAT(create(load(1), &options).message, HasSubstr("threads is -2"));
  options = defaultOptions();
  options.graph = 2;
  EXPECT_THAT(create(load(1), &options).message, HasSubstr("expected graph 0 or 1, found 2"));
  options.graph = 1;
  EXPECT_EQ(create(load(1), &options).status, STEPC_ERROR_GRAPH);
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
              HasSubstr("expected a transport of 96 bytes, found struct_size 40"));
  transport.version = 1;
  EXPECT_EQ(create(load(1), &options).status, STEPC_ERROR_ABI);
  EXPECT_EQ(create(load(1), &options).message,
            "expected a transport of version 2, found version 1");
}

// A transport without what the plan needs is found out before anything is sent.
TEST(Create, RefusesATransportThatLacksAKindOrIsForGpus) {
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
  transport.kinds |= 1 << STEPC_RECEIVE;
  transport.traits = STEPC_TRANSPORT_ON_DEVICE;
  result = create(load(2), &options);
  EXPECT_EQ(result.status, STEPC_ERROR_TRANSPORT);
  EXPECT_EQ(result.message, "rank 0: library 'hand' is for the CPU: expected a transport of the "
                            "host's memory, found one of GPUs'");
}

TEST(Create, RefusesAProgramOfAnotherAbi) {
  stepc_options options = defaultOptions();
  Created result = create(load(1, "abi"), &options);
  EXPECT_EQ(result.status, STEPC_ERROR_ABI);
  EXPECT_THAT(result.message, HasSubstr("compiled for kernel ABI 99, expected " +
                                        std::to_string(STEPC_KERNEL_ABI_VERSION)));
  EXPECT_EQ(load(1, "abi")->parameter_count(), 0);
}

// Found by hashes that stand outside of the plan, before anything is read of it.
TEST(Create, RefusesADamagedPlan) {
  stepc_options options = defaultOptions();
  for (auto [fault, message] :
       {std::pair("plan", "the library is damaged: expected its plan with hash "),
        std::pair("length",
                  "the library is damaged: expected the length of its plan with hash ")}) {
    const stepc_library *library = load(1, fault);
    Created result = create(library, &options);
    EXPECT_EQ(result.status, STEPC_ERROR_PLAN);
    EXPECT_THAT(result.message, HasSubstr(message));
    EXPECT_THAT(result.message, HasSubstr("; compile the library again"));
    EXPECT_EQ(library->status, STEPC_ERROR_PLAN);
    EXPECT_EQ(result.message, "rank 0: " + std::string(library->problem));
    EXPECT_EQ(library->plan, nullptr);
    EXPECT_EQ(library->plan_bytes, 0);
    EXPECT_STREQ(library->name, "");
    EXPECT_STREQ(library->target, "cpu");
    EXPECT_EQ(library->world_size(), 0);
    EXPECT_EQ(library->workspace_bytes(), 0);
    EXPECT_EQ(library->parameter_count(), 0);
    EXPECT_EQ(library->route_count(), 0);
    auto info = sized<stepc_parameter_info>();
    EXPECT_EQ(library->parameter_info(nullptr, 0, &info), STEPC_ERROR_ARGUMENT);
    auto mesh = sized<stepc_mesh_info>();
    EXPECT_EQ(library->mesh_info(0, &mesh), STEPC_ERROR_ARGUMENT);
  }
  EXPECT_EQ(load(1)->status, STEPC_OK);
  EXPECT_EQ(load(1)->problem, nullptr);
}

// Hashes that fit leave it to the plan itself.
TEST(Create, RefusesAPlanThatCannotBeRead) {
  stepc_options options = defaultOptions();
  Created result = create(load(1, "short-plan"), &options);
  EXPECT_EQ(result.status, STEPC_ERROR_PLAN);
  EXPECT_THAT(result.message, HasSubstr("the library's plan cannot be read"));
}

// Of streams and threads an order is drawn from a number, never from whatever a text begins with.
TEST(Create, RefusesASeedThatIsNone) {
  stepc_options options = defaultOptions();
  const stepc_library *library = load(1, "emulated");
  for (const char *seed : {"abc", "", " 3", "3 ", "3x", "-1", "+1", "0x3", "1e3",
                           "18446744073709551616", "99999999999999999999999"}) {
    setenv("STEPC_EMULATED_SEED", seed, 1);
    Created result = create(library, &options);
    EXPECT_EQ(result.status, STEPC_ERROR_DEVICE);
    EXPECT_EQ(result.message, "rank 0: expected STEPC_EMULATED_SEED to be a whole number from 0 to "
                              "18446744073709551615, or not set, found '" +
                                  std::string(seed) + "'");
  }
  for (const char *seed : {"0", "3", "007", "18446744073709551615"}) {
    setenv("STEPC_EMULATED_SEED", seed, 1);
    EXPECT_EQ(create(library, &options).status, STEPC_OK) << seed;
  }
  unsetenv("STEPC_EMULATED_SEED");
}

TEST(Create, RefusesAnotherChip) {
  stepc_options options = defaultOptions();
  Created result = create(load(1, "chip"), &options);
  EXPECT_EQ(result.status, STEPC_ERROR_CHIP);
  EXPECT_EQ(result.message,
            "rank 0: library 'hand' is for chip 'dragon', this CPU lacks 'avx99'; where "
            "machines differ, compile for the target 'cpu:x86-64-v3', or 'cpu:x86-64-v2'");
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

} // namespace
