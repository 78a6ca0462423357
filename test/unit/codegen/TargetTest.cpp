//===- TargetTest.cpp - What a target may answer ---------------------------===//

#include "passes/cost/ScratchBound.h"
#include "passes/kernels/GpuChips.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/ProgramBuilder.h"
#include "test/unit/codegen/Compile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;

namespace stepc::test {
namespace {

/// This machine, but for the scratch that it says to need: a byte more than levels 1 to 4 allow for.
class GreedyTarget : public kernels::Target {
public:
  explicit GreedyTarget(std::unique_ptr<Target> real, int64_t more)
      : Target(real->chip()), real(std::move(real)), more(more) {}
  exec::Accumulation accumulation(Type lhs, Type rhs) const override {
    return real->accumulation(lhs, rhs);
  }
  kernels::ProductTile productTile(const cost::BlockProduct &product,
                                   exec::Accumulation accumulation) const override {
    return real->productTile(product, accumulation);
  }
  int64_t scratchBytesPerBlock(exec::BatchOpInterface command) const override {
    auto product = dyn_cast<exec::ProductOp>(*command);
    if (!product)
      return real->scratchBytesPerBlock(command);
    auto [m, n, k] = product.getSizes();
    return cost::productScratchBound(m, n, k) + more;
  }
  FailureOr<LLVM::LLVMFuncOp> kernel(func::FuncOp kernel,
                                     ArrayRef<exec::DispatchChunksOp> dispatches) const override {
    return real->kernel(kernel, dispatches);
  }
  FailureOr<LLVM::LLVMFuncOp>
  kernel(func::FuncOp kernel, ArrayRef<exec::DispatchParametersOp> dispatches) const override {
    return real->kernel(kernel, dispatches);
  }
  stepc::kernels::Kernels kernels(SymbolTable &symbols, Operation *command) const override {
    return real->kernels(symbols, command);
  }
  int64_t chunkElements() const override { return real->chunkElements(); }
  void addKernelPasses(OpPassManager &manager) const override { real->addKernelPasses(manager); }
  bool fuses() const override { return real->fuses(); }
  bool convertsHalf() const override { return real->convertsHalf(); }

private:
  std::unique_ptr<Target> real;
  int64_t more;
};

/// What the builder says of muon_one_rank.mlir for such a target.
std::string build(int64_t more) {
  DialectRegistry registry;
  registry
      .insert<arith::ArithDialect, comm::CommDialect, exec::ExecDialect, func::FuncDialect,
              linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect,
              optim::OptimDialect, scf::SCFDialect, vector::VectorDialect>();
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
  EXPECT_NE(build(1).find("expected a target that needs at most"), std::string::npos) << build(1);
}

/// A function of two sources that no target has kernels for: any text.
struct ForeignFunction
    : optim::BlockFunctionAttrInterface::ExternalModel<ForeignFunction, StringAttr> {
  std::string describe(Attribute function) const { return cast<StringAttr>(function).str(); }
  LogicalResult verifyBlocks(Attribute, llvm::function_ref<InFlightDiagnostic()> emitError,
                             ArrayRef<RankedTensorType> sources, RankedTensorType) const {
    return sources.size() == 2 ? success() : LogicalResult(emitError() << "expected two sources");
  }
  int64_t flops(Attribute, ArrayRef<RankedTensorType>, RankedTensorType) const { return 1; }
  int64_t scratchBound(Attribute, ArrayRef<RankedTensorType>, RankedTensorType) const { return 0; }
};

TEST(Target, FunctionsWithoutKernelsAreRefused) {
  DialectRegistry registry;
  registry.insert<comm::CommDialect, exec::ExecDialect, func::FuncDialect, LLVM::LLVMDialect,
                  optim::OptimDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  StringAttr::attachInterface<ForeignFunction>(context);
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) {
    said += d.str();
    return success();
  });
  std::string batch = "<offset = 0, bytes = 96, block = tensor<4x6xf32>>";
  auto text = [&](const std::string &sources) {
    return R"(module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
      optim.mesh @world axes ["dp"] sizes [1] ranks [0]
      optim.rule @R hyperparameters [] states [] needs_matrix {
      ^bb0(%p: tensor<?x?xf32>, %g: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
        optim.yield %p : tensor<?x?xf32>
      }
      optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
      optim.group @g rule @R parameters [@a] strategy #optim.local hops []
      comm.segment @s group @g all
      exec.program arena 8192 {
        exec.apply "shared" of <kind = block_chunks, from = <@s, full, blocks>> )" +
           sources + R"( to <offset = 256, bytes = 96, block = tensor<4x6xf32>>
        exec.advance_steps
      }
    })";
  };
  EXPECT_FALSE(parseSourceString<ModuleOp>(text(batch), &context));
  EXPECT_THAT(said, testing::HasSubstr("expected two sources"));
  said.clear();
  auto module = parseSourceString<ModuleOp>(text(batch + ", " + batch), &context);
  ASSERT_TRUE(module) << said;
  PassManager passes(&context);
  passes.addPass(kernels::createLowerToTarget());
  EXPECT_TRUE(failed(passes.run(*module)));
  EXPECT_EQ(said,
            "'exec.apply' op expected a function of blocks that has kernels, found \"shared\"");
}

