//===- ExpandHalf.h - f16 conversions in integers ---------------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_EXPANDHALF_H
#define STEPC_PASSES_KERNELS_EXPANDHALF_H

#include "mlir/IR/PatternMatch.h"

namespace stepc::kernels {

/// arith.extf f16 → f32 and arith.truncf f32 → f16 as integer operations, for chips without
/// conversions in hardware. The same bits as theirs; NaNs keep sign and upper payload, quiet.
void populateExpandHalfPatterns(mlir::RewritePatternSet &patterns);

} // namespace stepc::kernels

#endif
