//===- ParameterKernel.h - What a kernel computes of a parameter -*- C++ -*-===//
//
// What all targets share of kernels over parameters, which write rows of scalars.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_PARAMETERKERNEL_H
#define STEPC_PASSES_KERNELS_PARAMETERKERNEL_H

#include "dialects/exec/Exec.h"
#include "passes/kernels/ElementwiseBody.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace stepc::kernels {

/// Checks that a kernel of level 5 fits all dispatches that run it. Fails with an error if not.
mlir::LogicalResult checkParameterKernel(mlir::func::FuncOp kernel,
                                         llvm::ArrayRef<exec::DispatchParametersOp> dispatches);

/// The arguments of a kernel over parameters (kernel_abi.h).
struct ParameterArguments {
  mlir::Value rows, workspace, records;
};

/// The address of a parameter's record.
mlir::Value recordOf(KernelBuilder &b, mlir::Value records, mlir::Value parameter);
/// The address of the number of steps that the parameter of a record has taken.
mlir::Value stepsTaken(KernelBuilder &b, mlir::Value record);

/// Emits the kernel's region for `width` parameters from `item` on, or for one if `width` is 0. Loads
/// hyperparameters, step and block sizes as f64 from each parameter's record, and stores its row of scalars.
void emitParameters(KernelBuilder &b, ElementwiseBody &region, mlir::Block &body,
                    const ParameterArguments &arguments, mlir::Value item, int64_t width);

} // namespace stepc::kernels

#endif
