//===- Products.h - A table of pinned products, as IR -----------*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_PRODUCTS_H
#define STEPC_TOOLS_STEPC_PRODUCTS_H

#include "tools/stepc/Report.h"

#include "mlir/IR/BuiltinOps.h"

namespace stepc::driver {

/// Reads a table of pinned products into the module's `exec.products`. Returns false after errors, which say
/// where.
bool readProducts(mlir::ModuleOp module, const std::string &path, Report &report);

} // namespace stepc::driver

#endif
