//===- Proof.h - A module at level 4, lowered and proven --------*- C++ -*-===//
#ifndef STEPC_TEST_SUPPORT_PROOF_H
#define STEPC_TEST_SUPPORT_PROOF_H

#include "passes/verify/Verify.h"

#include "mlir/IR/OwningOpRef.h"

namespace stepc::test {

/// What a module at level 4 is at level 5 on the CPU of tests: a copy, not yet proven. Null, after an error, if it is refused on
/// the way.
mlir::OwningOpRef<mlir::ModuleOp> lowerToExec(mlir::ModuleOp scheduled);

/// The plan of a module at level 5, which `lowerToExec` has made.
plan::Plan planOf(mlir::ModuleOp exec);

/// Lowers a copy of a module at level 4, verifies and proves it, with tables of `makeExpand` if it is given.
mlir::LogicalResult prove(mlir::ModuleOp scheduled, verify::MakeExpand makeExpand = {});

/// The text of a module at level 5, without the sizes that only level 4 has.
std::string textOf(mlir::ModuleOp exec);

} // namespace stepc::test

#endif // STEPC_TEST_SUPPORT_PROOF_H
