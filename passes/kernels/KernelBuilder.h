//===- KernelBuilder.h - Pointers, loops and functions ----------*- C++ -*-===//
//
// The little vocabulary in which kernels are written: scf loops over i64, loads and
// stores through LLVM pointers, arith and vector in between.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_KERNELBUILDER_H
#define STEPC_PASSES_KERNELS_KERNELBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace stepc::kernels {

class KernelBuilder : public mlir::OpBuilder {
public:
  /// `space`: the address space of all pointers.
  KernelBuilder(mlir::MLIRContext *context, mlir::Location loc, unsigned space = 0)
      : OpBuilder(context), loc(loc), pointer(mlir::LLVM::LLVMPointerType::get(context, space)) {}

  const mlir::Location loc;
  const mlir::LLVM::LLVMPointerType pointer;

  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIntOp::create(*this, loc, value, 64);
  }
  mlir::Value add(mlir::Value a, mlir::Value b) {
    return mlir::arith::AddIOp::create(*this, loc, a, b);
  }
  mlir::Value mul(mlir::Value a, mlir::Value b) {
    return mlir::arith::MulIOp::create(*this, loc, a, b);
  }

  /// The address of element `index` of an array of `element` at `base`, in its address space.
  mlir::Value address(mlir::Value base, mlir::Type element, mlir::Value index) {
    return mlir::LLVM::GEPOp::create(*this, loc, base.getType(), element, base,
                                     mlir::ValueRange{index});
  }
  mlir::Value address(mlir::Value base, mlir::Type element, int64_t index) {
    return mlir::LLVM::GEPOp::create(*this, loc, base.getType(), element, base,
                                     mlir::ArrayRef<mlir::LLVM::GEPArg>{int32_t(index)});
  }
  /// Without `alignment` (bytes), the load states the size of the integer or float, and 8 for any other type.
  /// A load that stated none would get less from a GPU's back end, which then loads 8 bytes in two halves.
  mlir::Value load(mlir::Type type, mlir::Value from, unsigned alignment = 0) {
    if (!alignment)
      alignment = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() / 8 : 8;
    return mlir::LLVM::LoadOp::create(*this, loc, type, from, alignment);
  }
  void store(mlir::Value value, mlir::Value to, unsigned alignment = 0) {
    mlir::LLVM::StoreOp::create(*this, loc, value, to, alignment);
  }
  /// arguments[index] of a kernel.
  mlir::Value argument(mlir::Value arguments, int64_t index) {
    return load(pointer, address(arguments, pointer, index));
  }

  /// Runs `then` if the condition holds, and otherwise `otherwise`, which may be null.
  void when(mlir::Value condition, llvm::function_ref<void()> then,
            llvm::function_ref<void()> otherwise = nullptr) {
    auto ifOp = mlir::scf::IfOp::create(*this, loc, condition, bool(otherwise));
    InsertionGuard guard(*this);
    setInsertionPointToStart(ifOp.thenBlock());
    then();
    if (!otherwise)
      return;
    setInsertionPointToStart(ifOp.elseBlock());
    otherwise();
  }
  /// for (i = first; i < last; i += step) body(i)
  void loop(mlir::Value first, mlir::Value last, int64_t step,
            llvm::function_ref<void(mlir::Value)> body) {
    loop(first, last, constant(step), body);
  }
  void loop(mlir::Value first, mlir::Value last, mlir::Value step,
            llvm::function_ref<void(mlir::Value)> body) {
    auto forOp = mlir::scf::ForOp::create(*this, loc, first, last, step);
    InsertionGuard guard(*this);
    setInsertionPointToStart(forOp.getBody());
    body(forOp.getInductionVar());
  }
  /// A loop that carries values from one iteration to the next. Returns the values after the last iteration.
  llvm::SmallVector<mlir::Value>
  loop(mlir::Value first, mlir::Value last, int64_t step, mlir::ValueRange values,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body) {
    auto forOp = mlir::scf::ForOp::create(*this, loc, first, last, constant(step), values);
    InsertionGuard guard(*this);
    setInsertionPointToStart(forOp.getBody());
    auto left = body(forOp.getInductionVar(), forOp.getRegionIterArgs());
    if (!values.empty()) // otherwise the loop already has its yield
      mlir::scf::YieldOp::create(*this, loc, left);
    return forOp.getResults();
  }
};

/// Begins `llvm.func internal @name` at the module's end. The builder then stands before its return. Without
/// `arguments`, the types are those of a kernel: !llvm.ptr, i64, i64.
mlir::LLVM::LLVMFuncOp beginKernel(mlir::ModuleOp module, llvm::StringRef name,
                                   KernelBuilder &builder,
                                   llvm::ArrayRef<mlir::Type> arguments = {});

/// Returns the declaration of the runtime's function `name`, and adds it if the module lacks it.
mlir::LLVM::LLVMFuncOp declare(mlir::ModuleOp module, llvm::StringRef name, mlir::Type result,
                               llvm::ArrayRef<mlir::Type> arguments);

} // namespace stepc::kernels

#endif
