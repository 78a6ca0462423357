//===- ProductsTest.cpp - wgmma in the machine -----------------------------===//

#include "runtime/emulated/TensorCore.h"
#include "test/ptx/Multiply.h"
#include "test/ptx/Numbers.h"
#include "test/ptx/Snippet.h"

#include <cstring>

using namespace stepc::ptx;
using testing::HasSubstr;

namespace {

/// A column of the model, one fragment of mma.sync at a time.
void multiplyByModel(const uint16_t (*left)[16], const uint16_t (*right)[16], float *sums,
                     int columns, bool half) {
  for (int begin = 0; begin < columns; begin += 8) {
    stepc::runtime::WarpProduct product;
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const uint16_t *row = left[lane / 4 + i % 2 * 8] + lane % 4 * 2 + i / 2 * 8;
        product.left[lane][i] = row[0] | uint32_t(row[1]) << 16;
        product.sums[lane][i] = std::bit_cast<uint32_t>(
            sums[(lane / 4 + i / 2 * 8) * columns + begin + lane % 4 * 2 + i % 2]);
      }
      for (int i = 0; i < 2; ++i) {
        const uint16_t *row = right[begin + lane / 4] + lane % 4 * 2 + i * 8;
        product.right[lane][i] = row[0] | uint32_t(row[1]) << 16;
      }
    }
    stepc::runtime::multiply(product, half);
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i)
        sums[(lane / 4 + i / 2 * 8) * columns + begin + lane % 4 * 2 + i % 2] =
            std::bit_cast<float>(product.sums[lane][i]);
  }
}

TEST(Multiply, HasTheBitsOfTheModel) {
  Random random(7);
  for (int round = 0; round < 400; ++round) {
    bool half = round % 2;
    // Ordinary numbers, numbers of all sizes, any bits with infinite and undefined ones, and many zeros.
    int kind = round / 2 % 4;
    auto draw = [&] {
      auto bits = uint16_t(random.next());
      float sign = bits & 1 ? -1.f : 1.f, fraction = 1 + float(bits >> 1 & 1023) / 1024;
      int exponent = int(random.below(kind == 1 ? 60 : 8)) - (kind == 1 ? 30 : 4);
      float value = sign * std::ldexp(fraction, exponent);
      if (kind == 3 && random.below(4))
        return uint16_t(0);
      return kind == 2 ? bits : half ? toF16(value) : toBf16(value);
    };
    uint16_t left[16][16], right[24][16];
    for (auto &row : left)
      for (auto &each : row)
        each = draw();
    for (auto &row : right)
      for (auto &each : row)
        each = draw();
    float sums[16 * 24], expected[16 * 24];
    for (float &each : sums)
      each = kind == 2         ? std::bit_cast<float>(uint32_t(random.next()))
             : random.below(3) ? std::ldexp(fromF16(toF16(float(random.below(900)) - 450)),
                                            int(random.below(40)) - 20)
                               : 0;
    std::memcpy(expected, sums, sizeof sums);
    for (int step = 0; step < 3; ++step) {
      multiply(left, right, sums, 24, half);
      multiplyByModel(left, right, expected, 24, half);
    }
    ASSERT_EQ(std::memcmp(sums, expected, sizeof sums), 0) << "round " << round;
  }
}

/// 64 x 64 bf16 by 64 x 64 bf16: both are loaded by boxes, and the first 8 columns of the product are stored.
struct WgmmaSnippet {
  bool leftIsTransposed = false, rightIsTransposed = false;
  std::string betweenLoadAndProduct, behindProduct, beforeWait = "",
                                                    wait = "wgmma.wait_group.sync.aligned 0;\n";
  std::string fence = "wgmma.fence.sync.aligned;\n", left = "", adds = "0";

