//===- Records.h - Kernels for the interpreter ------------------*- C++ -*-===//
//
// Up to embed-plan a kernel is a function whose attribute says what the kernel is (runtime/interpret). The
// function of a kernel over chunks or parameters computes one element: it takes what is loaded, and stores
// results to pointers. The same passes as for a CPU expand and clean these functions. Then they become
// records.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_INTERPRET_RECORDS_H
#define STEPC_PASSES_KERNELS_INTERPRET_RECORDS_H

#include "dialects/exec/Exec.h"
#include "runtime/interpret/Kernels.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace stepc::kernels {

/// On a function: the kernel as bytes, with a register per argument of the function in the place of a body.
inline constexpr llvm::StringLiteral kRecordAttr = "stepc.record";

/// The function of a kernel of level 5, for all `dispatches` of it.
mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
recordFunction(mlir::func::FuncOp kernel, llvm::ArrayRef<exec::DispatchChunksOp> dispatches);
mlir::FailureOr<mlir::LLVM::LLVMFuncOp>
recordFunction(mlir::func::FuncOp kernel, llvm::ArrayRef<exec::DispatchParametersOp> dispatches);
/// The function of a kernel that has no body. It is shared by all kernels of that record.
mlir::LLVM::LLVMFuncOp recordFunction(mlir::SymbolTable &symbols, mlir::Location loc,
                                      interpret::NamedKernel kernel);

/// Replaces the functions by the constant `stepc_program_images`, which has the records of the plan's
/// kernels.
/// An error at an operation that the interpreter does not know.
mlir::LogicalResult embedRecords(mlir::ModuleOp module, const plan::Plan &plan);

} // namespace stepc::kernels

#endif
