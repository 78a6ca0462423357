//===- MutatedProgramTest.cpp - Faults planted in programs ----------------===//
//
// Takes programs that are accepted and plants one fault: an operation is dropped or doubled,
// stands on the wrong side of one that it shares memory with, names another value, segment, end or
// direction of a move, kind, number, size or place. The program is lowered to level 5 and proven there: each change must be
// refused, on the way or by the proof, or give the level 5 of the sound program: but for commands on empty segments, which do
// nothing, and for commands that write again what stands there.
//
//===----------------------------------------------------------------------===//

#include "Mutator.h"

#include "test/support/Proof.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <iostream>
#include <set>

using namespace mlir;
using namespace stepc;
using test::Mutator;
using test::Random;

namespace {

/// The text of a module at level 5, each command once, without those that do nothing because their segments are empty.
std::string effectiveText(ModuleOp exec) {
  std::vector<std::string> empty, filled;
  for (auto segment : exec.getOps<comm::SegmentOp>())
    (segment.getBlocks() && segment.getBlocks()->empty() ? empty : filled)
        .push_back(("<@" + segment.getSymName() + ",").str());
  std::set<std::string> seen;
  std::string all = test::textOf(exec), text;
  for (StringRef line : llvm::split(all, '\n')) {
    auto names = [&](const std::string &segment) { return line.contains(segment); };
    bool isCommand = line.contains("exec.");
    bool doesNothing = isCommand && llvm::any_of(empty, names) && llvm::none_of(filled, names);
    if (!doesNothing && (!isCommand || seen.insert(line.str()).second))
      text += (line + "\n").str();
  }
  return text;
}

class MutatedPrograms : public ::testing::Test {
protected:
  MutatedPrograms() : random(seed()) {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect,
                        memref::MemRefDialect, tensor::TensorDialect, optim::OptimDialect,
                        comm::CommDialect>();
  }
  static uint64_t seed() {
    const char *given = std::getenv("STEPC_SEED");
    uint64_t seed = given ? std::stoull(given) : 20250711;
    std::cout << "STEPC_SEED=" << seed << "\n";
    return seed;
  }

  void plant(ModuleOp original, int count, bool tight = false) {
    std::string said;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      said += diagnostic.str() + "\n";
      return success();
    });
    OwningOpRef<ModuleOp> sound = test::lowerToExec(original);
    ASSERT_TRUE(sound && succeeded(verify::verifyProgram(*sound))) << said;
    for (int i = 0; i < count; ++i) {
      OwningOpRef<ModuleOp> module(cast<ModuleOp>(original->clone()));
      Mutator mutator(*module, random, tight);
      if (i == 0) // what the mutator itself has moved
        ASSERT_TRUE(succeeded(test::prove(*module))) << said;
      std::string what = mutator.mutate();
      if (what.empty())
        continue;
      said.clear();
      OwningOpRef<ModuleOp> lowered = test::lowerToExec(*module);
      if (lowered && succeeded(verify::verifyProgram(*lowered))) {
        if (effectiveText(*lowered) == effectiveText(*sound)) {
          ++harmless[what];
          continue;
        }
        original->print(llvm::errs());
        module->print(llvm::errs());
        lowered->print(llvm::errs());
        FAIL() << "accepted: " << what;
      }
      ASSERT_FALSE(said.empty()) << what;
      ++histogram[what];
    }
  }

  void report(std::initializer_list<const char *> often) {
    for (auto &[what, count] : histogram)
      std::cout << "  refused: " << what << ": " << count << "\n";
    for (auto &[what, count] : harmless)
      std::cout << "  the same level 5: " << what << ": " << count << "\n";
    for (const char *what : often)
      EXPECT_GE(histogram[what], 4) << what;
  }

  MLIRContext context;
  Random random;
  std::map<std::string, int> histogram, harmless;
};

TEST_F(MutatedPrograms, OfRandomRulesAreRefused) {
  std::map<std::string, int> drawn;
  for (int i = 0; i < 200; ++i) {
    std::string text = test::randomProgram(random, drawn);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    ASSERT_NO_FATAL_FAILURE(plant(*module, 15));
  }
  report({"dropped", "doubled", "moved past a conflict", "another value", "another segment",
          "another end", "another direction", "another kind", "another kind of collective",
          "another communicator", "another extent", "another place"});
}

/// What the passes make of Muon: products, scratch, scalars, buffers that share places.
TEST_F(MutatedPrograms, OfMuonAreRefused) {
  for (const char *name : {"muon_one_rank", "muon_two_ranks", "muon_replicas"}) {
    OwningOpRef<ModuleOp> module =
        parseSourceFile<ModuleOp>(std::string(STEPC_CODEGEN_INPUTS "/") + name + ".mlir", &context);
    ASSERT_TRUE(module) << name;
    ASSERT_NO_FATAL_FAILURE(plant(*module, 250, /*tight=*/true));
  }
  report({"dropped", "moved past a conflict", "another value", "another number", "another extent",
          "fewer bytes"});
}

} // namespace