  Snippet make() const {
    Snippet snippet;
    snippet.threads = 128;
    snippet.in.resize(64 * 64 * 2);
    Random random(3);
    for (size_t i = 0; i < snippet.in.size(); i += 2) {
      uint16_t value = toBf16(float(random.below(16)) - 8);
      std::memcpy(&snippet.in[i], &value, 2);
    }
    snippet.map = planarMap(64, 64, 64);
    snippet.outBytes = 64 * 8 * 4;
    std::ostringstream text;
    text << barrierText(1) << "mov.b64 %rd20, map; mov.b32 %r20, 0;\n"
         << "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [smem+16000], 8192;\n"
         << "@%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
            "[smem], [%rd20, {%r20, %r20}], "
            "[smem+16000];\nbar.warp.sync -1;\n"
         << waitText(0) << betweenLoadAndProduct
         << "mov.b32 %r30, smem; shr.u32 %r30, %r30, 4; cvt.u64.u32 %rd30, %r30;\n"
         // The 128-byte swizzle, both strides 1024 bytes.
         << "or.b64 %rd31, %rd30, 4611686293309489152; mov.b64 %rd32, %rd31; " << left << "\n"
         << "mov.b32 %r40, 0; mov.b32 %r41, 0; mov.b32 %r42, 0; mov.b32 %r43, 0;\n"
         << fence;
    for (int i = 0; i < 4; ++i)
      text << "{ .reg .pred p; setp.ne.b32 p, " << (i ? "1" : adds) << ", 0;\n"
           << "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r40, %r41, %r42, %r43}, "
              "%rd31, %rd32, p, 1, 1, "
           << leftIsTransposed << ", " << rightIsTransposed << "; }\n"
           << "add.s64 %rd31, %rd31, " << (leftIsTransposed ? 128 : 2) << "; add.s64 %rd32, %rd32, "
           << (rightIsTransposed ? 128 : 2) << ";\n";
    text << "wgmma.commit_group.sync.aligned;\n"
         << beforeWait << wait
         << behindProduct
         // Row l / 4 + 16 w, columns 2 (l % 4) and the next, and eight rows below.
         << "shr.u32 %r50, %r1, 5; shl.b32 %r50, %r50, 4; bfe.u32 %r51, %r1, 2, 3; add.s32 %r50, "
            "%r50, %r51; shl.b32 %r50, %r50, 5;\n"
         << "and.b32 %r52, %r1, 3; shl.b32 %r52, %r52, 3; add.s32 %r50, %r50, %r52; cvt.u64.u32 "
            "%rd40, %r50; add.s64 %rd40, %rd0, %rd40;\n"
         << "st.global.v2.b32 [%rd40], {%r40, %r41}; st.global.v2.b32 [%rd40+256], {%r42, %r43};\n";
    snippet.body = text.str();
    return snippet;
  }
};

TEST(Wgmma, DecodesBothMajorsOfItsOperands) {
  for (bool leftIsTransposed : {false, true})
    for (bool rightIsTransposed : {false, true}) {
      WgmmaSnippet of;
      of.leftIsTransposed = leftIsTransposed;
      of.rightIsTransposed = rightIsTransposed;
      Snippet snippet = of.make();
      for (snippet.seed = 0; snippet.seed < 4; ++snippet.seed) {
        auto out = words(snippet.run());
        auto in = [&](int row, int column) {
          uint16_t bits;
          std::memcpy(&bits, &snippet.in[2 * (row * 64 + column)], 2);
          return fromBf16(bits);
        };
        for (int row = 0; row < 64; ++row)
          for (int column = 0; column < 8; ++column) {
            float sum = 0;
            for (int k = 0; k < 64; ++k)
              sum += (leftIsTransposed ? in(k, row) : in(row, k)) *
                     (rightIsTransposed ? in(k, column) : in(column, k));
            ASSERT_EQ(std::bit_cast<float>(out[row * 8 + column]), sum) << row << " " << column;
          }
      }
    }
}

TEST(Wgmma, AccumulatorsBelongToItUntilTheWait) {
  WgmmaSnippet of;
  of.beforeWait = "add.s32 %r60, %r40, 1;\n";
  EXPECT_THAT(
      of.make().error(),
      HasSubstr("a read of an accumulator of a wgmma that no wgmma.wait_group has waited for"));
  of.beforeWait = "mov.b32 %r43, 1;\n";
  EXPECT_THAT(of.make().error(), HasSubstr("a write of an accumulator of a wgmma"));
  of.beforeWait = "";
  of.wait = "wgmma.wait_group.sync.aligned 1;\n";
  EXPECT_THAT(of.make().error(), HasSubstr("a read of an accumulator of a wgmma"));
}

TEST(Wgmma, NeedsAFenceBehindAccessesOfItsAccumulators) {
  WgmmaSnippet of;
  of.fence = "";
  EXPECT_THAT(of.make().error(),
              HasSubstr("an accumulator was written behind the last wgmma.fence"));
  of.fence = "wgmma.fence.sync.aligned;\nadd.s32 %r61, %r42, 1;\n";
  EXPECT_THAT(of.make().error(), HasSubstr("an accumulator was read behind the last wgmma.fence"));
  of.fence += "wgmma.fence.sync.aligned;\n";
  EXPECT_EQ(of.make().error(), "");
}

