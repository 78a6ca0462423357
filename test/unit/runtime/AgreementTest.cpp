//===- AgreementTest.cpp - Ranks that step with other numbers ----------------===//
#include "test/unit/runtime/Harness.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <atomic>
#include <random>

using namespace stepc::test;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

namespace {

/// Ranks step `before` times with equal numbers. Then each changes its own, and the next step fails on all with
/// these texts.
void expectRefused(int32_t size, int64_t before, const std::function<void(Trainer &, int)> &change,
                   const std::vector<std::string> &texts, const Options &options = {}) {
  std::atomic<int> knew{0}; // by themselves
  runWorld(size, options, [&](Trainer &trainer, int rank) {
    trainer.bindAll();
    for (int64_t step = 1; step <= before; ++step) {
      trainer.fillGradients(step);
      ASSERT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    }
    change(trainer, rank);
    std::vector<int64_t> steps = trainer.steps;
    auto parameters = trainer.parameters;
    int32_t status = trainer.step();
    EXPECT_THAT(status, AnyOf(STEPC_ERROR_AGREEMENT, STEPC_ERROR_TRANSPORT));
    knew += status == STEPC_ERROR_AGREEMENT;
    for (const std::string &text : texts)
      EXPECT_THAT(trainer.error(), HasSubstr(text)) << "rank " << rank;
    EXPECT_EQ(trainer.steps, steps);
    // What is said to be unchanged is.
    std::vector<uint8_t> half = trainer.halfStepped();
    for (int64_t p = 0; p < kParameters; ++p)
      if (!half[p]) {
        EXPECT_EQ(trainer.parameters[p], parameters[p]) << p;
      }
    if (before == 0) {
      EXPECT_EQ(half, std::vector<uint8_t>(kParameters, 0)) << trainer.error();
    }
    EXPECT_EQ(trainer.step(), STEPC_ERROR_POISONED);
  });
  EXPECT_GT(knew, 0);
}

void setRate(Trainer &trainer, int64_t route, double value) {
  EXPECT_EQ(trainer.library->set_hyperparameter(trainer.instance, route, "lr", value), STEPC_OK);
}

class Steps : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Before, Steps, testing::Values(0, 2));

TEST_P(Steps, AnotherRateIsNamed) {
  expectRefused(
      4, GetParam(),
      [](Trainer &trainer, int rank) {
        if (rank == 2)
          setRate(trainer, Double, 0.3);
      },
      {"expected equal hyperparameters and step counts on all ranks that hold a parameter",
       "lr = 0.", "of 'w0' and 2 more on rank ", "0.3 ", "rank 2", "0.125 "});
}

// It is no exchange's value, but of the same mesh.
TEST_P(Steps, ARateOfWhatNeverTravelsIsNamed) {
  expectRefused(2, GetParam(),
                [](Trainer &trainer, int rank) {
                  if (rank == 1)
                    setRate(trainer, DecayZero, -1e-300);
                },
                {"lr = ", "-1e-300", "of 'zero' on rank ", "0.5"});
}

TEST_P(Steps, OneStepCountIsNamed) {
  int64_t before = GetParam();
  expectRefused(
      2, before,
      [](Trainer &trainer, int rank) {
        if (rank == 1)
          trainer.steps[B] += 5;
      },
      {std::to_string(before + 5), "steps taken of 'b' on rank ", "and ", std::to_string(before)});
}

TEST_P(Steps, AllStepCountsAreNamedBesideTwoRates) {
  expectRefused(2, GetParam(),
                [](Trainer &trainer, int rank) {
                  if (rank == 0)
                    return;
                  for (int64_t &steps : trainer.steps)
                    steps += 3;
                  setRate(trainer, Decay, 0.75);
                  setRate(trainer, Double, 7);
                },
                {"steps taken of 'a' and 8 more on rank ", "; lr = ", "0.75", "0.5",
                 "of 'a' and 3 more on rank ", "of 'w0' and 2 more on rank ", "0.125"});
}

// More than a seal can tell: the rank is named, and what this one steps with.
TEST_P(Steps, ManyOthersAreFound) {
  expectRefused(
      2, GetParam(),
      [](Trainer &trainer, int rank) {
        for (int64_t p = 0; rank == 1 && p < kParameters; ++p)
          trainer.steps[p] += 1 + p * p;
      },
      {"others on rank ", "than on rank ", "where 'a' has taken ", "lr = 0.5, keep = 0.25"});
}

TEST(Agreement, IsAskedForOnTheEmulatedDevice) {
  Options options;
  options.fault = "emulated";
  for (int64_t before : {0, 2})
    expectRefused(
        2, before,
        [](Trainer &trainer, int rank) {
          if (rank == 1)
            setRate(trainer, Double, 0.3);
        },
        {"lr = 0.", "of 'w0' and 2 more", "0.3", "0.125"}, options);
}

// In the first step all see all; who differs from the most is named.
TEST(Agreement, NamesTheOddRank) {
  expectRefused(4, 0,
                [](Trainer &trainer, int rank) {
                  if (rank == 0)
                    setRate(trainer, Decay, 0.25);
                },
                {"0.25 ", "rank 0", "0.5 ", "rank 1"});
}

