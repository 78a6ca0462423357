//===- PlanFromIRTest.cpp - A module's plan -------------------------------===//

#include "passes/plan/PlanFromIR.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "runtime/plan/Tables.h"

#include <gtest/gtest.h>

#include <set>

using namespace mlir;
using namespace stepc;

namespace {

class PlanFromIR : public ::testing::Test {
protected:
  PlanFromIR() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect,
                        tensor::TensorDialect, optim::OptimDialect, comm::CommDialect>();
  }
  MLIRContext context;
};

TEST_F(PlanFromIR, NumbersTheProgramOfTheInput) {
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(STEPC_LIT_INPUTS "/scheduled.mlir", &context);
  ASSERT_TRUE(module);
  FailureOr<ProgramPlan> program = planFromModule(*module);
  ASSERT_TRUE(succeeded(program));
  const plan::Plan &plan = program->plan;
  EXPECT_EQ(plan::validate(plan), "");
  EXPECT_EQ(plan.name, "tiny");
  EXPECT_EQ(plan.numerics, "exact");
  EXPECT_EQ(plan.arenaBytes, 768);
  ASSERT_EQ(plan.parameters.size(), 3u);
  EXPECT_EQ(plan.parameters[1].name, "b");
  EXPECT_EQ(plan.parameters[1].indexInGroup, 1);
  EXPECT_EQ(plan.groups[0].hops[0].base, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(plan.groups[0].strategy, "owner");
  EXPECT_EQ(plan.segments[2].all, true);
  EXPECT_EQ(plan.commands.size(), 4u);
  EXPECT_EQ(plan.starts().size(), 4u);
  // Stage in, messages and the same again; elementwise; copy and blocks; copy back, messages, …
  EXPECT_EQ(plan.tables[0].kind, plan::TableKind::ShardChunks);
  EXPECT_EQ(plan.tables[0].to.end, plan::End::Sent);
  EXPECT_EQ(plan.tables[1].kind, plan::TableKind::Message);
  EXPECT_EQ(plan.tables[1].elementBytes, 2);
  EXPECT_EQ(plan.tables[1].to.segment, 0);
  EXPECT_EQ(plan.starts()[0]->collective, plan::CollectiveKind::Exchange);
  // The reduction and the stage over blocks share one table.
  Operation *reduce = nullptr, *stage = nullptr;
  module->walk([&](Operation *op) {
    if (isa<optim::ApplyOp>(op) && !reduce)
      reduce = op;
    auto over = dyn_cast<comm::StageOp>(op);
    if (over && over.getIteration() == plan::Distribution::Blocks && !stage)
      stage = op;
  });
  EXPECT_EQ(program->table(reduce), program->table(stage));
  EXPECT_EQ(plan.tables[program->table(stage)].kind, plan::TableKind::BlockChunks);
}

TEST_F(PlanFromIR, OrdersParametersByGroup) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
    module @order {
      optim.mesh @m axes ["x"] sizes [1] ranks [3]
      optim.rule @R hyperparameters [] states [] {
      ^bb0(%p: tensor<?x?xf32>, %g: tensor<?x?xf32>, %s: f64, %r: f64, %c: f64, %n: f64):
        optim.yield %g : tensor<?x?xf32>
      }
      optim.route @route rule @R rest patterns [] except [] defaults [] missing_grad skip
      optim.parameter @a shape [2] batch 0 type f32 gradient f32 mesh @m placements [#optim.replicate] aliases [] route @route
      optim.parameter @b shape [3] batch 0 type bf16 gradient f32 mesh @m placements [#optim.replicate] aliases [] route @route
      optim.parameter @c shape [2] batch 0 type f32 gradient f32 mesh @m placements [#optim.replicate] aliases [] route @route
      optim.group @g0 rule @R parameters [@b]
      optim.group @g1 rule @R parameters [@c, @a]
    })",
                                                             &context);
  ASSERT_TRUE(module);
  FailureOr<ProgramPlan> program = planFromModule(*module);
  ASSERT_TRUE(succeeded(program));
  std::vector<std::string> names;
  for (const plan::Parameter &parameter : program->plan.parameters)
    names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"b", "c", "a"}));
  EXPECT_EQ(program->plan.groups[1].parameters, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(program->plan.groups[0].parameterType, plan::DType::BF16);
  EXPECT_EQ(program->plan.routes[0].missingGrad, plan::MissingGrad::Skip);
}

