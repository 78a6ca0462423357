//===- RandomNumbers.h - Code that draws random numbers ---------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_RANDOMNUMBERS_H
#define STEPC_PASSES_KERNELS_RANDOMNUMBERS_H

#include "dialects/optim/Optim.h"

namespace stepc::kernels {

/// Computes the same numbers as random::normal (runtime/random/Philox.h), as f32. `element` is an i64 or
/// a vector of i64, and the result has its shape. `seed` is an i32, and `key`, the hash of the parameter's
/// name, an i64.
mlir::Value emitNormal(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value element,
                       mlir::Value seed, mlir::Value key, uint32_t call);
/// The seed from its two halves, scalars of f32.
mlir::Value emitSeed(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value high,
                     mlir::Value low);

} // namespace stepc::kernels

#endif
