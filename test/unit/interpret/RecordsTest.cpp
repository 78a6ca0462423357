//===- RecordsTest.cpp - Kernels as bytes, and what is refused of them --------===//

#include "test/unit/interpret/Kernels.h"

#include "gmock/gmock.h"

#include <functional>

using namespace stepc;
using namespace stepc::interpret;
using testing::HasSubstr;

namespace {

std::string decoded(const std::vector<uint8_t> &bytes, std::vector<NamedKernel> &kernels) {
  return decode(bytes.data(), int64_t(bytes.size()), kernels);
}

/// What `decode` says of the descent's kernel after a change.
std::string refusal(const std::function<void(ChunkKernel &)> &change) {
  NamedKernel kernel = makeDescent();
  change(std::get<ChunkKernel>(kernel.kernel));
  std::vector<NamedKernel> kernels;
  return decoded(encode({kernel}), kernels);
}

std::vector<NamedKernel> oneOfEach() {
  ParameterKernel parameters;
  parameters.inputs = {0, 1, 2, 3};
  parameters.outputs = {0};
  parameters.body.registers = 4;
  ProductKernel product;
  product.m = product.n = product.k = 9;
  product.addend = plan::DType::BF16;
  product.symmetric = true;
  ReduceKernel reduce;
  reduce.reduction.kind = plan::Reduction::Norm;
  reduce.reduction.exponent = -24;
  reduce.reduction.rows = reduce.reduction.cols = 3;
  constexpr plan::DType F16 = plan::DType::F16;
  return {makeDescent(),
          {"scalars", parameters},
          {"sum", SumKernel{F16, 8}},
          {"product", product},
          {"norm", reduce},
          {"tiles", TilesKernel{{F16, F16, plan::DType::F32, true, false, true}}},
          {"transpose", TransposeKernel{F16, 33, 5}}};
}

TEST(Records, ComeBackAsTheyWere) {
  std::vector<NamedKernel> kernels;
  std::vector<uint8_t> bytes = encode(oneOfEach());
  ASSERT_EQ(decoded(bytes, kernels), "");
  EXPECT_EQ(encode(kernels), bytes);
  ASSERT_EQ(kernels.size(), 7u);
  EXPECT_EQ(std::get<TransposeKernel>(kernels[6].kernel).rows, 33);
  EXPECT_EQ(check(TransposeKernel{plan::DType::F64, 2, 2}),
            "expected a source of at most 32 bits, found f64");
  EXPECT_EQ(name(kernels[0].kernel), "chunks");
  EXPECT_EQ(std::get<ReduceKernel>(kernels[4].kernel).reduction.exponent, -24);
  EXPECT_EQ(std::get<ProductKernel>(kernels[3].kernel).addend, plan::DType::BF16);
  EXPECT_TRUE(std::get<TilesKernel>(kernels[5].kernel).form.transposeLhs);
  EXPECT_EQ(std::get<TilesKernel>(kernels[5].kernel).form.out, plan::DType::F32);
  EXPECT_LT(bytes.size(), 220u); // most numbers take one byte
}

TEST(Records, AreTextForPeople) {
  EXPECT_EQ(toText(makeDescent()), R"(chunks 'descent'
  over_shards yes
  flat no
  shards no yes yes
  reads
    reach shards, type f32, operand 1, register 1
    reach shards, type f32, operand 2, register 2
  writes
    reach shards, type f32, operand 1, register 2
  columns
    column 0, register 0
  body
    registers 4
    constants none
    uniform none
    each
      r3 = mulf r0, r2 : f32
      r2 = subf r1, r3 : f32
  sums 0
)");
}

TEST(Records, AreRefusedWhereTheyEndTooEarly) {
  std::vector<uint8_t> bytes = encode(oneOfEach());
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::vector<NamedKernel> kernels;
    EXPECT_NE(decode(bytes.data(), int64_t(size), kernels), "") << size;
  }
  bytes.push_back(0);
  std::vector<NamedKernel> kernels;
  EXPECT_EQ(decoded(bytes, kernels), "expected the end behind the last kernel, found 1 more bytes");
}

TEST(Records, OfAnyBytesAreReadOrRefused) {
  std::vector<uint8_t> bytes = encode(oneOfEach());
  int64_t refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<uint8_t> changed = bytes;
      changed[at] ^= uint8_t(1 << bit);
      std::vector<NamedKernel> kernels;
      if (!decoded(changed, kernels).empty())
        ++refused;
      else
        for (const NamedKernel &kernel : kernels)
          EXPECT_EQ(check(kernel.kernel), "");
    }
  EXPECT_GT(refused, int64_t(bytes.size()));
}

TEST(Records, OfAnotherKindAreRefused) {
  std::vector<NamedKernel> kernels;
  EXPECT_EQ(decoded({1, 2, 3}, kernels), "expected kernels for the interpreter, found other bytes");
}

TEST(Records, NameTheFault) {
  EXPECT_EQ(refusal([](ChunkKernel &k) { k.body.each[0].second = 4; }),
            "kernel 'descent': expected a register below 4, found 4 in an instruction mulf");
  EXPECT_EQ(
      refusal([](ChunkKernel &k) { k.body.each[0].result = 2; }),
      "kernel 'descent': expected a result in another register than the operands, found 2 in an "
      "instruction mulf");
  EXPECT_EQ(refusal([](ChunkKernel &k) { k.body.each[0].type = Type::I32; }),
            "kernel 'descent': expected types of the operation, found i32 and f32 in an "
            "instruction mulf");
  EXPECT_THAT(refusal([](ChunkKernel &k) {
                k.body.each[0].operation = Operation::CompareF;
                k.body.each[0].predicate = 16;
              }),
              HasSubstr("expected a predicate below 16, found 16 in an instruction cmpf"));
  EXPECT_THAT(refusal([](ChunkKernel &k) { k.body.registers = kMostRegisters + 1; }),
              HasSubstr("expected at most 4096 registers, found 4097"));
  EXPECT_THAT(refusal([](ChunkKernel &k) { k.reads[0].operand = 3; }),
              HasSubstr("expected an operand below 3, found 3"));
  EXPECT_THAT(refusal([](ChunkKernel &k) { k.isShards[1] = false; }),
              HasSubstr("expected operand 1 to be shards"));
  EXPECT_THAT(refusal([](ChunkKernel &k) { k.isShards[0] = true; }),
              HasSubstr("expected scalars as operand 0, found shards or none"));
  EXPECT_THAT(refusal([](ChunkKernel &k) { k.reads[0].place = -1; }),
              HasSubstr("expected a register below 4, found -1"));
  EXPECT_THAT(refusal([](ChunkKernel &k) { k.writes[0] = {Reach::Block, plan::DType::F32, 0, 0}; }),
              HasSubstr("expected results with every element, found reach block"));
}

TEST(Records, OfSizesThatDoNotFitAreRefused) {
  EXPECT_EQ(check(ProductKernel{.m = 2, .n = 3, .k = 1, .symmetric = true}),
            "expected a square result of a symmetric product, found 2 x 3");
  EXPECT_EQ(check(ProductKernel{.m = -1}), "expected a size from 0 to 2^40, found -1");
  EXPECT_EQ(check(SumKernel{.divisor = 0}), "expected a positive divisor, found 0");
  EXPECT_EQ(check(ReduceKernel{{.exponent = 2000}}),
            "expected an exponent from -1000 to 1000, found 2000");
  EXPECT_EQ(check(ParameterKernel{}), "expected at least 4 inputs, found 0");
}

} // namespace
