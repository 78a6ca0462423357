//===- TargetTest.cpp - What a target may answer ---------------------------===//

#include "passes/kernels/ProgramBuilder.h"
#include "test/unit/codegen/Compile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;

namespace stepc::test {
namespace {

/// This machine, but for the scratch that it says to need: a byte more than levels 1 to 4 allow for.
class GreedyTarget : public kernels::Target {
public:
  explicit GreedyTarget(std::unique_ptr<Target> real, int64_t more)
      : Target(real->chip()), real(std::move(real)), more(more) {}
  FailureOr<kernels::BatchKernels> product(SymbolTable &symbols,
                                           optim::ProductOp op) const override {
    auto kernels = real->product(symbols, op);
    kernels->scratchBytesPerBlock = scratchBoundPerBlock(op) + more;
    return kernels;
  }
  FailureOr<kernels::BatchKernels> blockReduce(SymbolTable &symbols,
                                               optim::BlockReduceOp op) const override {
    return real->blockReduce(symbols, op);
  }
  bool fuses() const override { return real->fuses(); }
  bool convertsHalf() const override { return real->convertsHalf(); }

private:
  std::unique_ptr<Target> real;
  int64_t more;
};

/// What the builder says of muon_one_rank.mlir for such a target.
std::string build(int64_t more) {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, comm::CommDialect, exec::ExecDialect, func::FuncDialect,
                  LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect, optim::OptimDialect,
                  scf::SCFDialect, vector::VectorDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) {
    said += d.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(input("muon_one_rank.mlir"), &context);
  EXPECT_TRUE(module);
  auto program = planFromModule(*module);
  EXPECT_TRUE(succeeded(program));
  auto real = kernels::targetOfText("cpu");
  EXPECT_TRUE(bool(real));
  GreedyTarget target(std::move(*real), more);
  auto step = module->lookupSymbol<func::FuncOp>("step");
  bool built =
      succeeded(kernels::ProgramBuilder(*module, *program, target).lower(step.getBody().front()));
  EXPECT_EQ(built, more == 0);
  return said;
}

TEST(Target, MoreScratchThanEarlierLevelsAllowForIsRefused) {
  EXPECT_EQ(build(0), "");
  EXPECT_NE(build(1).find("expected kernels that need at most"), std::string::npos) << build(1);
}

} // namespace
} // namespace stepc::test
