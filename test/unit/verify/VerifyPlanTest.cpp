//===- VerifyPlanTest.cpp - Random programs and tables that lie -----------===//
//
// Random programs are accepted. One change in one row of one rank's tables, and
// they are refused: whatever the change was.
//
//===----------------------------------------------------------------------===//

#include "TableMutator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <iostream>

using namespace mlir;
using namespace stepc;
using test::Random;

namespace {

class RandomPrograms : public ::testing::Test {
protected:
  RandomPrograms() : random(seed()) {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect,
                        tensor::TensorDialect, optim::OptimDialect, comm::CommDialect>();
  }
  static uint64_t seed() {
    const char *given = std::getenv("STEPC_SEED");
    uint64_t seed = given ? std::stoull(given) : 20250314;
    std::cout << "STEPC_SEED=" << seed << "\n";
    return seed;
  }

  MLIRContext context;
  Random random;
};

TEST_F(RandomPrograms, AreAcceptedAndMutationsRefused) {
  constexpr int kPrograms = 200, kMutations = 12;
  std::map<std::string, int> histogram;
  test::TableMutator mutator(random);
  for (int i = 0; i < kPrograms; ++i) {
    std::string text = test::randomProgram(random, histogram);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    ASSERT_TRUE(succeeded(verify::verifyPlan(*module))) << text;

    FailureOr<ProgramPlan> program = planFromModule(*module);
    ASSERT_TRUE(succeeded(program));
    for (int k = 0; k < kMutations; ++k) {
      std::optional<test::Mutation> mutation = mutator.mutate(program->plan);
      if (!mutation)
        continue;
      auto lie = [&](const plan::Plan &plan) { return test::withMutation(plan, *mutation); };
      std::string said;
      ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
        said += diagnostic.str();
        return success();
      });
      LogicalResult result = verify::verifyPlan(*module, lie);
      ASSERT_TRUE(failed(result)) << mutation->what << " in table " << mutation->table
                                  << " or start " << mutation->start << " on rank "
                                  << mutation->rank << "\n"
                                  << text;
      ASSERT_FALSE(said.empty());
      ++histogram["refused: " + mutation->what];
    }
  }
  for (auto &[what, count] : histogram)
    std::cout << "  " << what << ": " << count << "\n";
  for (const char *what :
       {"strategy owner", "strategy gather", "strategy local", "strategy elementwise",
        "mesh axes 3", "placement _S", "waves 3", "batched", "state rows", "state cols",
        "state one", "flattened", "several parts", "placement IS", "placement owned",
        "placement flat", "gradient apart", "partial gradient"})
    EXPECT_GE(histogram[what], 15) << what;
}

} // namespace
