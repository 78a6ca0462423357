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

void buildExecPipeline(OpPassManager &manager, const KernelOptions &options) {
  LowerToExecOptions lower;
  lower.target = options.target;
  // The one pass that leaves operations on memory for commands and kernels.
  manager.addPass(createLowerToExec(lower));
  // Products that a library makes have other bits than the kernels'. Does nothing without a table.
  manager.addPass(createPinProducts());
  // What groups do alike is next to each other now.
  manager.addPass(createMergeDispatches());
  // Nothing that computes may be left without a kernel.
  manager.addPass(verifyLevel("exec"));
  // The one proof: of this text code is made.
  manager.addPass(verify::createVerifyProgram());
}

void buildLlvmPipeline(OpPassManager &manager, const Target &target, bool isProven) {
  // Also proves a program that comes as text.
  if (!isProven)
    manager.addPass(verify::createVerifyProgram());
  // Up to here nothing but the module's chip depends on the target's code.
  manager.addPass(createLowerToTarget());
  // Runs on all kernels at once. It stands before the plan becomes bytes, whose hash is that of the kernels.
  manager.addPass(createExpandNumerics());
  // The expansions leave casts back and forth, and kernels ask for fields that they do not use.
  manager.addNestedPass<LLVM::LLVMFuncOp>(createCanonicalizerPass());
  manager.addNestedPass<LLVM::LLVMFuncOp>(createCSEPass());
  // Before the conversions below, so that they meet no rule of the optim dialect.
  manager.addPass(createEmbedPlan());
  target.addKernelPasses(manager);
  // Refuses all that cannot be translated.
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
        // The module names its chip; which passes lower kernels is the same for all CPUs.
        llvm::Expected<std::unique_ptr<Target>> target = targetOfText("cpu");
        if (!target)
          llvm::report_fatal_error(target.takeError(), /*gen_crash_diag=*/false);
        buildLlvmPipeline(manager, **target, /*isProven=*/false);
      });
}

} // namespace stepc::kernels
