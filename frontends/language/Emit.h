//===- Emit.h - From the typed tree to level 1 of the ladder ----*- C++ -*-===//
#ifndef STEPC_FRONTENDS_LANGUAGE_EMIT_H
#define STEPC_FRONTENDS_LANGUAGE_EMIT_H

#include "frontends/language/AST.h"

// Optim.h needs this header, but does not include it, because the precompiled header has it.
#include "mlir/Interfaces/InferTypeOpInterface.h"

#include "dialects/optim/Optim.h"
#include "mlir/IR/BuiltinOps.h"

namespace stepc::lang {

/// Loads the dialects that the emitted operations belong to.
void loadDialects(mlir::MLIRContext &context);

/// Appends one `optim.rule` to the module. The rule must come from a file that
/// `analyze` accepted. `source` is that file's text, in which operations have
/// their locations. The context must have the dialects loaded.
optim::RuleOp emitRule(const Rule &rule, const Source &source, mlir::ModuleOp module);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_EMIT_H
