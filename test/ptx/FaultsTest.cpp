//===- FaultsTest.cpp - Planted faults are found ---------------------------===//

#include "test/ptx/Faults.h"
#include "test/ptx/Error.h"
#include "test/ptx/ProductRun.h"

using namespace stepc::ptx;

namespace {

constexpr uint64_t kSeeds = 20;

/// Two products, so that a cluster has tiles behind its first one.
std::vector<ProductProblem> problemsFor(const ProductKernel &kernel) {
  return {drawProblem(kernel, {1, 256, 256, 640}, 1), drawProblem(kernel, {1, 256, 256, 384}, 2)};
}

/// The seed that finds a fault, or none.
std::optional<uint64_t> seedThatFinds(const ProductKernel &kernel,
                                      const std::vector<ProductProblem> &problems,
                                      ProductOptions options, std::string &message) {
  for (options.seed = 0; options.seed < kSeeds; ++options.seed)
    try {
      runProduct(kernel, problems, options);
    } catch (const Error &error) {
      message = error.what();
      return options.seed;
    }
  return {};
}

/// What the faults are planted in passes with each seed that may find them.
TEST(Control, IsCleanWithEachSeed) {
  if (kernels().empty())
    GTEST_SKIP() << "STEPC_PTX_KERNELS names no folder of kernels";
  for (const ProductKernel &kernel : kernels()) {
    std::string message;
    auto seed = seedThatFinds(kernel, problemsFor(kernel), {.clusters = 1}, message);
    EXPECT_FALSE(seed) << kernel.name << ", seed " << *seed << ": " << message;
  }
}

class PlantedFaults : public testing::TestWithParam<size_t> {
protected:
  void SetUp() override {
    if (kernels().empty())
      GTEST_SKIP() << "STEPC_PTX_KERNELS names no folder of kernels";
  }
};

TEST_P(PlantedFaults, AreFoundInEachKernel) {
  const Fault &fault = faults()[GetParam()];
  size_t planted = 0;
  for (const ProductKernel &kernel : kernels()) {
    std::string text = fault.plant(kernel), message;
    if (text.empty())
      continue;
    ++planted;
    auto seed =
        seedThatFinds(withText(kernel, text), problemsFor(kernel), {.clusters = 1}, message);
    EXPECT_TRUE(seed) << kernel.name << ": " << fault.name << " is not found in " << kSeeds
                      << " seeds";
    if (seed)
      std::cout << kernel.name << ", seed " << *seed << ": " << message.substr(0, 150) << std::endl;
  }
  EXPECT_GT(planted, 0u) << "no kernel has a place for the fault";
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedFaults, testing::Range<size_t>(0, faults().size()), [](const auto &info) {
      std::string name = faults()[info.param].name;
      std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
      return name;
    });

class PlantedLists : public PlantedFaults {};

TEST_P(PlantedLists, AreFoundInEachKernel) {
  for (const ProductKernel &kernel : kernels()) {
    ProductOptions options{.clusters = 1};
    auto problems = problemsFor(kernel);
    switch (GetParam()) {
    case 0:
      options.edit = [](std::vector<Tile> &tiles) { tiles.pop_back(); };
      break;
    case 1:
      options.edit = [](std::vector<Tile> &tiles) { tiles.push_back(tiles.front()); };
      break;
    case 2:
      if (problems[1].lhs.bytes.size() != problems[0].lhs.bytes.size())
        problems[1] = drawProblem(kernel, {1, 256, 256, 256}, 3);
      options.alias = {{1, 1}};
      break;
    default: // a mirrored copy that is stored though its block is stored directly, too
      options.edit = [](std::vector<Tile> &tiles) { tiles.front().flags |= 0x11; };
    }
    if (GetParam() == 3 && !kernel.isSymmetric)
      continue;
    std::string message;
    EXPECT_TRUE(seedThatFinds(kernel, problems, options, message)) << kernel.name;
  }
}

std::string listFault(const testing::TestParamInfo<size_t> &info) {
  const char *names[] = {"ATileMisses", "ATileStandsTwice", "AResultIsAnOperand",
                         "ABlockIsStoredTwice"};
  return names[info.param];
}
INSTANTIATE_TEST_SUITE_P(All, PlantedLists, testing::Range<size_t>(0, 4), listFault);

} // namespace
