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
/// their locations. The context must have the dialects loaded. If the rule reads
/// values of the model, the module must have it: see emitDefinitions.
optim::RuleOp emitRule(const Rule &rule, const Source &source, mlir::ModuleOp module);

/// Appends the file's model as `optim.model`, if it has one, and one `optim.rule` for each of its rules that
/// is taken. The model has the values that these rules read. Requires what emitRule requires.
void emitDefinitions(
    const File &file, mlir::ModuleOp module,
    llvm::function_ref<bool(const Rule &)> isTaken = [](const Rule &) { return true; });

/// Fills a region with a claim's condition: the arguments are rows, cols and numel of a block, of f64, and an
/// `optim.yield` has the i1. The file that has the condition must have been analyzed.
void emitCondition(const Expr &condition, const Source &source, mlir::Region &region);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_EMIT_H
