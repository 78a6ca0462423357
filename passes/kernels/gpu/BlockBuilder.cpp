//===- BlockBuilder.cpp - Threads that work together -----------------------===//

#include "passes/kernels/gpu/BlockBuilder.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace stepc::kernels {

Value BlockBuilder::isMultiple(Value address, int64_t bytes) {
  Value number = LLVM::PtrToIntOp::create(*this, loc, getI64Type(), address);
  Value low = arith::AndIOp::create(*this, loc, number, constant(bytes - 1));
  return arith::CmpIOp::create(*this, loc, arith::CmpIPredicate::eq, low, constant(0));
}

Value BlockBuilder::memory(Type element, int64_t elements) {
  auto space = gpu::AddressSpaceAttr::get(getContext(), gpu::AddressSpace::Workgroup);
  auto type = MemRefType::get({elements}, element, MemRefLayoutAttrInterface(), space);
  unsigned index = function.getNumWorkgroupAttributions();
  Value buffer = function.addWorkgroupAttribution(type, loc);
  function.setWorkgroupAttributionAttr(index, LLVM::LLVMDialect::getAlignAttrName(),
                                       getI64IntegerAttr(16));
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(*this, loc, buffer);
  address = arith::IndexCastOp::create(*this, loc, getI64Type(), address);
  auto type3 = LLVM::LLVMPointerType::get(getContext(), kWorkgroup);
  return LLVM::IntToPtrOp::create(*this, loc, type3, address);
}

} // namespace stepc::kernels
