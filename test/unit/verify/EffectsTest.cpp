//===- EffectsTest.cpp - The proof is held against the effects -------------===//
//
// The proof reads the operands of commands by itself. If the list of effects (runtime/plan/commands/Effect.h)
// lacks one of them, or says less of it, the proof refuses the program.
//
//===----------------------------------------------------------------------===//

#include "RandomProgram.h"

#include "test/support/Proof.h"
#include "test/support/Tier.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <gtest/gtest.h>

#include <iostream>

using namespace mlir;
using namespace stepc;

namespace {

class Effects : public ::testing::Test {
protected:
  Effects() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect,
                        memref::MemRefDialect, tensor::TensorDialect, optim::OptimDialect,
                        comm::CommDialect>();
  }

  /// Leaves out each effect of each command, one at a time.
  void leaveOut(ModuleOp module) {
    OwningOpRef<ModuleOp> program = test::lowerToExec(module);
    ASSERT_TRUE(program);
    plan::Plan plan = test::planOf(*program);
    ASSERT_TRUE(succeeded(verify::checkCommands(plan, *program)));
    for (const plan::Command &command : plan.commands) {
      plan::Effects whole = plan::effects(plan, command);
      for (size_t left = 0; left < whole.size(); ++left) {
        if (doesNothing(plan, command, whole[left]))
          continue;
        std::string said,
            what = std::string(plan::name(command)) + ", effect " + std::to_string(left);
        ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
          said += diagnostic.str();
          return success();
        });
        auto less = [&](const plan::Plan &plan, const plan::Command &other) {
          plan::Effects list = plan::effects(plan, other);
          if (&other == &command)
            list.erase(list.begin() + int64_t(left));
          return list;
        };
        EXPECT_TRUE(failed(verify::checkCommands(plan, *program, less))) << what;
        EXPECT_NE(said.find("expected effects that name all that the command does"),
                  std::string::npos)
            << what << ": " << said;
        ++refused[std::string(plan::name(command))];
      }
    }
  }

  /// Nothing happens on empty segments.
  static bool doesNothing(const plan::Plan &plan, const plan::Command &command,
                          const plan::Effect &effect) {
    auto isEmpty = [&](int64_t table) {
      const plan::Segment &segment = plan.segments[plan.tables[table].from.segment];
      return !segment.all && segment.blocks.empty();
    };
    if (const auto *start = std::get_if<plan::Start>(&command))
      return llvm::all_of(start->tables, isEmpty);
    return !effect.table.isNone() && isEmpty(effect.table);
  }

  MLIRContext context;
  std::map<std::string, int> refused;
};

TEST_F(Effects, OneLeftOutIsRefused) {
  test::Random random(20261128);
  std::map<std::string, int> histogram;
  // Fewer programs have no sum.
  int64_t programs = std::max<int64_t>(20, stepc::test::draws(20));
  for (int64_t i = 0; i < programs; ++i) {
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(test::randomProgram(random, histogram), &context);
    ASSERT_TRUE(module);
    ASSERT_NO_FATAL_FAILURE(leaveOut(*module));
  }
  for (const char *name : {"muon_one_rank", "muon_two_ranks"}) {
    OwningOpRef<ModuleOp> module =
        parseSourceFile<ModuleOp>(std::string(STEPC_CODEGEN_INPUTS "/") + name + ".mlir", &context);
    ASSERT_TRUE(module) << name;
    ASSERT_NO_FATAL_FAILURE(leaveOut(*module));
  }
  for (auto &[what, count] : refused)
    std::cout << "  refused without an effect of " << what << ": " << count << "\n";
  for (const char *what : {"chunks", "parameters", "product", "apply", "copy", "sum", "start"})
    EXPECT_GE(refused[what], 1) << what;
}

} // namespace
