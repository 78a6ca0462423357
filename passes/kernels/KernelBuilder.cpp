//===- KernelBuilder.cpp - Pointers, loops and functions -------------------===//

#include "passes/kernels/KernelBuilder.h"

using namespace mlir;

namespace stepc::kernels {

LLVM::LLVMFuncOp beginKernel(ModuleOp module, StringRef name, KernelBuilder &builder,
                             ArrayRef<Type> arguments) {
  builder.setInsertionPointToEnd(module.getBody());
  SmallVector<Type> ofKernels{builder.pointer, builder.getI64Type(), builder.getI64Type()};
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()),
                                          arguments.empty() ? ofKernels : arguments);
  auto kernel =
      LLVM::LLVMFuncOp::create(builder, builder.loc, name, type, LLVM::Linkage::Internal, true);
  builder.setInsertionPointToStart(kernel.addEntryBlock(builder));
  builder.setInsertionPoint(LLVM::ReturnOp::create(builder, builder.loc, ValueRange{}));
  return kernel;
}

LLVM::LLVMFuncOp declare(ModuleOp module, StringRef name, Type result, ArrayRef<Type> arguments) {
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder builder(module.getContext());
  builder.setInsertionPointToStart(module.getBody());
  auto type = LLVM::LLVMFunctionType::get(result, arguments);
  auto function = LLVM::LLVMFuncOp::create(builder, builder.getUnknownLoc(), name, type);
  // The function is linked into the same library, so calls need no indirection for names that another library
  // may define.
  function.setVisibility_(LLVM::Visibility::Hidden);
  return function;
}

} // namespace stepc::kernels
