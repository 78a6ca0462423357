//===- PlanTest.cpp - Bytes and hashes of plans ------------------------------===//

#include "runtime/geometry/Geometry.h"
#include "test/unit/plan/RandomPlan.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

namespace stepc::test {

using namespace plan;

namespace {

constexpr Placement R{};
constexpr Placement S0{PlacementKind::Shard, 0, 1};

std::optional<Plan> reread(const std::vector<uint8_t> &bytes, std::string &error) {
  return deserialize(bytes.data(), bytes.size(), error);
}

TEST(Plan, Names) {
  EXPECT_EQ(toString(R), "R");
  EXPECT_EQ(toString(S0), "S(0)");
  EXPECT_EQ(toString({PlacementKind::StridedShard, 1, 4}), "_S(1, 4)");
  EXPECT_EQ(name(DType::BF16), "bf16");
  EXPECT_EQ(name(ValueKind::Cols), "cols");
  EXPECT_EQ(name(Distribution(Distribution::Pieces, 1)), "hop 1");
  EXPECT_EQ(byteSize(DType::F16), 2);
  EXPECT_EQ(byteSize(DType::F64), 8);
}

TEST(Plan, AMasterCopyOfF32DoesNotExist) {
  Group group;
  State master{"w", DType::F32, ValueKind::Full, 0.0, true}, plain{"m"};
  EXPECT_FALSE(stateExists(group, master));
  EXPECT_TRUE(stateExists(group, plain));
  // So hops start at the parameter, unless there is another state.
  group.placements = {R};
  group.statePlacements = {S0};
  EXPECT_EQ(home(group, {"", {}, {master}}), Distribution(Distribution::Shards));
  EXPECT_EQ(home(group, {"", {}, {master, plain}}), Distribution(Distribution::StateShards));
  group.parameterType = DType::BF16;
  EXPECT_TRUE(stateExists(group, master));
  EXPECT_EQ(home(group, {"", {}, {master}}), Distribution(Distribution::StateShards));
  EXPECT_EQ(home(group, {}), Distribution(Distribution::Shards));
}

TEST(Plan, TheWorldIsTheUnionOfUsedMeshes) {
  Plan plan = simplePlan({2}, {R}, {2, 2}, 0, Strategy::Local).plan;
  plan.meshes[0].ranks = {9, 4};
  plan.meshes.push_back({"experts", {"e"}, {3}, {4, 2, 7}});
  EXPECT_EQ(plan.world(), (std::vector<int64_t>{4, 9})); // nobody uses the second mesh
  Group other = plan.groups[0];
  other.mesh = 1;
  plan.groups.push_back(other);
  EXPECT_EQ(plan.world(), (std::vector<int64_t>{2, 4, 7, 9}));
}

TEST(Plan, MembersDifferAlongTheFactorsAlone) {
  Plan plan = simplePlan({2, 4}, {R, R}, {2, 2}, 0, Strategy::Local).plan;
  plan.meshes[0].ranks = {10, 11, 12, 13, 3, 2, 1, 0}; // of the world: 4, 5, 6, 7, 3, 2, 1, 0
  plan.meshes.push_back({"experts", {"e"}, {2}, {10, 40}});
  Group other = plan.groups[0];
  other.mesh = 1;
  plan.groups.push_back(other);
  using Ranks = std::vector<int64_t>;
  EXPECT_EQ(members(plan, {}, 3), (Ranks{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(members(plan, {0, {}}, 3), (Ranks{3}));
  EXPECT_EQ(members(plan, {0, wholeAxes(plan.meshes[0])}, 3), (Ranks{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(members(plan, {0, {{0, 1, 2}}}, 3), (Ranks{3, 4}));
  EXPECT_EQ(members(plan, {0, {{1, 1, 2}}}, 3), (Ranks{2, 3}));
  EXPECT_EQ(members(plan, {0, {{1, 2, 2}}}, 3), (Ranks{1, 3}));
  EXPECT_EQ(members(plan, {0, {{0, 1, 2}, {1, 2, 2}}}, 5), (Ranks{0, 2, 5, 7}));
  EXPECT_EQ(members(plan, {1, {{0, 1, 2}}}, 4), (Ranks{4, 8}));
  EXPECT_EQ(members(plan, {1, {{0, 1, 2}}}, 3), Ranks()); // not of that mesh
  EXPECT_FALSE(shareAPair(plan, {0, {{0, 1, 2}}}, {0, {{1, 1, 4}}}));
  EXPECT_FALSE(shareAPair(plan, {0, {{1, 1, 2}}}, {0, {{1, 2, 2}}}));
  EXPECT_TRUE(shareAPair(plan, {0, {{1, 1, 2}}}, {0, {{1, 1, 4}}}));
  EXPECT_FALSE(shareAPair(plan, {0, {}}, {}));
  EXPECT_FALSE(shareAPair(plan, {0, wholeAxes(plan.meshes[0])}, {1, {{0, 1, 2}}}));
  EXPECT_TRUE(shareAPair(plan, {1, {{0, 1, 2}}}, {}));
}

TEST(Plan, BytesKeepEveryField) {
  Plan plan = richPlan();
  ASSERT_EQ(validate(plan), "");
  ASSERT_EQ(validateProgram(plan), "");
  auto bytes = serialize(plan);
  std::string error;
  auto copy = reread(bytes, error);
  ASSERT_TRUE(copy) << error;
  EXPECT_EQ(serialize(*copy), bytes);
  EXPECT_EQ(copy->chip, "znver5");
  EXPECT_EQ(copy->programHash, plan.programHash);
  EXPECT_TRUE(std::isnan(copy->routes[0].defaults[0]));
  EXPECT_EQ(copy->rules[0].states[1].kind, ValueKind::Cols);
  EXPECT_TRUE(copy->rules[0].states[1].master);
  EXPECT_EQ(copy->rules[0].definition, plan.rules[0].definition);
  EXPECT_EQ(copy->groups[0].placements, plan.groups[0].placements);
  EXPECT_EQ(copy->groups[0].gradientPlacements, plan.groups[0].gradientPlacements);
  EXPECT_EQ(copy->groups[0].statePlacements, plan.groups[0].statePlacements);
  EXPECT_EQ(copy->groups[0].hops[0].base, plan.groups[0].hops[0].base);
  EXPECT_EQ(copy->segments[1].blocks, (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(copy->tables.back(), plan.tables.back());
  EXPECT_EQ(copy->kernels, plan.kernels);
  EXPECT_EQ(std::get<DispatchParameters>(copy->commands[0]).runs[0].group, 0);
  const auto &start = std::get<Start>(copy->commands[1]);
  EXPECT_EQ(start.tables, std::get<Start>(plan.commands[1]).tables);
  EXPECT_EQ(start.collective, CollectiveKind::AllGather);
  EXPECT_EQ(start.communicator.factors[0].size, 2);
  const auto &product = std::get<Product>(copy->commands[2]);
  EXPECT_EQ(product.lhs.bytes, 128);
  EXPECT_EQ(product.addend->type, DType::F16);
  EXPECT_EQ(product.accumulation, Accumulation::RoundedChain);
  EXPECT_EQ(product.beta, -2);
  EXPECT_EQ(product.shift, 1.5);
  EXPECT_TRUE(product.transposeLhs && product.symmetric && !product.transposeRhs);
  EXPECT_EQ(product.kernels[0].items, 7);
  EXPECT_EQ(product.scratchBytes, 64);
}

TEST(Plan, AlgorithmsArePartOfTheBytes) {
  Plan plan = richPlan();
  uint64_t without = hash(plan);
  std::vector<PinnedAlgorithm> &pinned = std::get<Product>(plan.commands[2]).pinned;
  pinned = {{130002, 90, 132, 64, 66, 20, 35, 1, 2, 3, 4, 4096}, {130002, 80, 108, 16, 6}};
  auto bytes = serialize(plan);
  std::string error;
  auto copy = reread(bytes, error);
  ASSERT_TRUE(copy) << error;
  EXPECT_EQ(std::get<Product>(copy->commands[2]).pinned, pinned);
  uint64_t with = hash(plan);
  EXPECT_NE(with, without);
  using Field = int64_t PinnedAlgorithm::*;
  for (Field field :
       {&PinnedAlgorithm::cublasLt, &PinnedAlgorithm::chip, &PinnedAlgorithm::multiprocessors,
        &PinnedAlgorithm::alignment, &PinnedAlgorithm::algorithm, &PinnedAlgorithm::tile,
        &PinnedAlgorithm::stages, &PinnedAlgorithm::swizzling, &PinnedAlgorithm::customOption,
        &PinnedAlgorithm::innerShape, &PinnedAlgorithm::clusterShape,
        &PinnedAlgorithm::workspaceBytes}) {
    ++(pinned[1].*field);
    EXPECT_NE(hash(plan), with);
    --(pinned[1].*field);
  }
  // Damaged, they are refused or another plan; asking never crashes.
  for (size_t i = 16; i < bytes.size(); ++i) {
    bytes[i] ^= 0x81;
    if (auto other = reread(bytes, error)) {
      EXPECT_NE(hash(*other), with) << "byte " << i;
      if (validate(*other).empty())
        validateProgram(*other);
    }
    bytes[i] ^= 0x81;
  }
}

TEST(Plan, TheHashSeesEveryByte) {
  Plan plan = richPlan();
  uint64_t before = hash(plan);
  EXPECT_EQ(before, hash(richPlan()));
  std::string error;
  auto bytes = serialize(plan);
  // Any byte that still reads as a plan gives another hash.
  for (size_t i = 16; i < bytes.size(); ++i) {
    bytes[i] ^= 1;
    if (auto other = reread(bytes, error))
      EXPECT_NE(hash(*other), before) << "byte " << i;
    bytes[i] ^= 1;
  }
}

TEST(Plan, ForeignBytesAreRefused) {
  std::string error;
  EXPECT_FALSE(deserialize(nullptr, 0, error));
  EXPECT_EQ(error, "the bytes are not a plan");
  auto bytes = serialize(richPlan());
  bytes[8] = 1;
  EXPECT_FALSE(reread(bytes, error));
  EXPECT_EQ(error, "expected plan version 32, found 1");
  bytes[8] = 32;
  bytes.push_back(0);
  EXPECT_FALSE(reread(bytes, error));
  EXPECT_EQ(error, "1 bytes follow the plan's end");
  bytes.pop_back();
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A copy of the exact size, so that a sanitizer sees a read behind it.
    std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<int64_t>(size));
    EXPECT_FALSE(reread(cut, error)) << size;
  }
}

TEST(Plan, DamagedBytesNeverCrash) {
  std::mt19937_64 random(11);
  auto below = [&](uint64_t limit) { return random() % limit; };
  Histogram histogram;
  int read = 0, valid = 0, expanded = 0;
  for (int round = 0; round < 30000; ++round) {
    auto bytes = serialize(round % 2 ? richPlan()
                                     : drawPlan(static_cast<uint64_t>(round % 64), histogram).plan);
    for (uint64_t i = 0, edits = 1 + below(4); i < edits; ++i) {
      size_t at = below(bytes.size());
      switch (below(8)) {
      case 0:
        bytes[at] = static_cast<uint8_t>(random());
        break;
      case 1:
        bytes[at] ^= static_cast<uint8_t>(1 << below(8));
        break;
      case 2: // a number becomes negative or huge
        if (at + 8 <= bytes.size())
          bytes[at + 7 - below(4)] = static_cast<uint8_t>(random());
        break;
      case 3:
        bytes.resize(at + 1);
        break;
      default: // a small number becomes another one: what most often still
               // reads
        for (size_t tries = 0; tries < 200; ++tries, at = below(bytes.size())) {
          auto number = bytes.begin() + static_cast<int64_t>(at);
          if (at + 8 > bytes.size() || *number > 8 ||
              std::any_of(number + 1, number + 8, [](uint8_t byte) { return byte != 0; }))
            continue;
          *number = static_cast<uint8_t>(below(9));
          break;
        }
        break;
      }
    }
    std::string error;
    auto plan = reread(bytes, error);
    if (!plan) {
      EXPECT_NE(error, "");
      continue;
    }
    ++read;
    if (validate(*plan) != "")
      continue;
    validateProgram(*plan);
    ++valid;
    // What passes may be large, as a model may; here time is short.
    int64_t work = 0;
    for (const Group &group : plan->groups)
      work += geometry::elements(group.shape) / 1000 + group.blockCount() * 100;
    if (work * static_cast<int64_t>(plan->tables.size()) > 1000000)
      continue;
    ++expanded;
    Expander expander(*plan);
    auto ranks = static_cast<int64_t>(plan->world().size());
    for (int64_t rank = -1; rank <= std::min<int64_t>(ranks, 3); ++rank)
      EXPECT_EQ(expander.tables(rank).tables.size(), plan->tables.size());
  }
  printf("%d read, %d valid, %d expanded\n", read, valid, expanded);
  EXPECT_GT(expanded, 300);
}

} // namespace
} // namespace stepc::test
