//===- ModelTablesTest.cpp - Sums of the whole model that lie --------------===//
//
// A program that adds up a number of the whole model on a mesh with copies is accepted. It is refused if a
// rank leaves its sums out, if a copy is added, too, if copies of one shard are added in the place of another
// shard, and if sums stand elsewhere or are of another parameter.
//
//===----------------------------------------------------------------------===//

#include "test/support/Proof.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace stepc;

namespace {

using plan::RankTable;
using plan::TableKind;

/// The rows of a rank in a table of the model's sums, made of the true rows of all ranks.
using Lie =
    std::function<RankTable(TableKind, int64_t rank, std::function<RankTable(int64_t)> truth)>;

class ModelTables : public ::testing::Test {
protected:
  void SetUp() override {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                        math::MathDialect, memref::MemRefDialect, tensor::TensorDialect,
                        optim::OptimDialect, comm::CommDialect, exec::ExecDialect>();
    module = parseSourceFile<ModuleOp>(STEPC_LIT_INPUTS "/model_copies.mlir", &context);
    ASSERT_TRUE(module);
    ASSERT_TRUE(succeeded(verify::verifyProgram(*module)));
  }

  /// Proves the program with a lie. Returns what the proof says; empty if it accepts the program.
  std::string proofWith(Lie lie) {
    auto expand = [&](const plan::Plan &plan) {
      verify::Expand expand = verify::runtimeExpand(plan);
      expand.table = [&plan, lie, truth = expand.table](int64_t number, int64_t rank) {
        const plan::Table &table = plan.tables[number];
        if (table.kind != TableKind::PartModel && table.kind != TableKind::Collect)
          return truth(number, rank);
        const plan::Group &group = plan.groups[plan.segments[table.from.segment].group];
        return plan::CommonTable(lie(
            table.kind, rank, [&](int64_t other) { return truth(number, other).resolve(group); }));
      };
      return expand;
    };
    std::string said;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      said += diagnostic.str() + "\n";
      return success();
    });
    bool isProven = succeeded(verify::verifyProgram(*module, expand));
    EXPECT_EQ(isProven, said.empty());
    return said;
  }

  void expectRefusal(const std::string &text, Lie lie) {
    std::string said = proofWith(lie);
    EXPECT_NE(said.find(text), std::string::npos) << said;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

// Ranks 0 and 1 have the first rows, 2 and 3 the others: 0 and 2 add them up.

TEST_F(ModelTables, AreAcceptedAsTheyAre) {
  EXPECT_EQ(proofWith([](TableKind, int64_t rank, auto truth) { return truth(rank); }), "");
}

TEST_F(ModelTables, OfOtherCopiesAreAccepted) {
  EXPECT_EQ(proofWith([](TableKind, int64_t rank, auto truth) { return truth(rank ^ 1); }), "");
}

TEST_F(ModelTables, ThatLeaveElementsOutAreRefused) {
  expectRefusal(
      "expected each of the 32 elements of segment @group.0.w0 in the sums of one rank, "
      "found 16",
      [](TableKind, int64_t rank, auto truth) { return rank == 2 ? RankTable() : truth(rank); });
}

TEST_F(ModelTables, ThatCountCopiesAreRefused) {
  expectRefusal("found those of rank 3 in the sums of another rank, too",
                [](TableKind, int64_t rank, auto truth) { return truth(rank == 3 ? 2 : rank); });
}

TEST_F(ModelTables, ThatCountOneShardInThePlaceOfAnotherAreRefused) {
  expectRefusal("found those of rank 1 in the sums of another rank, too",
                [](TableKind, int64_t rank, auto truth) {
                  return rank == 2 ? RankTable() : truth(rank == 1 ? 0 : rank);
                });
}

TEST_F(ModelTables, ThatAreNotCollectedAreRefused) {
  expectRefusal("expected the 1 sums of rank 2 with their parameters, found 0",
                [](TableKind kind, int64_t rank, auto truth) {
                  return kind == TableKind::Collect && rank == 2 ? RankTable() : truth(rank);
                });
}

TEST_F(ModelTables, ThatStandElsewhereAreRefused) {
  expectRefusal("expected rows that lead to sum 0 of the model",
                [](TableKind kind, int64_t rank, auto truth) {
                  RankTable rows = truth(rank);
                  for (plan::Chunk &chunk : rows.chunks)
                    ++chunk.perBlock;
                  return rows;
                });
  expectRefusal("expected sum 0 of the model, found sum 1",
                [](TableKind kind, int64_t rank, auto truth) {
                  RankTable rows = truth(rank);
                  for (plan::CopyRow &row : rows.copies)
                    ++row.source;
                  return rows;
                });
}

TEST_F(ModelTables, OfAnotherParameterAreRefused) {
  EXPECT_NE(proofWith([](TableKind, int64_t rank, auto truth) {
              RankTable rows = truth(rank);
              for (plan::CopyRow &row : rows.copies)
                ++row.parameter;
              return rows;
            }),
            "");
}

} // namespace
