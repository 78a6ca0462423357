//===- ErrorTest.cpp - What an instance refuses, and in which words ------------===//
#include "test/unit/runtime/Harness.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

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
                HasSubstr("parameter_info: expected a struct_size of at least 104, found 8"));
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

TEST(Bind, ChecksTheAlignmentOfNumbers) {
  runWorld(1, {}, [&](Trainer &trainer, int) {
    const stepc_library *library = trainer.library;
    alignas(8) char memory[256] = {};
    for (int64_t by : {1, 2, 4, 7}) {
      EXPECT_EQ(library->bind_steps(trainer.instance, reinterpret_cast<int64_t *>(memory + by),
                                    STEPC_MEMORY_HOST),
                STEPC_ERROR_ARGUMENT);
      EXPECT_THAT(trainer.error(),
                  HasSubstr("step counts: expected an address at a multiple of 8 bytes"));
      std::vector<int32_t> groups(kParameters, 0);
      EXPECT_EQ(library->bind_hyperparameters(trainer.instance,
                                              reinterpret_cast<double *>(memory + by), 1, 2,
                                              groups.data(), STEPC_MEMORY_HOST),
                STEPC_ERROR_ARGUMENT);
      EXPECT_THAT(trainer.error(),
                  HasSubstr("hyperparameters: expected an address at a multiple of 8 bytes"));
    }
    EXPECT_EQ(library->bind_hyperparameters(trainer.instance, reinterpret_cast<double *>(memory), 1,
                                            2, reinterpret_cast<int32_t *>(memory + 129),
                                            STEPC_MEMORY_HOST),
              STEPC_ERROR_ARGUMENT);
    EXPECT_THAT(
        trainer.error(),
        HasSubstr("groups of hyperparameters: expected an address at a multiple of 4 bytes"));
  });
}

/// What a step says when it is asked after `bind`, with everything else bound.
std::string saidOf(Trainer &trainer, const std::function<void(stepc_instance *)> &bind) {
  trainer.bindAll();
  auto before = trainer.parameters;
  bind(trainer.instance);
  EXPECT_EQ(trainer.step(), STEPC_ERROR_ARGUMENT);
  EXPECT_EQ(trainer.parameters, before);
  std::string said = trainer.error();
  EXPECT_THAT(said, HasSubstr("expected memory of its own for each parameter, state and gradient"));
  trainer.bindAll(); // nothing is lost
  EXPECT_EQ(trainer.step(), STEPC_OK) << trainer.error();
  return said;
}

// What a step writes is written once; both names say whose memory it was.
TEST(Overlaps, AreRefused) {
  runWorld(1, {}, [&](Trainer &trainer, int) {
    const stepc_library *library = trainer.library;
    float *w0 = trainer.parameters[W0].data(), *a = trainer.parameters[A].data();
    EXPECT_THAT(saidOf(trainer, [&](auto *i) { library->bind_parameter(i, W1, w0, 192); }),
                HasSubstr("that parameter 'w0' and parameter 'w1' share 192 bytes from 0x"));
    EXPECT_THAT(saidOf(trainer, [&](auto *i) { library->bind_state(i, A, 0, a, 96); }),
                HasSubstr("parameter 'a'"));
    EXPECT_THAT(
        saidOf(trainer,
               [&](auto *i) { library->bind_state(i, A, 0, trainer.moments[B].data(), 96); }),
        testing::AllOf(HasSubstr("state 'm' of parameter 'a'"),
                       HasSubstr("state 'm' of parameter 'b'"), HasSubstr("share 96 bytes")));
    // By one element, at either end.
    std::vector<float> two(47);
    EXPECT_THAT(saidOf(trainer,
                       [&](auto *i) {
                         library->bind_parameter(i, A, two.data(), 96);
                         library->bind_parameter(i, B, two.data() + 23, 96);
                       }),
                HasSubstr("parameter 'a' and parameter 'b' share 4 bytes from 0x"));
    EXPECT_THAT(saidOf(trainer, [&](auto *i) { library->bind_gradient(i, W2, w0, 192); }),
                HasSubstr("parameter 'w0' and the gradient of parameter 'w2' share 192 bytes"));
    EXPECT_THAT(
        saidOf(trainer,
               [&](auto *i) { library->bind_gradient(i, A, trainer.moments[A].data(), 96); }),
        HasSubstr("state 'm' of parameter 'a' and the gradient of parameter 'a' share 96"));
    std::vector<const void *> gradients;
    for (const auto &gradient : trainer.gradients)
      gradients.push_back(gradient.data());
    gradients[B] = trainer.gradients[A].data() + 1;
    EXPECT_THAT(
        saidOf(trainer,
               [&](auto *i) { library->bind_gradients(i, gradients.data(), kParameters); }),
        HasSubstr("the gradient of parameter 'a' and the gradient of parameter 'b' share 92"));
    std::vector<float> last(24 + 2 * kParameters);
    EXPECT_THAT(saidOf(trainer,
                       [&](auto *i) {
                         library->bind_parameter(i, B, last.data(), 96);
                         library->bind_steps(i, reinterpret_cast<int64_t *>(last.data() + 22),
                                             STEPC_MEMORY_HOST);
                       }),
                HasSubstr("parameter 'b' and the step counts share 8 bytes"));
  });
}

