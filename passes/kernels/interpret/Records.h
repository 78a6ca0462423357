//===- Records.h - Kernels for the interpreter ------------------*- C++ -*-===//
//
// Until kernels-embed-plan, a kernel is a function whose attribute says what the kernel is
// (runtime/interpret). The function of a kernel over chunks or parameters computes one element: it gets
// loaded values as arguments, and stores results to pointers. Passes expand and clean these functions as they
// do for a CPU. Then they become records.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_INTERPRET_RECORDS_H
#define STEPC_PASSES_KERNELS_INTERPRET_RECORDS_H

#include "dialects/exec/Exec.h"
#include "runtime/interpret/Kernels.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace stepc::kernels {

/// The attribute of such a function: the kernel's record as bytes, without a body. In the place of registers
/// it has numbers of the function's arguments.
inline constexpr llvm::StringLiteral kRecordAttr = "stepc.record";

/// Makes the function of a kernel of level 5. `dispatches` must be all that run the kernel.
mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
recordFunction(mlir::func::FuncOp kernel, llvm::ArrayRef<exec::DispatchChunksOp> dispatches);
mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
recordFunction(mlir::func::FuncOp kernel, llvm::ArrayRef<exec::DispatchParametersOp> dispatches);
/// Returns the function of a kernel that has no body, such as a product. Kernels of one name share it.
mlir::LLVM::LLVMFuncOp recordFunction(mlir::SymbolTable &symbols, mlir::Location loc,
                                      interpret::NamedKernel kernel);

/// Replaces the functions by the constant `stepc_program_images`, which has the records of the plan's
/// kernels. Fails with an error at an operation that the interpreter does not know.
mlir::LogicalResult embedRecords(mlir::ModuleOp module, const plan::Plan &plan);

} // namespace stepc::kernels

#endif
