//===- EmbedPlan.h - The plan and names in generated code -------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_EMBEDPLAN_H
#define STEPC_PASSES_KERNELS_EMBEDPLAN_H

#include "mlir/IR/BuiltinOps.h"
#include "runtime/plan/Plan.h"

#include <string>

namespace stepc::kernels {

/// The plan that a module at level llvm carries.
mlir::FailureOr<plan::Plan> embeddedPlan(mlir::ModuleOp module);

/// The prefix of a library's names in C: "my-model" → "my_model". Characters outside ASCII become their
/// code point ("λ" → "u3bb"). A name that begins with no letter, or with "stepc" as the interface's names
/// do, gets `optim_` in front ("2-muon" → "optim_2_muon", "stepc" → "optim_stepc").
std::string symbolPrefix(llvm::StringRef library);
/// "my-model" → "my_model_library": the function that a library exports.
std::string entryName(llvm::StringRef library);

/// The name of a chip's stepc_program: "stepc_program_cpu", … It is the only name that other objects see.
std::string programName(llvm::StringRef chip);
/// The name of the list of a program's images, for GPUs and the interpreter.
inline constexpr llvm::StringLiteral kImages = "stepc_program_images";

} // namespace stepc::kernels

#endif
