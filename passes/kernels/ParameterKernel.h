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

/// How the rows of a kernel over parameters lead to what the kernel reads and writes. A row has a word for
/// the record, one for the scalars, and one for each operand that is numbers of the model.
struct ParameterForm {
  int64_t hyperparameters = 0;
  llvm::SmallVector<int64_t> numbers; ///< how many each of these operands has
  int64_t words() const { return 2 + int64_t(numbers.size()); }
  /// The arguments of the kernel's function: hyperparameters; step, rows, cols and numel; numbers.
  int64_t arguments() const;
};

/// Checks that a kernel of level 5 fits all dispatches that run it, and returns its form. Fails with an error
/// if it does not fit.
mlir::FailureOr<ParameterForm>
checkParameterKernel(mlir::func::FuncOp kernel,
                     llvm::ArrayRef<exec::DispatchParametersOp> dispatches);

/// The arguments of a kernel over parameters (kernel_abi.h).
struct ParameterArguments {
  mlir::Value rows, workspace, records;
};

/// The address of a parameter's record.
mlir::Value recordOf(KernelBuilder &b, mlir::Value records, mlir::Value parameter);
/// The address of a field of a record, by its offset.
mlir::Value fieldOf(KernelBuilder &b, mlir::Value record, size_t offset);
/// The address of the number of steps that the parameter of a record has taken.
mlir::Value stepsTaken(KernelBuilder &b, mlir::Value record);

/// Emits the kernel's region for `width` parameters from `item` on, or for one if `width` is 0. Loads
/// hyperparameters, step and block sizes as f64 from each parameter's record, and numbers of the model from
/// the workspace. Stores its row of scalars.
void emitParameters(KernelBuilder &b, ElementwiseBody &region, const ParameterForm &form,
                    const ParameterArguments &arguments, mlir::Value item, int64_t width);

} // namespace stepc::kernels

#endif
