//===- KernelCache.cpp - One kernel per distinct computation ---------------===//

#include "passes/kernels/StageKernel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace stepc::kernels {

Type elementOf(Value value) {
  if (auto shards = dyn_cast<comm::ShardsType>(value.getType()))
    return shards.getElementType();
  return cast<ShapedType>(value.getType()).getElementType();
}

StringRef roleOf(comm::StageOp op) {
  if (op.getIteration() == comm::Iteration::Blocks)
    return "blocks";
  return !op.getOuts().empty() ? "in" : op.getStaged().empty() ? "elementwise" : "out";
}

std::string kernelName(comm::StageOp op) {
  auto segment = SymbolTable::lookupNearestSymbolFrom<comm::SegmentOp>(op, op.getSegmentAttr());
  auto group = SymbolTable::lookupNearestSymbolFrom<optim::GroupOp>(op, segment.getGroupAttr());
  std::string name = (group.getRule() + "_" + roleOf(op)).str();
  SmallVector<Type> types;
  for (auto values :
       {ValueRange(op.getIns()), ValueRange(op.getWrites()), ValueRange(op.getOuts())})
    for (Value value : values)
      if (!llvm::is_contained(types, elementOf(value)))
        types.push_back(elementOf(value));
  llvm::raw_string_ostream os(name);
  for (Type type : types)
    os << '_' << type;
  return name;
}

void KernelCache::enter(LLVM::LLVMFuncOp function, const std::string &name) {
  std::string unique;
  // From where the last search ended: what was taken once stays.
  for (int64_t &copy = copies[name];; ++copy) {
    unique = copy == 0 ? name : name + "_" + std::to_string(copy);
    if (!table.lookup(unique))
      break;
  }
  function.setSymName(unique);
  table.insert(function);
}

FailureOr<LLVM::LLVMFuncOp>
KernelCache::get(const std::string &key, std::string name, Location loc,
                 llvm::function_ref<LogicalResult(KernelBuilder &, LLVM::LLVMFuncOp)> emit) {
  LLVM::LLVMFuncOp &kernel = kernels[key];
  if (kernel)
    return kernel;
  KernelBuilder builder(module.getContext(), loc);
  kernel = beginKernel(module, name, builder);
  enter(kernel, name);
  if (failed(emit(builder, kernel)))
    return failure();
  return kernel;
}

} // namespace stepc::kernels