TEST_F(PlanFromIR, TheDefinitionOfARuleIsWhatItComputes) {
  auto definition = [&](const char *body, const char *rule = "hyperparameters [] states []") {
    std::string text = "module {\n optim.rule @R " + std::string(rule) + R"( {
      ^bb0(%p: tensor<?x?xf32>, %g: tensor<?x?xf32>, %s: f64, %r: f64, %c: f64, %n: f64):
    )" + body + "}}";
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    FailureOr<ProgramPlan> program = planFromModule(*module);
    return program->plan.rules[0].definition;
  };
  const char *plain = R"(
    %a = arith.addf %p, %g : tensor<?x?xf32>
    %k = arith.constant 0.1 : f64
    %ks = optim.splat %k : tensor<?x?xf32>
    %b = arith.mulf %a, %ks : tensor<?x?xf32>
    optim.yield %b : tensor<?x?xf32>)";
  // Order, sharing, dead code and what passes decide do not matter.
  EXPECT_EQ(definition(plain), definition(R"(
    %dead = arith.subf %p, %g : tensor<?x?xf32>
    %k = arith.constant 0.1 : f64
    %other = arith.constant 0.1 : f64
    %ks = optim.splat %other : tensor<?x?xf32>
    %sum = arith.addf %p, %g {optim.space = #optim.space<in>} : tensor<?x?xf32>
    %x = arith.mulf %sum, %ks {optim.space = #optim.space<out>} : tensor<?x?xf32>
    optim.yield %x : tensor<?x?xf32> {optim.writes = [#optim.space<in>]})"));
  // Operands, operations and the last bit of a literal do.
  std::set<uint64_t> hashes = {definition(plain)};
  for (auto [from, to] :
       {std::pair("%p, %g", "%g, %p"), std::pair("mulf %a", "subf %a"),
        std::pair("0.1", "0.10000000000000002"), std::pair("yield %b", "yield %a")}) {
    std::string text = plain;
    text.replace(text.find(from), std::strlen(from), to);
    EXPECT_TRUE(hashes.insert(definition(text.c_str())).second) << from;
  }
  EXPECT_TRUE(hashes.insert(definition(plain, "hyperparameters [] states [] needs_matrix")).second);
}

TEST_F(PlanFromIR, RefusesParametersInNoGroupOrTwo) {
  auto said = [&](const char *groups) {
    std::string text = R"(
      module {
        optim.mesh @m axes ["x"] sizes [1] ranks [0]
        optim.rule @R hyperparameters [] states [] {
        ^bb0(%p: tensor<?x?xf32>, %g: tensor<?x?xf32>, %s: f64, %r: f64, %c: f64, %n: f64):
          optim.yield %g : tensor<?x?xf32>
        }
        optim.route @route rule @R rest patterns [] except [] defaults [] missing_grad error
        optim.parameter @a shape [2] batch 0 type f32 gradient f32 mesh @m placements [#optim.replicate] aliases [] route @route
    )" + std::string(groups) +
                       "}";
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message += diagnostic.str();
      return success();
    });
    EXPECT_TRUE(failed(planFromModule(*module)));
    return message;
  };
  EXPECT_EQ(said(""), "'optim.parameter' op expected a group that lists the parameter, found none");
  EXPECT_EQ(
      said("optim.group @g0 rule @R parameters [@a]\noptim.group @g1 rule @R parameters [@a]"),
      "'optim.group' op expected parameters of no other group, found @a");
}

} // namespace