// One spelling of what is asked for, so that equal targets have equal hashes.
TEST(Target, TextsOfGpusAreSpelledInOneWay) {
  auto text = [](llvm::StringRef given, bool tensorCores) {
    llvm::Expected<GpuTarget> target = parseGpuTarget(given, tensorCores);
    return target ? target->text(tensorCores) : llvm::toString(target.takeError());
  };
  EXPECT_EQ(text("sm_80", true), "sm_80");
  EXPECT_EQ(text("sm_80,tensorcore", true), "sm_80");
  EXPECT_EQ(text("chain,sm_90a,sm_90a,chain", true), "sm_90a,chain");
  EXPECT_EQ(text("sm_90a,sm_80", true), "expected one GPU, found 'sm_90a' and 'sm_80'");
  EXPECT_EQ(text("sm_80,chain", false), "sm_80");
  EXPECT_EQ(text("tensorcore,sm_80", false), "sm_80,tensorcore");
  EXPECT_EQ(text("sm_80,chain,tensorcore", true),
            "expected one way to multiply, found 'chain' and 'tensorcore'");
  EXPECT_EQ(text("ptx,sm_80,tensorcore", true), "sm_80,ptx");
  EXPECT_EQ(text("sm_80,ptx,chain", true), "sm_80,chain,ptx");
  EXPECT_EQ(text("bounded,sm_90a", true), "sm_90a,bounded");
  EXPECT_EQ(text("ptx", true), "expected a GPU, say 'sm_80,ptx', found 'ptx'");
  EXPECT_EQ(text("chain", true), "expected a GPU, say 'sm_80,chain', found 'chain'");
  EXPECT_THAT(text("sm_75", true), testing::EndsWith("found 'sm_75'"));
  for (std::string other : {"sm_80,", ",sm_80", "sm_80,,sm_90", ","})
    EXPECT_EQ(text(other, true),
              "expected a name on both sides of each comma, found '" + other + "'");
  for (std::string other : {"SM_90a", "sm90a", "90a"})
    EXPECT_THAT(text(other, true), testing::EndsWith(", did you mean 'sm_90a'?"));
}

TEST(Target, EachGpuIsATargetOfItsOwn) {
  using testing::ElementsAre;
  EXPECT_THAT(targetsByChip("cuda:sm_90a,ptx,sm_80,chain,sm_90a,sm_86"),
              ElementsAre("cuda:sm_90a,chain,ptx", "cuda:sm_80,chain,ptx", "cuda:sm_86,chain"));
  EXPECT_THAT(targetsByChip("cuda:sm_80,sm_90a,bounded"),
              ElementsAre("cuda:sm_80", "cuda:sm_90a,bounded"));
  EXPECT_THAT(targetsByChip("cuda:sm_80,sm_86,bounded"),
              ElementsAre("cuda:sm_80,bounded", "cuda:sm_86,bounded"));
  // Products of warpgroups are for sm_90a alone, so another program has the PTX.
  EXPECT_THAT(targetsByChip("cuda:sm_90a,ptx"), ElementsAre("cuda:sm_90a", "cuda:sm_90,ptx"));
  EXPECT_THAT(targetsByChip("cuda:sm_100,sm_90a,ptx"),
              ElementsAre("cuda:sm_100,ptx", "cuda:sm_90a", "cuda:sm_90"));
  // Where there is one GPU, or none, the text is as it was, right or wrong.
  for (const char *one :
       {"cuda:sm_80", "cuda:sm_80,ptx", "cuda:ptx", "cuda", "cuda:", "cpu:a,b",
        "emulated:sm_80,sm_90,races", "cuda:sm_80,sm_80", "cuda:sm_80,", "cuda:sm_80,,sm_90"})
    EXPECT_THAT(targetsByChip(one), ElementsAre(one));
  EXPECT_THAT(targetsByChip("cuda:sm_80,nonsense"), ElementsAre("cuda:sm_80", "cuda:nonsense"));
}

} // namespace
} // namespace stepc::test
