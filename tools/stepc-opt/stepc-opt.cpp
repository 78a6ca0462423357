//===- stepc-opt.cpp - Runs passes on text of any level --------------------===//
//
// mlir-opt for stepc: the dialects of the ladder and all passes of the house. If STEPC_OPT_SKIP_PASS=ARGUMENT
// is in the environment, the pass of that argument never runs. test/run/passes_carry_weight.sh uses this to
// show that tests fail without a pass.
//
//===----------------------------------------------------------------------===//

#include "dialects/exec/Exec.h"
#include "dialects/optim/Optim.h"
#include "passes/decide/Passes.h"
#include "passes/distribute/Passes.h"
#include "passes/kernels/Passes.h"
#include "passes/schedule/Passes.h"
#include "passes/verify/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

#include <cstdlib>

/// Leaves out the pass that STEPC_OPT_SKIP_PASS names; every other action runs.
static void installSkippedPass(mlir::MLIRContext *context, mlir::BuiltinDialect *) {
  const char *argument = std::getenv("STEPC_OPT_SKIP_PASS");
  if (!argument || !*argument)
    return;
  context->registerActionHandler(
      [argument = llvm::StringRef(argument)](llvm::function_ref<void()> run,
                                             const mlir::tracing::Action &action) {
        auto *execution = llvm::dyn_cast<mlir::PassExecutionAction>(&action);
        if (!execution || execution->getPass().getArgument() != argument)
          run();
      });
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::bufferization::BufferizationDialect,
                  mlir::func::FuncDialect, mlir::gpu::GPUDialect, mlir::linalg::LinalgDialect,
                  mlir::LLVM::LLVMDialect, mlir::math::MathDialect, mlir::NVVM::NVVMDialect,
                  mlir::memref::MemRefDialect, mlir::scf::SCFDialect, mlir::tensor::TensorDialect,
                  mlir::vector::VectorDialect, stepc::optim::OptimDialect, stepc::comm::CommDialect,
                  stepc::exec::ExecDialect>();
  stepc::schedule::registerBufferizationModels(registry);
  stepc::kernels::registerGpuInterfaces(registry);
  registry.addExtension(installSkippedPass);
  stepc::decide::registerDecidePasses();
  stepc::decide::registerDecidePipeline();
  stepc::distribute::registerDistributePasses();
  stepc::distribute::registerDistributePipeline();
  stepc::schedule::registerSchedulePasses();
  stepc::schedule::registerSchedulePipeline();
  stepc::kernels::registerKernelPasses();
  stepc::verify::registerVerifyPasses();
  mlir::registerTransformsPasses();
  // Prints constants as numbers, as the driver does. MLIR would print many numbers as hexadecimal text.
  constexpr llvm::StringLiteral kHex = "--mlir-print-elementsattrs-with-hex-if-larger";
  std::string decimal = (kHex + "=-1").str();
  llvm::SmallVector<char *> arguments(argv, argv + argc);
  if (llvm::none_of(arguments,
                    [&](const char *given) { return llvm::StringRef(given).starts_with(kHex); }))
    arguments.insert(arguments.begin() + 1, decimal.data());
  return mlir::failed(
      mlir::MlirOptMain(int(arguments.size()), arguments.data(), "stepc optimizer\n", registry));
}
