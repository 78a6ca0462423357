//===- Emit.h - From the typed tree to level 1 of the ladder ----*- C++ -*-===//
#ifndef STEPC_FRONTENDS_LANGUAGE_EMIT_H
#define STEPC_FRONTENDS_LANGUAGE_EMIT_H

#include "frontends/language/AST.h"

#include "dialects/optim/Optim.h"
#include "mlir/IR/BuiltinOps.h"

namespace stepc::lang {

/// Loads the dialects that the emitted operations belong to.
void loadDialects(mlir::MLIRContext &context);

/// Appends one `optim.rule` to the module. The rule comes from a file that
/// `analyze` accepted, and `source` is that file's text: every operation's
/// location is the place in it. The context must have the dialects loaded.
optim::RuleOp emitRule(const Rule &rule, const Source &source,
                       mlir::ModuleOp module);

/// Appends one `optim.route` per claim, after the rules. They are called
/// `<rule>.route`, and `<rule>.route1`, ... for further claims of a rule: rules and
/// routes share one symbol table, so a route cannot have its rule's name.
void emitRoute(const Route &route, const Source &source, mlir::ModuleOp module);

/// All rules and the route of a file that `analyze` accepted.
void emitFile(const File &file, mlir::ModuleOp module);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_EMIT_H
