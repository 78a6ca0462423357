//===- CodeTest.cpp - Kernels that run ------------------------------------------===//
//
// That all kernels give the bits of code for a CPU is test/python/property/test_interpret.py's to show.
//
//===----------------------------------------------------------------------===//

#include "runtime/interpret/Code.h"
#include "runtime/interpret/Storage.h"
#include "stepc/kernel_abi.h"
#include "test/unit/interpret/Kernels.h"

#include "gtest/gtest.h"

#include <bit>
#include <limits>
#include <numeric>

using namespace stepc;
using namespace stepc::interpret;

namespace {

TEST(Code, WalksTheRowsOfAChunk) {
  // 3 rows of 300 elements in a shard of 301 columns: strips begin and end within rows.
  constexpr int64_t kRows = 3, kCols = 300, kStride = 301;
  std::vector<float> parameter(kRows * kStride), gradient(kRows * kStride), scalars{0.5f};
  std::iota(parameter.begin(), parameter.end(), 1.0f);
  std::iota(gradient.begin(), gradient.end(), 2.0f);
  std::vector<float> before = parameter;
  gradient[5] = std::numeric_limits<float>::quiet_NaN();
  gradient[6] = -gradient[5];
  struct Row {
    stepc_chunk chunk;
    int64_t scalars;
  } row{};
  row.chunk.rows = kRows;
  row.chunk.cols = kCols;
  row.chunk.local_stride = kStride;
  void *parameters[] = {parameter.data()}, *gradients[] = {gradient.data()};
  void *arguments[] = {&row, scalars.data(), nullptr, parameters, gradients};
  auto code = makeCode(makeDescent().kernel);
  EXPECT_EQ(code->arguments(), 5);
  code->run(arguments, 0, 1);
  for (int64_t i = 0; i < kRows * kStride; ++i) {
    if (i == 5 || i == 6)
      EXPECT_EQ(std::bit_cast<uint32_t>(parameter[i]), 0x7fc00000u) << "one NaN is stored";
    else
      EXPECT_EQ(parameter[i], i % kStride == kCols ? before[i] : before[i] - 0.5f * gradient[i]);
  }
}

TEST(Code, RoundsHalvesAsTheCompilerDoes) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = fromHalf(uint16_t(bits));
    if (value == value)
      EXPECT_EQ(toHalf(value), bits);
    value = fromBrain(uint16_t(bits));
    EXPECT_EQ(toBrain(value), value == value ? bits : 0x7fc0u);
  }
  EXPECT_EQ(toHalf(65519.0f), 0x7bff);
  EXPECT_EQ(toHalf(65520.0f), 0x7c00);
  EXPECT_EQ(toHalf(0x1p-25f), 0); // a tie goes to even
  EXPECT_EQ(toHalf(0x1.000002p-25f), 1);
  EXPECT_EQ(toBrain(0x1.01p0f), 0x3f80); // also here
  EXPECT_EQ(toBrain(0x1.03p0f), 0x3f82);
}

TEST(Code, Transposes) {
  // Two blocks of 2 × 40, in bands of the out.
  std::vector<float> source(160), out(160);
  for (size_t i = 0; i < source.size(); ++i)
    source[i] = float(i);
  TransposeKernel kernel{plan::DType::F32, 2, 40};
  void *arguments[] = {nullptr, source.data(), out.data()};
  ASSERT_EQ(kernel.itemsPerBlock(), 2);
  auto code = makeCode(Kernel(kernel));
  code->run(arguments, 0, 1);
  EXPECT_EQ(out[1], 40);
  EXPECT_EQ(out[2 * 32], 0); // of the next item
  code->run(arguments, 1, 4);
  for (int64_t block = 0; block < 2; ++block)
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t col = 0; col < 40; ++col)
        EXPECT_EQ(out[size_t(block * 80 + col * 2 + row)], float(block * 80 + row * 40 + col));
}

TEST(Code, NormsOfAnySize) {
  std::vector<float> source{3e30f, 4e30f, 3e-30f, 4e-30f}, out(2);
  ReduceKernel kernel;
  kernel.reduction = {plan::Reduction::Norm, 0, sums::Remains::Rows, plan::DType::F32, 2, 2};
  void *arguments[] = {nullptr, source.data(), out.data()};
  makeCode(Kernel(kernel))->run(arguments, 0, kernel.itemsPerBlock());
  EXPECT_FLOAT_EQ(out[0], 5e30f);
  EXPECT_FLOAT_EQ(out[1], 5e-30f);
}

} // namespace
