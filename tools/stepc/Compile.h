//===- Compile.h - From level llvm to the files of a library ----*- C++ -*-===//
#ifndef STEPC_TOOLS_STEPC_COMPILE_H
#define STEPC_TOOLS_STEPC_COMPILE_H

#include "tools/stepc/Files.h"
#include "tools/stepc/Options.h"

#include "mlir/IR/BuiltinOps.h"

namespace stepc::driver {

/// Adds lib<name>.so, <name>.h and <name>.json of a module at level llvm to `files`, which
/// the caller commits. Returns an exit code; on failure an error was printed.
int makeLibrary(mlir::ModuleOp module, const CompileOptions &options, OutputFiles &files,
                Report &report);

} // namespace stepc::driver

#endif
