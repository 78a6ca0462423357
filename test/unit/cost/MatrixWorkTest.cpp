//===- MatrixWorkTest.cpp - What is counted is what is built ----------------===//

#include "passes/decide/MatrixWork.h"

#include "dialects/comm/Comm.h"
#include "passes/cost/Cluster.h"
#include "passes/distribute/Passes.h"
#include "passes/plan/ProductForms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace mlir;

namespace stepc::decide {
namespace {

/// A product or a function of blocks with its operations, as counted or as it stands in the IR.
using Step = std::array<int64_t, 8>;

Step product(const cost::BlockProduct &of) {
  return {true,           of.m,         of.n,        of.k,
          of.isSymmetric, of.hasAddend, of.isNarrow, cost::executedFlops(of)};
}

Step stepOf(const MatrixStep &step) {
  Step made = step.isProduct ? product(step.shape) : Step{};
  made.back() = step.flops;
  return made;
}

std::vector<Step> stepsOf(ModuleOp module) {
  std::vector<Step> steps;
  module.walk([&](Operation *op) {
    if (auto multiply = dyn_cast<optim::ProductOp>(op)) {
      auto [m, n, k] = multiply.getSizes();
      bool isNarrow =
          getElementTypeOrSelf(multiply.getLhs().getType()).getIntOrFloatBitWidth() == 16;
      cost::BlockProduct of{m, n, k, multiply.getSymmetric(), bool(multiply.getAddend()), isNarrow};
      steps.push_back(product(of));
    } else if (auto apply = dyn_cast<optim::ApplyOp>(op)) {
      int64_t flops = apply.getFunction().flops(apply.getSourceBlocks(), apply.getOutBlock());
      steps.push_back({false, 0, 0, 0, 0, 0, 0, flops});
    }
  });
  return steps;
}

std::vector<cost::LaunchForm> formsOf(ModuleOp module) {
  std::vector<cost::LaunchForm> forms;
  module.walk([&](optim::ProductOp product) { forms.push_back(formOf(product)); });
  return forms;
}

/// A rule that orthogonalizes with these coefficients, in bf16 if `isNarrow`, and then takes a norm.
std::string moduleOf(int64_t rows, int64_t cols, const std::string &coefficients,
                     const std::string &decided, bool isNarrow = false,
                     const std::string &form = "") {
  std::string shape = std::to_string(rows) + ", " + std::to_string(cols);
  return R"(
      optim.rule @R hyperparameters [] states [] needs_matrix {
      ^bb0(%p: tensor<?x?xf32>, %g: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
        %x = arith.truncf %g {optim.space = #optim.space<matrix>} : tensor<?x?xf32> to tensor<?x?xbf16>
        %y = optim.orthogonalize )" +
         std::string(isNarrow ? "%x" : "%g") + " coefficients [" + coefficients + "] eps 1.0e-07 " +
         form + R"( {optim.space = #optim.space<matrix>} : tensor<?x?x)" +
         (isNarrow ? R"(bf16>
        %o = arith.extf %y : tensor<?x?xbf16> to tensor<?x?xf32>
)"
                   : R"(f32>
        %o = arith.negf %y {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
)") + R"(
        %n = optim.reduce norm %o {optim.space = #optim.space<matrix>} : tensor<?x?xf32> to tensor<1x1xf32>
        %b = optim.broadcast %n : tensor<1x1xf32> to tensor<?x?xf32>
        %d = arith.divf %o, %b {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
        optim.yield %d : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
      }
      optim.mesh @dp axes ["dp"] sizes [2] ranks [0, 1]
      optim.parameter @a shape [)" +
         shape + R"(] batch 0 type f32 gradient f32 mesh @dp placements [#optim.shard<0>] aliases []
      optim.group @g rule @R parameters [@a] )" +
         decided;
}

TEST(MatrixWork, CountsWhatIsBuilt) {
  DialectRegistry registry;
  registry.insert<optim::OptimDialect, comm::CommDialect, arith::ArithDialect, func::FuncDialect,
                  tensor::TensorDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::mt19937 random(7);
  for (int draw = 0; draw < 40; ++draw) {
    // Kernels on warpgroups take some of these.
    auto rows = int64_t(random() % 60 + 1) * (random() % 2 ? 1 : 8);
    auto cols = int64_t(random() % 60 + 1) * (random() % 2 ? 1 : 8);
    std::string coefficients;
    for (unsigned step = random() % 4 + 1; step > 0; --step)
      coefficients += std::string(coefficients.empty() ? "" : ", ") +
                      (random() % 2 ? "[3.0, -4.0, 2.0]" : "[1.5, -0.5, 0.0]");
    std::string form = std::array{"", "form gram", "form auto"}[random() % 3];
    if (!form.empty() && coefficients.find("], [") != std::string::npos)
      form += " restarts [1]";
    auto module = parseSourceString<ModuleOp>(
        moduleOf(rows, cols, coefficients,
                 "strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]",
                 /*isNarrow=*/random() % 2, form),
        &context);
    ASSERT_TRUE(module);
    auto group = *module->getOps<optim::GroupOp>().begin();
    auto rule = *module->getOps<optim::RuleOp>().begin();
    MatrixWork work(rule, group.toPlan());
    PassManager manager(&context);
    distribute::buildDistributePipeline(manager);
    ASSERT_TRUE(succeeded(manager.run(*module)));
    std::vector<Step> counted;
    std::vector<cost::LaunchForm> forms;
    for (const MatrixStep &step : work.steps) {
      counted.push_back(stepOf(step));
      if (step.isProduct)
        forms.push_back(step.form);
    }
    EXPECT_TRUE(forms == formsOf(*module)) << rows << " x " << cols << ", " << form;
    EXPECT_THAT(counted, testing::ElementsAreArray(stepsOf(*module)))
        << rows << " x " << cols << ", " << coefficients << ", " << form;
  }
}

/// Five steps with one restart of a block that is four times as long as high, beside the standard form
/// without symmetry.
TEST(MatrixWork, TheGramFormTakesHalf) {
  MLIRContext context;
  context.loadDialect<optim::OptimDialect, arith::ArithDialect>();
  std::string five = "[3.0, -4.0, 2.0]";
  for (int i = 0; i < 4; ++i)
    five += ", [3.0, -4.0, 2.0]";
  auto flops = [&](const std::string &form, bool isFull) {
    auto module = parseSourceString<ModuleOp>(
        moduleOf(1024, 4096, five, "", /*isNarrow=*/false, form), &context);
    MatrixWork work(*module->getOps<optim::RuleOp>().begin(), optim::MatrixExtents(1024, 4096));
    double sum = 0;
    for (const MatrixStep &step : work.steps)
      if (step.isProduct)
        sum += double(isFull ? cost::fullFlops(step.shape) : cost::executedFlops(step.shape));
    return sum;
  };
  double plain = flops("", true);
  EXPECT_NEAR(plain, 5.0 * (4 * 4 + 2) * std::pow(1024, 3), 0.01 * plain);
  EXPECT_LE(flops("form gram restarts [2]", false), 0.5 * plain);
  EXPECT_EQ(flops("form auto restarts [2]", false), flops("form gram restarts [2]", false));
  EXPECT_GE(flops("", false), 0.7 * plain);
}

/// Of slabs of 16 of 32 rows the Gram matrices and the norm are added up over ranks.
TEST(MatrixWork, KnowsWhatSlabsAddUp) {
  MLIRContext context;
  context.loadDialect<optim::OptimDialect, arith::ArithDialect>();
  auto module = parseSourceString<ModuleOp>(
      moduleOf(32, 6, "[3.0, -4.0, 2.0]",
               "strategy #optim.slabs hops [] slabs <rows, [<0, 1, 2>], 16 to 16>"),
      &context);
  ASSERT_TRUE(module);
  auto group = *module->getOps<optim::GroupOp>().begin();
  MatrixWork work(*module->getOps<optim::RuleOp>().begin(), group.toPlan());
  ASSERT_EQ(work.steps.size(), 5u); // with the rule's own norm, which is of a slab alone
  EXPECT_EQ(stepOf(work.steps[0]), (Step{false, 0, 0, 0, 0, 0, 0, 2 * 16 * 6}));
  EXPECT_EQ(stepOf(work.steps[1]), product({6, 6, 16, true, false, false}));
  EXPECT_EQ(stepOf(work.steps[2]), product({6, 6, 6, true, true, false}));
  EXPECT_EQ(stepOf(work.steps[3]), product({16, 6, 6, false, true, false}));
  std::vector<bool> summed;
  for (const MatrixStep &step : work.steps)
    summed.push_back(step.isSummed);
  EXPECT_THAT(summed, testing::ElementsAre(true, true, false, false, false));
  EXPECT_EQ(work.steps[0].summed(), 1);
  EXPECT_EQ(work.steps[1].summed(), 36);
  // The iterate once, however often it is read, and the polynomial.
  EXPECT_EQ(work.steps[3].elements, 2 * 96 + 36);
  EXPECT_EQ(work.steps[3].elementsOfBlock, 2 * 96);
}

/// A factor that is both is in memory once.
TEST(MatrixWork, CountsAFactorOnce) {
  MLIRContext context;
  context.loadDialect<optim::OptimDialect>();
  auto module = parseSourceString<ModuleOp>(R"(
      optim.rule @R hyperparameters [] states [] {
      ^bb0(%p: tensor<?x?xf32>, %g: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
        %s = optim.matmul %g, %g {transpose_rhs} : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32, #optim.kind<[rows, rows]>>
        %b = optim.matmul %s, %g : tensor<?x?xf32, #optim.kind<[rows, rows]>>, tensor<?x?xf32> -> tensor<?x?xf32>
        optim.yield %b : tensor<?x?xf32>
      })",
                                            &context);
  ASSERT_TRUE(module);
  MatrixWork work(*module->getOps<optim::RuleOp>().begin(), optim::MatrixExtents(4, 6));
  ASSERT_EQ(work.steps.size(), 2u);
  EXPECT_EQ(stepOf(work.steps[0]), product({4, 4, 6, true, false, false}));
  EXPECT_EQ(stepOf(work.steps[1]), product({4, 6, 4, false, false, false}));
  EXPECT_EQ(work.steps[0].elements, 24 + 16);
  EXPECT_EQ(work.steps[1].elements, 16 + 24 + 24);
}

/// Through other operations of the rule, and through a function of blocks.
TEST(MatrixWork, KnowsWhatAProductWaitsFor) {
  MLIRContext context;
  context.loadDialect<optim::OptimDialect, arith::ArithDialect>();
  auto module = parseSourceString<ModuleOp>(R"(
      optim.rule @R hyperparameters [] states [] {
      ^bb0(%p: tensor<?x?xf32>, %g: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
        %s = optim.matmul %g, %g {transpose_rhs} : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32, #optim.kind<[rows, rows]>>
        %t = optim.matmul %g, %g {transpose_lhs} : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32, #optim.kind<[cols, cols]>>
        %a = optim.matmul %s, %g : tensor<?x?xf32, #optim.kind<[rows, rows]>>, tensor<?x?xf32> -> tensor<?x?xf32>
        %b = arith.negf %a : tensor<?x?xf32>
        %c = optim.matmul %b, %t : tensor<?x?xf32>, tensor<?x?xf32, #optim.kind<[cols, cols]>> -> tensor<?x?xf32>
        %n = optim.reduce norm %c : tensor<?x?xf32> to tensor<1x1xf32>
        %m = optim.broadcast %n : tensor<1x1xf32> to tensor<?x?xf32>
        %d = arith.divf %g, %m : tensor<?x?xf32>
        %e = optim.matmul %d, %d {transpose_rhs} : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32, #optim.kind<[rows, rows]>>
        %f = optim.matmul %e, %p : tensor<?x?xf32, #optim.kind<[rows, rows]>>, tensor<?x?xf32> -> tensor<?x?xf32>
        optim.yield %f : tensor<?x?xf32>
      })",
                                            &context);
  ASSERT_TRUE(module);
  MatrixWork work(*module->getOps<optim::RuleOp>().begin(), optim::MatrixExtents(4, 6));
  std::vector<std::vector<size_t>> after;
  for (const MatrixStep &step : work.steps)
    if (step.isProduct)
      after.push_back(step.after);
  // Step 4 is the norm.
  EXPECT_EQ(after, (std::vector<std::vector<size_t>>{{}, {}, {0}, {1, 2}, {3}, {5}}));
}

} // namespace
} // namespace stepc::decide
