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
  /// cpu (this machine), cpu:<llvm cpu> or emulated:<sm_80…>; empty: this machine.
  std::string target;
};

/// Level 4 (scheduled) to level 5 (exec), without the proof.
void buildCommandPipeline(mlir::OpPassManager &manager, const KernelOptions &options);
/// Level 4 (scheduled) to level 5 (exec).
void buildExecPipeline(mlir::OpPassManager &manager, const KernelOptions &options);
/// Level 5 (exec) to level 6 (llvm), for the target of the module. `isProven`: this process has made and
/// proven the module, so the proof is left out.
void buildLlvmPipeline(mlir::OpPassManager &manager, const Target &target, bool isProven);

/// Turns the gpu.module that exec-kernels-to-gpu makes into a `gpu.binary` object of PTX.
void buildPtxPipeline(mlir::OpPassManager &manager);
/// Registers the interfaces that conversions and the translation to PTX look up. Without an interface, a
/// dialect's operations silently stay as they are.
void registerGpuInterfaces(mlir::DialectRegistry &registry);

/// In the metadata of an error: a program that passes call (ptxas) is missing or too old. That is neither the
/// input's fault nor stepc's. If the program refuses our code, the error has no mark, because it is stepc's
/// fault.
inline constexpr llvm::StringLiteral kToolErrorMark = "stepc.tool";

/// Registers the passes of this folder, and the pipelines `stepc-exec{target=…}`, `stepc-llvm` and
/// `stepc-ptx`.
void registerKernelPasses();

} // namespace stepc::kernels

#endif
