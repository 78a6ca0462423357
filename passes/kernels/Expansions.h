//===- Expansions.h - Functions and conversions spelled out -----*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_EXPANSIONS_H
#define STEPC_PASSES_KERNELS_EXPANSIONS_H

#include "mlir/IR/PatternMatch.h"

namespace stepc::kernels {

/// Applies all expansions below to kernels, for a chip that has fused multiply-adds of f32 and f64 (`fuses`)
/// and conversions of f16 (`convertsHalf`). Fails with an error at an operation that would leave its result
/// to a chip or a library.
mlir::LogicalResult expandNumerics(llvm::ArrayRef<mlir::Operation *> kernels, bool fuses,
                                   bool convertsHalf);

/// arith.extf f16 → f32 and arith.truncf f32 → f16 as integer operations, for chips without conversions
/// in hardware. The bits are those of such hardware. A NaN keeps its sign and upper payload, and becomes
/// quiet.
void populateExpandHalfPatterns(mlir::RewritePatternSet &patterns);

/// math.exp and math.log of f32 as one sequence, ≤ 2 ulp over all floats, denormal ones included.
void populateExpandExponentialPatterns(mlir::RewritePatternSet &patterns);

/// math.rsqrt and math.powf of f32. A power becomes one of f64, unless the exponent is a small whole
/// constant.
void populateExpandPowerPatterns(mlir::RewritePatternSet &patterns);

/// math.exp, math.log and math.powf of f64, below 1 ulp over all numbers, and fused multiply-adds
/// of f32 for chips without them. The same bits with (`fuses`) and without fused multiply-adds.
void populateExpandFloat64Patterns(mlir::RewritePatternSet &patterns, bool fuses);

} // namespace stepc::kernels

#endif
