//===- ProgramImages.cpp - A program's images as constants -----------------===//

#include "passes/kernels/ProgramImages.h"
#include "passes/kernels/EmbedPlan.h"
#include "runtime/plan/Images.h"

using namespace mlir;

namespace stepc::kernels {

void embedImages(KernelBuilder &b, ArrayRef<ProgramImage> images) {
  auto constant = [&](StringRef name, Type type, Attribute value) {
    return LLVM::GlobalOp::create(b, b.loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
                                  name, value, /*alignment=*/16);
  };
  auto bytes = [&](StringRef name, StringRef text) {
    constant(name, LLVM::LLVMArrayType::get(b.getI8Type(), text.size()), b.getStringAttr(text));
  };
  for (const ProgramImage &image : images) {
    bytes(image.codeSymbol, image.code);
    bytes(image.chipSymbol, image.chip + std::string(1, '\0'));
  }
  Type i64 = b.getI64Type();
  auto record = LLVM::LLVMStructType::getLiteral(
      b.getContext(), {b.pointer, i64, i64, i64, b.pointer, i64, i64, i64});
  // An image of zeros ends the list.
  auto all = LLVM::LLVMArrayType::get(record, images.size() + 1);
  LLVM::GlobalOp table = constant(kImages, all, Attribute());
  b.setInsertionPointToStart(b.createBlock(&table.getInitializerRegion()));
  Value value = LLVM::ZeroOp::create(b, b.loc, all);
  for (auto [index, image] : llvm::enumerate(images)) {
    auto addressOf = [&](StringRef name) -> Value {
      return LLVM::AddressOfOp::create(b, b.loc, b.pointer, name);
    };
    auto number = [&](int64_t n) -> Value {
      return LLVM::ConstantOp::create(b, b.loc, i64, b.getI64IntegerAttr(n));
    };
    stepc_image made{nullptr,
                     image.major,
                     image.minor,
                     image.kind,
                     image.code.data(),
                     int64_t(image.code.size()),
                     0,
                     0};
    made.code_hash = plan::codeHash(made);
    made.numbers_hash = plan::numbersHash(made);
    Value fields[] = {addressOf(image.chipSymbol),
                      number(made.major),
                      number(made.minor),
                      number(made.kind),
                      addressOf(image.codeSymbol),
                      number(made.bytes),
                      number(int64_t(made.code_hash)),
                      number(int64_t(made.numbers_hash))};
    for (auto [field, given] : llvm::enumerate(fields))
      value = LLVM::InsertValueOp::create(b, b.loc, value, given,
                                          ArrayRef<int64_t>{int64_t(index), int64_t(field)});
  }
  LLVM::ReturnOp::create(b, b.loc, value);
}

} // namespace stepc::kernels