// What is legal: parts of one buffer, gradients that are one, and a place that another left.
TEST(Overlaps, OfOneBufferAreNone) {
  runWorld(1, {}, [&](Trainer &trainer, int) {
    const stepc_library *library = trainer.library;
    trainer.bindAll();
    std::vector<float> all(6 * 24 + 3);
    float *at = all.data();
    auto next = [&](size_t count) { return std::exchange(at, at + count); };
    for (int64_t p : {B, A}) { // also in another order than the plan's
      library->bind_parameter(trainer.instance, p, next(24), 96);
      library->bind_state(trainer.instance, p, 0, next(24), 96);
      library->bind_gradient(trainer.instance, p, next(24), 96);
    }
    EXPECT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    const float *shared = trainer.gradients[W0].data();
    for (int64_t p : {W1, W2})
      library->bind_gradient(trainer.instance, p, shared, 192);
    library->bind_gradient(trainer.instance, Short, shared, 12); // no more of it
    EXPECT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    // Two change places.
    library->bind_parameter(trainer.instance, W0, trainer.parameters[W1].data(), 192);
    library->bind_parameter(trainer.instance, W1, trainer.parameters[W0].data(), 192);
    EXPECT_EQ(trainer.step(), STEPC_OK) << trainer.error();
  });
}

// Lists of what was bound in another order each time, beside every pair by itself.
TEST(Overlaps, AreThoseOfAnyPair) {
  std::mt19937 random(7);
  runWorld(1, {}, [&](Trainer &trainer, int) {
    const stepc_library *library = trainer.library;
    struct Lent {
      size_t bytes, begin;
      bool isGradient;
    };
    int64_t refused = 0;
    constexpr size_t kWords = 4000;
    std::vector<float> memory(kWords);
    for (int round = 0; round < 500; ++round) {
      trainer.bindAll();
      std::vector<Lent> lent;
      auto place = [&](size_t words, bool isGradient) {
        size_t begin = random() % ((kWords - words) / 4) * 4;
        // Mostly where the last one of its kind ended.
        if (!lent.empty() && random() % 8)
          begin = std::min(lent.back().begin + lent.back().bytes, (kWords - words) * 4) / 4;
        lent.push_back({words * 4, begin * 4, isGradient});
        return memory.data() + begin;
      };
      for (int64_t p : {A, B, W0, W1, W2}) {
        auto words = trainer.parameters[p].size();
        auto bytes = int64_t(words) * 4;
        library->bind_parameter(trainer.instance, p, place(words, false), bytes);
        if (p < W0)
          library->bind_state(trainer.instance, p, 0, place(words, false), bytes);
        if (random() % 4)
          library->bind_gradient(trainer.instance, p, place(words, true), bytes);
      }
      bool overlap = false;
      for (size_t i = 0; i < lent.size(); ++i)
        for (size_t j = 0; j < i; ++j) {
          const Lent &one = lent[i], &other = lent[j];
          bool areOne = one.isGradient && other.isGradient && one.begin == other.begin;
          overlap |= !areOne && one.begin < other.begin + other.bytes &&
                     other.begin < one.begin + one.bytes;
        }
      ASSERT_EQ(trainer.step(), overlap ? STEPC_ERROR_ARGUMENT : STEPC_OK)
          << round << trainer.error();
      refused += overlap;
    }
    EXPECT_GT(refused, 50);
    EXPECT_LT(refused, 450);
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
    EXPECT_THAT(
        trainer.error(),
        HasSubstr(
            "expected a step count of parameter 'w1' from 0 to 9223372036854775806, found -1"));
    trainer.steps[W1] = INT64_MAX; // one more would wrap
    EXPECT_EQ(trainer.step(), STEPC_ERROR_ARGUMENT);
    EXPECT_THAT(
        trainer.error(),
        HasSubstr("parameter 'w1' from 0 to 9223372036854775806, found 9223372036854775807"));
    EXPECT_EQ(trainer.steps[W1], INT64_MAX);
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
