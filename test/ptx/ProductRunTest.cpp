//===- ProductRunTest.cpp - Products on the machine ------------------------===//

#include "test/ptx/ProductRun.h"
#include "runtime/emulated/TileProducts.h"
#include "test/ptx/Random.h"
#include "test/support/Tier.h"

using namespace stepc::ptx;

namespace {

/// The compiler's forms of the kernel, as test/ptx/MakeKernels.cpp makes them.
TEST(Kernels, AreThere) { EXPECT_GE(kernels().size(), 19u); }

void expectSameBits(const Matrices &a, const Matrices &b, const std::string &what) {
  ASSERT_EQ(a.bytes.size(), b.bytes.size()) << what;
  for (uint32_t z = 0; z < a.batches; ++z)
    for (uint32_t i = 0; i < a.rows; ++i)
      for (uint32_t j = 0; j < a.columns; ++j)
        ASSERT_EQ(a.bits(z, i, j), b.bits(z, i, j))
            << what << ", element " << z << ", " << i << ", " << j;
}

/// Matrix `batch` alone.
Matrices matrixOf(const Matrices &of, uint32_t batch) {
  Matrices made(of.type, of.batches ? 1 : 0, of.rows, of.columns);
  std::copy_n(of.bytes.begin() + ptrdiff_t(batch * made.bytes.size()), made.bytes.size(),
              made.bytes.begin());
  return made;
}

/// Three problems off the grid, with a k below five blocks and unequal ones.
std::vector<ProductProblem> fewProblems(const ProductKernel &kernel) {
  return {drawProblem(kernel, {1, 256, 192, 128}, 11), drawProblem(kernel, {2, 200, 328, 136}, 12),
          drawProblem(kernel, {1, 392, 264, 448}, 13)};
}

TEST(Kernels, GiveTheSameBitsInAnyLaunch) {
  for (const ProductKernel &kernel : kernels()) {
    SCOPED_TRACE(kernel.name);
    auto problems = fewProblems(kernel);
    auto all = runProduct(kernel, problems, {.seed = 1, .lists = {.lists = 3}});
    auto one = runProduct(kernel, problems, {.seed = 2, .lists = {.kind = ListKind::Halves}});
    auto beside =
        runProduct(kernel, problems,
                   {.seed = 3, .lists = {.kind = ListKind::Drawn, .lists = 3}, .resident = 3});
    for (size_t p = 0; p < problems.size(); ++p) {
      expectSameBits(all.outs[p], one.outs[p], "on one cluster with half tiles");
      expectSameBits(all.outs[p], beside.outs[p], "with drawn lists, clusters beside each other");
      for (uint32_t z = 0; z < problems[p].shape.batches; ++z) {
        ProductProblem alone = problems[p];
        alone.shape.batches = 1;
        alone.lhs = matrixOf(alone.lhs, z), alone.rhs = matrixOf(alone.rhs, z);
        if (alone.hasAddend)
          alone.addend = matrixOf(alone.addend, z);
        auto out = runProduct(kernel, {alone}, {.seed = 4 + z, .lists = {.lists = 2}});
        expectSameBits(matrixOf(all.outs[p], z), out.outs[0], "alone");
      }
    }
  }
}

/// Kernels that compute the same, such as those of clusters of one and of two blocks, give the same bits.
TEST(Kernels, OfOneProductGiveTheSameBits) {
  for (size_t i = 0; i < kernels().size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      if (kernels()[i].form != kernels()[j].form)
        continue;
      auto problems = fewProblems(kernels()[i]);
      auto a = runProduct(kernels()[i], problems, {.seed = 5}),
           b = runProduct(kernels()[j], problems, {.seed = 6});
      for (size_t p = 0; p < problems.size(); ++p)
        expectSameBits(a.outs[p], b.outs[p], kernels()[i].name + " and " + kernels()[j].name);
    }
}

/// The target `emulated` works off the same lists by the same arithmetic (runtime/emulated/TileProducts.h).
TEST(Kernels, GiveTheBitsOfTheEmulatedTarget) {
  for (const ProductKernel &kernel : kernels()) {
    SCOPED_TRACE(kernel.name);
    // Rows are whole accesses of 16 bytes there.
    std::vector<ProductProblem> problems{drawProblem(kernel, {2, 136, 72, 344}, 21),
                                         drawProblem(kernel, {1, 72, 200, 72}, 22)};
    problems[1].hasAddend = false;
    auto result = runProduct(kernel, problems, {.seed = 8});
    std::vector<stepc_product_problem> table(problems.size());
    std::vector<Matrices> outs;
    std::vector<stepc::plan::TiledProduct> products;
    for (size_t p = 0; p < problems.size(); ++p) {
      ProductProblem &of = problems[p];
      const auto [batches, m, n, k] = of.shape;
      outs.push_back(Matrices(kernel.form.out, batches, m, n));
      products.push_back({batches, m, n, k, kernel.form.symmetric, of.hasAddend, of.hasShift});
      table[p].alpha = of.alpha, table[p].beta = of.beta, table[p].shift = of.shift;
      auto set = [](stepc_tensor_map &map, const Matrices &of) {
        stepc::runtime::writeMap(of.bytes.data(), {of.columns, of.rows, of.batches}, map);
      };
      set(table[p].lhs, of.lhs), set(table[p].rhs, of.rhs);
      set(table[p].out, outs.back()), set(table[p].addend, of.addend);
    }
    auto lists = stepc::plan::tileLists(products, 2, kernel.cluster());
    void *arguments[] = {table.data(), lists.tiles.data(), lists.lists.data()};
    stepc_rt_emulated_tiles(arguments, 0, lists.count(), stepc::plan::tileBits(kernel.form));
    for (size_t p = 0; p < problems.size(); ++p)
      expectSameBits(result.outs[p], outs[p], "of the emulated target");
  }
}

/// A problem's flag tells that it has no addend, or no shift.
TEST(Kernels, AddOnlyWhatATileNames) {
  for (const ProductKernel &kernel : kernels()) {
    SCOPED_TRACE(kernel.name);
    auto problems = fewProblems(kernel);
    problems[0].hasAddend = problems[2].hasShift = false;
    runProduct(kernel, problems, {.seed = 7});
  }
}

TEST(Kernels, AreRightForDrawnProblems) {
  int64_t cases = stepc::test::draws(15);
  uint64_t first = 0;
  if (const char *given = std::getenv("STEPC_SEED"))
    first = std::stoull(given);
  for (int64_t n = 0; n < cases; ++n) {
    uint64_t seed = first + uint64_t(n);
    Random random(seed);
    const ProductKernel &kernel = kernels()[seed % kernels().size()];
    std::vector<ProductProblem> problems;
    for (uint32_t p = 0, count = 1 + random.below(4); p < count; ++p) {
      // k from 1 to 5000, small ones as often as large ones; any numbers of rows and columns.
      auto k = uint32_t(std::exp2(random.below(1230) / 100.0));
      uint32_t most = k > 1500 ? 200 : 420;
      ProductShape shape{1 + random.below(k > 700 ? 1 : 3), 1 + random.below(most),
                         1 + random.below(most), std::min(k, 5000u)};
      problems.push_back(drawProblem(kernel, shape, random.next()));
      ProductProblem &made = problems.back();
      made.alpha = float(int(random.below(9)) - 4) / 2 + 0.25f;
      made.beta = float(int(random.below(9)) - 4) / 2;
      made.hasAddend &= random.below(3) > 0;
      made.hasShift &= random.below(3) > 0;
    }
    ProductOptions options{.seed = random.next(),
                           .lists = {random.below(3) ? ListKind::Drawn : ListKind::Planned,
                                     1 + random.below(4), nullptr},
                           .resident = 1 + random.below(2)};
    EXPECT_NO_THROW(runProduct(kernel, problems, options))
        << kernel.name << ", STEPC_SEED=" << seed;
    if (HasFailure())
      return;
  }
}

} // namespace
