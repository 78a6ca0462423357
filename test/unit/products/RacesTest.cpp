//===- RacesTest.cpp - Faults of kernels are races, by whatever they compute ===//
//
// Kernels of products and reductions say what they touch. A barrier, a wait or a block's own tile that is
// missing is found in every order of threads, and by no bits: operands here are zeros.
//
//===----------------------------------------------------------------------===//

#include "runtime/emulated/Races.h"
#include "test/unit/products/Jit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace stepc::test {
namespace {

using namespace testing;
using runtime::MemoryUse;
using runtime::Races;

/// An operation on buffers of so many bytes, the third or last of which it writes.
struct Scene {
  const char *name, *operation;
  std::vector<std::string> types;
  std::vector<size_t> bytes; ///< of a slot of each
  size_t out;
  bool tensorCores = false;
};

const Scene kChain{"chain",
                   "optim.product %0, %1 outs(%2 : memref<?x33x33xf32>) {alpha = 1.0 : f64, beta = "
                   "0.0 : f64} : memref<?x33x70xf32>, memref<?x70x33xf32>",
                   {"memref<?x33x70xf32>", "memref<?x70x33xf32>", "memref<?x33x33xf32>"},
                   {33 * 70 * 4, 70 * 33 * 4, 33 * 33 * 4},
                   2};
const Scene kTensorCores{
    "tensor cores",
    "optim.product %0, %1 outs(%2 : memref<?x72x72xf32>) {alpha = 1.0 : f64, beta = 0.0 : f64} : "
    "memref<?x72x640xbf16>, memref<?x640x72xbf16>",
    {"memref<?x72x640xbf16>", "memref<?x640x72xbf16>", "memref<?x72x72xf32>"},
    {72 * 640 * 2, 640 * 72 * 2, 72 * 72 * 4},
    2,
    true};
const Scene kNorm{
    "norm",
    "optim.apply #optim.block_reduce<norm> %0 outs(%1 : memref<?x1x1xf32>) : memref<?x40x48xf32>",
    {"memref<?x40x48xf32>", "memref<?x1x1xf32>"},
    {40 * 48 * 4, 4},
    1};
const Scene kColumns{"columns",
                     "optim.apply #optim.block_reduce<sum> %0 outs(%1 : memref<?x1x75xf32>) : "
                     "memref<?x40x75xf32>",
                     {"memref<?x40x75xf32>", "memref<?x1x75xf32>"},
                     {40 * 75 * 4, 75 * 4},
                     1};

/// What is found in each of some orders of threads.
std::vector<std::string> found(const Scene &scene, Fault fault, size_t slots = 2) {
  Code code = compileEmulated(scene.operation, scene.types, fault, scene.tensorCores, true);
  EXPECT_EQ(code.error, "");
  std::vector<std::vector<char>> buffers;
  for (size_t bytes : scene.bytes)
    buffers.emplace_back(slots * bytes);
  std::vector<char> scratch(slots * size_t(code.scratchBytesPerBlock));
  std::vector<std::string> all;
  for (int seed = 0; seed < 3; ++seed) {
    setenv("STEPC_EMULATED_SEED", std::to_string(seed).c_str(), 1);
    Races races;
    races.begin();
    for (const CompiledLaunch &launch : code.launches) {
      runtime::MemoryUses uses;
      std::vector<void *> arguments = launch.arguments([&](int i) -> void * {
        std::vector<char> &buffer = i < 0 ? scratch : buffers[size_t(i)];
        bool isOut = i < 0 || size_t(i) == scene.out;
        uses.declared.push_back({buffer.data(), int64_t(buffer.size()), i < 0 || !isOut, isOut,
                                 i < 0 ? "the scratch" : "a buffer", i, nullptr});
        return buffer.data();
      });
      races.beginCommand(0, uses, scene.name);
      Races::running = &races;
      launch.kernel(arguments.data(), 0, int64_t(slots) * launch.itemsPerBlock);
      Races::running = nullptr;
    }
    unsetenv("STEPC_EMULATED_SEED");
    all.push_back(races.takeProblem());
  }
  return all;
}

TEST(Races, SoundKernelsHaveNone) {
  for (const Scene &scene : {kChain, kTensorCores, kNorm, kColumns})
    EXPECT_THAT(found(scene, Fault::None), Each("")) << scene.name;
}

TEST(Races, AMissingBarrierIsOne) {
  for (const Scene &scene : {kChain, kTensorCores, kNorm, kColumns})
    EXPECT_THAT(found(scene, Fault::NoBarriers),
                Each(AllOf(HasSubstr("race in kernel '"), HasSubstr("of the block's memory, which"),
                           HasSubstr("expected a barrier between them, found none"))))
        << scene.name;
}

TEST(Races, ACopyThatIsNotWaitedForIsOne) {
  for (Fault fault : {Fault::NoWaits, Fault::EarlyWaits})
    EXPECT_THAT(found(kTensorCores, fault),
                Each(HasSubstr("by a copy that is under way, expected a wait for it, found none")));
}

// Both write the same numbers, so no bits show it.
TEST(Races, BlocksThatShareATileAreOne) {
  for (const Scene &scene : {kChain, kTensorCores, kColumns})
    EXPECT_THAT(
        found(scene, Fault::SameBlocks),
        Each(AllOf(HasSubstr("of a buffer (operand "),
                   HasSubstr("expected blocks that share nothing which one of them writes"))))
        << scene.name;
}

TEST(Races, WhatIsNotDeclaredIsToldAndNotTouched) {
  EXPECT_THAT(found(kChain, Fault::OneMore, 1),
              Each(ContainsRegex("(reads|writes) .* bytes at .*, expected memory that the command "
                                 "declares to (read|write)")));
}

} // namespace
} // namespace stepc::test
