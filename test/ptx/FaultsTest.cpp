//===- FaultsTest.cpp - Planted faults are found ---------------------------===//

#include "test/ptx/Faults.h"
#include "test/ptx/Error.h"
#include "test/ptx/ProductRun.h"
#include "test/support/Tier.h"

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
                                      ProductOptions options, std::string &message,
                                      uint64_t count = kSeeds) {
  for (options.seed = 0; options.seed < count; ++options.seed)
    try {
      runProduct(kernel, problems, options);
    } catch (const Error &error) {
      message = error.what();
      return options.seed;
    }
  return {};
}

/// The kernels in which faults are planted pass with each seed that may find a fault.
TEST(Control, IsCleanWithEachSeed) {
  for (const ProductKernel &kernel : kernels()) {
    std::string message;
    auto seed = seedThatFinds(kernel, problemsFor(kernel), {}, message,
                              uint64_t(stepc::test::draws(kSeeds / 2)));
    EXPECT_FALSE(seed) << kernel.name << ", seed " << *seed << ": " << message;
  }
}

class PlantedFaults : public testing::TestWithParam<size_t> {};

TEST_P(PlantedFaults, AreFoundInEachKernel) {
  const Fault &fault = faults()[GetParam()];
  size_t planted = 0;
  for (const ProductKernel &kernel : kernels()) {
    std::string text = fault.plant(kernel), message;
    if (text.empty())
      continue;
    ++planted;
    auto seed = seedThatFinds(withText(kernel, text), problemsFor(kernel), {}, message);
    EXPECT_TRUE(seed) << kernel.name << ": " << fault.name << " is not found in " << kSeeds
                      << " seeds";
  }
  EXPECT_GT(planted, 0u) << "no kernel has a place for the fault";
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedFaults, testing::Range<size_t>(0, faults().size()), [](const auto &info) {
      std::string name = faults()[info.param].name;
      std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
      return name;
    });

/// Instructions that no planted fault above touches are left out one by one. In both problems every step of k has
/// terms, because a multiplication of zeros alone changes nothing.
TEST(Deletions, AreFound) {
  Random random(1);
  for (int64_t n = 0, cases = stepc::test::draws(16); n < cases; ++n) {
    const ProductKernel &kernel = kernels()[random.below(uint32_t(kernels().size()))];
    auto all = deletions(kernel);
    ASSERT_GT(all.size(), 100u);
    auto &[line, text] = all[random.below(uint32_t(all.size()))];
    std::vector<ProductProblem> problems{drawProblem(kernel, {1, 256, 256, 640}, 1),
                                         drawProblem(kernel, {1, 384, 264, 384}, 2)};
    ProductKernel without = withText(kernel, text);
    std::string message;
    for (uint64_t seed = 0; seed < kSeeds && message.empty(); ++seed)
      try {
        ListKind kinds[] = {ListKind::Halves, ListKind::Planned, ListKind::Drawn};
        runProduct(without, problems,
                   {.seed = seed, .lists = {kinds[seed % 3], uint32_t(1 + seed % 2), nullptr}});
      } catch (const Error &error) {
        message = error.what();
      }
    EXPECT_FALSE(message.empty()) << kernel.name << " without line " << line;
  }
}

/// Bounded waits end with a trap, behind which the host finds the number of the barrier.
TEST(BoundedWaits, EndWhereNothingArrives) {
  size_t tried = 0;
  for (const ProductKernel &kernel : kernels()) {
    if (!kernel.name.ends_with("_bounded"))
      continue;
    ++tried;
    // Nobody releases a stage, so the threads of both sides wait for each other.
    auto errorWithout = [&](const char *opcode) {
      std::string text = kernel.text, message;
      size_t at = text.find(opcode), begin = text.rfind('\n', at) + 1;
      EXPECT_NE(at, std::string::npos) << opcode;
      text.erase(begin, text.find('\n', at) - begin);
      EXPECT_TRUE(seedThatFinds(withText(kernel, text), problemsFor(kernel), {}, message));
      return message;
    };
    EXPECT_THAT(
        errorWithout(kernel.cluster() > 1 ? "mbarrier.arrive.shared::cluster.b64"
                                          : "mbarrier.arrive.shared::cta.b64"),
        testing::ContainsRegex("the kernel stops by a trap(.|\n)*it waited for barrier [0-7]"));
  }
  EXPECT_GE(tried, 2u);
}

struct ListFault {
  const char *name, *message;
  void (*edit)(std::vector<Tile> &);
};

const ListFault kListFaults[] = {
    {"ATileMisses", "is written 0 times", [](std::vector<Tile> &tiles) { tiles.pop_back(); }},
    {"ATileStandsTwice", "is written 2 times",
     [](std::vector<Tile> &tiles) { tiles.push_back(tiles.front()); }},
    {"ABlockIsNotStored", "is written 0 times",
     [](std::vector<Tile> &tiles) { tiles.front().stores &= ~1u; }},
    {"ATileIsOfAnotherProblem", "times",
     [](std::vector<Tile> &tiles) { tiles.front().problem ^= 1; }},
};

class PlantedLists : public testing::TestWithParam<ListFault> {};

TEST_P(PlantedLists, AreFoundInEachKernel) {
  for (const ProductKernel &kernel : kernels()) {
    ProductOptions options;
    options.lists.edit = GetParam().edit;
    std::string message;
    EXPECT_TRUE(seedThatFinds(kernel, problemsFor(kernel), options, message)) << kernel.name;
    EXPECT_THAT(message, testing::HasSubstr(GetParam().message)) << kernel.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlantedLists, testing::ValuesIn(kListFaults),
                         [](const auto &info) { return info.param.name; });

/// Whatever comes first, the problem that reads a result or the one that writes it.
TEST(PlantedProblems, AResultIsAnotherProblemsOperand) {
  for (const ProductKernel &kernel : kernels()) {
    std::vector<ProductProblem> problems{drawProblem(kernel, {1, 256, 256, 256}, 1),
                                         drawProblem(kernel, {1, 256, 256, 256}, 2)};
    std::string message;
    EXPECT_TRUE(seedThatFinds(kernel, problems, {.readsResult = true}, message)) << kernel.name;
    EXPECT_THAT(message, testing::HasSubstr("of the result of problem 0, which this launch"));
  }
}

} // namespace
