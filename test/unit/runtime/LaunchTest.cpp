//===- LaunchTest.cpp - How the device `cuda` starts kernels ----------------===//
//
// On the driver of test/devices, which is the host and notes each launch.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/gpu/Cuda.cpp"
#include "runtime/plan/Images.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

using namespace stepc;
using namespace stepc::runtime;

namespace {

thread_local int64_t ran = 0;

/// Counts its items.
void count(void *const *, int64_t first, int64_t last) { ran += last - first; }

class Launches : public testing::Test {
protected:
  Launches() : path(testing::TempDir() + "stepc-launches-" + std::to_string(getpid())) {
    setenv("STEPC_STUB_LAUNCHES", path.c_str(), 1);
    setenv("STEPC_STUB_CHIP", "90", 1);
    std::remove(path.c_str());
  }
  ~Launches() override {
    std::remove(path.c_str());
    unsetenv("STEPC_STUB_LAUNCHES");
    unsetenv("STEPC_STUB_CHIP");
  }

  /// Opens a program of one kernel. Null, and `problem` set, if the GPU cannot run it.
  std::unique_ptr<Gpu> open(const plan::LaunchShape &shape, const char *name = "count") {
    plan.kernels = {{name, shape}};
    stepc_options options{};
    return openDriver({parallel, counters, plan, program, records, inactive}, options, problem);
  }

  /// Starts the kernel over so many items, and tells how.
  std::string launch(const plan::LaunchShape &shape, int64_t items, const char *name = "count",
                     bool besideMessages = false) {
    std::unique_ptr<Gpu> gpu = open(shape, name);
    EXPECT_TRUE(gpu) << problem;
    Launch one;
    one.number = 0;
    one.shape = &*plan.kernels[0].launch;
    one.items = items;
    one.besideMessages = besideMessages;
    EXPECT_EQ(gpu->checkLaunch(one), "");
    gpu->join(false);
    gpu->launch(Stream::Compute, one);
    gpu->leave();
    gpu->drain();
    EXPECT_EQ(gpu->takeProblem(), "");
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    std::remove(path.c_str());
    return text.str();
  }

