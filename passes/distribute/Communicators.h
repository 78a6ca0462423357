//===- Communicators.h - Which ranks meet in a move -------------*- C++ -*-===//
#ifndef STEPC_PASSES_DISTRIBUTE_COMMUNICATORS_H
#define STEPC_PASSES_DISTRIBUTE_COMMUNICATORS_H

#include "dialects/comm/Comm.h"

#include "mlir/IR/Builders.h"

namespace stepc::distribute {

/// The factors of a mesh along which anything travels from one distribution of a group to another.
std::vector<plan::Factor> factorsOf(const plan::Group &group, const plan::Mesh &mesh,
                                    comm::Distribution from, comm::Distribution to);

/// The communicators of a step, each made where it is used first.
class Communicators {
public:
  mlir::Value get(mlir::OpBuilder &builder, mlir::Location loc, mlir::FlatSymbolRefAttr mesh,
                  llvm::ArrayRef<plan::Factor> factors);

private:
  llvm::DenseMap<mlir::Attribute, mlir::Value> made;
};

} // namespace stepc::distribute

#endif