TEST(Agreement, IsFoundWhereStepsMaySkip) {
  Options options;
  options.fault = "skip";
  for (int64_t before : {0, 3})
    expectRefused(
        2, before,
        [](Trainer &trainer, int rank) {
          if (rank == 1)
            setRate(trainer, DecayAsk, 9);
        },
        {"lr = ", "of 'ask'", "0.25", "9 "}, options);
}

/// A table of hyperparameters that a rank's groups split in its own way.
struct Table {
  std::vector<double> values;
  std::vector<int32_t> groups;
  void bind(Trainer &trainer) {
    EXPECT_EQ(trainer.library->bind_hyperparameters(trainer.instance, values.data(),
                                                    int64_t(values.size()) / 2, 2, groups.data(),
                                                    STEPC_MEMORY_HOST),
              STEPC_OK)
        << trainer.error();
  }
  double &lr(int64_t parameter) { return values[groups[parameter] * 2]; }
};

/// Rows by what they hold: a row per parameter, or one for all of a route with equal values, in drawn order.
Table split(const std::vector<double> &rates, bool isEach, uint64_t seed) {
  const int64_t routeOf[] = {0, 0, 0, 0, 1, 3, 2, 2, 2};
  std::vector<std::vector<int64_t>> sets;
  for (int64_t p = 0; p < kParameters; ++p) {
    auto fits = [&](const auto &set) {
      return !isEach && routeOf[set[0]] == routeOf[p] && rates[set[0]] == rates[p];
    };
    auto known = std::find_if(sets.begin(), sets.end(), fits);
    (known == sets.end() ? *sets.insert(known, std::vector<int64_t>()) : *known).push_back(p);
  }
  std::shuffle(sets.begin(), sets.end(), std::mt19937_64(seed));
  Table table;
  table.groups.resize(kParameters);
  for (const auto &set : sets) {
    for (int64_t p : set)
      table.groups[p] = int32_t(table.values.size() / 2);
    // What a route has no column for is never read.
    table.values.insert(table.values.end(), {rates[set[0]], set[0] < W0 ? 0.25 : double(seed)});
  }
  return table;
}

// No false alarm, however groups are split and numbers change; and no silence, whatever one rank changes.
TEST(Agreement, OfDrawnGroups) {
  int alarms = 0, calm = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    int32_t size = seed % 2 ? 2 : 4;
    bool differs = seed % 3 == 0;
    std::atomic<int> failed{0};
    runWorld(size, {}, [&](Trainer &trainer, int rank) {
      trainer.bindAll();
      std::mt19937_64 random(seed);
      std::vector<double> rates(kParameters);
      for (int64_t p = 0; p < kParameters; ++p) {
        rates[p] = double(random() % 3) / 8;
        trainer.steps[p] = int64_t(random() % 3);
      }
      Table table = split(rates, (seed + uint64_t(rank)) % 3 == 0, seed + uint64_t(rank));
      table.bind(trainer);
      int64_t changed = int64_t(random() % kParameters), step = int64_t(random() % 3);
      // Of four ranks the last has no element of these: nothing is said of them.
      std::vector<int64_t> silent;
      if (size == 4)
        silent = {A, B, Short};
      for (int64_t p : silent)
        trainer.steps[p] += rank == 3 ? 17 : 0;
      bool counts = random() % 2;
      if (std::find(silent.begin(), silent.end(), changed) != silent.end())
        changed = Whole;
      for (int64_t at = 0; at < 3; ++at) {
        trainer.fillGradients(at + 1);
        if (differs && at == step && rank == size - 1) {
          if (counts)
            ++trainer.steps[changed];
          else
            table.lr(changed) += 0.0625;
        }
        // A schedule: all change alike.
        for (size_t i = 0; i < table.values.size(); i += 2)
          table.values[i] *= 0.5;
        if (trainer.step() != STEPC_OK) {
          ++failed;
          EXPECT_EQ(at, step) << trainer.error();
          EXPECT_THAT(trainer.error(), HasSubstr("expected equal hyperparameters and step counts"));
          return;
        }
      }
    });
    EXPECT_EQ(failed, differs ? size : 0) << "seed " << seed;
    ++(differs ? alarms : calm);
  }
  printf("%d worlds that differ, %d that do not\n", alarms, calm);
}

// The bits are those of steps that compare nothing.
TEST(Agreement, ChangesNothing) {
  std::vector<std::vector<float>> whole = wholeParameters();
  std::mutex mutex;
  runWorld(4, {}, [&](Trainer &trainer, int rank) {
    trainer.bindAll();
    Table table =
        split({0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.125, 0.125, 0.125}, rank % 2, uint64_t(rank));
    table.values[size_t(table.groups[Ask]) * 2 + 1] = 0.5;
    table.bind(trainer);
    for (int64_t step = 1; step <= 3; ++step) {
      trainer.fillGradients(step);
      ASSERT_EQ(trainer.step(), STEPC_OK) << trainer.error();
    }
    std::lock_guard<std::mutex> lock(mutex);
    trainer.collect(whole);
  });
  EXPECT_EQ(whole, expectedParameters(3));
}

} // namespace
