//===- ErrorTest.cpp - What an instance refuses, and in which words ------------===//
#include "test/unit/runtime/Harness.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace stepc::test;
using testing::HasSubstr;

namespace {

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
    EXPECT_THAT(trainer.error(), HasSubstr("rank 0: counters: expected a struct_size of at least"));
    EXPECT_EQ(library->counters(trainer.instance, nullptr, nullptr), STEPC_OK);
  });
}

// Also what only asks, and takes a const instance.
TEST(Questions, AreRefusedWithAMessage) {
  runWorld(1, {}, [&](Trainer &trainer, int) {
    const stepc_library *library = trainer.library;
    const stepc_instance *instance = trainer.instance;
    auto info = sized<stepc_parameter_info>();
    EXPECT_EQ(library->parameter_info(instance, 99, &info), STEPC_ERROR_ARGUMENT);
    EXPECT_EQ(trainer.error(), "rank 0: parameter_info: parameter 99 does not exist, there are 9");
    EXPECT_EQ(library->parameter_info(instance, A, nullptr), STEPC_ERROR_ARGUMENT);
    EXPECT_EQ(trainer.error(), "rank 0: parameter_info: the struct to fill is null");
    info.struct_size = 8;
    EXPECT_EQ(library->parameter_info(instance, A, &info), STEPC_ERROR_ABI);
    EXPECT_THAT(trainer.error(),
                HasSubstr("parameter_info: expected a struct_size of at least 96, found 8"));
    auto state = sized<stepc_state_info>();
    EXPECT_EQ(library->state_info(instance, -1, 0, &state), STEPC_ERROR_ARGUMENT);
    EXPECT_EQ(trainer.error(), "rank 0: state_info: parameter -1 does not exist, there are 9");
    EXPECT_EQ(library->state_info(instance, A, 3, &state), STEPC_ERROR_ARGUMENT);
    EXPECT_EQ(trainer.error(),
              "rank 0: state_info: parameter 'a': state 3 does not exist, there are 1");
    uint8_t flags[2];
    EXPECT_EQ(library->half_stepped(instance, flags, 2), STEPC_ERROR_ARGUMENT);
    EXPECT_EQ(trainer.error(),
              "rank 0: half_stepped: expected 9 flags, one per parameter, found 2");
    EXPECT_EQ(library->half_stepped(instance, nullptr, 9), STEPC_ERROR_ARGUMENT);
    EXPECT_EQ(trainer.error(), "rank 0: half_stepped: the array of flags is null");
    EXPECT_EQ(library->poll(trainer.instance, nullptr), STEPC_ERROR_ARGUMENT);
    EXPECT_EQ(trainer.error(), "rank 0: poll: the place for the answer is null");
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
    EXPECT_EQ(library->bind_gradients(trainer.instance, nullptr, 9), STEPC_ERROR_ARGUMENT);
    EXPECT_EQ(trainer.error(), here + "the list of gradients is null");
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
    EXPECT_EQ(trainer.error(), "rank 0: hyperparameters: expected host memory (0), found memory 1");
    EXPECT_EQ(library->bind_steps(trainer.instance, trainer.steps.data(), STEPC_MEMORY_DEVICE),
              STEPC_ERROR_ARGUMENT);
    EXPECT_THAT(trainer.error(), HasSubstr("step counts: expected host memory"));
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
  EXPECT_EQ(library->refresh(nullptr), STEPC_ERROR_ARGUMENT);
  EXPECT_EQ(library->bind_steps(nullptr, nullptr, STEPC_MEMORY_HOST), STEPC_ERROR_ARGUMENT);
  EXPECT_EQ(library->counters(nullptr, nullptr, nullptr), STEPC_ERROR_ARGUMENT);
  EXPECT_EQ(library->in_process_world(0, nullptr), STEPC_ERROR_ARGUMENT);
  EXPECT_STREQ(library->last_error(nullptr), "");
  EXPECT_EQ(library->destroy(nullptr), STEPC_OK);
}

} // namespace