  std::string path, problem;
  plan::Plan plan;
  Parallel parallel;
  stepc_counters counters{};
  std::vector<stepc_parameter_record> records;
  bool inactive = false;
  stepc_kernel kernels[1] = {count};
  uint64_t hash = plan::fnv1a({});
  stepc_image images[2] = {{"ptx", 8, 0, STEPC_IMAGE_PTX, kernels, 0, hash,
                            plan::fnv1a({8, 0, STEPC_IMAGE_PTX, 0, hash})},
                           {}};
  stepc_program program{.abi_version = STEPC_KERNEL_ABI_VERSION, .images = images};
};

TEST_F(Launches, HaveTheKernelsNumbers) {
  using enum plan::Grid;
  EXPECT_EQ(launch({.threads = 256}, 7), "7 blocks, 256 threads, cluster 1, 0 bytes\n");
  EXPECT_EQ(launch({.grid = Threads, .threads = 256}, 257),
            "2 blocks, 256 threads, cluster 1, 0 bytes\n");
  // Clusters are whole.
  plan::LaunchShape wide{.threads = 384, .cluster = 2, .staticBytes = 1024, .dynamicBytes = 204800};
  EXPECT_EQ(launch(wide, 6), "6 blocks, 384 threads, cluster 2, 204800 bytes\n");
  EXPECT_EQ(launch(wide, 7), "8 blocks, 384 threads, cluster 2, 204800 bytes\n");
}

TEST_F(Launches, OfAResidentGridFillTheChip) {
  plan::LaunchShape resident{.grid = plan::Grid::Resident, .threads = 1024};
  // Two blocks on each of 108 multiprocessors.
  EXPECT_EQ(launch(resident, 1000), "216 blocks, 1024 threads, cluster 1, 0 bytes\n");
  EXPECT_EQ(launch(resident, 5), "5 blocks, 1024 threads, cluster 1, 0 bytes\n");
  resident.cluster = 8;
  EXPECT_EQ(launch(resident, 1000), "216 blocks, 1024 threads, cluster 8, 0 bytes\n");
}

TEST_F(Launches, OverListsHaveAClusterForEach) {
  plan::LaunchShape lists{
      .grid = plan::Grid::Lists, .threads = 384, .cluster = 2, .dynamicBytes = 230464};
  auto mostLists = [&](bool besideMessages) {
    std::unique_ptr<Gpu> gpu = open(lists);
    EXPECT_TRUE(gpu) << problem;
    Launch one;
    one.number = 0;
    one.shape = &*plan.kernels[0].launch;
    one.besideMessages = besideMessages;
    return gpu ? gpu->lists(one) : 0;
  };
  // 108 multiprocessors, of which messages get 16.
  EXPECT_EQ(mostLists(false), 54);
  EXPECT_EQ(mostLists(true), 46);
  setenv("STEPC_MOST_CLUSTERS", "3", 1);
  EXPECT_EQ(mostLists(false), 3);
  for (const char *wrong : {"0", "-1", "", "3x"}) {
    setenv("STEPC_MOST_CLUSTERS", wrong, 1);
    EXPECT_FALSE(open(lists));
    EXPECT_EQ(problem, std::string("expected a whole number of at least 1 in STEPC_MOST_CLUSTERS, "
                                   "found '") +
                           wrong + "'");
  }
  unsetenv("STEPC_MOST_CLUSTERS");
}

TEST_F(Launches, OverListsMayBeginWhileOthersEnd) {
  plan::LaunchShape lists{
      .grid = plan::Grid::Lists, .threads = 384, .cluster = 2, .dynamicBytes = 230464};
  const char *name = "stepc_tiles_bf16";
  const std::string plain = "6 blocks, 384 threads, cluster 2, 230464 bytes";
  EXPECT_EQ(launch(lists, 3, name), plain + ", dependent\n");
  // Messages have multiprocessors of their own.
  EXPECT_EQ(launch(lists, 3, name, /*besideMessages=*/true), plain + "\n");
  // No other kernel waits for those before it, and the driver refuses what it is told of them.
  EXPECT_EQ(launch({.threads = 384, .cluster = 2, .dynamicBytes = 230464}, 6), plain + "\n");
  lists.cluster = 1;
  EXPECT_EQ(launch(lists, 3, name), "3 blocks, 384 threads, cluster 1, 230464 bytes, dependent\n");
  lists.cluster = 2;
  setenv("STEPC_STUB_VERSION", "12020", 1);
  EXPECT_EQ(launch(lists, 3, name), plain + "\n");
  setenv("STEPC_STUB_VERSION", "12030", 1);
  EXPECT_EQ(launch(lists, 3, name), plain + ", dependent\n");
  unsetenv("STEPC_STUB_VERSION");
  setenv("STEPC_DEPENDENT_LAUNCHES", "0", 1);
  EXPECT_EQ(launch(lists, 3, name), plain + "\n");
  setenv("STEPC_DEPENDENT_LAUNCHES", "yes", 1);
  EXPECT_FALSE(open(lists, name));
  EXPECT_EQ(problem, "expected 0 or 1 in STEPC_DEPENDENT_LAUNCHES, found 'yes'");
  unsetenv("STEPC_DEPENDENT_LAUNCHES");
}

TEST_F(Launches, DescribeMatricesAsTheDriverTakesThem) {
  std::unique_ptr<Gpu> gpu = open({.threads = 384});
  ASSERT_TRUE(gpu) << problem;
  void *memory = gpu->allocate(4096);
  stepc_tensor_map map{};
  gpu->mapMatrices({memory, 2, 16, 8, plan::DType::BF16, 64}, map);
  EXPECT_EQ(gpu->takeProblem(), "");
  EXPECT_NE(map.words[0], 0u);
  gpu->mapMatrices({memory, 2, 16, 4, plan::DType::F32, 32}, map);
  EXPECT_EQ(gpu->takeProblem(), "");
  // Rows of no whole 16 bytes, a base of no whole 16 bytes, and no matrices.
  auto refused = [&](const MatrixStack &stack) {
    gpu->mapMatrices(stack, map);
    return gpu->takeProblem();
  };
  EXPECT_EQ(refused({nullptr, 2, 16, 12, plan::DType::F16, 64}),
            "expected matrices at a multiple of 16 bytes with rows of whole 16 bytes, found "
            "address (nil) and rows of 24 bytes");
  EXPECT_THAT(refused({static_cast<char *>(memory) + 8, 2, 16, 8}),
              testing::MatchesRegex("expected matrices at a multiple of 16 bytes with rows of "
                                    "whole 16 bytes, found address 0x[0-9a-f]*8 and rows of 16 "
                                    "bytes"));
  EXPECT_EQ(refused({memory, 0, 16, 8}), "expected matrices with elements, found 0 of 16 x 8");
  // The driver refuses stacks that are larger than their memory.
  for (MatrixStack wrong : {MatrixStack{memory, 17, 16, 8, plan::DType::BF16, 64},
                            MatrixStack{memory, 9, 16, 8, plan::DType::F32, 32}}) {
    gpu->mapMatrices(wrong, map);
    EXPECT_EQ(gpu->takeProblem(),
              "describing matrices failed: CUDA_ERROR_INVALID_VALUE, said the stub");
  }
  gpu->release(memory);
}

TEST_F(Launches, AreRefusedByNameWhereTheGpuLacksWhatTheyNeed) {
  EXPECT_FALSE(open({.threads = 384, .dynamicBytes = 240 << 10}));
  EXPECT_EQ(problem, "kernel 'count' on sm_90: expected at most 232448 bytes of shared memory for "
                     "a block, found 245760");
  setenv("STEPC_STUB_CHIP", "80", 1);
  EXPECT_FALSE(open({.threads = 384, .cluster = 2, .dynamicBytes = 204800}));
  EXPECT_EQ(problem, "kernel 'count' on sm_80: expected no clusters, found clusters of 2 blocks");
  EXPECT_FALSE(open({.threads = 384, .dynamicBytes = 204800}));
  EXPECT_EQ(problem, "kernel 'count' on sm_80: expected at most 166912 bytes of shared memory for "
                     "a block, found 204800");
}

TEST_F(Launches, OverListsNeedAClusterThatFits) {
  setenv("STEPC_STUB_CLUSTERS", "0", 1);
  EXPECT_FALSE(
      open({.grid = plan::Grid::Lists, .threads = 384, .cluster = 2, .dynamicBytes = 230464}));
  EXPECT_EQ(problem, "expected a GPU that runs clusters of 2 blocks with 230464 bytes of shared "
                     "memory, found one that runs none");
  unsetenv("STEPC_STUB_CLUSTERS");
}

TEST_F(Launches, ThatWaitTooLongAreNamed) {
  setenv("STEPC_STUB_STUCK", "stepc_tiles_bf16_bounded", 1);
  std::unique_ptr<Gpu> gpu =
      open({.grid = plan::Grid::Lists, .threads = 384, .cluster = 2, .dynamicBytes = 230464},
           "stepc_tiles_bf16_bounded");
  ASSERT_TRUE(gpu) << problem;
  Launch one;
  one.number = 0;
  one.shape = &*plan.kernels[0].launch;
  one.items = 1;
  gpu->join(false);
  gpu->launch(Stream::Compute, one);
  gpu->leave();
  gpu->drain();
  EXPECT_EQ(gpu->takeProblem(), "");
  // A failure behind that launch names its kernel.
  stepc_tensor_map map{};
  gpu->mapMatrices({nullptr, 2, 16, 8, plan::DType::F16, 64}, map);
  EXPECT_EQ(gpu->takeProblem(),
            "describing matrices failed: CUDA_ERROR_INVALID_VALUE, said the stub; kernel "
            "'stepc_tiles_bf16_bounded' waited 2 s for its barrier 5");
  unsetenv("STEPC_STUB_STUCK");
}

} // namespace
