//===- KernelBuilder.cpp - Pointers, loops and functions -------------------===//

#include "passes/kernels/KernelBuilder.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace stepc::kernels {

LLVM::LLVMFuncOp beginKernel(ModuleOp module, StringRef name, KernelBuilder &builder) {
  builder.setInsertionPointToEnd(module.getBody());
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()),
                                  {builder.pointer, builder.getI64Type(), builder.getI64Type()});
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
  // It is linked into the same library: no detour for symbols that others may define.
  function.setVisibility_(LLVM::Visibility::Hidden);
  return function;
}

std::string fingerprint(Region &region) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::DenseMap<Value, unsigned> numbers;
  for (Block &block : region) {
    for (BlockArgument argument : block.getArguments()) {
      os << argument.getType() << ' ';
      numbers.try_emplace(argument, numbers.size());
    }
    for (Operation &op : block) {
      os << '\n' << op.getName() << op.getAttrDictionary();
      for (Value operand : op.getOperands())
        os << ' ' << numbers.lookup(operand);
      for (Value result : op.getResults()) {
        os << " : " << result.getType();
        numbers.try_emplace(result, numbers.size());
      }
      for (Region &inner : op.getRegions())
        os << '{' << fingerprint(inner) << '}';
    }
  }
  return text;
}

} // namespace stepc::kernels
