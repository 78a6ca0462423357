//===- Pipeline.cpp - Levels 4 to 6 ---------------------------------------===//

#include "passes/kernels/Passes.h"
#include "passes/kernels/Target.h"

#include "passes/verify/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace stepc::kernels {

static std::unique_ptr<Pass> verifyLevel(const char *level) {
  VerifyLevelOptions options;
  options.level = level;
  return createVerifyLevel(options);
}

void buildCommandPipeline(OpPassManager &manager, const KernelOptions &options) {
  LowerToExecOptions lower;
  lower.target = options.target;
  // The only pass that turns operations on memory into commands and kernels.
  manager.addPass(createLowerToExec(lower));
  // Lists algorithms of cuBLASLt for products, whose bits differ from the kernels'. Does nothing without a
  // table.
  manager.addPass(createPinProducts());
  // Comes after all commands exist: dispatches of one kernel for several groups become one.
  manager.addPass(createMergeDispatches());
  // Comes after algorithms are listed: a product that a library may compute begins by itself.
  manager.addPass(createJoinProducts());
}

void buildExecPipeline(OpPassManager &manager, const KernelOptions &options) {
  buildCommandPipeline(manager, options);
  // No operation that computes may be left outside of a kernel.
  manager.addPass(verifyLevel("exec"));
  // The proof. Code is made from this text alone.
  manager.addPass(verify::createVerifyProgram());
}

void buildLlvmPipeline(OpPassManager &manager, const Target &target, bool isProven) {
  // A program that was read as text has not been proven yet.
  if (!isProven)
    manager.addPass(verify::createVerifyProgram());
  // The first pass that makes code of the target.
  manager.addPass(createLowerToTarget());
  // Expands all kernels. Comes before the plan becomes bytes, because the plan has the hash of the kernels.
  manager.addPass(createExpandNumerics());
  // Removes casts back and forth that the expansions leave, and loads of fields that kernels do not use.
  manager.addNestedPass<LLVM::LLVMFuncOp>(createCanonicalizerPass());
  manager.addNestedPass<LLVM::LLVMFuncOp>(createCSEPass());
  // Comes before the conversions below, which must not meet operations of the optim dialect.
  manager.addPass(createEmbedPlan());
  target.addKernelPasses(manager);
  // Refuses operations that cannot be translated to LLVM IR.
  manager.addPass(verifyLevel("llvm"));
}

namespace {
struct TargetPipelineOptions : PassPipelineOptions<TargetPipelineOptions> {
  Option<std::string> target{*this, "target", llvm::cl::desc("cpu or cpu:<llvm cpu>")};
};
} // namespace

void registerKernelPasses() {
  registerKernelsPasses();
  PassPipelineRegistration<>("stepc-ptx", "The GPU's code of exec-kernels-to-gpu to PTX",
                             [](OpPassManager &manager) { buildPtxPipeline(manager); });
  PassPipelineRegistration<TargetPipelineOptions>(
      "stepc-exec", "Level 4 (scheduled) to level 5 (exec)",
      [](OpPassManager &manager, const TargetPipelineOptions &options) {
        buildExecPipeline(manager, {options.target});
      });
  PassPipelineRegistration<>(
      "stepc-llvm", "Level 5 (exec) to level 6 (llvm)", [](OpPassManager &manager) {
        // Any CPU will do: the module's own chip makes the code, and addKernelPasses is the same for all
        // CPUs.
        llvm::Expected<std::unique_ptr<Target>> target = targetOfText("cpu");
        if (!target)
          llvm::report_fatal_error(target.takeError(), /*gen_crash_diag=*/false);
        buildLlvmPipeline(manager, **target, /*isProven=*/false);
      });
}

} // namespace stepc::kernels
