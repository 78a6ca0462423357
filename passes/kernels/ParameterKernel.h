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

/// That a kernel of level 5 fits all dispatches that run it; an error where it does not.
mlir::LogicalResult checkParameterKernel(mlir::func::FuncOp kernel,
                                         llvm::ArrayRef<exec::DispatchParametersOp> dispatches);

/// What a kernel over parameters is given (kernel_abi.h).
struct ParameterArguments {
  mlir::Value rows, workspace, records;
};

/// Where the record of a parameter stands.
mlir::Value recordOf(KernelBuilder &b, mlir::Value records, mlir::Value parameter);
/// Where the number of steps stands that it took.
mlir::Value stepsTaken(KernelBuilder &b, mlir::Value record);

/// Emits the kernel's region for the parameters from `item` on: `width` of them, or one where that is
/// 0. Hyperparameters, step and block sizes in f64 are loaded from a parameter's record, its row of
/// scalars is stored.
void emitParameters(KernelBuilder &b, ElementwiseBody &region, mlir::Block &body,
                    const ParameterArguments &arguments, mlir::Value item, int64_t width);

} // namespace stepc::kernels

#endif
