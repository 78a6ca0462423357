//===- Expansions.h - Functions and conversions spelled out -----*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_EXPANSIONS_H
#define STEPC_PASSES_KERNELS_EXPANSIONS_H

#include "mlir/IR/PatternMatch.h"

namespace stepc::kernels {

/// arith.extf f16 → f32 and arith.truncf f32 → f16 as integer operations, for chips without
/// conversions in hardware. The same bits as theirs; NaNs keep sign and upper payload, quiet.
void populateExpandHalfPatterns(mlir::RewritePatternSet &patterns);

/// math.exp and math.log of f32 as one sequence, ≤ 2 ulp over all floats, denormal ones included.
void populateExpandExponentialPatterns(mlir::RewritePatternSet &patterns);

/// math.rsqrt and math.powf of f32.
void populateExpandPowerPatterns(mlir::RewritePatternSet &patterns);

} // namespace stepc::kernels

#endif
