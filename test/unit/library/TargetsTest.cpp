//===- TargetsTest.cpp - Libraries with a step for each of two targets ------===//

#include "stepc/sized.h"
#include "test/unit/library/Compiled.h"
#include "test/unit/library/World.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <atomic>
#include <thread>

namespace stepc::test {
namespace {

using testing::HasSubstr;

const stepc_library *both() {
  return compiled(kMuon, inputFile("two_ranks") + " --target cpu --target emulated:sm_80");
}

TEST(Targets, FollowEachOther) {
  const stepc_library *cpu = both(), *emulated = cpu->next;
  ASSERT_NE(emulated, nullptr);
  EXPECT_EQ(emulated->next, nullptr);
  EXPECT_STREQ(cpu->target, "cpu");
  EXPECT_STREQ(emulated->target, "emulated");
  EXPECT_THAT(emulated->chip, HasSubstr("emulated:sm_80 on "));
  EXPECT_THAT(cpu->chip, testing::Not(HasSubstr("emulated")));
  EXPECT_NE(cpu->plan_hash, emulated->plan_hash);
  EXPECT_NE(cpu->plan, emulated->plan);
  // What holds for both, each says of its own plan.
  EXPECT_STREQ(emulated->name, "muon");
  EXPECT_EQ(cpu->parameter_count(), emulated->parameter_count());
  EXPECT_STREQ(emulated->route_name(0), cpu->route_name(0));
  EXPECT_NE(emulated->route_name(0), cpu->route_name(0));
  // Both take the host's memory: the first is it.
  EXPECT_EQ(stepc_library_for(cpu, STEPC_DEVICE_CPU), cpu);
  EXPECT_EQ(stepc_library_for(emulated, STEPC_DEVICE_CPU), emulated);
  EXPECT_EQ(stepc_library_for(cpu, STEPC_DEVICE_CUDA), nullptr);
}

TEST(Targets, AreLookedForInTablesThatHaveThem) {
  stepc_library second{}, first{};
  second.device = STEPC_DEVICE_CUDA;
  first.struct_size = sizeof(stepc_library);
  first.next = &second;
  EXPECT_EQ(stepc_library_for(&first, STEPC_DEVICE_CUDA), &second);
  // One compiled before there was more than one has something else there, or nothing.
  first.struct_size = offsetof(stepc_library, next);
  EXPECT_EQ(stepc_library_for(&first, STEPC_DEVICE_CUDA), nullptr);
}

TEST(Targets, StepInOneProcessAtOnceWithEqualBits) {
  const stepc_library *tables[] = {both(), both()->next};
  uint64_t found[2];
  std::string errors[2];
  std::vector<std::thread> worlds;
  for (int i = 0; i < 2; ++i)
    worlds.emplace_back([&, i] { found[i] = train(tables[i], {}, 3, errors[i]); });
  for (std::thread &world : worlds)
    world.join();
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[1], "");
  EXPECT_EQ(found[0], found[1]);
  std::string error;
  EXPECT_EQ(train(compiled(kMuon, inputFile("two_ranks") + " --target cpu"), {}, 3, error),
            found[0]);
}

/// The chip without its features.
std::string shortChip(const stepc_library *table) {
  std::string chip = table->chip;
  return chip.substr(0, chip.find(';'));
}

TEST(Targets, RanksOnDifferentOnesRefuseEachOther) {
  auto ranks = runWorld({both(), both()->next}, {}, [](Rank &, int) { ADD_FAILURE(); });
  ASSERT_EQ(ranks.size(), 2u);
  for (const Created &rank : ranks) {
    EXPECT_EQ(rank.status, STEPC_ERROR_PLAN) << rank.message;
    EXPECT_THAT(rank.message,
                HasSubstr(std::string("takes the step for ") + shortChip(both()->next) +
                          ", and not that for " + shortChip(both()) + ": its plan has hash"));
  }
}

/// Whichever table an instance is asked by, the answer is of its own program.
TEST(Targets, AnInstanceKnowsItsOwn) {
  std::atomic<int> bodies = 0;
  auto ranks = runWorld({both()->next}, {}, [&](Rank &self, int rank) {
    ++bodies;
    ASSERT_EQ(self.bind(), 0);
    self.fillGradients(rank, 0);
    auto asked = sized<stepc_parameter_info>(), own = sized<stepc_parameter_info>();
    ASSERT_EQ(both()->parameter_info(self.instance, 0, &asked), 0);
    ASSERT_EQ(self.library->parameter_info(nullptr, 0, &own), 0);
    EXPECT_EQ(asked.name, own.name); // the same text of the same plan
    ASSERT_EQ(both()->parameter_info(nullptr, 0, &own), 0);
    EXPECT_NE(asked.name, own.name);
    EXPECT_EQ(both()->table_of(self.instance), both()->next);
    EXPECT_EQ(both()->table_of(nullptr), nullptr);
    auto executed = sized<stepc_counters>(), planned = sized<stepc_counters>();
    ASSERT_EQ(both()->step(self.instance), 0) << self.error();
    ASSERT_EQ(both()->counters(self.instance, &executed, &planned), 0);
    EXPECT_EQ(executed.launches, planned.launches);
  });
  for (const Created &rank : ranks)
    EXPECT_EQ(rank.status, STEPC_OK) << rank.message;
  EXPECT_EQ(size_t(bodies), ranks.size());
}

} // namespace
} // namespace stepc::test
