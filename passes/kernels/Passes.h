//===- Passes.h - From the scheduled program to the LLVM dialect -*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_PASSES_H
#define STEPC_PASSES_KERNELS_PASSES_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <string>

namespace stepc::kernels {

class Target;

#define GEN_PASS_DECL
#include "passes/kernels/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/kernels/Passes.h.inc"

struct KernelOptions {
  /// cpu (this machine) or cpu:<llvm cpu>; empty: this machine.
  std::string target;
  /// The module was made, and so proven, just now: a text is proven as it enters.
  bool isProven = false;
};

/// Level 4 (scheduled) to level 5 (exec).
void buildExecPipeline(mlir::OpPassManager &manager, const KernelOptions &options);
/// Level 5 (exec) to level 6 (llvm), for the target of the module. `isProven`: as above.
void buildLlvmPipeline(mlir::OpPassManager &manager, const Target &target, bool isProven);

/// The passes, and the pipelines as `stepc-exec{target=…}` and `stepc-llvm`.
void registerKernelPasses();

} // namespace stepc::kernels

#endif
