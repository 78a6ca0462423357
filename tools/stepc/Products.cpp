//===- Products.cpp - A table of pinned products, as IR --------------------===//

#include "tools/stepc/Products.h"

#include "dialects/exec/Exec.h"
#include "frontends/products/ProductTable.h"

#include "mlir/IR/Builders.h"

using namespace stepc;

static mlir::Type typeOf(mlir::Builder &b, plan::DType type) {
  return type == plan::DType::F32    ? b.getF32Type()
         : type == plan::DType::BF16 ? mlir::Type(b.getBF16Type())
                                     : b.getF16Type();
}

bool driver::readProducts(mlir::ModuleOp module, const std::string &path, Report &report) {
  std::optional<llvm::StringRef> text = report.read(path, "a table of products", kMostTable);
  if (!text)
    return false;
  manifest::ErrorList errors;
  std::optional<std::vector<products::Entry>> table = products::readTable(*text, path, errors);
  report.errors(errors);
  if (!table)
    return false;
  mlir::MLIRContext *context = module.getContext();
  context->getOrLoadDialect<exec::ExecDialect>();
  mlir::Builder b(context);
  llvm::SmallVector<mlir::Attribute> entries;
  for (const products::Entry &entry : *table)
    entries.push_back(exec::ProductEntryAttr::get(
        context, entry.m, entry.n, entry.k, typeOf(b, entry.lhs), typeOf(b, entry.rhs),
        entry.addend ? typeOf(b, *entry.addend) : mlir::Type(), typeOf(b, entry.out),
        entry.transposeLhs, entry.transposeRhs, entry.leading,
        exec::PinnedAlgorithmAttr::get(context, entry.algorithm)));
  module->setAttr(exec::kProductsAttr, b.getArrayAttr(entries));
  return true;
}
