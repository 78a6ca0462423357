//===- RandomNumbers.h - Code that draws random numbers ---------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_RANDOMNUMBERS_H
#define STEPC_PASSES_KERNELS_RANDOMNUMBERS_H

#include "dialects/optim/Optim.h"

namespace stepc::kernels {

/// The operands of a draw beside the element. Each has one value for all elements.
struct DrawOperands {
  bool operator==(const DrawOperands &) const = default;
  mlir::Value high, low;         ///< halves of the seed, f32
  mlir::Value stepHigh, stepLow; ///< halves of the step, f32
  mlir::Value condition;         ///< an i1, or null
  mlir::Value key;               ///< the hash of the parameter's name, an i64
};
/// The operands of `op`, each replaced by what `given` says.
DrawOperands operandsOf(optim::RandomOp op, llvm::function_ref<mlir::Value(mlir::Value)> given);

/// Computes the same numbers as random::number (runtime/random/Philox.h), as f32, for each of the calls.
/// `element` is an i64, or a vector of i64 that counts up by 1, and the results have its shape. The condition
/// is not read. `isAligned`: the first element of a vector is a multiple of the vector's size.
llvm::SmallVector<mlir::Value> emitNumbers(mlir::OpBuilder &builder, mlir::Location loc,
                                           plan::Draw draw, mlir::Value element,
                                           const DrawOperands &operands,
                                           llvm::ArrayRef<uint32_t> calls, bool isAligned = false);
/// How many calls are best computed at once. A CPU's vector has the counters of several. A GPU's registers
/// are better used for one call after the other.
size_t callsAtOnce(plan::Draw draw, mlir::Value element);
/// Rounds f32 to bf16 as optim.stochastic does. `uniform` has the type of `source`.
mlir::Value emitStochastic(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value source,
                           mlir::Value uniform);

} // namespace stepc::kernels

#endif
