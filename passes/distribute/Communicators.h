//===- Communicators.h - Which ranks meet in a move -------------*- C++ -*-===//
#ifndef STEPC_PASSES_DISTRIBUTE_COMMUNICATORS_H
#define STEPC_PASSES_DISTRIBUTE_COMMUNICATORS_H

#include "dialects/comm/Comm.h"

#include "mlir/IR/Builders.h"

namespace stepc::distribute {

/// The factors of a mesh along which anything travels from one distribution of a group, whose hops
/// start at `home`, to another.
std::vector<plan::Factor> factorsOf(const plan::Group &group, const plan::Mesh &mesh,
                                    comm::Distribution home, comm::Distribution from,
                                    comm::Distribution to);

/// Whether all ranks that differ along some factors of one mesh alone meet on a communicator of others.
bool meetAlong(llvm::ArrayRef<plan::Factor> factors, llvm::ArrayRef<plan::Factor> communicator);

/// The communicators of a step; each is made where it is first used.
class Communicators {
public:
  mlir::Value get(mlir::OpBuilder &builder, mlir::Location loc, mlir::FlatSymbolRefAttr mesh,
                  llvm::ArrayRef<plan::Factor> factors);

private:
  llvm::DenseMap<mlir::Attribute, mlir::Value> made;
};

} // namespace stepc::distribute

#endif
