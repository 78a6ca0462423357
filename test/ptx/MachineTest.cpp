//===- MachineTest.cpp - What the machine computes and refuses -------------===//

#include "test/ptx/Numbers.h"
#include "test/ptx/Snippet.h"

#include <cstring>

using namespace stepc::ptx;
using testing::HasSubstr;

namespace {

/// Each thread stores %r2.
const std::string kStore =
    "mul.wide.u32 %rd9, %r1, 4; add.s64 %rd9, %rd0, %rd9; st.global.b32 [%rd9], %r2;\n";

std::vector<uint8_t> numbered(size_t elements) {
  std::vector<uint8_t> bytes(elements * 2);
  for (size_t i = 0; i < elements; ++i) {
    uint16_t value = uint16_t(i * 2654435761u >> 16 | 1);
    std::memcpy(&bytes[2 * i], &value, 2);
  }
  return bytes;
}

/// Loads the box at %r20 (column) and %r21 (row) to smem+`at`, awaited by the barrier, which expects `bytes`.
std::string loadText(int at, int bytes, int column = 0, int row = 0) {
  std::ostringstream text;
  text << "mov.b64 %rd20, map; mov.b32 %r20, " << column << "; mov.b32 %r21, " << row << ";\n"
       << "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [smem+16000], " << bytes << ";\n"
       << "@%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [smem+"
       << at << "], [%rd20, {%r20, %r21}], [smem+16000];\n";
  return text.str();
}

/// Stores the box at smem to the tensor's beginning.
const std::string kTensorStore = "mov.b64 %rd20, map; mov.b32 %r20, 0;\n"
                                 "@%p1 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
                                 "[%rd20, {%r20, %r20}], [smem];\n"
                                 "@%p1 cp.async.bulk.commit_group;\n";

/// Fills eight rows of 128 bytes: each thread 32 bytes of its own number.
const std::string kFill = "shl.b32 %r5, %r1, 5; mov.b32 %r6, smem; add.s32 %r5, %r5, %r6;\n"
                          "st.shared.v4.b32 [%r5], {%r1, %r1, %r1, %r1}; st.shared.v4.b32 "
                          "[%r5+16], {%r1, %r1, %r1, %r1};\n";

struct Calculation {
  const char *text; ///< of %r10 and %r11 gives %r2
  uint32_t a, b, expected;
};

class Calculations : public testing::TestWithParam<Calculation> {};

TEST_P(Calculations, AsPtxDefines) {
  const Calculation &of = GetParam();
  Snippet snippet;
  snippet.body = "mov.b32 %r10, " + std::to_string(of.a) + "; mov.b32 %r11, " +
                 std::to_string(of.b) + ";\n" + of.text + kStore;
  EXPECT_EQ(words(snippet.run())[7], of.expected) << of.text;
}

INSTANTIATE_TEST_SUITE_P(
    All, Calculations,
    testing::Values(
        Calculation{"sub.s32 %r2, %r10, %r11;", 3, 5, 0xfffffffe},
        Calculation{"mul.hi.u32 %r2, %r10, %r11;", 1u << 31, 6, 3},
        Calculation{"mul.wide.s32 %rd1, %r10, %r11; shr.s64 %rd2, %rd1, 32; cvt.u32.u64 %r2, %rd2;",
                    uint32_t(-4), 3, 0xffffffff},
        Calculation{"mad.lo.s32 %r2, %r10, %r11, 7;", 5, 6, 37},
        Calculation{"div.s32 %r2, %r10, %r11;", uint32_t(-7), 2, uint32_t(-3)},
        Calculation{"rem.u32 %r2, %r10, %r11;", 17, 5, 2},
        Calculation{"shr.s32 %r2, %r10, %r11;", 0x80000000, 40, 0xffffffff},
        Calculation{"shl.b32 %r2, %r10, %r11;", 1, 32, 0},
        Calculation{"bfe.u32 %r2, %r10, 5, 2;", 0x60, 0, 3},
        Calculation{"bfe.s32 %r2, %r10, 4, 4;", 0x80, 0, uint32_t(-8)},
        Calculation{"prmt.b32 %r2, %r10, %r11, 21008;", 0x11223344, 0x55667788, 0x77223344},
        Calculation{"lop3.b32 %r2, %r10, %r11, 15, 150;", 0xff, 0xf0, 0x00},
        Calculation{"bfi.b32 %r2, %r10, %r11, 8, 4;", 0xab, 0xffffffff, 0xfffffbff},
        Calculation{"popc.b32 %r2, %r10;", 0xff01, 0, 9},
        Calculation{"shf.r.wrap.b32 %r2, %r10, %r11, 8;", 0x11223344, 0x55667788, 0x88112233},
        Calculation{"setp.lt.s32 %p2, %r10, %r11; selp.b32 %r2, 1, 2, %p2;", uint32_t(-1), 0, 1},
        Calculation{"setp.lt.u32 %p2, %r10, %r11; selp.b32 %r2, 1, 2, %p2;", uint32_t(-1), 0, 2},
        Calculation{"setp.neu.f32 %p2, %r10, %r11; selp.b32 %r2, 1, 2, %p2;", 0x7fc00000, 0, 1},
        Calculation{"add.rn.f32 %r2, %r10, %r11;", 0x3f800000, 0x40000000, 0x40400000},
        Calculation{"fma.rn.f32 %r2, %r10, %r10, %r11;", 0x3f800001, 0xbf800002, 0x28800000},
        Calculation{"cvt.rn.bf16x2.f32 %r2, %r10, %r11;", 0x3f808000, 0x3f818000, 0x3f803f82},
        Calculation{"cvt.rn.f16x2.f32 %r2, %r10, %r11;", 0x3f800000, 0x477fe000, 0x3c007bff},
        Calculation{"mov.b32 {%rs1, %rs2}, %r10; cvt.f32.bf16 %r2, %rs2;", 0x3fc01234, 0,
                    0x3fc00000},
        Calculation{
            "mov.b64 %rd1, {%r10, %r11}; add.rn.f32x2 %rd2, %rd1, %rd1; mov.b64 {_, %r2}, %rd2;", 0,
            0x3f800000, 0x40000000},
        Calculation{"cvt.s64.s32 %rd1, %r10; shr.u64 %rd1, %rd1, 32; cvt.u32.u64 %r2, %rd1;",
                    0x80000000, 0, 0xffffffff},
        Calculation{"shfl.sync.idx.b32 %r2, %r1, 5, 31, -1;", 0, 0, 5},
        Calculation{"shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;", 0, 0, 6},
        Calculation{"shfl.sync.up.b32 %r2, %r1, 2, 0, -1;", 0, 0, 5},
        Calculation{"shfl.sync.down.b32 %r2|%p3, %r1, 30, 31, -1;", 0, 0, 7},
        Calculation{"elect.sync _|%p2, -1; mov.b32 %r2, 0; @%p2 mov.b32 %r2, 1; shfl.sync.bfly.b32 "
                    "%r3, %r2, 16, 31, -1; mov.b32 %r2, 4;",
                    0, 0, 4}));

TEST(Machine, NamesTheLineOfWhatIsNotModelled) {
  Snippet snippet;
  snippet.body = "add.s32 %r2, %r1, 1;\nsin.approx.f32 %r2, %r2;";
  EXPECT_THAT(snippet.error(),
              HasSubstr("line 12: the instruction 'sin.approx.f32' is not modelled"));
}

TEST(Machine, RefusesRegistersOfAnotherSize) {
  Snippet snippet;
  snippet.body = "add.s32 %rd2, %r1, 1;";
  EXPECT_THAT(snippet.error(),
              HasSubstr("expected a register of the instruction's type, found %rd2"));
}

TEST(Machine, RefusesAnotherNumberOfOperands) {
  Snippet snippet;
  snippet.body = "add.s32 %r2, %r1, 1, 2;";
  EXPECT_THAT(snippet.error(), HasSubstr("expected 3 operands, found 4"));
}

TEST(Machine, NeedsTheTargetOfABranch) {
  Snippet snippet;
  snippet.body = "bra $nowhere;";
  EXPECT_THAT(snippet.error(), HasSubstr("line 11: no label $nowhere"));
}

TEST(Machine, BlocksHaveNamesOfTheirOwn) {
  Snippet snippet;
  snippet.body =
      "mov.b32 %r2, 0;\n"
      "{ .reg .pred p; setp.lt.u32 p, %r1, 4; @p bra DONE; add.s32 %r2, %r2, 1; DONE: }\n"
      "{ .reg .pred p; setp.lt.u32 p, %r1, 8; @!p bra DONE; add.s32 %r2, %r2, 2; DONE: }\n" +
      kStore;
  auto out = words(snippet.run());
  EXPECT_EQ(out[0], 2u);
  EXPECT_EQ(out[6], 3u);
  EXPECT_EQ(out[9], 1u);
}

TEST(Machine, ARegisterThatNothingHasWrittenIsNotRead) {
  Snippet snippet;
  snippet.body = "mov.b32 %r3, %r4;\nadd.s32 %r2, %r3, 1;";
  EXPECT_THAT(snippet.error(),
              HasSubstr("line 12, block 0, warp 0: a read of a register that nothing has written"));
}

TEST(Machine, LanesOfABranchJoinWhereTheWarpMeets) {
  Snippet snippet;
  snippet.threads = 64;
  std::string branch = "setp.lt.u32 %p2, %r1, 7; @%p2 bra L; mov.b32 %r3, 1; L:\n";
  snippet.body = branch + "bar.sync 0;";
  EXPECT_THAT(snippet.error(), HasSubstr("expected all lanes of the warp together"));
  snippet.body = branch + "bar.warp.sync -1; bar.sync 0;";
  EXPECT_EQ(snippet.error(), "");
}

TEST(Machine, ListsWhatEachWarpWaitsFor) {
  Snippet snippet;
  snippet.threads = 64;
  snippet.body = barrierText(3) +
                 "setp.lt.u32 %p2, %r1, 32; @%p2 bra L; bar.sync 1, 64; L: @%p1 "
                 "mbarrier.arrive.shared::cta.b64 _, [smem+16000];\n" +
                 waitText(0);
  std::string error = snippet.error();
  EXPECT_THAT(error, HasSubstr("no warp can go on"));
  EXPECT_THAT(error, HasSubstr("block 0, warp 0, line 18: the barrier at 17024 stays in its phase "
                               "0, with 2 arrivals of 3 and 0 bytes to come"));
  EXPECT_THAT(error, HasSubstr("block 0, warp 1, line 17: barrier 1 has 32 threads of 64"));
}

TEST(Machine, ATrapIsAnError) {
  Snippet snippet;
  snippet.body =
      "mov.u64 %rd1, %globaltimer; LOOP: mov.u64 %rd2, %globaltimer; sub.s64 %rd3, %rd2, %rd1;\n"
      "setp.lt.u64 %p2, %rd3, 500; @%p2 bra LOOP; trap;";
  EXPECT_THAT(snippet.error(), HasSubstr("the kernel stops by a trap"));
}

TEST(Machine, AWaitThatIsBoundedTellsItsBarrier) {
  Snippet snippet;
  snippet.declarations = ".visible .global .align 4 .b32 stuck[2] = {0, 5};";
  std::string wait = "mov.u64 %rd1, %globaltimer;\nLOOP: mbarrier.try_wait.parity.shared.b64 %p2, "
                     "[smem+16000], 0, 1000;\n"
                     "@%p2 bra DONE; mov.u64 %rd2, %globaltimer; sub.s64 %rd3, %rd2, %rd1; "
                     "setp.lt.u64 %p3, %rd3, 2000000000;\n"
                     "@%p3 bra LOOP; st.global.b32 [stuck], 7; trap;\nDONE: mov.b64 %rd4, stuck; "
                     "ld.global.b32 %r2, [%rd4+4];\n";
  snippet.body =
      barrierText(1) + "@%p1 mbarrier.arrive.shared::cta.b64 _, [smem+16000];\n" + wait + kStore;
  EXPECT_EQ(words(snippet.run())[3], 5u);
  // Nothing is left that could end the phase, so time goes on until the kernel gives up.
  snippet.body = barrierText(1) + wait;
  EXPECT_THAT(snippet.error(), HasSubstr("the kernel stops by a trap"));
}

TEST(Machine, AKernelWithoutAnEndIsAnError) {
  Snippet snippet;
  snippet.mostInstructions = 10000;
  snippet.body = "LOOP: bra LOOP;";
  EXPECT_THAT(snippet.error(), HasSubstr("a kernel has not ended after 10000 instructions"));
}

TEST(Machine, GlobalAccessesStayInTheirAllocation) {
  Snippet snippet;
  snippet.body = "ld.global.b32 %r2, [%rd0+4096];";
  EXPECT_THAT(snippet.error(),
              HasSubstr("a read of 4 bytes at byte 4096 is outside of out, which has 4096"));
  snippet.body = "ld.param.b64 %rd1, [in]; st.global.b32 [%rd1], %r1;";
  EXPECT_THAT(snippet.error(), HasSubstr("a write to in, which is not a result"));
  snippet.body = "st.global.b32 [%rd0], %r1; ld.global.b32 %r2, [%rd0];";
  EXPECT_THAT(snippet.error(), HasSubstr("a read of byte 0 of out, which this launch writes"));
  snippet.body = "ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%rd0+8];";
  EXPECT_THAT(snippet.error(), HasSubstr("expected an address that is a multiple of 16"));
}

TEST(Machine, TheBlocksMemoryBeginsWithoutValues) {
  Snippet snippet;
  snippet.body = "ld.shared.b32 %r2, [smem];";
  EXPECT_THAT(snippet.error(), HasSubstr("a read of bytes that nothing has written, at 1024"));
  snippet.body = "st.shared.b32 [smem+16384], %r1;";
  EXPECT_THAT(snippet.error(), HasSubstr("outside of the block's memory"));
}

TEST(Barriers, AnArrivalTooManyIsAnError) {
  Snippet snippet;
  // Bytes that never come keep the phase from its end.
  snippet.body = barrierText(1) + "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [smem+16000], 16;\n"
                                  "@%p1 mbarrier.arrive.shared::cta.b64 _, [smem+16000];";
  EXPECT_THAT(snippet.error(),
              HasSubstr("a barrier gets 1 arrivals where 0 are expected in this phase"));
}

TEST(Barriers, NothingIsWrittenOverOne) {
  Snippet snippet;
  snippet.body = barrierText(1) + "@%p1 st.shared.b32 [smem+16004], %r1;";
  EXPECT_THAT(snippet.error(), HasSubstr("a write over a barrier, at 17028"));
  snippet.body = barrierText(1) + "@%p1 mbarrier.init.shared.b64 [smem+16000], %r9;";
  EXPECT_THAT(snippet.error(), HasSubstr("a barrier begins at 17024, where one is in use"));
  snippet.body = barrierText(1) + "@%p1 ld.shared.b32 %r2, [smem+16000];";
  EXPECT_THAT(snippet.error(), HasSubstr("a read of a barrier's bytes"));
}

TEST(Barriers, OtherBlocksArriveByAMappedAddress) {
  Snippet snippet;
  snippet.clusterBlocks = 2;
  std::string both = "mov.b32 %r3, smem; add.s32 %r3, %r3, 16000; mov.u32 %r4, %cluster_ctarank; "
                     "xor.b32 %r4, %r4, 1;\n"
                     "mapa.shared::cluster.u32 %r5, %r3, %r4; setp.eq.s32 %p2, %r1, 0;\n"
                     "@%p2 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];\n";
  // Without a meeting at the end a block may have ended before the arrival.
  std::string meet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";
  snippet.body = barrierText(1) + both + waitText(0);
  EXPECT_EQ(snippet.errorOfSeeds(20), "");
  snippet.body = barrierText(1) + both;
  EXPECT_THAT(snippet.errorOfSeeds(20),
              HasSubstr("an arrival at a barrier of a block that has ended"));
  snippet.body = barrierText(1) + both + meet;
  EXPECT_EQ(snippet.errorOfSeeds(20), "");
}

TEST(Barriers, CountSeveralArrivalsAtOnceAndTakeWideAddresses) {
  Snippet snippet;
  snippet.clusterBlocks = 2;
  snippet.body = barrierText(6) +
                 "mov.b64 %rd3, smem; mov.u32 %r4, %cluster_ctarank; xor.b32 %r4, %r4, 1;\n"
                 "mapa.shared::cluster.u64 %rd4, %rd3, %r4; mov.b32 %r5, 2;\n"
                 "@%p1 mbarrier.arrive.shared::cluster.b64 _, [%rd4+16000], %r5;\n"
                 "@%p1 mbarrier.arrive.shared::cta.b64 _, [%rd3+16000], 4;\n" +
                 waitText(0);
  EXPECT_EQ(snippet.errorOfSeeds(20), "");
}

TEST(Barriers, OneForOtherBlocksIsMadeVisible) {
  Snippet snippet;
  snippet.clusterBlocks = 2;
  std::string text = barrierText(1);
  text.erase(text.find("@%p1 fence"), text.find("bar.warp") - text.find("@%p1 fence"));
  snippet.body = text +
                 "mov.b32 %r3, smem; add.s32 %r3, %r3, 16000; mov.b32 %r4, 1; "
                 "mapa.shared::cluster.u32 %r5, %r3, %r4;\n"
                 "mov.u32 %r6, %cluster_ctarank; setp.eq.s32 %p2, %r6, 0; and.pred %p2, %p1, %p2;\n"
                 "@%p2 mbarrier.arrive.shared::cluster.b64 _, [%r5];";
  EXPECT_THAT(snippet.error(), HasSubstr("no fence.mbarrier_init has made visible"));
}

TEST(Barriers, NamedOnesHaveOneNumberOfThreads) {
  Snippet snippet;
  snippet.threads = 64;
  snippet.body =
      "mov.b32 %r3, 64; setp.lt.u32 %p2, %r1, 32; selp.b32 %r3, 96, 64, %p2; bar.sync 1, %r3;";
  EXPECT_THAT(snippet.error(), HasSubstr("threads"));
}

TEST(Loads, PlaceRowsByTheSwizzleWithZerosPastTheEnds) {
  Snippet snippet;
  snippet.in = numbered(80 * 10); // ten rows of 80 columns
  snippet.map = planarMap(10, 80, 8);
  snippet.outBytes = 1024;
  // Each thread copies 32 bytes of the block's memory as they lie.
  snippet.body = barrierText(1) + loadText(0, 1024, 40, 4) + waitText(0) +
                 "shl.b32 %r5, %r1, 5; mov.b32 %r6, smem; add.s32 %r6, %r5, %r6; cvt.u64.u32 %rd5, "
                 "%r5; add.s64 %rd5, %rd0, %rd5;\n"
                 "ld.shared.v4.b32 {%r30, %r31, %r32, %r33}, [%r6]; st.global.v4.b32 [%rd5], "
                 "{%r30, %r31, %r32, %r33};\n"
                 "ld.shared.v4.b32 {%r30, %r31, %r32, %r33}, [%r6+16]; st.global.v4.b32 [%rd5+16], "
                 "{%r30, %r31, %r32, %r33};\n";
  for (snippet.seed = 0; snippet.seed < 5; ++snippet.seed) {
    auto out = snippet.run();
    for (uint32_t row = 0; row < 8; ++row)
      for (uint32_t column = 0; column < 64; ++column) {
        uint16_t expected = 0, found;
        if (row + 4 < 10 && column + 40 < 80)
          std::memcpy(&expected, &snippet.in[2 * ((row + 4) * 80 + column + 40)], 2);
        // 16-byte pieces of a row of 128 bytes change places with the row's number.
        uint32_t at = row * 128 + ((column / 8) ^ (row % 8)) * 16 + column % 8 * 2;
        std::memcpy(&found, &out[at], 2);
        ASSERT_EQ(found, expected) << row << " " << column;
      }
  }
}

TEST(Loads, AreAwaitedBeforeTheirBytesAreRead) {
  Snippet snippet;
  snippet.in = numbered(64 * 8);
  snippet.map = planarMap(8, 64, 8);
  std::string read = "ld.shared.b32 %r2, [smem+512];";
  snippet.body = barrierText(1) + loadText(0, 1024) + read;
  EXPECT_THAT(snippet.errorOfSeeds(20),
              HasSubstr("a read of bytes on which a tensor load has not landed"));
  // Two boxes, and bytes expected for one of them.
  std::string second =
      "@%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
      "[smem+1024], "
      "[%rd20, {%r20, %r21}], [smem+16000];\n";
  snippet.body = barrierText(1) + loadText(0, 1024) + second + waitText(0) + read;
  EXPECT_THAT(snippet.errorOfSeeds(20), HasSubstr("has not landed"));
  snippet.body = barrierText(1) + loadText(0, 2048) + second + waitText(0) + read;
  EXPECT_EQ(snippet.errorOfSeeds(20), "");
}

TEST(Loads, ComeBehindTheFenceOfThoseThatHaveReadTheBytes) {
  Snippet snippet;
  snippet.in = numbered(64 * 8);
  snippet.map = planarMap(8, 64, 8);
  std::string first =
      barrierText(1) + loadText(0, 1024) + waitText(0) + "ld.shared.b32 %r2, [smem+512];\n";
  std::string second = "bar.sync 0;\n" + loadText(0, 1024) + waitText(1);
  snippet.body = first + second;
  EXPECT_THAT(
      snippet.error(),
      HasSubstr("a tensor load over bytes that a thread has read without fence.proxy.async"));
  snippet.body = first + "fence.proxy.async.shared::cta;\n" + second;
  EXPECT_EQ(snippet.errorOfSeeds(20), "");
  // A fence of one lane says nothing of the others.
  snippet.body = first + "@%p1 fence.proxy.async.shared::cta;\n" + second;
  EXPECT_THAT(snippet.error(), HasSubstr("has read without fence.proxy.async"));
}

TEST(Loads, ReachTheBlocksThatTheirMaskNames) {
  Snippet snippet;
  snippet.clusterBlocks = 2;
  snippet.in = numbered(64 * 8);
  snippet.map = planarMap(8, 64, 8);
  auto body = [](int mask) {
    return barrierText(1) + "mov.b64 %rd20, map; mov.b32 %r20, 0; mov.b16 %rs1, " +
           std::to_string(mask) +
           "; mov.u32 %r6, %cluster_ctarank; setp.eq.s32 %p2, %r6, 0; and.pred %p2, %p1, %p2;\n"
           "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [smem+16000], 1024;\n"
           "@%p2 "
           "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
           "multicast::cluster [smem], "
           "[%rd20, {%r20, %r20}], [smem+16000], %rs1;\n" +
           waitText(0) +
           "ld.shared.b32 %r2, [smem]; shl.b32 %r6, %r6, 2; cvt.u64.u32 %rd5, %r6; add.s64 %rd5, "
           "%rd0, %rd5; @%p1 st.global.b32 [%rd5], %r2;\n"
           "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";
  };
  snippet.body = body(3);
  auto out = words(snippet.run());
  EXPECT_EQ(out[0], words(snippet.in)[0]);
  EXPECT_EQ(out[1], out[0]);
  EXPECT_EQ(snippet.errorOfSeeds(20), "");
  snippet.body = body(1);
  EXPECT_THAT(snippet.error(), HasSubstr("block 1, warp 0, line 20: the barrier at 17024 stays in "
                                         "its phase 0, with 0 arrivals of 1 and 1024 bytes"));
  snippet.body = body(7);
  EXPECT_THAT(snippet.error(), HasSubstr("expected a mask of the cluster's blocks, found 7"));
}

TEST(Loads, LandBeforeTheirBlockEnds) {
  Snippet snippet;
  snippet.in = numbered(64 * 8);
  snippet.map = planarMap(8, 64, 8);
  snippet.body = barrierText(1) + loadText(0, 1024);
  EXPECT_THAT(snippet.errorOfSeeds(20),
              HasSubstr("a block ends before a tensor load to it has landed"));
}

TEST(Loads, AMapInMemoryIsAcquired) {
  Snippet snippet;
  snippet.in = std::vector<uint8_t>(128 + 1024);
  snippet.body =
      barrierText(1) +
      "ld.param.b64 %rd20, [in]; mov.b32 %r20, 0;\n"
      "@%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [smem], "
      "[%rd20, {%r20, %r20}], [smem+16000];";
  EXPECT_THAT(snippet.error(), HasSubstr("used by a thread that has not acquired it"));
  snippet.body.insert(snippet.body.find("mov.b32 %r20"),
                      "fence.proxy.tensormap::generic.acquire.gpu [%rd20], 128;\n");
  EXPECT_THAT(snippet.error(), HasSubstr("expected a tensor map, found other bytes"));
}

TEST(Stores, NeedTheFenceOfThoseThatHaveWritten) {
  Snippet snippet;
  snippet.map = planarMap(8, 64, 8);
  snippet.isMapOfOut = true;
  snippet.outBytes = 1024;
  std::string fence = "fence.proxy.async.shared::cta;\n",
              wait = "@%p1 cp.async.bulk.wait_group 0;\n";
  snippet.body = kFill + "bar.warp.sync -1;\n" + kTensorStore + wait;
  EXPECT_THAT(snippet.error(), HasSubstr("that a thread has written without fence.proxy.async"));
  snippet.body = kFill + fence + "bar.warp.sync -1;\n" + kTensorStore + wait;
  EXPECT_EQ(snippet.errorOfSeeds(20), "");
  auto out = words(snippet.run());
  for (uint32_t row = 0; row < 8; ++row)
    for (uint32_t piece = 0; piece < 8; ++piece)
      EXPECT_EQ(out[row * 32 + piece * 4], (row * 8 + (piece ^ row)) / 2);
}

TEST(Stores, ReadUntilTheyAreWaitedFor) {
  Snippet snippet;
  snippet.map = planarMap(8, 64, 8);
  snippet.isMapOfOut = true;
  std::string begin = kFill + "fence.proxy.async.shared::cta;\nbar.warp.sync -1;\n" + kTensorStore;
  snippet.body = begin + "bar.warp.sync -1;\n" + kFill + "@%p1 cp.async.bulk.wait_group 0;";
  EXPECT_THAT(snippet.error(), HasSubstr("a write over bytes that a tensor store may still read"));
  snippet.body = begin + "@%p1 cp.async.bulk.wait_group.read 0;\nbar.warp.sync -1;\n" + kFill;
  EXPECT_EQ(snippet.errorOfSeeds(20), "");
  snippet.body = begin;
  EXPECT_THAT(snippet.error(), HasSubstr("a thread ends before its tensor stores have read"));
  // The group is the first thread's. A wait of another one ends nothing.
  snippet.body = begin + "@!%p1 cp.async.bulk.wait_group.read 0;";
  EXPECT_THAT(snippet.error(), HasSubstr("a thread ends before its tensor stores have read"));
}

TEST(Stores, MatricesGoToTheirRows) {
  Snippet snippet;
  // Word r of lane l is 4 l + r, with the same number plus 1000 above it.
  std::string words4 = "shl.b32 %r10, %r1, 2; add.s32 %r11, %r10, 1; add.s32 %r12, %r10, 2; "
                       "add.s32 %r13, %r10, 3;\n";
  for (int i = 10; i < 14; ++i) {
    std::string r = "%r" + std::to_string(i);
    words4 += "add.s32 %r14, " + r + ", 1000; shl.b32 %r14, %r14, 16; or.b32 " + r + ", " + r +
              ", %r14;\n";
  }
  for (bool isTransposed : {false, true}) {
    snippet.body = words4 +
                   "shl.b32 %r5, %r1, 4; mov.b32 %r6, smem; add.s32 %r5, %r5, "
                   "%r6;\nstmatrix.sync.aligned.m8n8.x4" +
                   std::string(isTransposed ? ".trans" : "") +
                   ".shared.b16 [%r5], {%r10, %r11, %r12, %r13};\nbar.sync 0;\n"
                   "ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%r5]; shl.b32 %r7, %r1, 4; "
                   "cvt.u64.u32 %rd5, %r7; add.s64 %rd5, %rd0, %rd5;\n"
                   "st.global.v4.b32 [%rd5], {%r20, %r21, %r22, %r23};";
    auto out = snippet.run();
    for (uint32_t matrix = 0; matrix < 4; ++matrix)
      for (uint32_t row = 0; row < 8; ++row)
        for (uint32_t column = 0; column < 8; ++column) {
          uint16_t found;
          std::memcpy(&found, &out[matrix * 128 + row * 16 + column * 2], 2);
          uint32_t r = isTransposed ? column : row, c = isTransposed ? row : column;
          ASSERT_EQ(found, 4 * (4 * r + c / 2) + matrix + c % 2 * 1000);
        }
  }
}

TEST(TensorMaps, MeetTheDriversConditions) {
  TensorMap good = planarMap(8, 64, 8);
  auto message = [&](auto change) {
    TensorMap map = good;
    change(map);
    try {
      encode(map);
    } catch (const Error &error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message([](TensorMap &) {}), "");
  EXPECT_THAT(message([](TensorMap &m) { m.address = 8; }), HasSubstr("a multiple of 16, found 8"));
  EXPECT_THAT(message([](TensorMap &m) { m.strides[0] = 120; }),
              HasSubstr("a multiple of 16 and below 2^40, found 120"));
  EXPECT_THAT(message([](TensorMap &m) { m.strides[0] = 112; }),
              HasSubstr("a stride of at least 128 bytes, found 112"));
  EXPECT_THAT(message([](TensorMap &m) { m.box[1] = 257; }),
              HasSubstr("1 to 256 elements of a box's dimension 1, found 257"));
  EXPECT_THAT(message([](TensorMap &m) { m.box[0] = 128; }),
              HasSubstr("at most the swizzle's 128 bytes, found 256"));
  EXPECT_THAT(message([](TensorMap &m) { m.box[0] = 4; }),
              HasSubstr("a multiple of 16 bytes, found 8"));
  EXPECT_THAT(message([](TensorMap &m) { m.dimensions[1] = 0; }), HasSubstr("1 to 2^32 elements"));
  EXPECT_THAT(message([](TensorMap &m) { m.rank = 6; }), HasSubstr("1 to 5 dimensions"));
  EXPECT_THAT(message([](TensorMap &m) { m.elementBytes = 8; }),
              HasSubstr("elements of 2 or 4 bytes"));
}

} // namespace
