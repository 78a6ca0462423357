//===- BlockBuilder.cpp - Threads that work together -----------------------===//

#include "passes/kernels/gpu/BlockBuilder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace stepc::kernels {

Value BlockBuilder::isMultiple(Value address, int64_t bytes) {
  Value number = LLVM::PtrToIntOp::create(*this, loc, getI64Type(), address);
  Value low = arith::AndIOp::create(*this, loc, number, constant(bytes - 1));
  return arith::CmpIOp::create(*this, loc, arith::CmpIPredicate::eq, low, constant(0));
}

Value BlockBuilder::exchangeBits(Value x, int32_t lanes) {
  Type type = x.getType();
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 32)
    return exchange(x, lanes);
  Value wide = arith::ExtUIOp::create(*this, loc, getI32Type(), x);
  return arith::TruncIOp::create(*this, loc, type, exchange(wide, lanes));
}

void BlockBuilder::copyAsync(Value to, Value from, Value isThere) {
  Value bytes;
  if (isThere) {
    auto number = [&](int64_t n) { return arith::ConstantIntOp::create(*this, loc, n, 32); };
    bytes = arith::SelectOp::create(*this, loc, isThere, number(16), number(0));
  }
  // CG: cached in the second level only, because slabs need no space in the first-level cache.
  NVVM::CpAsyncOp::create(*this, loc, to, from, 16, NVVM::LoadCacheModifierKind::CG, bytes);
}

void BlockBuilder::commitGroup() { NVVM::CpAsyncCommitGroupOp::create(*this, loc); }

void BlockBuilder::waitGroup(int64_t groups) {
  NVVM::CpAsyncWaitGroupOp::create(*this, loc, uint32_t(groups));
}

SmallVector<Value> BlockBuilder::loadMatrices(Value row, int64_t count, bool transposed) {
  auto type =
      LLVM::LLVMStructType::getLiteral(getContext(), SmallVector<Type>(count, getI32Type()));
  auto shape = NVVM::LdStMatrixShapeAttr::get(getContext(), 8, 8);
  Value words = NVVM::LdMatrixOp::create(*this, loc, type, row, uint32_t(count),
                                         transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
                                         shape, NVVM::LdStMatrixEltType::B16);
  return fields(words);
}

SmallVector<Value> BlockBuilder::multiplyMatrices(Type type, ValueRange left, ValueRange right,
                                                  ValueRange sums) {
  // The instruction gets bf16 as words, and f16 as vectors of two.
  auto taken = [&](ValueRange words) {
    SmallVector<Value> result(words);
    if (type.isF16())
      for (Value &word : result)
        word = LLVM::BitcastOp::create(*this, loc, VectorType::get({2}, type), word);
    return result;
  };
  auto kind = type.isF16() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  auto made = LLVM::LLVMStructType::getLiteral(getContext(), SmallVector<Type>(4, getF32Type()));
  Value result = NVVM::MmaOp::create(
      *this, loc, made, taken(left), taken(right), sums, ArrayRef<int64_t>{16, 8, 16}, std::nullopt,
      std::nullopt, std::array{kind, kind}, std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  return fields(result);
}

SmallVector<Value> BlockBuilder::fields(Value record) {
  SmallVector<Value> result;
  int64_t count = cast<LLVM::LLVMStructType>(record.getType()).getBody().size();
  for (int64_t i = 0; i < count; ++i)
    result.push_back(LLVM::ExtractValueOp::create(*this, loc, record, i));
  return result;
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
