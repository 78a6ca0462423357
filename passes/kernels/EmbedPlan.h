//===- EmbedPlan.h - What a module at level llvm says of itself -*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_EMBEDPLAN_H
#define STEPC_PASSES_KERNELS_EMBEDPLAN_H

#include "mlir/IR/BuiltinOps.h"
#include "runtime/plan/Plan.h"

#include <string>

namespace stepc::kernels {

/// The plan that a module at level llvm carries.
mlir::FailureOr<plan::Plan> embeddedPlan(mlir::ModuleOp module);

/// What names in C begin with for a library of any name: "my-model" → "my_model". Characters
/// outside ASCII become their code point ("λ" → "u3bb"); names that start with no letter, or as
/// those of the interface do, get `optim_` in front ("2-muon" → "optim_2_muon", "stepc" →
/// "optim_stepc").
std::string symbolPrefix(llvm::StringRef library);
/// "my-model" → "my_model_library": the function that a library exports.
std::string entryName(llvm::StringRef library);

/// "stepc_program_cpu", …: what the code of a chip shows outside of its object, a stepc_program.
std::string programName(llvm::StringRef chip);
/// The images of a program for GPUs or the interpreter.
inline constexpr llvm::StringLiteral kImages = "stepc_program_images";

} // namespace stepc::kernels

#endif
