//===- VerifyProgramTest.cpp - Random programs and tables that lie --------===//
//
// Random programs are accepted. One change in one row of one rank's tables, and
// they are refused: whatever the change was.
//
//===----------------------------------------------------------------------===//

#include "TableMutator.h"

#include "test/support/Proof.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <iostream>
#include <thread>

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
    OwningOpRef<ModuleOp> program = test::lowerToExec(*module);
    ASSERT_TRUE(program && succeeded(verify::verifyProgram(*program))) << text;

    plan::Plan plan = test::planOf(*program);
    for (int k = 0; k < kMutations; ++k) {
      std::optional<test::Mutation> mutation = mutator.mutate(plan);
      if (!mutation)
        continue;
      auto lie = [&](const plan::Plan &plan) { return test::withMutation(plan, *mutation); };
      std::string said;
      ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
        said += diagnostic.str();
        return success();
      });
      LogicalResult result = verify::verifyProgram(*program, lie);
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
    EXPECT_GE(histogram[what], 4) << what;
}

/// What a proof said: faults in order, how far tables and starts reach, and what was counted.
struct Said {
  std::vector<std::tuple<int64_t, int64_t, std::string>> faults;
  std::vector<std::pair<int64_t, int64_t>> reaches;
  int64_t messages, bytes, elements;
};

Said proofOf(const plan::Plan &plan, const verify::ProgramUse &use,
             const verify::MakeExpand &makeExpand, size_t workers) {
  verify::TableProof proof(plan, makeExpand);
  Said said;
  // All wait for each other before they ask for a table, so that none of them takes every task.
  std::barrier all(static_cast<std::ptrdiff_t>(workers));
  auto inThreads = [&](size_t count, const std::function<void(size_t)> &work) {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < count; ++i)
      threads.emplace_back([&, i] {
        all.arrive_and_wait();
        work(i);
      });
  };
  for (const verify::Fault &fault : proof.prove(use, workers, inThreads))
    said.faults.push_back({fault.table, fault.other, fault.message});
  auto add = [&](const verify::Reach &reach) { said.reaches.push_back({reach.most, reach.rank}); };
  for (size_t i = 0; i < plan.tables.size(); ++i) {
    add(proof.reach(int64_t(i)).from);
    add(proof.reach(int64_t(i)).to);
  }
  for (size_t i = 0; i < plan.starts().size(); ++i) {
    add(proof.startReach(int64_t(i)).sent);
    add(proof.startReach(int64_t(i)).received);
  }
  said.messages = proof.proven().messages;
  said.bytes = proof.proven().bytes;
  said.elements = proof.proven().routedElements;
  return said;
}

TEST_F(RandomPrograms, AreProvenByAnyNumberOfWorkersAlike) {
  std::map<std::string, int> histogram;
  test::TableMutator mutator(random);
  int faults = 0, shared = 0;
  for (int i = 0; i < 40; ++i) {
    std::string text = test::randomProgram(random, histogram);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    OwningOpRef<ModuleOp> program = test::lowerToExec(*module);
    ASSERT_TRUE(program) << text;
    plan::Plan plan = test::planOf(*program);
    FailureOr<verify::StepFacts> facts = verify::checkCommands(plan, *program);
    ASSERT_TRUE(succeeded(facts));
    for (int k = 0; k < 3; ++k) {
      std::optional<test::Mutation> mutation;
      if (k > 0)
        mutation = mutator.mutate(plan);
      std::atomic<int> used = 0;
      auto makeExpand = [&](const plan::Plan &plan) {
        verify::Expand expand =
            mutation ? test::withMutation(plan, *mutation) : verify::runtimeExpand(plan);
        // Who has a task leaves time for others to take theirs.
        expand.table = [&used, isFirst = true, table = expand.table](int64_t index,
                                                                     int64_t rank) mutable {
          if (std::exchange(isFirst, false)) {
            ++used;
            std::this_thread::sleep_for(std::chrono::microseconds(300));
          }
          return table(index, rank);
        };
        return expand;
      };
      Said alone = proofOf(plan, facts->program, makeExpand, 1);
      faults += !alone.faults.empty();
      for (size_t workers : {2, 5}) {
        used = 0;
        Said beside = proofOf(plan, facts->program, makeExpand, workers);
        shared += used > 1;
        ASSERT_EQ(beside.faults, alone.faults) << text;
        ASSERT_EQ(beside.reaches, alone.reaches) << text;
        ASSERT_EQ(std::tie(beside.messages, beside.bytes, beside.elements),
                  std::tie(alone.messages, alone.bytes, alone.elements));
      }
    }
  }
  EXPECT_GT(faults, 10);
  EXPECT_GT(shared, 100);
}

TEST_F(RandomPrograms, AreVerifiedOnTheContextsThreadsAlike) {
  std::map<std::string, int> histogram;
  test::TableMutator mutator(random);
  for (int i = 0; i < 20; ++i) {
    std::string text = test::randomProgram(random, histogram);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    OwningOpRef<ModuleOp> program = test::lowerToExec(*module);
    ASSERT_TRUE(program) << text;
    std::optional<test::Mutation> mutation = mutator.mutate(test::planOf(*program));
    // What is said where every plan counts as one of many tables, and where none does.
    auto said = [&](size_t many) {
      std::string said;
      ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
        said += diagnostic.str() + "\n";
        return success();
      });
      auto lie = [&](const plan::Plan &plan) { return test::withMutation(plan, *mutation); };
      bool fine = succeeded(verify::verifyProgram(*program, {}, many));
      bool isFound = mutation && failed(verify::verifyProgram(*program, lie, many));
      EXPECT_TRUE(fine && isFound == mutation.has_value()) << text;
      return said;
    };
    ASSERT_EQ(said(0), said(std::numeric_limits<size_t>::max())) << text;
  }
}

} // namespace