TEST(Wgmma, ReadsWhatHasLandedAndIsFenced) {
  WgmmaSnippet of;
  of.betweenLoadAndProduct = "@%p1 st.shared.b32 [smem+4], %r1; bar.warp.sync -1; bar.sync 0;\n";
  EXPECT_THAT(of.make().error(), HasSubstr("that a thread has written without fence.proxy.async"));
  of.betweenLoadAndProduct = "@%p1 st.shared.b32 [smem+4], %r1; fence.proxy.async.shared::cta; "
                             "bar.warp.sync -1; bar.sync 0;\n";
  EXPECT_EQ(of.make().error(), "");
}

TEST(Wgmma, ItsOperandsStayUntilTheWait) {
  WgmmaSnippet of;
  of.beforeWait = "@%p1 st.shared.b32 [smem+4], %r1; bar.warp.sync -1;\n";
  EXPECT_THAT(of.make().error(),
              HasSubstr("a write over bytes that a wgmma in flight may still read"));
  of.beforeWait =
      "bar.sync 0;\n@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [smem+16000], 8192;\n"
      "@%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [smem], "
      "[%rd20, {%r20, "
      "%r20}], [smem+16000];\nbar.warp.sync -1;\n";
  of.behindProduct = waitText(1);
  EXPECT_THAT(of.make().error(),
              HasSubstr("a tensor load over bytes that a wgmma in flight may still read"));
}

TEST(Wgmma, RefusesDescriptorsOfAnotherKind) {
  WgmmaSnippet of;
  of.left = "and.b64 %rd31, %rd31, 4611686018427387903;";
  EXPECT_THAT(of.make().error(),
              HasSubstr("expected the 128-byte swizzle (1) in a descriptor, found 0"));
  of.left = "add.s64 %rd31, %rd31, 8;";
  EXPECT_THAT(of.make().error(), HasSubstr("expected a matrix that begins with 16 steps of a "
                                           "swizzle pattern, found it at byte 128"));
  of.left = "or.b64 %rd31, %rd31, 562949953421312;";
  EXPECT_THAT(of.make().error(), HasSubstr("expected zeros in a descriptor's other bits"));
  of.left = "add.s64 %rd31, %rd31, 34359738368;";
  EXPECT_THAT(of.make().error(), HasSubstr("expected a stride of whole swizzle patterns"));
}

TEST(Wgmma, IsTheSameForAWarpgroup) {
  WgmmaSnippet of;
  of.left = "setp.lt.u32 %p4, %r1, 32; selp.b32 %r31, 0, 65536, %p4; cvt.u64.u32 %rd33, %r31; "
            "or.b64 %rd31, %rd31, %rd33;";
  EXPECT_THAT(of.make().error(), HasSubstr("a warpgroup have not carried out the same wgmma"));
}

TEST(Registers, AreSetByAllWarpsOfABlockOrByNone) {
  Snippet snippet;
  snippet.threads = 256;
  snippet.body =
      "setp.lt.u32 %p2, %r1, 128; @%p2 bra L; setmaxnreg.inc.sync.aligned.u32 240; bra.uni E;\n"
      "L: setmaxnreg.dec.sync.aligned.u32 24; E:";
  EXPECT_EQ(snippet.error(), "");
  snippet.body = "setp.lt.u32 %p2, %r1, 128; @%p2 bra L; setmaxnreg.inc.sync.aligned.u32 240; L:";
  EXPECT_THAT(snippet.error(),
              HasSubstr("some warps of a block have set their number of registers"));
  snippet.threads = 384;
  snippet.body = "setmaxnreg.inc.sync.aligned.u32 240;";
  EXPECT_THAT(snippet.error(),
              HasSubstr("expected at most 65536 registers of a block, found 92160"));
  snippet.body = "setmaxnreg.inc.sync.aligned.u32 244;";
  EXPECT_THAT(snippet.error(),
              HasSubstr("expected 24 to 256 registers, a multiple of 8, found 244"));
}

TEST(Wgmma, EndsBeforeItsWarp) {
  WgmmaSnippet of;
  of.wait = "ret;\n";
  EXPECT_THAT(of.make().error(), HasSubstr("a warp ends with a wgmma in flight"));
}

} // namespace
