//===- Communicators.h - Which ranks meet in a move -------------*- C++ -*-===//
#ifndef STEPC_PASSES_DISTRIBUTE_COMMUNICATORS_H
#define STEPC_PASSES_DISTRIBUTE_COMMUNICATORS_H

#include "dialects/comm/Comm.h"

#include "mlir/IR/Builders.h"

namespace stepc::distribute {

/// The factors of a mesh along which elements travel from one distribution of a group to another. The hops of
/// the group start at `home`.
std::vector<plan::Factor> factorsOf(const plan::Group &group, const plan::Mesh &mesh,
                                    comm::Distribution home, comm::Distribution from,
                                    comm::Distribution to);

/// The factors along which ranks have parts of the same lines of a group: rows, columns or blocks (`kind`).
std::vector<plan::Factor> factorsOfLines(const plan::Group &group, const plan::Mesh &mesh,
                                         plan::ValueKind kind);

/// Whether ranks that differ only along `factors` are always on one communicator of the factors
/// `communicator`. Both are factors of one mesh.
bool meetAlong(llvm::ArrayRef<plan::Factor> factors, llvm::ArrayRef<plan::Factor> communicator);

/// The communicators of a step. `get` creates the operation when a communicator is first used.
class Communicators {
public:
  mlir::Value get(mlir::OpBuilder &builder, mlir::Location loc, mlir::FlatSymbolRefAttr mesh,
                  llvm::ArrayRef<plan::Factor> factors);

private:
  llvm::DenseMap<mlir::Attribute, mlir::Value> made;
};

} // namespace stepc::distribute

#endif
